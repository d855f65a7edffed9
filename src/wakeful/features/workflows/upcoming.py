"""Upcoming handler runs of workflows: producers at their times, consumers at their `wakeAt`."""

import heapq
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Final

from wakeful.core.run.runs import Run
from wakeful.core.schedule.upcoming import Kind, Upcoming, attempted_at
from wakeful.core.time.instants import Instant
from wakeful.core.workflow.definition import Producer
from wakeful.core.workflow.rows import Handler
from wakeful.core.workflow.rules import WorkflowState, is_dirty, rings_at
from wakeful.features.workflows.clock_steps import following
from wakeful.features.workflows.compiled import Broken, Compilations, Known
from wakeful.features.workflows.state import read_flows
from wakeful.ports.store import Alarm, Tx
from wakeful.ports.workflows import StoredWorkflows

# How many extra workflows are read beyond the limit; and how many are searched for running ones, whose alarm is off
# until the run has ended.
SPARE: Final = 200
BUSY_MAX: Final = 1_000


class UpcomingHandlers:
    """Lists upcoming handler runs by due time."""

    def __init__(self, compilations: Compilations) -> None:
        self._compilations = compilations

    def __call__(self, tx: Tx, *, now: Instant, until: Instant, limit: int) -> list[Upcoming]:
        due = tx[StoredWorkflows].due(now=until, limit=limit + SPARE)
        busy = [
            workflow
            for workflow in tx[StoredWorkflows].page(after=None, limit=BUSY_MAX)
            if workflow.open_run_id is not None
        ]
        flows = read_flows(tx, {workflow.workflow_id: workflow for workflow in [*due, *busy]}.values())
        runs = (
            tx.runs.lock(sorted(workflow.open_run_id for workflow in busy if workflow.open_run_id is not None))
            if busy
            else {}
        )
        lines = [
            line
            for flow in flows.values()
            for line in ahead_of(tx, flow, self._compilations.of(flow.workflow), runs, now)
        ]
        merged = heapq.merge(*lines)
        return list(takewhile(lambda planned: planned.due_at <= until, islice(merged, limit)))


def ahead_of(tx: Tx, flow: WorkflowState, known: Known, runs: dict[int, Run], now: Instant) -> list[Iterator[Upcoming]]:
    """The upcoming runs of each handler, in order; none while the workflow is paused or stopped."""
    workflow = flow.workflow
    if workflow.status != "active" or workflow.error is not None or workflow.deleted_at is not None:
        return []
    run = runs.get(workflow.open_run_id or 0)
    # One handler at a time: whatever is due before a waiting run's retry waits for it.
    free_at = max(now, 0 if run is None else run.next_attempt_at or 0)
    lines = [
        _producer(tx, flow, producer, known, max(free_at, producer.held_until or 0)) for producer in flow.producers
    ]
    for consumer in flow.consumers:
        held_until = max(consumer.held_until or 0, workflow.limited_until or 0)
        lines.append(_consumer(flow, consumer, max(free_at, held_until), now))
    return lines


def next_start(
    tx: Tx, flow: WorkflowState, known: Known, run: Run | None, alarm: Alarm | None, now: Instant
) -> Instant | None:
    """When a handler of a workflow starts next: the first entry that is upcoming, or now if messages wait for it.
    `alarm` is that of the open run, which has none while it waits for a person."""
    if run is None:
        rings = rings_at(flow, now)
        return None if rings is None else max(rings, now)
    is_planned = alarm is not None and alarm.due_at is not None and not alarm.parked
    attempt = attempted_at(run, now) if is_planned else None
    first = next(heapq.merge(*ahead_of(tx, flow, known, {run.run_id: run}, now)), None)
    return min((at for at in (attempt, None if first is None else first.due_at) if at is not None), default=None)


def _producer(tx: Tx, flow: WorkflowState, handler: Handler, known: Known, free_at: Instant) -> Iterator[Upcoming]:
    written, slug = None if isinstance(known, Broken) else known.handlers.get(handler.name), flow.workflow.slug
    at = handler.next_at
    kind: Kind = "retry" if handler.tries else "producer"  # it could not be reached, and is in backoff
    while at is not None:
        yield Upcoming(max(at, free_at), f"workflow:{slug}", at, kind, handler.name)
        after = max(at, free_at)
        at = following(tx, flow, handler, written.timing, after) if isinstance(written, Producer) else None
        kind = "producer"


def _consumer(flow: WorkflowState, handler: Handler, free_at: Instant, now: Instant) -> Iterator[Upcoming]:
    at, slug = handler.wake_at, f"workflow:{flow.workflow.name}"
    if is_dirty(flow, handler) and free_at > now:  # messages wait for it, but it is in backoff or limited
        yield Upcoming(free_at, slug, now, "retry" if handler.tries else "waiting", handler.name)
    elif at is not None:
        yield Upcoming(max(at, free_at), slug, at, "retry" if handler.tries else "wakeAt", handler.name)
