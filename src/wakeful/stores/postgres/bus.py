"""The bus between nodes, in PostgreSQL."""

from wakeful.ports.bus import Relayed
from wakeful.stores.postgres.connection import Session

# How many old rows are deleted with each new one: more than one, so that none stay.
PRUNE_STEP = 20

# Register a watcher until then.
WATCH = """
INSERT INTO watchers (watcher, until) VALUES ($1, $2) ON CONFLICT (watcher) DO UPDATE SET until = excluded.until
"""

# Delete expired watchers, except rows that another node has locked. There is one watcher per process.
FORGET = """
DELETE FROM watchers WHERE watcher IN (
  SELECT watcher FROM watchers WHERE until < $1 ORDER BY watcher FOR UPDATE SKIP LOCKED
)
"""

# Whether there is another watcher.
IS_WATCHED = "SELECT 1 FROM watchers WHERE until >= $1 AND watcher <> $2 LIMIT 1"

# The number of the last published events.
LAST = "SELECT value FROM counters WHERE name = 'bus'"

# The next number. The row is locked until the transaction ends, so the following number becomes visible after this one.
NEXT = "UPDATE counters SET value = value + 1 WHERE name = 'bus' RETURNING value"

# Publish events.
PUBLISH = "INSERT INTO bus (seq, sender, events, told_at) VALUES ($1, $2, $3, $4)"

# Delete some old events, oldest first. The publisher holds the lock of the counter, so there is no concurrent delete.
PRUNE = "DELETE FROM bus WHERE seq IN (SELECT seq FROM bus ORDER BY seq LIMIT $1) AND told_at < $2"

# Events after a number; the reader's own are returned without their text.
AFTER = """
SELECT seq, sender, CASE WHEN sender = $1 THEN NULL ELSE events END FROM bus WHERE seq > $2 ORDER BY seq LIMIT $3
"""


class PostgresBus:
    """See `ports.bus.Bus`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def watch(self, watcher: str, *, now: int, until: int) -> int:
        self._session.change(WATCH, watcher, until)
        self._session.change(FORGET, now)
        ((last,),) = self._session.rows(LAST)
        return int(last)

    def is_watched(self, *, now: int, but: str) -> bool:
        return bool(self._session.rows(IS_WATCHED, now, but))

    def publish(self, sender: str, events: str, *, now: int, keep_from: int) -> int:
        ((seq,),) = self._session.change_returning(NEXT)
        self._session.change(PUBLISH, seq, sender, events, now)
        self._session.change(PRUNE, PRUNE_STEP, keep_from)
        return int(seq)

    def after(self, seq: int, *, reader: str, limit: int) -> list[Relayed]:
        return list(map(Relayed._make, self._session.rows(AFTER, reader, seq, limit)))
