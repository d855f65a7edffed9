"""What persons do with workflows: one function of a transaction each, under the lock of the workflow."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias, get_args

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import shown
from wakeful.core.instants import Instant
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.results import Dropped
from wakeful.core.runs import Run, stretch
from wakeful.core.settlement import Close
from wakeful.core.timing import next_after, tally
from wakeful.core.transitions import closed
from wakeful.core.workflow_answers import NewMessage
from wakeful.core.workflow_definition import Producer
from wakeful.core.workflow_rows import HandlerRun, Status, Workflow
from wakeful.core.workflow_rules import Flow
from wakeful.features.workflows.alarms import open_session
from wakeful.features.workflows.compiled import Broken, Compilations, Known
from wakeful.features.workflows.publishing import Put, publish
from wakeful.features.workflows.settling import settle_run
from wakeful.features.workflows.standing import (
    end_session,
    reached,
    read_flows,
    release,
    save_flows,
    settle_messages,
    tell,
    touch,
    with_workflow,
)
from wakeful.ports.store import ALARM_RUN, Tx
from wakeful.ports.workflows import ALARM_WORKFLOW

Choice: TypeAlias = Literal["retry", "didNotHappen", "skip"]
CHOICES: Final[tuple[Choice, ...]] = get_args(Choice)

STEP: Final = 500

Guard: TypeAlias = Callable[[Workflow | None], None]
"""Looks at the workflow, held, before it is written; raises to refuse."""


def hold(tx: Tx, name: str) -> Workflow | None:
    """The living workflow of this name, held; None if there is none."""
    found = tx.workflows.by_names([name]).get(name)
    if found is None:
        return None
    # Read again under the lock: another node may have edited or removed it between the two statements.
    row = tx.workflows.lock([found.workflow_id])[found.workflow_id]
    return row if row.deleted_at is None else None


def held(tx: Tx, name: str) -> Flow:
    """The living workflow of this name, held, with all that is in it. Raises `NotFound`."""
    workflow = hold(tx, name)
    if workflow is None:
        raise NotFound(f"there is no workflow {shown(name)}")
    return read_flows(tx, [workflow])[workflow.workflow_id]


def remove(tx: Tx, name: str, compilations: Compilations, *, now: Instant, guard: Guard | None = None) -> None:
    """Take a workflow away: a run under way ends, one that waits is given up, the ledger stays."""
    before = held(tx, name)
    if guard is not None:
        guard(before.workflow)
    if before.workflow.origin == "python":
        raise Conflict(f"workflow '{name}' is defined by its Python module; remove it there, or pause it")
    flow = with_workflow(before, deleted_at=now, updated_at=now)
    flow = _give_up_waiting(tx, flow, compilations, "removed", now)
    save_flows(tx, [(before, flow)], now)
    tx.alarms.remove_many(ALARM_WORKFLOW, [flow.workflow.workflow_id])
    tell(tx, flow.workflow, "removed", "it is removed")


def run_now(tx: Tx, name: str, *, now: Instant) -> int:
    """A manual session: all producers, then what follows; answers its id."""
    before = held(tx, name)
    workflow = before.workflow
    if workflow.status != "active" or workflow.error is not None:
        stands = f"is {workflow.status}" if workflow.status != "active" else f"stopped: {workflow.error}"
        raise Conflict(f"workflow '{name}' {stands}; resume it first")
    known = None if workflow.session_id is None else tx.sessions.by_ids([workflow.session_id]).get(workflow.session_id)
    if workflow.open_run_id is not None or (known is not None and known.producers_left != "[]"):
        raise Conflict(f"workflow '{name}' is at work; wait until it has ended")
    flow = end_session(tx, before, "completed", None, now)
    flow, session = open_session(tx, flow, "manual", [one.name for one in before.producers], now)
    save_flows(tx, [(before, flow)], now)
    return session.session_id


def pause(tx: Tx, name: str, *, now: Instant) -> None:
    """Let nothing of it start until it is resumed; a handler under way ends."""
    set_status(tx, held(tx, name), "paused", now)


def resume(tx: Tx, name: str, compilations: Compilations, *, now: Instant) -> None:
    """Let it go on: a person has acted. Producers go on from now, consumers with pending messages are looked at."""
    before = held(tx, name)
    flow = with_workflow(before, status="active", updated_at=now)
    flow = acted(tx, flow, now, insists=True)
    flow = _after_pause(tx, before, flow, compilations.of(flow.workflow), now)
    flow = flag_pending(tx, flow)
    save_flows(tx, [(before, flow)], now)
    tell(tx, flow.workflow, "resumed", "it is resumed")


def set_status(tx: Tx, before: Flow, status: Status, now: Instant) -> Flow:
    """Another status, set by a person; an open run that waits rests with it, and goes on with it."""
    if before.workflow.status == status:
        touch(tx, [before], now)
        return before
    flow = with_workflow(before, status=status, updated_at=now)
    run = _open_run(tx, flow)
    own = None if run is None else tx.sessions.runs([run.run_id]).get(run.run_id)
    if run is not None and run.outcome == "waiting" and own is not None and own.awaits is None:
        tx.alarms.move_many(ALARM_RUN, [(run.run_id, now if status == "active" else None)])
    if status == "active":
        flow = flag_pending(tx, _after_pause(tx, before, flow, Compilations().of(flow.workflow), now))
    save_flows(tx, [(before, flow)], now)
    what: Final = {"paused": "paused", "active": "resumed"}.get(status, status)
    tell(tx, flow.workflow, what, f"it is {status}", data={"status": status})
    return flow


def acted(tx: Tx, flow: Flow, now: Instant, *, insists: bool = False) -> Flow:
    """A person has acted: the error is over, and a run that waited for that goes on. One whose side effect is
    uncertain stays until it is resolved."""
    run = _open_run(tx, flow)
    own = None if run is None else tx.sessions.runs([run.run_id]).get(run.run_id)
    if run is None or own is None or run.outcome != "waiting":
        return with_workflow(flow, error=None, error_at=None)
    if own.awaits == "uncertain":
        if insists:
            raise Conflict(
                f"run {run.run_id} of '{flow.workflow.name}' waits to be resolved; "
                f"say what happened: {', '.join(CHOICES)}"
            )
        return flow
    if own.awaits is not None:
        tx.sessions.save_runs([own._replace(awaits=None, tries=0)])
    if flow.workflow.status == "active":
        tx.alarms.move_many(ALARM_RUN, [(run.run_id, now)])
    return with_workflow(flow, error=None, error_at=None)


def _after_pause(tx: Tx, before: Flow, flow: Flow, known: Known, now: Instant) -> Flow:
    """Times that passed in a pause are not caught up: they are counted in one row, and the next one is ahead."""
    if before.workflow.status == "active" or isinstance(known, Broken):
        return flow
    for handler in before.producers:
        producer = known.handlers.get(handler.name)
        if not isinstance(producer, Producer) or handler.next_at is None or handler.next_at > now:
            continue
        if handler.last_run_id is None and before.workflow.status != "paused":
            continue  # it has never run: it is due at once, as with a deploy
        jumped = tally(producer.timing, handler.next_at, now)
        (run_id,) = tx.runs.reserve_ids(1)
        row = stretch(
            run_id=run_id,
            kind="producer",
            schedule_id=flow.workflow.owner_id,
            version=flow.workflow.version,
            first=handler.next_at,
            last=jumped.last or handler.next_at,
            instants=jumped.count + 1,
            outcome="skipped",
            reason="paused",
            now=now,
        )
        tx.runs.add_many([row._replace(occurrence=-run_id)])
        moved = handler._replace(next_at=next_after(producer.timing, now))
        flow = flow._replace(handlers={**flow.handlers, handler.name: moved})
    return flow


def stop_all(tx: Tx, error: str, *, now: Instant) -> int:
    """Stop every active workflow until a person has looked at it; answers how many. One that has stopped stays so."""
    stopped, after_id = 0, 0
    while workflows := tx.workflows.after(after_id, limit=STEP):
        after_id = workflows[-1].workflow_id
        going = [one for one in workflows if one.status == "active" and one.error is None]
        before = read_flows(tx, going)
        pairs = [(flow, with_workflow(flow, error=error, error_at=now)) for flow in before.values()]
        for _, flow in pairs:
            tell(tx, flow.workflow, "stopped", error, level="warn", data={"error": error})
        save_flows(tx, pairs, now)
        stopped += len(pairs)
    return stopped


def flag_pending(tx: Tx, flow: Flow) -> Flow:
    """Each consumer with pending messages is to be looked at once."""
    pending = tx.messages.oldest([flow.workflow.workflow_id])
    waiting = {flow.topics[topic].consumer for _, topic in pending if topic in flow.topics}
    handlers = {
        name: one._replace(is_flagged=1) if name in waiting and one.kind == "consumer" else one
        for name, one in flow.handlers.items()
    }
    return flow._replace(handlers=handlers)


def publish_now(tx: Tx, name: str, messages: Sequence[NewMessage], *, now: Instant) -> list[Put]:
    """A person publishes into a topic that somebody reads."""
    before = held(tx, name)
    for one in messages:
        topic = before.topics.get(one.topic)
        if topic is None or topic.consumer is None:
            known = ", ".join(name for name, row in before.topics.items() if row.consumer is not None)
            raise NotFound(f"nobody in workflow '{name}' reads {shown(one.topic)}; its topics are {known or 'none'}")
    flow, put = publish(tx, before, messages, run_id=None, now=now)
    save_flows(tx, [(before, flow)], now)
    fresh = sum(one.fate != "duplicate" for one in put)
    if fresh:
        tell(tx, flow.workflow, "published", data={"topic": messages[0].topic, "count": fresh})
    return put


def resolve(tx: Tx, name: str, run_id: int, choice: str, compilations: Compilations, *, now: Instant) -> None:
    """A person says what became of a side effect nobody was sure of."""
    if choice not in CHOICES:
        raise Invalid(FieldError("choice", f"{shown(choice)} is none of {', '.join(CHOICES)}"))
    before = held(tx, name)
    run = _open_run(tx, before)
    own = tx.sessions.runs([run_id]).get(run_id)
    if own is None or own.workflow_id != before.workflow.workflow_id:
        raise NotFound(f"workflow '{name}' has no run {run_id}")
    if run is None or run.run_id != run_id or own.awaits is None:
        raise Conflict(f"run {run_id} does not wait for a person; it is {own.phase}")
    flow = with_workflow(before, error=None, error_at=None)
    match choice:
        case "retry":
            own = reached(own, "prepared", now) if own.phase == "mutating" else own
        case "didNotHappen":
            if own.phase == "mutated":
                raise Conflict(f"the side effect of run {run_id} is on record; resolve it as retry or skip")
            flow = release(tx, flow, run_id, now)
            own = reached(own, "preparing", now)._replace(prepared=None, mutation=None, result=None, reserved=0)
        case _:
            flow, own = _skipped(tx, flow, own, run, compilations, now)
    own = own._replace(awaits=None, tries=0)
    tx.sessions.save_runs([own])
    if flow.workflow.open_run_id is not None and flow.workflow.status == "active":
        tx.alarms.move_many(ALARM_RUN, [(run_id, now)])
    save_flows(tx, [(before, flow)], now)
    tell(
        tx,
        flow.workflow,
        "resolved",
        f"run {run_id} is resolved: {choice}",
        data={"runId": str(run_id), "choice": choice},
    )


def _skipped(
    tx: Tx, flow: Flow, own: HandlerRun, run: Run, compilations: Compilations, now: Instant
) -> tuple[Flow, HandlerRun]:
    """Its messages are not to be tried again: `next` is told so, unless it is `next` itself that cannot end."""
    known = compilations.of(flow.workflow)
    is_there = not isinstance(known, Broken) and own.handler in known.handlers
    if own.phase == "mutating" and is_there:
        return flow, reached(own, "mutated", now)._replace(mutation="skipped", result=None)
    settle_messages(tx, own.run_id, "skipped", now)
    _close(tx, run, "skipped by a person", now)
    return with_workflow(flow, open_run_id=None, freed_at=now), reached(own, "abandoned", now)


def _give_up_waiting(tx: Tx, flow: Flow, compilations: Compilations, reason: str, now: Instant) -> Flow:
    """An open run that waits will not be tried again."""
    run = _open_run(tx, flow)
    if run is None or run.outcome != "waiting":
        return flow
    own = tx.sessions.runs([run.run_id])[run.run_id]
    fate = settle_run(tx, flow, own, run, Dropped(reason), compilations.of(flow.workflow), now=now)
    tx.sessions.save_runs([fate.run])
    if isinstance(fate.settled.settlement, Close):
        tx.runs.save_many([closed(run, fate.settled.settlement, now=now, result=None)])
        tx.alarms.remove_many(ALARM_RUN, [run.run_id])
    return fate.flow


def _close(tx: Tx, run: Run, reason: str, now: Instant) -> None:
    tx.runs.save_many([closed(run, Close("failed", run.rung, run.error, reason), now=now, result=None)])
    tx.alarms.remove_many(ALARM_RUN, [run.run_id])


def _open_run(tx: Tx, flow: Flow) -> Run | None:
    run_id = flow.workflow.open_run_id
    return None if run_id is None else tx.runs.lock([run_id]).get(run_id)
