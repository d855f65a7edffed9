"""Commands on workflows. Each is a function of a transaction, under the workflow's lock."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeAlias, get_args

from wakeful.core.delivery.incidents import handler_incident, stop_incident
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import shown
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.results import Dropped
from wakeful.core.run.runs import Run
from wakeful.core.run.settlement import Close
from wakeful.core.run.transitions import closed
from wakeful.core.schedule.cadence import Gap
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import tally
from wakeful.core.workflow.answers import NewMessage
from wakeful.core.workflow.definition import Producer
from wakeful.core.workflow.rows import FRESH, HandlerRun, Status, Subscription, Workflow
from wakeful.core.workflow.rules import WorkflowState
from wakeful.engine.cancels import Cancels
from wakeful.engine.incidents import end_incident, resume_incident
from wakeful.engine.planning import add_gaps
from wakeful.features.workflows.alarms import open_session
from wakeful.features.workflows.clock_steps import following, taken, untaken
from wakeful.features.workflows.compiled import Broken, Compilations, Known
from wakeful.features.workflows.feeding import note_feeds
from wakeful.features.workflows.message_rows import Message, Messages, SubscriptionKey
from wakeful.features.workflows.publishing import Put, publish
from wakeful.features.workflows.session_rows import Sessions
from wakeful.features.workflows.settling import settle_run
from wakeful.features.workflows.state import (
    end_session,
    pending_again,
    reached,
    read_flows,
    release,
    save_flows,
    settle_messages,
    skipped_times,
    tell,
    touch,
    with_workflow,
)
from wakeful.ports import events
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.store import ALARM_RUN, Tx
from wakeful.ports.workflows import ALARM_WORKFLOW, StoredWorkflows

_STATUS_EVENTS: Final = {
    "active": events.WORKFLOW_RESUMED,
    "paused": events.WORKFLOW_PAUSED,
    "draft": events.WORKFLOW_DRAFT,
    "ready": events.WORKFLOW_READY,
}
REPLAY_MAX: Final = 10_000
"""The maximum number of skipped messages replayed together."""

Choice: TypeAlias = Literal["retry", "didNotHappen", "skip"]
CHOICES: Final[tuple[Choice, ...]] = get_args(Choice)

STEP: Final = 500

Guard: TypeAlias = Callable[[Workflow | None], None]
"""Checks the locked workflow before it is written; raises to refuse."""


def hold(tx: Tx, name: str) -> Workflow | None:
    """The workflow with this name, locked; None if there is none."""
    workflow = tx[StoredWorkflows].by_names([name]).get(name)
    if workflow is None:
        return None
    # Read again under the lock: another node may have edited or removed it between the two statements.
    row = tx[StoredWorkflows].lock([workflow.workflow_id])[workflow.workflow_id]
    return row if row.deleted_at is None else None


def held(tx: Tx, name: str) -> WorkflowState:
    """The workflow with this name, locked, with its full state. Raises `NotFound`."""
    workflow = hold(tx, name)
    if workflow is None:
        raise NotFound(f"there is no workflow {shown(name)}")
    return read_flows(tx, [workflow])[workflow.workflow_id]


def remove(tx: Tx, name: str, compilations: Compilations, *, now: Instant, guard: Guard | None = None) -> None:
    """Remove a workflow: a running run ends, a waiting one is given up, the ledger stays."""
    before = held(tx, name)
    if guard is not None:
        guard(before.workflow)
    if before.workflow.origin == "python":
        raise Conflict(f"workflow '{name}' is defined by its Python module; remove it there, or pause it")
    flow = with_workflow(before, deleted_at=now, updated_at=now)
    flow = _give_up_waiting(tx, flow, compilations, "removed", now)
    save_flows(tx, [(before, flow)], now)
    tx.alarms.remove_many(ALARM_WORKFLOW, [flow.workflow.workflow_id])
    for incident in (stop_incident(name), *_incidents(flow)):
        end_incident(tx, incident, now=now)
    tell(tx, flow.workflow, events.WORKFLOW_REMOVED, "removed")


def run_now(tx: Tx, name: str, *, now: Instant) -> int:
    """Start a manual session: all producers, then the consumers; returns the session's id."""
    before = held(tx, name)
    workflow = before.workflow
    if workflow.status != "active" or workflow.error is not None:
        stands = f"is {workflow.status}" if workflow.status != "active" else f"stopped: {workflow.error}"
        raise Conflict(f"workflow '{name}' {stands}; resume it first")
    known = None if workflow.session_id is None else tx[Sessions].among([workflow.session_id]).get(workflow.session_id)
    if workflow.open_run_id is not None or (known is not None and known.producers_left != "[]"):
        raise Conflict(f"workflow '{name}' is already running; wait until it has finished")
    flow = end_session(tx, _unheld(before, [producer.name for producer in before.producers]), "completed", None, now)
    flow, session = open_session(tx, flow, "manual", [producer.name for producer in before.producers], now)
    save_flows(tx, [(before, flow)], now)
    return session.session_id


def pause(tx: Tx, name: str, *, now: Instant) -> None:
    """Start no handler until the workflow is resumed; a running handler finishes."""
    set_status(tx, held(tx, name), "paused", now)


def resume(tx: Tx, name: str, compilations: Compilations, *, tried_version: int | None, now: Instant) -> None:
    """Resume a workflow after a person has acted. Producers continue from now, consumers with pending messages run,
    handlers that could not be reached are tried now. `tried_version`: the version that just passed a dry prepare."""
    before = held(tx, name)
    flow = with_workflow(before, status="active", updated_at=now)
    if tried_version is not None:
        flow = with_workflow(flow, tried_version=tried_version)
    flow = acted(tx, flow, now, insists=True)
    flow = _after_pause(tx, before, flow, compilations.of(flow.workflow), now)
    flow = flag_pending(tx, flow)
    save_flows(tx, [(before, flow)], now)
    for incident in _incidents(flow):
        resume_incident(tx, incident)
    tell(tx, flow.workflow, events.WORKFLOW_RESUMED, "resumed")


def _incidents(flow: WorkflowState) -> list[str]:
    """The names of the incidents for a workflow's handlers."""
    return [handler_incident(flow.workflow.name, handler) for handler in flow.handlers]


def set_status(tx: Tx, before: WorkflowState, status: Status, now: Instant, *, is_tried: bool = False) -> WorkflowState:
    """Set the status; an open run that waits is suspended and resumed with it. `is_tried`: its handlers just passed a
    dry prepare."""
    flow = with_workflow(before, tried_version=before.workflow.version) if is_tried else before
    if before.workflow.status == status:
        save_flows(tx, [(before, flow)], now)
        touch(tx, [flow], now)
        return flow
    flow = with_workflow(flow, status=status, updated_at=now)
    run = _open_run(tx, flow)
    own = None if run is None else tx[HandlerRunDetails].among([run.run_id]).get(run.run_id)
    if run is not None and run.outcome == "waiting" and own is not None and own.awaits is None:
        tx.alarms.move_many(ALARM_RUN, [(run.run_id, now if status == "active" else None)])
    if status == "active":
        flow = flag_pending(tx, _after_pause(tx, before, flow, Compilations().of(flow.workflow), now))
    save_flows(tx, [(before, flow)], now)
    tell(tx, flow.workflow, _STATUS_EVENTS[status], f"status is now {status}", status=status)
    return flow


def acted(tx: Tx, flow: WorkflowState, now: Instant, *, insists: bool = False) -> WorkflowState:
    """A person has acted: clear the error, retry handlers in backoff, and continue a run that waited for that. A run
    whose side effect is uncertain stays until it is resolved."""
    flow = _unheld(flow, flow.handlers)
    run = _open_run(tx, flow)
    own = None if run is None else tx[HandlerRunDetails].among([run.run_id]).get(run.run_id)
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
        tx[Cancels].remove_many([run.run_id])
        tx[HandlerRunDetails].save_many([own._replace(awaits=None, tries=0)])
    if flow.workflow.status == "active":
        tx.alarms.move_many(ALARM_RUN, [(run.run_id, now)])
    return with_workflow(flow, error=None, error_at=None)


def _after_pause(tx: Tx, before: WorkflowState, flow: WorkflowState, known: Known, now: Instant) -> WorkflowState:
    """Times that passed during a pause are not caught up: they are counted in one row."""
    if before.workflow.status == "active" or isinstance(known, Broken):
        return flow
    for handler in before.producers:
        producer = known.handlers.get(handler.name)
        if not isinstance(producer, Producer) or handler.next_at is None or handler.next_at > now:
            continue
        if handler.last_run_id is None and before.workflow.status != "paused":
            continue  # it has never run: due immediately, as after a deploy
        jumped = tally(producer.timing, handler.next_at, now)
        ran = taken(tx, flow, handler, since=handler.next_at, until=now)
        paused = Gap(handler.next_at, jumped.last or handler.next_at, jumped.count + 1, "skipped", "paused")
        add_gaps(tx, [skipped_times(flow, handler.name, untaken(paused, ran, producer.timing))], now=now)
        moved = handler._replace(next_at=following(tx, flow, handler, producer.timing, now))
        flow = flow._replace(handlers={**flow.handlers, handler.name: moved})
    return flow


def stop_all(tx: Tx, error: str, *, now: Instant) -> int:
    """Stop every active workflow until a person has checked it; returns how many. Stopped ones are unchanged."""
    stopped, after_id = 0, 0
    while workflows := tx[StoredWorkflows].after(after_id, limit=STEP):
        after_id = workflows[-1].workflow_id
        going = [workflow for workflow in workflows if workflow.status == "active" and workflow.error is None]
        before = read_flows(tx, going)
        pairs = [(flow, with_workflow(flow, error=error, error_at=now)) for flow in before.values()]
        for _, flow in pairs:
            tell(tx, flow.workflow, events.WORKFLOW_STOPPED, error, level="warn", error=error)
        save_flows(tx, pairs, now)
        stopped += len(pairs)
    return stopped


def flag_pending(tx: Tx, flow: WorkflowState) -> WorkflowState:
    """Make each consumer with pending messages run once, from its oldest message on."""
    pending = tx[Messages].oldest([flow.workflow.workflow_id])
    waiting = {
        subscription.consumer
        for subscription in flow.subscriptions.values()
        if subscription.is_active and _key(flow, subscription) in pending
    }
    handlers = {
        name: handler._replace(is_flagged=FRESH) if name in waiting and handler.kind == "consumer" else handler
        for name, handler in flow.handlers.items()
    }
    return flow._replace(handlers=handlers)


def _key(flow: WorkflowState, subscription: Subscription) -> SubscriptionKey:
    return flow.workflow.workflow_id, subscription.topic, subscription.consumer


def _unheld(flow: WorkflowState, names: Iterable[str]) -> WorkflowState:
    """Retry handlers that could not be reached now: a person requested it."""
    held = [flow.handlers[name] for name in names if flow.handlers[name].held_until is not None]
    return flow._replace(
        handlers={**flow.handlers, **{handler.name: handler._replace(held_until=None) for handler in held}}
    )


def publish_now(
    tx: Tx, name: str, messages: Sequence[NewMessage], *, now: Instant, run_id: int | None = None
) -> list[Put]:
    """Publish messages through the API into a topic that has a consumer. `run_id`: the handler's run that does so."""
    before = held(tx, name)
    for message in messages:
        _must_be_read(before, message.topic)
    run_id = note_feeds(tx, before.workflow, [message.topic for message in messages], run_id, now=now)
    flow, put = publish(tx, before, messages, run_id=run_id, now=now)
    save_flows(tx, [(before, flow)], now)
    fresh = sum(result.fate != "duplicate" for result in put)
    if fresh:
        tell(tx, flow.workflow, events.WORKFLOW_PUBLISHED, topic=messages[0].topic, count=fresh)
    return put


def _must_be_read(flow: WorkflowState, topic: str) -> None:
    if not flow.readers_of(topic):
        known = ", ".join(name for name in flow.topics if flow.readers_of(name))
        raise NotFound(
            f"no consumer of workflow '{flow.workflow.name}' reads {shown(topic)}; its topics are {known or 'none'}"
        )


def skip_messages(
    tx: Tx, name: str, topic: str, message_ids: Sequence[str], consumer: str | None, *, now: Instant
) -> int:
    """Skip pending messages, for one consumer of the topic or for all; returns how many rows changed.

    All or nothing: an unknown, reserved or consumed message refuses the whole request."""
    flow = held(tx, name)
    if topic not in flow.topics:
        raise NotFound(f"workflow '{name}' has no topic {shown(topic)}")
    messages = tx[Messages].by_ids(flow.workflow.workflow_id, [(topic, message_id) for message_id in message_ids])
    rows: list[Message] = []
    for message_id in message_ids:
        own = [row for row in messages.get((topic, message_id), {}).values() if consumer in (None, row.consumer)]
        if not own:
            whose = "" if consumer is None else f" for consumer {shown(consumer)}"
            raise NotFound(f"topic '{topic}' of workflow '{name}' has no message {shown(message_id)}{whose}")
        pending = [row for row in own if row.status == "pending"]
        if not pending and not any(row.status == "skipped" for row in own):
            raise Conflict(
                f"message {shown(message_id)} in '{topic}' is {own[0].status}; only pending messages can be skipped"
            )
        rows += pending
    if rows:
        tx[Messages].save_many([_skipped_row(flow, row, now) for row in rows])
        said = f"{len(rows)} messages of {topic} were skipped" if len(rows) > 1 else f"a message of {topic} was skipped"
        tell(tx, flow.workflow, events.WORKFLOW_SKIPPED, said, topic=topic, count=len(rows))
    return len(rows)


def _skipped_row(flow: WorkflowState, row: Message, now: Instant) -> Message:
    """The skipped row. It names the run that saw it last, and is pruned with that run."""
    consumer = flow.handlers.get(row.consumer)
    run_id = None if consumer is None else consumer.last_run_id
    return row._replace(status="skipped", run_id=run_id, updated_at=now)


def replay_messages(
    tx: Tx,
    name: str,
    topic: str,
    message_ids: Sequence[str] | None,
    consumer: str | None,
    *,
    is_rehearsal: bool,
    now: Instant,
) -> int:
    """Make skipped messages pending again, at their old place, for one consumer of the topic or for all; returns how
    many rows change. Without ids: all that are skipped, at most `REPLAY_MAX`.

    The consumer sees them with its next run. A message that names the run that skipped it forgets that run, so it is no
    longer pruned with it. All or nothing: an unknown message, or one that is not skipped, refuses the request."""
    before = held(tx, name)
    if topic not in before.topics:
        raise NotFound(f"workflow '{name}' has no topic {shown(topic)}")
    readers = {subscription.consumer for subscription in before.readers_of(topic)}
    if message_ids is None:
        rows = _all_skipped(tx, before, topic, consumer)
    else:
        rows = [row for key in message_ids for row in _skipped_rows(tx, before, topic, key, consumer)]
    rows = [row for row in rows if row.consumer in readers]
    if rows and not is_rehearsal:
        flow = pending_again(tx, before, rows, now)
        save_flows(tx, [(before, flow)], now)
        said = f"{len(rows)} skipped messages of {topic} are pending again"
        tell(tx, flow.workflow, events.WORKFLOW_REPLAYED, said, topic=topic, count=len(rows))
    return len(rows)


def _all_skipped(tx: Tx, flow: WorkflowState, topic: str, consumer: str | None) -> list[Message]:
    workflow_id = flow.workflow.workflow_id
    return tx[Messages].page(workflow_id, topic, after_place=0, limit=REPLAY_MAX, status="skipped", consumer=consumer)


def _skipped_rows(tx: Tx, flow: WorkflowState, topic: str, message_id: str, consumer: str | None) -> list[Message]:
    """The skipped rows of one message; refused if it is unknown or was not skipped."""
    name, known = flow.workflow.name, tx[Messages].by_ids(flow.workflow.workflow_id, [(topic, message_id)])
    own = [row for row in known.get((topic, message_id), {}).values() if consumer in (None, row.consumer)]
    if not own:
        whose = "" if consumer is None else f" for consumer {shown(consumer)}"
        raise NotFound(f"topic '{topic}' of workflow '{name}' has no message {shown(message_id)}{whose}")
    skipped = [row for row in own if row.status == "skipped"]
    if not skipped:
        raise Conflict(
            f"message {shown(message_id)} in '{topic}' is {own[0].status}; only skipped messages can be replayed"
        )
    return skipped


def resolve(tx: Tx, name: str, run_id: int, choice: str, compilations: Compilations, *, now: Instant) -> None:
    """Resolve an uncertain side effect: a person says what happened."""
    if choice not in CHOICES:
        raise Invalid(FieldError("choice", f"{shown(choice)} is not one of {', '.join(CHOICES)}"))
    before = held(tx, name)
    run = _open_run(tx, before)
    own = tx[HandlerRunDetails].among([run_id]).get(run_id)
    if own is None or own.workflow_id != before.workflow.workflow_id:
        raise NotFound(f"workflow '{name}' has no run {run_id}")
    if run is None or run.run_id != run_id or own.awaits is None:
        raise Conflict(f"run {run_id} does not need to be resolved; its phase is {own.phase}")
    flow = with_workflow(before, error=None, error_at=None)
    match choice:
        case "retry":
            own = reached(own, "prepared", now) if own.phase == "mutating" else own
        case "didNotHappen":
            if own.phase == "mutated":
                raise Conflict(f"the side effect of run {run_id} is recorded; resolve it as retry or skip")
            flow = release(tx, flow, run_id, now)
            own = reached(own, "preparing", now)._replace(prepared=None, mutation=None, result=None, reserved=0)
        case _:
            flow, own = _skipped(tx, flow, own, run, compilations, now)
    own = own._replace(awaits=None, tries=0)
    tx[HandlerRunDetails].save_many([own])
    tx[Cancels].remove_many([run_id])  # or its next attempt would be cancelled as well
    if flow.workflow.open_run_id is not None and flow.workflow.status == "active":
        tx.alarms.move_many(ALARM_RUN, [(run_id, now)])
    save_flows(tx, [(before, flow)], now)
    tell(
        tx,
        flow.workflow,
        events.WORKFLOW_RESOLVED,
        f"run {run_id} was resolved: {choice}",
        run_id=run_id,
        choice=choice,
    )


def _skipped(
    tx: Tx, flow: WorkflowState, own: HandlerRun, run: Run, compilations: Compilations, now: Instant
) -> tuple[WorkflowState, HandlerRun]:
    """Do not retry the run's messages: `next` is called with that result, unless `next` itself cannot finish."""
    known = compilations.of(flow.workflow)
    is_there = not isinstance(known, Broken) and own.handler in known.handlers
    if own.phase == "mutating" and is_there:
        return flow, reached(own, "mutated", now)._replace(mutation="skipped", result=None)
    settle_messages(tx, own.run_id, "skipped", now)
    _close(tx, run, "skipped by a person", now)
    return with_workflow(flow, open_run_id=None, freed_at=now), reached(own, "abandoned", now)


def _give_up_waiting(
    tx: Tx, flow: WorkflowState, compilations: Compilations, reason: str, now: Instant
) -> WorkflowState:
    """Give up an open run that waits."""
    run = _open_run(tx, flow)
    if run is None or run.outcome != "waiting":
        return flow
    own = tx[HandlerRunDetails].among([run.run_id])[run.run_id]
    fate = settle_run(tx, flow, own, run, Dropped(reason), compilations.of(flow.workflow), now=now)
    tx[HandlerRunDetails].save_many([fate.run])
    if isinstance(fate.settled.settlement, Close):
        tx.runs.save_many([closed(run, fate.settled.settlement, now=now, result=None)])
        tx.alarms.remove_many(ALARM_RUN, [run.run_id])
    return fate.flow


def _close(tx: Tx, run: Run, reason: str, now: Instant) -> None:
    tx.runs.save_many([closed(run, Close("failed", run.rung, run.error, reason), now=now, result=None)])
    tx.alarms.remove_many(ALARM_RUN, [run.run_id])


def _open_run(tx: Tx, flow: WorkflowState) -> Run | None:
    run_id = flow.workflow.open_run_id
    return None if run_id is None else tx.runs.lock([run_id]).get(run_id)
