-- Schedules that are paused, disabled or invalid, or failed the last time: the few that people ask for among the many.
-- A fire that goes well does not touch it.
CREATE INDEX cadences_amiss ON cadences (schedule_id)
  WHERE state IN ('paused', 'disabled', 'invalid') OR consecutive_errors > 0;
