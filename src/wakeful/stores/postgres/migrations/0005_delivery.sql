-- What is to reach people: the outbox, the inbox, where they were last heard of, and the trouble they were told of.

-- The row is the lock of everything queued for it.
CREATE TABLE addressees (
  addressee_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  channel       text COLLATE "C" NOT NULL,
  recipient     text COLLATE "C" NOT NULL,
  fence         bigint NOT NULL,
  claimed_until bigint,
  UNIQUE (channel, recipient)
) WITH (fillfactor = 50);

-- Ids are never given twice: receivers know a delivery by it.
CREATE TABLE deliveries (
  delivery_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  addressee_id    bigint NOT NULL,
  channel         text COLLATE "C" NOT NULL,
  recipient       text,
  text            text NOT NULL,
  purpose         text NOT NULL,
  status          text COLLATE "C" NOT NULL,
  attempts        bigint NOT NULL,
  parts_sent      bigint NOT NULL,
  last_error      text,
  enqueued_at     bigint NOT NULL,
  next_attempt_at bigint,
  expires_at      bigint NOT NULL,
  ended_at        bigint,
  run_id          bigint,
  slug            text
);

-- Who is first in line. Holds what is pending only, so it stays as short as the queue.
CREATE INDEX deliveries_pending ON deliveries (addressee_id, delivery_id) WHERE status = 'pending';

-- Lists by status, newest first.
CREATE INDEX deliveries_status ON deliveries (status, delivery_id);

-- What a run said to people.
CREATE INDEX deliveries_of_run ON deliveries (run_id, delivery_id) WHERE run_id IS NOT NULL;

-- What may be forgotten.
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- One row for each channel somebody was heard of on; `turn` grows with every one of them, whatever the clock does.
CREATE SEQUENCE interaction_turns AS bigint;

CREATE TABLE interactions (
  channel   text COLLATE "C" PRIMARY KEY,
  recipient text,
  at        bigint NOT NULL,
  turn      bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE inbox (
  item_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  delivery_id bigint NOT NULL UNIQUE,
  text        text NOT NULL,
  slug        text,
  run_id      bigint,
  at          bigint NOT NULL,
  read_at     bigint
);

-- What nobody has read, newest first.
CREATE INDEX inbox_unread ON inbox (item_id) WHERE read_at IS NULL;

-- What may be forgotten.
CREATE INDEX inbox_age ON inbox (at);

CREATE TABLE incidents (
  incident_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name        text COLLATE "C" NOT NULL,
  text        text NOT NULL,
  opened_at   bigint NOT NULL,
  last_at     bigint NOT NULL,
  times       bigint NOT NULL,
  closed_at   bigint
);

-- The same trouble is open once.
CREATE UNIQUE INDEX incidents_open ON incidents (name) WHERE closed_at IS NULL;

-- What may be forgotten.
CREATE INDEX incidents_closed ON incidents (closed_at) WHERE closed_at IS NOT NULL;
