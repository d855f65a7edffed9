"""Nodes, in SQLite."""

from collections.abc import Sequence
from sqlite3 import Connection

from wakeful.core.time.instants import INSTANT_MAX, Duration, Instant
from wakeful.ports.store import Node
from wakeful.stores.sqlite.rows import columns_of, ids

_COLUMNS = columns_of(Node, "nodes")

# A new incarnation.
REGISTER = """
INSERT INTO nodes (name, host, pid, started_at, lease_until, last_tick_at, lag, running, capacity)
VALUES (:name, :host, :pid, :now, :lease_until, :now, 0, 0, :capacity)
"""

# Extend the lease, unless it was taken.
RENEW = """
UPDATE nodes SET last_tick_at = ?, lease_until = ?, lag = ?, running = ?, capacity = ?
WHERE node_id = ? AND voided_at IS NULL
"""

# Publish the settings hash of a node.
PUBLISH = "UPDATE nodes SET terms = ? WHERE node_id = ?"

# Whether a node has its lease. There is one writer, so reading a row is locking it.
HOLD = "SELECT 1 FROM nodes WHERE node_id = ? AND voided_at IS NULL AND lease_until >= ?"

# Nodes that are not voided and whose lease expired, or is implausible.
EXPIRED = f"""
SELECT {_COLUMNS} FROM nodes
WHERE voided_at IS NULL AND (lease_until <= ? OR lease_until > ?) ORDER BY node_id
"""

# Of these, those that still have their lease.
NOT_VOIDED = """
SELECT node_id FROM nodes
WHERE voided_at IS NULL AND node_id IN (SELECT value FROM json_each(?)) ORDER BY node_id
"""

# Void nodes.
VOID = "UPDATE nodes SET voided_at = ? WHERE voided_at IS NULL AND node_id IN (SELECT value FROM json_each(?))"

_OWNS = """
EXISTS (
  SELECT 1 FROM runs INDEXED BY runs_held WHERE owner = nodes.node_id AND (outcome = 'running' OR stuck = 1)
)
"""

# Voided nodes that still own runs.
WITH_LEFTOVERS = f"SELECT node_id FROM nodes WHERE voided_at IS NOT NULL AND {_OWNS} ORDER BY node_id"

# All incarnations.
ALL = f"SELECT {_COLUMNS} FROM nodes ORDER BY node_id"

# Delete old voided incarnations that own nothing.
PRUNE = f"DELETE FROM nodes WHERE voided_at < ? AND NOT {_OWNS}"


class SqliteNodes:
    """See `ports.store.Nodes`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def register(self, *, name: str, host: str, pid: int, now: Instant, lease_until: Instant, capacity: int) -> int:
        facts = {"name": name, "host": host, "pid": pid, "now": now, "lease_until": lease_until, "capacity": capacity}
        node_id = self._connection.execute(REGISTER, facts).lastrowid
        assert node_id is not None  # noqa: S101 - an INSERT that did not raise has a row id
        return node_id

    def renew(
        self, node_id: int, *, now: Instant, lease_until: Instant, lag: Duration, running: int, capacity: int
    ) -> bool:
        return self._connection.execute(RENEW, (now, lease_until, lag, running, capacity, node_id)).rowcount == 1

    def publish(self, node_id: int, *, terms: str) -> None:
        self._connection.execute(PUBLISH, (terms, node_id))

    def hold(self, node_id: int, *, lease_until: Instant = 0) -> bool:
        return self._connection.execute(HOLD, (node_id, lease_until)).fetchone() is not None

    def expired(self, *, now: Instant, beyond: Instant = INSTANT_MAX) -> list[Node]:
        return list(map(Node._make, self._connection.execute(EXPIRED, (now, beyond))))

    def void(self, node_ids: Sequence[int], *, now: Instant) -> list[int]:
        wanted = ids(node_ids)
        voided = [node_id for (node_id,) in self._connection.execute(NOT_VOIDED, (wanted,))]
        self._connection.execute(VOID, (now, wanted))
        return voided

    def with_leftovers(self) -> list[int]:
        return [node_id for (node_id,) in self._connection.execute(WITH_LEFTOVERS)]

    def all(self) -> list[Node]:
        return list(map(Node._make, self._connection.execute(ALL)))

    def prune(self, *, before: Instant) -> None:
        self._connection.execute(PRUNE, (before,))
