-- Workflows: definitions and where they stand, topics and their messages, sessions and the phases of handler runs.
-- Columns stand in the order of the named tuples that go in and come out. Instants and durations are milliseconds.

CREATE TABLE workflows (
  workflow_id INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT NOT NULL,
  owner_id    INTEGER NOT NULL,
  definition  TEXT NOT NULL,
  version     INTEGER NOT NULL,
  origin      TEXT NOT NULL,
  status      TEXT NOT NULL,
  error       TEXT,
  error_at    INTEGER,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  deleted_at  INTEGER,
  open_run_id INTEGER,
  session_id  INTEGER,
  freed_at    INTEGER
) STRICT;

-- A name is unique among the living; it is also the order in which they are listed.
CREATE UNIQUE INDEX workflows_name ON workflows (name) WHERE deleted_at IS NULL;

CREATE TABLE workflow_handlers (
  workflow_id INTEGER NOT NULL,
  name        TEXT NOT NULL,
  kind        TEXT NOT NULL,
  place       INTEGER NOT NULL,
  state       TEXT,
  next_at     INTEGER,
  wake_at     INTEGER,
  is_flagged  INTEGER NOT NULL,
  last_run_id INTEGER,
  last_run_at INTEGER,
  PRIMARY KEY (workflow_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE topics (
  workflow_id INTEGER NOT NULL,
  name        TEXT NOT NULL,
  consumer    TEXT,
  published   INTEGER NOT NULL,
  seen        INTEGER NOT NULL,
  PRIMARY KEY (workflow_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
  workflow_id  INTEGER NOT NULL,
  topic        TEXT NOT NULL,
  message_id   TEXT NOT NULL,
  place        INTEGER NOT NULL,
  seq          INTEGER NOT NULL,
  payload      TEXT NOT NULL,
  status       TEXT NOT NULL,
  attempt      INTEGER NOT NULL,
  run_id       INTEGER,
  published_by INTEGER,
  published_at INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  UNIQUE (workflow_id, topic, message_id)
) STRICT;

-- How many of each status, and what is pending in its order: counted and walked in the index alone.
CREATE INDEX messages_status ON messages (workflow_id, topic, status, place);

-- What a run holds, and what is to be forgotten with it.
CREATE INDEX messages_of_run ON messages (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE sessions (
  session_id     INTEGER PRIMARY KEY AUTOINCREMENT,
  workflow_id    INTEGER NOT NULL,
  kind           TEXT NOT NULL,
  started_at     INTEGER NOT NULL,
  ended_at       INTEGER,
  result         TEXT,
  error          TEXT,
  producers_left TEXT NOT NULL,
  consumers_run  INTEGER NOT NULL
) STRICT;

-- A workflow's sessions, newest first.
CREATE INDEX sessions_of_workflow ON sessions (workflow_id, session_id);

CREATE TABLE handler_runs (
  run_id      INTEGER PRIMARY KEY,
  workflow_id INTEGER NOT NULL,
  session_id  INTEGER NOT NULL,
  handler     TEXT NOT NULL,
  kind        TEXT NOT NULL,
  phase       TEXT NOT NULL,
  phases      TEXT NOT NULL,
  prepared    TEXT,
  mutation    TEXT,
  result      TEXT,
  reserved    INTEGER NOT NULL,
  prepares    INTEGER NOT NULL,
  tries       INTEGER NOT NULL,
  queued      INTEGER NOT NULL,
  awaits      TEXT,
  published   INTEGER NOT NULL
) STRICT;

-- The runs of a session.
CREATE INDEX handler_runs_of_session ON handler_runs (session_id, run_id);
