"""The bus between processes."""

from wakeful.ports.bus import Relayed
from wakeful.stores.shared.database import Database

# How many old rows are deleted with each new one: more than one, so that none stay.
PRUNE_STEP = 20

# Register a watcher until a time.
WATCH = """
INSERT INTO watchers (watcher, until) VALUES (:watcher, :until)
ON CONFLICT (watcher) DO UPDATE SET until = excluded.until
"""

# Delete expired watchers, except rows that another node has locked. There is one watcher per process.
FORGET = """
DELETE FROM watchers WHERE watcher IN (
  SELECT watcher FROM watchers WHERE until < :now ORDER BY watcher FOR UPDATE SKIP LOCKED
)
"""

# Whether there is another watcher.
IS_WATCHED = "SELECT 1 FROM watchers WHERE until >= :now AND watcher <> :but LIMIT 1"

# The number of the last published events.
LAST = "SELECT value FROM counters WHERE name = 'bus'"

# The next number. The row is locked until the transaction ends, so the following number becomes visible after this one.
NEXT = "UPDATE counters SET value = value + 1 WHERE name = 'bus' RETURNING value"

# Publish events.
PUBLISH = "INSERT INTO bus (seq, sender, events, told_at) VALUES (:seq, :sender, :events, :now)"

# Delete some old events, oldest first. The publisher holds the lock of the counter, so there is no concurrent delete.
PRUNE = "DELETE FROM bus WHERE seq IN (SELECT seq FROM bus ORDER BY seq LIMIT :step) AND told_at < :keep_from"

# Events after a number; the reader's own are returned without their text.
AFTER = """
SELECT seq, sender, CASE WHEN sender = :reader THEN NULL ELSE events END FROM bus WHERE seq > :seq
ORDER BY seq LIMIT :limit
"""


class SharedBus:
    """See `ports.bus.Bus`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def watch(self, watcher: str, *, now: int, until: int) -> int:
        self._db.change(WATCH, watcher=watcher, until=until)
        self._db.change(FORGET, now=now)
        ((last,),) = self._db.rows(LAST)
        return int(last)

    def is_watched(self, *, now: int, but: str) -> bool:
        return bool(self._db.rows(IS_WATCHED, now=now, but=but))

    def publish(self, sender: str, events: str, *, now: int, keep_from: int) -> int:
        ((seq,),) = self._db.change_returning(NEXT)
        self._db.change(PUBLISH, seq=seq, sender=sender, events=events, now=now)
        self._db.change(PRUNE, step=PRUNE_STEP, keep_from=keep_from)
        return int(seq)

    def after(self, seq: int, *, reader: str, limit: int) -> list[Relayed]:
        return list(map(Relayed._make, self._db.rows(AFTER, seq=seq, reader=reader, limit=limit)))
