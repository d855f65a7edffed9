"""The transactions within a run: each phase's result is committed before the next phase.

Each locks the workflow, then checks that the run still belongs to this attempt: if it was taken from a node that
froze, that node must not write any more (`FencedOff`).
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from wakeful.core.fields import shown
from wakeful.core.time.instants import Instant
from wakeful.core.workflow.answers import Prepared, WrongAnswer
from wakeful.core.workflow.rows import HandlerRun
from wakeful.core.workflow.rules import WorkflowState, clamp_wake
from wakeful.features.workflows.consumers import ConsumerView, is_woken, looked
from wakeful.features.workflows.message_rows import Message, Messages
from wakeful.features.workflows.state import reached, read_flows, save_flows, tell, with_handler, with_subscriptions
from wakeful.features.workflows.state_rows import Handlers
from wakeful.ports import events
from wakeful.ports.action import FencedOff, Fire
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.store import Tx
from wakeful.ports.workflows import StoredWorkflows


def state_of(tx: Tx, workflow_id: int, handler: str) -> str | None:
    """The state a handler returned last."""
    rows = tx[Handlers].of([workflow_id]).get(workflow_id, ())
    return next((row.state for row in rows if row.name == handler), None)


def resume(tx: Tx, workflow_id: int, handler: str, run_id: int) -> tuple[HandlerRun, str | None]:
    """What a later phase continues with: the stored results of the earlier ones, and the handler's state."""
    return tx[HandlerRunDetails].among([run_id])[run_id], state_of(tx, workflow_id, handler)


def reserve(
    tx: Tx,
    workflow_id: int,
    handler: str,
    fire: Fire,
    prepared: Prepared,
    seen: ConsumerView,
    *,
    was_shown: bool,
    now: Instant,
) -> HandlerRun:
    """Commit reserved and skipped messages, the result of `prepare` and wakeAt together. Raises `WrongAnswer`.

    `was_shown`: the request contained messages."""
    before, own = _hold(tx, workflow_id, fire)
    _move(tx, workflow_id, handler, prepared.reservations, fire.run_id, "reserved", now)
    skipped = _move(tx, workflow_id, handler, prepared.skip, fire.run_id, "skipped", now)
    for topic, count in skipped.items():
        tell(tx, before.workflow, events.WORKFLOW_SKIPPED, handler=handler, topic=topic, count=count)
    flow = with_subscriptions(
        before,
        [
            subscription._replace(seen=max(subscription.seen, seen.published[subscription.topic]))
            for subscription in before.subscribed_by(handler)
            if subscription.topic in seen.published
        ],
    )
    consumer = flow.handlers.get(handler)
    if consumer is not None:
        woke = is_woken(seen.consumer, fire.planned_at)
        # A flag set during this call stays: something may have changed since the call started.
        is_flagged = 0 if seen.consumer is None or seen.consumer.is_flagged == consumer.is_flagged else 1
        consumer = looked(tx, workflow_id, consumer, seen, woke=woke)._replace(is_flagged=is_flagged)
        if prepared.wake_at is not None:
            consumer = consumer._replace(wake_at=clamp_wake(prepared.wake_at, now))
        elif was_shown or woke:  # else the request contained nothing to decide
            consumer = consumer._replace(wake_at=None)
        flow = with_handler(flow, consumer)
    save_flows(tx, [(before, flow)], now)
    own = reached(own, "prepared", now)._replace(
        prepared=prepared.answer, mutation="none", reserved=prepared.size, prepares=own.prepares + 1
    )
    tx[HandlerRunDetails].save_many([own])
    return own


def begin_mutation(tx: Tx, workflow_id: int, fire: Fire, *, now: Instant) -> HandlerRun:
    """Record the start of the side effect: from here until `end_mutation` its result is uncertain."""
    _, own = _hold(tx, workflow_id, fire)
    own = reached(own, "mutating", now)._replace(mutation=None)
    tx[HandlerRunDetails].save_many([own])
    return own


def end_mutation(tx: Tx, workflow_id: int, fire: Fire, result: str | None, *, now: Instant) -> HandlerRun:
    """Record the end of the side effect."""
    _, own = _hold(tx, workflow_id, fire)
    own = reached(own, "mutated", now)._replace(mutation="applied", result=result, tries=0)
    tx[HandlerRunDetails].save_many([own])
    return own


def _hold(tx: Tx, workflow_id: int, fire: Fire) -> tuple[WorkflowState, HandlerRun]:
    """The locked workflow and the run, if it still belongs to this attempt. Raises `FencedOff`."""
    workflow = tx[StoredWorkflows].lock([workflow_id])[workflow_id]
    run = tx.runs.lock([fire.run_id]).get(fire.run_id)
    if run is None or run.outcome != "running" or run.attempt != fire.attempt:
        raise FencedOff(f"run {fire.run_id} was taken from this node")
    flow = read_flows(tx, [workflow])[workflow_id]
    return flow, tx[HandlerRunDetails].among([fire.run_id])[fire.run_id]


def _move(
    tx: Tx,
    workflow_id: int,
    consumer: str,
    chosen: Mapping[str, Sequence[str]],
    run_id: int,
    status: Literal["reserved", "skipped"],
    now: Instant,
) -> dict[str, int]:
    """Change the status of a consumer's pending messages; returns how many per topic."""
    rows = [row for topic, ids in chosen.items() for row in _pending(tx, workflow_id, topic, consumer, ids, status)]
    if rows:
        tx[Messages].save_many([row._replace(status=status, run_id=run_id, updated_at=now) for row in rows])
    return {topic: len(ids) for topic, ids in chosen.items()}


def _pending(tx: Tx, workflow_id: int, topic: str, consumer: str, ids: Sequence[str], verb: str) -> list[Message]:
    messages = tx[Messages].by_ids(workflow_id, [(topic, key) for key in ids])
    rows: list[Message] = []
    for key in ids:
        row = messages.get((topic, key), {}).get(consumer)
        if row is None or row.status != "pending":
            stands = "there is no such message" if row is None else f"it is {row.status}"
            raise WrongAnswer(f"{verb} {shown(key)} in '{topic}', but {stands}; choose from what you were given")
        rows.append(row)
    return rows
