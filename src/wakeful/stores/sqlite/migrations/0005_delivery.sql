-- What is to reach people: the outbox, the inbox, where they were last heard of, and the trouble they were told of.

-- The row is the lock of everything queued for it. Never given twice: alarms refer to it.
CREATE TABLE addressees (
  addressee_id  INTEGER PRIMARY KEY AUTOINCREMENT,
  channel       TEXT NOT NULL,
  recipient     TEXT NOT NULL,
  fence         INTEGER NOT NULL,
  claimed_until INTEGER,
  UNIQUE (channel, recipient)
) STRICT;

-- Ids are never given twice either: receivers know a delivery by it.
CREATE TABLE deliveries (
  delivery_id     INTEGER PRIMARY KEY AUTOINCREMENT,
  addressee_id    INTEGER NOT NULL,
  channel         TEXT NOT NULL,
  recipient       TEXT,
  text            TEXT NOT NULL,
  purpose         TEXT NOT NULL,
  status          TEXT NOT NULL,
  attempts        INTEGER NOT NULL,
  parts_sent      INTEGER NOT NULL,
  last_error      TEXT,
  enqueued_at     INTEGER NOT NULL,
  next_attempt_at INTEGER,
  expires_at      INTEGER NOT NULL,
  ended_at        INTEGER,
  run_id          INTEGER,
  slug            TEXT
) STRICT;

-- Who is first in line. Holds what is pending only, so it stays as short as the queue.
CREATE INDEX deliveries_pending ON deliveries (addressee_id, delivery_id) WHERE status = 'pending';

-- Lists by status, newest first.
CREATE INDEX deliveries_status ON deliveries (status, delivery_id);

-- What a run said to people.
CREATE INDEX deliveries_of_run ON deliveries (run_id, delivery_id) WHERE run_id IS NOT NULL;

-- What may be forgotten.
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- One row for each channel somebody was heard of on; `turn` grows with every one of them, whatever the clock does.
CREATE TABLE interactions (
  channel   TEXT PRIMARY KEY,
  recipient TEXT,
  at        INTEGER NOT NULL,
  turn      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE inbox (
  item_id     INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery_id INTEGER NOT NULL UNIQUE,
  text        TEXT NOT NULL,
  slug        TEXT,
  run_id      INTEGER,
  at          INTEGER NOT NULL,
  read_at     INTEGER
) STRICT;

-- What nobody has read, newest first.
CREATE INDEX inbox_unread ON inbox (item_id) WHERE read_at IS NULL;

-- What may be forgotten.
CREATE INDEX inbox_age ON inbox (at);

CREATE TABLE incidents (
  incident_id INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT NOT NULL,
  text        TEXT NOT NULL,
  opened_at   INTEGER NOT NULL,
  last_at     INTEGER NOT NULL,
  times       INTEGER NOT NULL,
  closed_at   INTEGER
) STRICT;

-- The same trouble is open once.
CREATE UNIQUE INDEX incidents_open ON incidents (name) WHERE closed_at IS NULL;

-- What may be forgotten.
CREATE INDEX incidents_closed ON incidents (closed_at) WHERE closed_at IS NOT NULL;
