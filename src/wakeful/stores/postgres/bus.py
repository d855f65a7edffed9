"""The bus between nodes, in PostgreSQL."""

from wakeful.ports.bus import Relayed
from wakeful.stores.postgres.connection import Session

# How many old rows go with each new one: more than come, so that none stay.
PRUNE_STEP = 20

# Somebody watches until then.
WATCH = """
INSERT INTO watchers (watcher, until) VALUES ($1, $2) ON CONFLICT (watcher) DO UPDATE SET until = excluded.until
"""

# Forget who watches no more; those another node is at are left to it. There are as many watchers as processes.
FORGET = """
DELETE FROM watchers WHERE watcher IN (
  SELECT watcher FROM watchers WHERE until < $1 ORDER BY watcher FOR UPDATE SKIP LOCKED
)
"""

# Whether somebody else watches.
IS_WATCHED = "SELECT 1 FROM watchers WHERE until >= $1 AND watcher <> $2 LIMIT 1"

# The number of what was told last.
LAST = "SELECT value FROM counters WHERE name = 'bus'"

# The next number. The row is held until the transaction ends, so the one after it is given after this one is seen.
NEXT = "UPDATE counters SET value = value + 1 WHERE name = 'bus' RETURNING value"

# Tell the others.
PUBLISH = "INSERT INTO bus (seq, sender, events, told_at) VALUES ($1, $2, $3, $4)"

# Forget some of what is too old, the oldest first. Whoever publishes holds the counter, so nobody else is at it.
PRUNE = "DELETE FROM bus WHERE seq IN (SELECT seq FROM bus ORDER BY seq LIMIT $1) AND told_at < $2"

# What was told after a number; one's own need not travel.
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
