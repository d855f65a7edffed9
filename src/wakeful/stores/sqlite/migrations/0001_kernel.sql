-- The kernel: schedules and where they stand, what will ring, the ledger, lanes, nodes.
-- Columns stand in the order of the named tuples that go in and come out. Instants and durations are milliseconds.
-- Every index is paid for on each fire; the comment above one says what it is worth.

CREATE TABLE schedules (
  schedule_id INTEGER PRIMARY KEY,
  slug        TEXT NOT NULL,
  definition  TEXT NOT NULL,
  version     INTEGER NOT NULL,
  is_zoned    INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  deleted_at  INTEGER
) STRICT;

-- A slug is unique among the living; it is also the order in which they are listed.
CREATE UNIQUE INDEX schedules_slug ON schedules (slug) WHERE deleted_at IS NULL;

CREATE TABLE cadences (
  schedule_id        INTEGER PRIMARY KEY,
  version            INTEGER NOT NULL,
  state              TEXT NOT NULL,
  state_reason       TEXT,
  state_at           INTEGER NOT NULL,
  resume_at          INTEGER,
  planned_through    INTEGER NOT NULL,
  next_at            INTEGER,
  ran_through        INTEGER NOT NULL,
  backoff_until      INTEGER,
  catch_up_until     INTEGER,
  open_run_id        INTEGER,
  queued_run_id      INTEGER,
  last_row_id        INTEGER,
  consecutive_errors INTEGER NOT NULL,
  last_run_at        INTEGER,
  last_outcome       TEXT,
  last_error         TEXT,
  last_success_at    INTEGER,
  session_id         TEXT
) STRICT;

CREATE TABLE alarms (
  kind     TEXT NOT NULL,
  ref      INTEGER NOT NULL,
  due_at   INTEGER,
  priority INTEGER NOT NULL,
  lane     TEXT,
  parked   INTEGER NOT NULL,
  PRIMARY KEY (kind, ref)
) STRICT, WITHOUT ROWID;

-- What is due, by kind and priority: one seek for each, in the order it is served.
CREATE INDEX alarms_due ON alarms (kind, priority, due_at) WHERE parked = 0 AND due_at IS NOT NULL;

-- Who is first in line for a lane. Holds parked alarms only, so those that never park never touch it.
CREATE INDEX alarms_parked ON alarms (lane, priority, due_at, ref)
  WHERE parked = 1 AND kind = 'run' AND due_at IS NOT NULL;

CREATE TABLE runs (
  run_id          INTEGER PRIMARY KEY,
  kind            TEXT NOT NULL,
  schedule_id     INTEGER NOT NULL,
  occurrence      INTEGER NOT NULL,
  planned_at      INTEGER NOT NULL,
  planned_until   INTEGER,
  instants        INTEGER NOT NULL,
  due_at          INTEGER NOT NULL,
  trigger         TEXT NOT NULL,
  outcome         TEXT NOT NULL,
  reason          TEXT,
  rung            TEXT,
  attempt         INTEGER NOT NULL,
  crashes         INTEGER NOT NULL,
  waits           INTEGER NOT NULL,
  priority        INTEGER NOT NULL,
  lane            TEXT,
  owner           INTEGER,
  fence           INTEGER NOT NULL,
  version         INTEGER NOT NULL,
  started_at      INTEGER,
  claimed_at      INTEGER,
  ended_at        INTEGER,
  deadline_at     INTEGER,
  next_attempt_at INTEGER,
  error           TEXT,
  result          TEXT,
  ladder          TEXT,
  blocked_by      INTEGER,
  process         TEXT,
  definition      TEXT,
  stuck           INTEGER NOT NULL
) STRICT;

-- An instant has one row (L2). Written once per run, never touched again.
CREATE UNIQUE INDEX runs_occurrence ON runs (schedule_id, occurrence);

-- A schedule's rows, newest first. Written once per run, never touched again.
CREATE INDEX runs_of_schedule ON runs (schedule_id, run_id);

-- What nodes hold now, for rescue. Holds running and stuck rows only, so it stays as small as the capacity.
CREATE INDEX runs_held ON runs (owner, run_id) WHERE outcome = 'running' OR stuck = 1;

-- Rows that did not go well, newest first, however rare among millions. A run that succeeds never touches it.
-- (Written with <>: NOT IN builds a set for every row and costs 7 microseconds a run.)
CREATE INDEX runs_amiss ON runs (outcome, run_id)
  WHERE outcome <> 'running' AND outcome <> 'waiting' AND outcome <> 'succeeded';

CREATE TABLE attempts (
  run_id     INTEGER NOT NULL,
  attempt    INTEGER NOT NULL,
  claimed_at INTEGER,
  ended_at   INTEGER NOT NULL,
  outcome    TEXT NOT NULL,
  rung       TEXT,
  error      TEXT,
  owner      INTEGER,
  PRIMARY KEY (run_id, attempt)
) STRICT, WITHOUT ROWID;

-- A lane has a row while a run holds it. The one writer is the lock, so a free lane needs no row to lock.
CREATE TABLE lanes (
  lane   TEXT PRIMARY KEY,
  holder INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT: the id of a node that is gone must never name another, or its late voice would be heard.
CREATE TABLE nodes (
  node_id      INTEGER PRIMARY KEY AUTOINCREMENT,
  name         TEXT NOT NULL,
  host         TEXT NOT NULL,
  pid          INTEGER NOT NULL,
  started_at   INTEGER NOT NULL,
  lease_until  INTEGER NOT NULL,
  last_tick_at INTEGER NOT NULL,
  lag          INTEGER NOT NULL,
  running      INTEGER NOT NULL,
  capacity     INTEGER NOT NULL,
  voided_at    INTEGER
) STRICT;

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Numbers the store itself counts: the last run id given out, and how far pruning has looked.
CREATE TABLE counters (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO counters VALUES ('run_id', 0), ('pruned_through', 0);
