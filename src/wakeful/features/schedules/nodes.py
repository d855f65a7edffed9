"""The nodes that tick on a store, as people see them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wakeful.core.returned import At, returned
from wakeful.core.time.instants import Duration, Instant
from wakeful.features.schedules.queries import pulse
from wakeful.ports.store import Tx


@dataclass(frozen=True, slots=True)
class NodeView:
    """A process that ticks."""

    node_id: str
    name: str
    host: str
    pid: int
    started_at: At
    lease_until: At
    last_tick: At
    lag_ms: Duration
    running: int
    capacity: int
    labels: Sequence[str]
    is_alive: bool


NODE: Final = returned(NodeView, name="Node")


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes."""

    nodes: Sequence[NodeView]


NODES: Final = returned(Nodes)


def nodes_of(tx: Tx, *, now: Instant) -> Nodes:
    """The nodes that were not voided."""
    return Nodes(
        [
            NodeView(
                node_id=str(node.node_id),
                name=node.name,
                host=node.host,
                pid=node.pid,
                started_at=node.started_at,
                lease_until=node.lease_until,
                last_tick=node.last_tick_at,
                lag_ms=node.lag,
                running=node.running,
                capacity=node.capacity,
                labels=node.labels.split(),
                is_alive=node.lease_until > now,
            )
            for node in pulse(tx).nodes
        ]
    )
