"""The bus between processes, in SQLite."""

from sqlite3 import Connection

from wakeful.ports.bus import Relayed

# How many old rows are deleted with each new one: more than one, so that none stay.
PRUNE_STEP = 20

# Register a watcher until then.
WATCH = "INSERT INTO watchers (watcher, until) VALUES (?, ?) ON CONFLICT (watcher) DO UPDATE SET until = excluded.until"

# Delete expired watchers. There is one watcher per process.
FORGET = "DELETE FROM watchers WHERE until < ?"

# Whether there is another watcher.
IS_WATCHED = "SELECT 1 FROM watchers WHERE until >= ? AND watcher <> ? LIMIT 1"

# The number of the last published events.
LAST = "SELECT value FROM counters WHERE name = 'bus'"

# The next number.
NEXT = "UPDATE counters SET value = value + 1 WHERE name = 'bus' RETURNING value"

# Publish events.
PUBLISH = "INSERT INTO bus (seq, sender, events, told_at) VALUES (?, ?, ?, ?)"

# Delete some old events, oldest first.
PRUNE = "DELETE FROM bus WHERE seq IN (SELECT seq FROM bus ORDER BY seq LIMIT ?) AND told_at < ?"

# Events after a number; the reader's own are returned without their text.
AFTER = """
SELECT seq, sender, CASE WHEN sender = ? THEN NULL ELSE events END FROM bus WHERE seq > ? ORDER BY seq LIMIT ?
"""


class SqliteBus:
    """See `ports.bus.Bus`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def watch(self, watcher: str, *, now: int, until: int) -> int:
        self._connection.execute(WATCH, (watcher, until))
        self._connection.execute(FORGET, (now,))
        (last,) = self._connection.execute(LAST).fetchone()
        return int(last)

    def is_watched(self, *, now: int, but: str) -> bool:
        return self._connection.execute(IS_WATCHED, (now, but)).fetchone() is not None

    def publish(self, sender: str, events: str, *, now: int, keep_from: int) -> int:
        ((seq,),) = self._connection.execute(NEXT).fetchall()
        self._connection.execute(PUBLISH, (seq, sender, events, now))
        self._connection.execute(PRUNE, (PRUNE_STEP, keep_from))
        return int(seq)

    def after(self, seq: int, *, reader: str, limit: int) -> list[Relayed]:
        return list(map(Relayed._make, self._connection.execute(AFTER, (reader, seq, limit))))
