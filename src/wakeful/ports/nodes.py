"""The nodes that tick. Changes to nodes do not concern other nodes, so most of this is not announced to them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wakeful.core.time.instants import INSTANT_MAX, Duration, Instant
from wakeful.ports.changes import Change, NodeRegistered, NodesVoided
from wakeful.ports.database import Database, columns_of
from wakeful.ports.releases import RELEASE


class Node(NamedTuple):
    """One incarnation of a process that ticks."""

    node_id: int
    name: str
    host: str
    pid: int
    started_at: Instant
    lease_until: Instant
    last_tick_at: Instant
    lag: Duration
    running: int
    capacity: int
    voided_at: Instant | None  # it lost its lease; everything it still writes is fenced off
    terms: str = ""  # a hash of the settings that all nodes must share; empty if unknown
    labels: str = ""  # separated by spaces (`core.schedule.labels`)
    labels_at: Instant = 0  # since when it has these
    release: str | None = None  # None: 0.2


_COLUMNS = columns_of(Node, "nodes")

# A new incarnation.
REGISTER = """
INSERT INTO nodes (name, host, pid, started_at, lease_until, last_tick_at, lag, running, capacity, release)
VALUES (:name, :host, :pid, :now, :lease_until, :now, 0, 0, :capacity, :release) RETURNING node_id
"""

# Extend the lease, unless it was taken.
RENEW = """
UPDATE nodes SET last_tick_at = :now, lease_until = :lease_until, lag = :lag, running = :running, capacity = :capacity
WHERE node_id = :node_id AND voided_at IS NULL RETURNING node_id
"""

# Publish the settings hash and the labels of a node.
PUBLISH = """
UPDATE nodes SET
  terms = :terms, labels = :labels, labels_at = CASE WHEN labels = :labels THEN labels_at ELSE :now END
WHERE node_id = :node_id
"""

# Whether a node has its lease; voiding it waits until our commit, and then finds what we claimed.
HOLD = """
SELECT 1 FROM nodes WHERE node_id = :node_id AND voided_at IS NULL AND lease_until >= :lease_until FOR SHARE
"""

# Nodes that are not voided and whose lease expired, or is implausible; locked until they are voided. A node that is
# renewing at this moment, or being voided by another one, is skipped: it is alive, or already handled. So voiding never
# waits for a lock, and cannot deadlock.
EXPIRED = f"""
SELECT {_COLUMNS} FROM nodes
WHERE voided_at IS NULL AND (lease_until <= :now OR lease_until > :beyond) ORDER BY node_id FOR UPDATE SKIP LOCKED
"""

# Of these, those that still have their lease, locked.
NOT_VOIDED = """
SELECT node_id FROM nodes WHERE voided_at IS NULL AND node_id IN :node_ids ORDER BY node_id FOR UPDATE
"""

# Void nodes.
VOID = "UPDATE nodes SET voided_at = :now WHERE node_id IN :node_ids RETURNING node_id"

_OWNS = """
EXISTS (
  SELECT 1 FROM runs INDEXED BY runs_held WHERE owner = nodes.node_id AND (outcome = 'running' OR stuck = 1)
)
"""

# Voided nodes that still own runs.
WITH_LEFTOVERS = f"SELECT node_id FROM nodes WHERE voided_at IS NOT NULL AND {_OWNS} ORDER BY node_id"

# All incarnations.
ALL = f"SELECT {_COLUMNS} FROM nodes ORDER BY node_id"

# The names of some incarnations.
NAMES = "SELECT node_id, name FROM nodes WHERE node_id IN :node_ids"

# The names of the nodes of the newest runs of schedules.
OF_NEWEST_RUNS = """
SELECT cadences.schedule_id, nodes.name FROM cadences
JOIN runs ON runs.run_id = cadences.last_row_id JOIN nodes ON nodes.node_id = runs.owner
WHERE cadences.schedule_id IN :schedule_ids
"""

# Delete old voided incarnations that own nothing. A wrong clock may have voided a live node in 1970, so the lease must
# be old as well: a live node looks for the lease that it wrote, and would take a missing row for a loss of the store.
PRUNE = f"DELETE FROM nodes WHERE voided_at < :before AND lease_until < :before AND NOT {_OWNS} RETURNING node_id"


class Nodes:
    """The nodes that tick, in one transaction."""

    __slots__ = ("_changes", "_db")

    def __init__(self, db: Database, changes: list[Change]) -> None:
        self._db = db
        self._changes = changes

    def register(self, *, name: str, host: str, pid: int, now: Instant, lease_until: Instant, capacity: int) -> int:
        self._db.enter()
        ((node_id,),) = self._db.rows(
            REGISTER,
            name=name,
            host=host,
            pid=pid,
            now=now,
            lease_until=lease_until,
            capacity=capacity,
            release=RELEASE,
        )
        self._changes.append(NodeRegistered(now, node_id, name, host, pid))
        return int(node_id)

    def renew(
        self, node_id: int, *, now: Instant, lease_until: Instant, lag: Duration, running: int, capacity: int
    ) -> bool:
        """Extend the lease; False if it was taken, and also if it is uncertain what we own: in that case this gives up
        the lease, and the caller enters again as if it had been taken."""
        if not self._db.may_renew():
            self.void([node_id], now=now)
            return False
        return bool(
            self._db.rows(
                RENEW, node_id=node_id, now=now, lease_until=lease_until, lag=lag, running=running, capacity=capacity
            )
        )

    def publish(self, node_id: int, *, terms: str, labels: str, now: Instant) -> None:
        """Publish a hash of the settings the node runs with, and its labels."""
        self._db.change(PUBLISH, node_id=node_id, terms=terms, labels=labels, now=now)

    def hold(self, node_id: int, *, lease_until: Instant = 0) -> bool:
        """Whether the node still has its lease, and until `lease_until` at least; if so, no other node can take it
        before this transaction ends."""
        return bool(self._db.rows(HOLD, node_id=node_id, lease_until=lease_until))

    def expired(self, *, now: Instant, beyond: Instant = INSTANT_MAX) -> list[Node]:
        """Nodes not voided whose lease expired, or ends after `beyond`, which no live node could have written."""
        return list(map(Node._make, self._db.rows(EXPIRED, now=now, beyond=beyond)))

    def void(self, node_ids: Sequence[int], *, now: Instant) -> list[int]:
        """Void these nodes; returns those that were not voided before."""
        held = [node_id for (node_id,) in self._db.rows(NOT_VOIDED, node_ids=node_ids)] if node_ids else []
        if held:
            self._db.rows(VOID, now=now, node_ids=held)
            self._changes.append(NodesVoided(held))
        return held

    def with_leftovers(self) -> list[int]:
        """Voided nodes that still own runs."""
        return [node_id for (node_id,) in self._db.rows(WITH_LEFTOVERS)]

    def all(self) -> list[Node]:
        return list(map(Node._make, self._db.rows(ALL)))

    def names(self, node_ids: Iterable[int]) -> dict[int, str]:
        """The names of these incarnations, by id."""
        wanted = set(node_ids)
        return dict(self._db.rows(NAMES, node_ids=wanted)) if wanted else {}

    def of_newest_runs(self, schedule_ids: Sequence[int]) -> dict[int, str]:
        """The name of the node of the newest run of each of these schedules."""
        return dict(self._db.rows(OF_NEWEST_RUNS, schedule_ids=schedule_ids)) if schedule_ids else {}

    def prune(self, *, before: Instant) -> None:
        """Delete voided nodes that own nothing."""
        self._db.rows(PRUNE, before=before)
