"""The bus in the store: how processes that share a store inform each other of events, while someone watches.

It carries hints for live views only; nothing is decided by it. A sender takes its sequence number from a counter inside
the publishing transaction, so numbers have no gaps and appear in the order of their commits: a reader that continues
from a number misses nothing, and can see when older events are no longer kept.
"""

from typing import NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.ports.table import Rows


class Published(NamedTuple):
    """Events of one process, in the order of the columns."""

    seq: int
    sender: str
    events: str
    told_at: Instant


class Relayed(NamedTuple):
    """Events that one process published together."""

    seq: int
    sender: str
    events: str | None  # JSON, see `observe.relay`; None for the reader's own events


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

# Delete some old events, oldest first. The publisher holds the lock of the counter, so there is no concurrent delete.
PRUNE = "DELETE FROM bus WHERE seq IN (SELECT seq FROM bus ORDER BY seq LIMIT :step) AND told_at < :keep_from"

# Events after a number; the reader's own are returned without their text.
AFTER = """
SELECT seq, sender, CASE WHEN sender = :reader THEN NULL ELSE events END FROM bus WHERE seq > :seq
ORDER BY seq LIMIT :limit
"""


class Bus(Rows[Published]):
    """The watchers and their events."""

    row, table, key = Published, "bus", "seq"

    def watch(self, watcher: str, *, now: Instant, until: Instant) -> int:
        """Register a watcher until `until`, and remove watchers that expired before `now`; returns the number of the
        last published events."""
        self._db.change(WATCH, watcher=watcher, until=until)
        self._db.change(FORGET, now=now)
        ((last,),) = self._db.rows(LAST)
        return int(last)

    def is_watched(self, *, now: Instant, but: str) -> bool:
        """Whether there is another watcher than this one."""
        return bool(self._db.rows(IS_WATCHED, now=now, but=but))

    def publish(self, sender: str, events: str, *, now: Instant, keep_from: Instant) -> int:
        """Publish under the next number and return it; also deletes some events older than `keep_from`."""
        ((seq,),) = self._db.change_returning(NEXT)
        self.add(Published(seq, sender, events, now))
        self._db.change(PRUNE, step=PRUNE_STEP, keep_from=keep_from)
        return int(seq)

    def after(self, seq: int, *, reader: str, limit: int) -> list[Relayed]:
        """Events after this number, oldest first; the reader's own without their text."""
        return list(map(Relayed._make, self._db.rows(AFTER, seq=seq, reader=reader, limit=limit)))
