-- Workflows: definitions and where they stand, topics and their messages, sessions and the phases of handler runs.
-- Columns stand in the order of the named tuples that go in and come out. Instants and durations are milliseconds.
-- Names are compared byte by byte (COLLATE "C"), as Python and SQLite do, whatever the server's language is.

CREATE TABLE workflows (
  workflow_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name        text COLLATE "C" NOT NULL,
  owner_id    bigint NOT NULL,
  definition  text NOT NULL,
  version     bigint NOT NULL,
  origin      text NOT NULL,
  status      text NOT NULL,
  error       text,
  error_at    bigint,
  created_at  bigint NOT NULL,
  updated_at  bigint NOT NULL,
  deleted_at  bigint,
  open_run_id bigint,
  session_id  bigint,
  freed_at    bigint
);

-- A name is unique among the living; it is also the order in which they are listed.
CREATE UNIQUE INDEX workflows_name ON workflows (name) WHERE deleted_at IS NULL;

CREATE TABLE workflow_handlers (
  workflow_id bigint NOT NULL,
  name        text COLLATE "C" NOT NULL,
  kind        text NOT NULL,
  place       bigint NOT NULL,
  state       text,
  next_at     bigint,
  wake_at     bigint,
  is_flagged  bigint NOT NULL,
  last_run_id bigint,
  last_run_at bigint,
  PRIMARY KEY (workflow_id, name)
);

CREATE TABLE topics (
  workflow_id bigint NOT NULL,
  name        text COLLATE "C" NOT NULL,
  consumer    text COLLATE "C",
  published   bigint NOT NULL,
  seen        bigint NOT NULL,
  PRIMARY KEY (workflow_id, name)
);

CREATE TABLE messages (
  workflow_id  bigint NOT NULL,
  topic        text COLLATE "C" NOT NULL,
  message_id   text COLLATE "C" NOT NULL,
  place        bigint NOT NULL,
  seq          bigint NOT NULL,
  payload      text NOT NULL,
  status       text NOT NULL,
  attempt      bigint NOT NULL,
  run_id       bigint,
  published_by bigint,
  published_at bigint NOT NULL,
  updated_at   bigint NOT NULL,
  UNIQUE (workflow_id, topic, message_id)
);

-- How many of each status, and what is pending in its order: counted and walked in the index alone.
CREATE INDEX messages_status ON messages (workflow_id, topic, status, place);

-- What a run holds, and what is to be forgotten with it.
CREATE INDEX messages_of_run ON messages (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE sessions (
  session_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workflow_id    bigint NOT NULL,
  kind           text NOT NULL,
  started_at     bigint NOT NULL,
  ended_at       bigint,
  result         text,
  error          text,
  producers_left text NOT NULL,
  consumers_run  bigint NOT NULL
);

-- A workflow's sessions, newest first.
CREATE INDEX sessions_of_workflow ON sessions (workflow_id, session_id);

CREATE TABLE handler_runs (
  run_id      bigint PRIMARY KEY,
  workflow_id bigint NOT NULL,
  session_id  bigint NOT NULL,
  handler     text NOT NULL,
  kind        text NOT NULL,
  phase       text NOT NULL,
  phases      text NOT NULL,
  prepared    text,
  mutation    text,
  result      text,
  reserved    bigint NOT NULL,
  prepares    bigint NOT NULL,
  tries       bigint NOT NULL,
  queued      bigint NOT NULL,
  awaits      text,
  published   bigint NOT NULL
);

-- The runs of a session.
CREATE INDEX handler_runs_of_session ON handler_runs (session_id, run_id);
