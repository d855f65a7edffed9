"""Producers whose clock went back: what ran is not repeated, and what was only skipped is planned again.

`next_at` of a producer is never an instant that has a run. Usually that needs no look at the ledger, because the next
instant is after everything that ran. After a clock that was ahead went back, the instants up to `ran_through` lie in
the future again, and those of them that ran are left out (L2).
"""

import json

from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Gap, without
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Timing, next_after
from wakeful.core.workflow.definition import Producer
from wakeful.core.workflow.rows import Handler
from wakeful.core.workflow.rules import BACKOFF_MAX, LOOP_WINDOW, WAKE_MAX, WorkflowState
from wakeful.engine.planning import shortened, void_ahead
from wakeful.features.workflows.compiled import Broken, Known
from wakeful.features.workflows.state import HANDLER, with_handler, with_workflow
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.store import Tx


def taken(tx: Tx, flow: WorkflowState, handler: Handler, *, since: Instant, until: Instant) -> frozenset[Instant]:
    """The instants of a producer from `since` to `until` that have a run, besides those that are tried again."""
    if handler.ran_through < since:
        return frozenset()
    owner_id, until = flow.workflow.owner_id, min(until, handler.ran_through)
    return tx[HandlerRunDetails].taken(owner_id, handler.name, since=since, until=until)


def following(tx: Tx, flow: WorkflowState, handler: Handler, timing: Timing, after: Instant) -> Instant | None:
    """The first instant after `after` that has no run."""
    at = next_after(timing, after)
    ran = taken(tx, flow, handler, since=after + 1, until=handler.ran_through)
    while at is not None and at in ran:
        at = next_after(timing, at)
    return at


def untaken(gap: Gap, ran: frozenset[Instant], timing: Timing) -> list[Gap]:
    """The parts of a gap between instants that ran."""
    return [row for row in without([gap], ran, timing) if isinstance(row, Gap)]


def turned_back(tx: Tx, flow: WorkflowState, known: Known, now: Instant) -> WorkflowState:
    """Replan from now: no producer later than its next time, no consumer later than its longest sleep. Rows of instants
    that did not run and lie ahead again are voided."""
    producers = {
        handler.name: written
        for handler in flow.producers
        if not isinstance(known, Broken) and isinstance(written := known.handlers.get(handler.name), Producer)
    }
    _void_gaps(tx, flow, producers, now)
    for handler in flow.handlers.values():
        next_at, wake_at, ran_through = handler.next_at, handler.wake_at, handler.ran_through
        producer = producers.get(handler.name)
        if next_at is not None and next_at > now and producer is not None:
            ran_through = max(ran_through, next_at - 1)  # everything before it was decided
            earlier = following(tx, flow, handler._replace(ran_through=ran_through), producer.timing, now)
            next_at = next_at if earlier is None else min(next_at, earlier)
        if wake_at is not None:
            wake_at = min(wake_at, now + WAKE_MAX)
        held_until = None if handler.held_until is None else min(handler.held_until, now + BACKOFF_MAX)
        nearer = handler._replace(next_at=next_at, wake_at=wake_at, held_until=held_until, ran_through=ran_through)
        if nearer != handler:
            flow = with_handler(flow, nearer)
    limited_until = flow.workflow.limited_until
    if limited_until is not None and limited_until > now + LOOP_WINDOW:
        flow = with_workflow(flow, limited_until=now + LOOP_WINDOW)
    return flow


def _void_gaps(tx: Tx, flow: WorkflowState, producers: dict[str, Producer], now: Instant) -> None:
    """Rows of producers that the workflow no longer has are kept."""
    if not producers:
        return
    ahead = tx.runs.lock(tx[HandlerRunDetails].gaps_ahead(flow.workflow.owner_id, after=now)).values()

    def shorten(row: Run) -> Run | None:
        is_known = row.version == flow.workflow.version  # else its instants can no longer be counted
        return shortened(row, producers[_producer_of(row)].timing if is_known else None, now)

    void_ahead(tx, (row for row in ahead if _producer_of(row) in producers), shorten, now=now)


def _producer_of(row: Run) -> str:
    return str(json.loads(row.result or "{}").get(HANDLER, ""))
