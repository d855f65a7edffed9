"""The bus between processes, in SQLite."""

from sqlite3 import Connection

from wakeful.ports.bus import Relayed

# How many old rows go with each new one: more than come, so that none stay.
PRUNE_STEP = 20

# Somebody watches until then.
WATCH = "INSERT INTO watchers (watcher, until) VALUES (?, ?) ON CONFLICT (watcher) DO UPDATE SET until = excluded.until"

# Forget who watches no more. There are as many watchers as processes.
FORGET = "DELETE FROM watchers WHERE until < ?"

# Whether somebody else watches.
IS_WATCHED = "SELECT 1 FROM watchers WHERE until >= ? AND watcher <> ? LIMIT 1"

# The number of what was told last.
LAST = "SELECT value FROM counters WHERE name = 'bus'"

# The next number.
NEXT = "UPDATE counters SET value = value + 1 WHERE name = 'bus' RETURNING value"

# Tell the others.
PUBLISH = "INSERT INTO bus (seq, sender, events, told_at) VALUES (?, ?, ?, ?)"

# Forget some of what is too old, the oldest first.
PRUNE = "DELETE FROM bus WHERE seq IN (SELECT seq FROM bus ORDER BY seq LIMIT ?) AND told_at < ?"

# What was told after a number; one's own need not travel.
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
