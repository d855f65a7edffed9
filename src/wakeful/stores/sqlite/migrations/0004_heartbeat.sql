-- The heartbeat: its grid, the wakes that wait for their turn, and its budget. Its beats are a cadence under its owner's
-- id, its turns runs of that owner. The row is the lock of the wakes and of the system events.

CREATE TABLE heartbeats (
  owner_id   INTEGER PRIMARY KEY,
  every      INTEGER NOT NULL,
  anchor_at  INTEGER NOT NULL,
  wakes      TEXT NOT NULL,
  asked_at   INTEGER,
  retry_at   INTEGER,
  held_until INTEGER,
  turned_at  INTEGER,
  turns      TEXT NOT NULL,
  tripped_at INTEGER
) STRICT;

-- What waits for the next turn. Carried means: given to the agent by that run, in that revision.
CREATE TABLE system_events (
  event_id         INTEGER PRIMARY KEY AUTOINCREMENT,
  context_key      TEXT UNIQUE,
  source           TEXT NOT NULL,
  text             TEXT NOT NULL,
  raised_at        INTEGER NOT NULL,
  revision         INTEGER NOT NULL,
  slug             TEXT,
  run_id           INTEGER,
  carried_by       INTEGER,
  carried_revision INTEGER
) STRICT;

CREATE INDEX system_events_run ON system_events (run_id) WHERE run_id IS NOT NULL;
