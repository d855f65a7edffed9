-- The heartbeat: its grid, the wakes that wait for their turn, and its budget. Its beats are a cadence under its owner's
-- id, its turns runs of that owner. The row is the lock of the wakes and of the system events.

CREATE TABLE heartbeats (
  owner_id   bigint PRIMARY KEY,
  every      bigint NOT NULL,
  anchor_at  bigint NOT NULL,
  wakes      text NOT NULL,
  asked_at   bigint,
  retry_at   bigint,
  held_until bigint,
  turned_at  bigint,
  turns      text NOT NULL,
  tripped_at bigint
);

-- What waits for the next turn. Carried means: given to the agent by that run, in that revision.
CREATE TABLE system_events (
  event_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  context_key      text COLLATE "C" UNIQUE,
  source           text NOT NULL,
  text             text NOT NULL,
  raised_at        bigint NOT NULL,
  revision         bigint NOT NULL,
  slug             text,
  run_id           bigint,
  carried_by       bigint,
  carried_revision bigint
);

CREATE INDEX system_events_run ON system_events (run_id) WHERE run_id IS NOT NULL;
