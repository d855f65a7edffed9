"""Nodes, in PostgreSQL.

When it registers and renews, a node also sets its clock by the server's (`clock`).
"""

from collections.abc import Sequence

from wakeful.core.time.instants import INSTANT_MAX, Duration, Instant
from wakeful.ports.store import Node
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import columns_of, ids

_COLUMNS = columns_of(Node, "nodes")

# A new incarnation.
REGISTER = """
INSERT INTO nodes (name, host, pid, started_at, lease_until, last_tick_at, lag, running, capacity)
VALUES ($1, $2, $3, $4, $5, $4, 0, 0, $6) RETURNING node_id
"""

# Extend the lease, unless it was taken.
RENEW = """
UPDATE nodes SET last_tick_at = $2, lease_until = $3, lag = $4, running = $5, capacity = $6
WHERE node_id = $1 AND voided_at IS NULL RETURNING node_id
"""

# Publish the settings hash of a node.
PUBLISH = "UPDATE nodes SET terms = $1 WHERE node_id = $2"

# Whether a node has its lease; voiding it waits until our commit, and then finds what we claimed.
HOLD = "SELECT 1 FROM nodes WHERE node_id = $1 AND voided_at IS NULL AND lease_until >= $2 FOR SHARE"

# Nodes that are not voided and whose lease expired, or is implausible.
LOOK_EXPIRED = f"""
SELECT {_COLUMNS} FROM nodes
WHERE voided_at IS NULL AND (lease_until <= $1 OR lease_until > $2) ORDER BY node_id
"""

# The same, locked until they are voided. A node that is renewing at this moment, or being voided by another one, is
# skipped: it is alive, or already handled. So voiding never waits for a lock, and cannot deadlock.
EXPIRED = f"{LOOK_EXPIRED} FOR UPDATE SKIP LOCKED"

# Void nodes; returns those that were not voided before.
VOID = """
WITH taken AS (
  SELECT node_id FROM nodes WHERE voided_at IS NULL AND node_id = ANY($2::bigint[]) ORDER BY node_id FOR UPDATE
)
UPDATE nodes SET voided_at = $1 FROM taken WHERE nodes.node_id = taken.node_id RETURNING nodes.node_id
"""

_OWNS = "EXISTS (SELECT 1 FROM runs WHERE owner = nodes.node_id AND (outcome = 'running' OR stuck = 1))"

# Voided nodes that still own runs.
WITH_LEFTOVERS = f"SELECT node_id FROM nodes WHERE voided_at IS NOT NULL AND {_OWNS} ORDER BY node_id"

# All incarnations.
ALL = f"SELECT {_COLUMNS} FROM nodes ORDER BY node_id"

# Delete old voided incarnations that own nothing.
PRUNE = f"DELETE FROM nodes WHERE voided_at < $1 AND NOT {_OWNS} RETURNING node_id"


class PostgresNodes:
    """See `ports.store.Nodes`. Changes to nodes do not concern other nodes, so nothing here notifies them."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def register(self, *, name: str, host: str, pid: int, now: Instant, lease_until: Instant, capacity: int) -> int:
        self._session.on_time(self._session)
        self._session.uncertain.is_any = False  # a new incarnation owns nothing yet
        ((node_id,),) = self._session.rows(REGISTER, name, host, pid, now, lease_until, capacity)
        return int(node_id)

    def renew(
        self, node_id: int, *, now: Instant, lease_until: Instant, lag: Duration, running: int, capacity: int
    ) -> bool:
        """Extend the lease; False if it was taken, and also if it is uncertain what we own: then the lease is given up
        here, and the caller enters again as if it had been taken."""
        self._session.on_time(self._session)
        if self._session.uncertain.is_any:
            self.void([node_id], now=now)
            return False
        return bool(self._session.rows(RENEW, node_id, now, lease_until, lag, running, capacity))

    def publish(self, node_id: int, *, terms: str) -> None:
        self._session.change(PUBLISH, terms, node_id)

    def hold(self, node_id: int, *, lease_until: Instant = 0) -> bool:
        return bool(self._session.rows(HOLD, node_id, lease_until))

    def expired(self, *, now: Instant, beyond: Instant = INSTANT_MAX) -> list[Node]:
        query = LOOK_EXPIRED if self._session.is_reading else EXPIRED
        return list(map(Node._make, self._session.rows(query, now, beyond)))

    def void(self, node_ids: Sequence[int], *, now: Instant) -> list[int]:
        voided = self._session.rows(VOID, now, ids(node_ids)) if node_ids else []
        return sorted(node_id for (node_id,) in voided)

    def with_leftovers(self) -> list[int]:
        return [node_id for (node_id,) in self._session.rows(WITH_LEFTOVERS)]

    def all(self) -> list[Node]:
        return list(map(Node._make, self._session.rows(ALL)))

    def prune(self, *, before: Instant) -> None:
        self._session.rows(PRUNE, before)
