-- What nodes tell one another while somebody watches. Rows live for a minute or so.
-- The numbers come from a counter that the publishing transaction holds until it ends, unlike those of a sequence: they
-- appear in their order, so that a reader who asks for what follows a number misses nothing.

CREATE TABLE watchers (
  watcher text COLLATE "C" PRIMARY KEY,
  until   bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE bus (
  seq     bigint PRIMARY KEY,
  sender  text COLLATE "C" NOT NULL,
  events  text NOT NULL,
  told_at bigint NOT NULL
);

INSERT INTO counters VALUES ('bus', 0);
