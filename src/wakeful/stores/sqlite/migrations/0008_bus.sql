-- What processes that share this file tell one another while somebody watches. Rows live for a minute or so.

CREATE TABLE watchers (
  watcher TEXT PRIMARY KEY,
  until   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE bus (
  seq     INTEGER PRIMARY KEY,
  sender  TEXT NOT NULL,
  events  TEXT NOT NULL,
  told_at INTEGER NOT NULL
) STRICT;

INSERT INTO counters VALUES ('bus', 0);
