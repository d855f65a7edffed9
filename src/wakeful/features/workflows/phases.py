"""The transactions in the middle of a run: between its phases, what it has got so far becomes durable.

Each holds the workflow, and then looks whether the run is still this very attempt's: one that was taken from a node
that froze must not write any more (`FencedOff`).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wakeful.core.fields import shown
from wakeful.core.instants import Instant
from wakeful.core.workflow_answers import PEEK_MAX, Prepared, WrongAnswer
from wakeful.core.workflow_rows import HandlerRun, Message
from wakeful.core.workflow_rules import Flow, clamp_wake
from wakeful.features.workflows.standing import reached, read_flows, save_flows, with_handler, with_topics
from wakeful.ports.action import FencedOff, Fire
from wakeful.ports.store import Tx


class Peeked(NamedTuple):
    """What a `prepare` is shown, and how far its topics had got then."""

    messages: Mapping[str, Sequence[Message]]
    published: Mapping[str, int]
    state: str | None


class Resumed(NamedTuple):
    """What a later phase goes on with."""

    run: HandlerRun
    state: str | None


def peek(tx: Tx, workflow_id: int, handler: str, subscribe: Sequence[str]) -> Peeked:
    """The pending messages of the topics, and the state: one view of the store, so that nothing slips in between."""
    topics = {topic.name: topic.published for topic in tx.workflows.topics([workflow_id]).get(workflow_id, ())}
    messages = {topic: tx.messages.pending(workflow_id, topic, limit=PEEK_MAX) for topic in subscribe}
    return Peeked(messages, {topic: topics.get(topic, 0) for topic in subscribe}, state_of(tx, workflow_id, handler))


def state_of(tx: Tx, workflow_id: int, handler: str) -> str | None:
    """The state a handler returned last."""
    rows = tx.workflows.handlers([workflow_id]).get(workflow_id, ())
    return next((row.state for row in rows if row.name == handler), None)


def resume(tx: Tx, workflow_id: int, handler: str, run_id: int) -> Resumed:
    """What was kept of the phases before."""
    return Resumed(tx.sessions.runs([run_id])[run_id], state_of(tx, workflow_id, handler))


def reserve(
    tx: Tx, workflow_id: int, handler: str, fire: Fire, prepared: Prepared, peeked: Peeked, *, now: Instant
) -> HandlerRun:
    """Reservations, the result of `prepare` and wakeAt become durable together. Raises `WrongAnswer`."""
    before, own = _hold(tx, workflow_id, fire)
    rows = [one for topic, ids in prepared.reservations.items() for one in _pending(tx, workflow_id, topic, ids)]
    if rows:
        tx.messages.save_many([row._replace(status="reserved", run_id=fire.run_id, updated_at=now) for row in rows])
    seen = [
        topic._replace(seen=max(topic.seen, peeked.published[name]))
        for name, topic in before.topics.items()
        if name in peeked.published
    ]
    flow = with_topics(before, seen)
    consumer = flow.handlers.get(handler)
    if consumer is not None:
        wake_at = None if prepared.wake_at is None else clamp_wake(prepared.wake_at, now)
        flow = with_handler(flow, consumer._replace(wake_at=wake_at, is_flagged=0))
    save_flows(tx, [(before, flow)], now)
    own = reached(own, "prepared", now)._replace(
        prepared=prepared.answer, mutation="none", reserved=prepared.size, prepares=own.prepares + 1
    )
    tx.sessions.save_runs([own])
    return own


def begin_mutation(tx: Tx, workflow_id: int, fire: Fire, *, now: Instant) -> HandlerRun:
    """Recorded before the side effect: from here on nobody knows, until it is recorded after it."""
    _, own = _hold(tx, workflow_id, fire)
    own = reached(own, "mutating", now)._replace(mutation=None)
    tx.sessions.save_runs([own])
    return own


def end_mutation(tx: Tx, workflow_id: int, fire: Fire, result: str | None, *, now: Instant) -> HandlerRun:
    """Recorded after the side effect."""
    _, own = _hold(tx, workflow_id, fire)
    own = reached(own, "mutated", now)._replace(mutation="applied", result=result, tries=0)
    tx.sessions.save_runs([own])
    return own


def _hold(tx: Tx, workflow_id: int, fire: Fire) -> tuple[Flow, HandlerRun]:
    """The workflow, held, and the run, if it is still this attempt's. Raises `FencedOff`."""
    workflow = tx.workflows.lock([workflow_id])[workflow_id]
    run = tx.runs.lock([fire.run_id]).get(fire.run_id)
    if run is None or run.outcome != "running" or run.attempt != fire.attempt:
        raise FencedOff(f"run {fire.run_id} was taken from this node")
    flow = read_flows(tx, [workflow])[workflow_id]
    return flow, tx.sessions.runs([fire.run_id])[fire.run_id]


def _pending(tx: Tx, workflow_id: int, topic: str, ids: Sequence[str]) -> list[Message]:
    found = tx.messages.by_ids(workflow_id, [(topic, one) for one in ids])
    for one in ids:
        row = found.get((topic, one))
        if row is None or row.status != "pending":
            stands = "there is no such message" if row is None else f"it is {row.status}"
            raise WrongAnswer(f"reserved {shown(one)} in '{topic}', and {stands}; reserve what you were shown")
    return list(found.values())
