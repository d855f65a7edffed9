"""Nodes with and without the labels that schedules need."""

from collections.abc import Iterable
from typing import Final

from wakeful.core.schedule.cadence import Cadence
from wakeful.core.schedule.labels import may_take, named
from wakeful.core.schedule.policies import GRACE
from wakeful.core.time.instants import Instant
from wakeful.ports.store import ALARM_SCHEDULE, Node, Tx

NO_LABEL: Final = "label"
"""The reason why an instant was missed: no live node had the label it needs."""


def labels_of(node: Node) -> frozenset[str]:
    return frozenset(node.labels.split())


def has_node(queue: str | None, nodes: Iterable[Node], *, now: Instant) -> bool:
    """Whether a live node may take runs from the queue."""
    return any(node.voided_at is None and node.lease_until > now and may_take(queue, labels_of(node)) for node in nodes)


def lacking(tx: Tx, queue: str | None, *, now: Instant) -> str | None:
    """The sentence saying that no live node may take runs from the queue; None if one may, or if no label is needed."""
    if queue is None or has_node(queue, tx.nodes.all(), now=now):
        return None
    return f"no live node has {named(queue)}"


def gap_reason_of(tx: Tx, queue: str, due_at: Instant, reason: str) -> str:
    """Why an instant that needs a label was missed: if a node ticked at its time, but none with the label, that is the
    reason."""
    at = due_at + GRACE
    ticked = [node for node in tx.nodes.all() if node.started_at <= at < node.last_tick_at]
    if not ticked or any(node.labels_at <= at and may_take(queue, labels_of(node)) for node in ticked):
        return reason
    return NO_LABEL


def due_cadences(tx: Tx, *, now: Instant, limit: int) -> list[Cadence]:
    """Cadences whose alarm is due, oldest first, whatever labels they need. For reading only."""
    cadences = tx.cadences.due(now=now, limit=limit)
    queues = tx.labelled.queues()
    if not queues:
        return cadences
    alarms = tx.alarms.by_refs(ALARM_SCHEDULE, [cadence.schedule_id for cadence in cadences])
    due = {ref: alarm.due_at or 0 for ref, alarm in alarms.items()}
    due |= {row.schedule_id: row.due_at for row in tx.labelled.due_schedules(queues, now=now, limit=limit)}
    first = sorted(due, key=lambda schedule_id: (due[schedule_id], schedule_id))[:limit]
    known = {cadence.schedule_id: cadence for cadence in cadences}
    known |= tx.cadences.lock([schedule_id for schedule_id in first if schedule_id not in known])
    return [known[schedule_id] for schedule_id in first]
