"""Workflow state: read as a whole under its lock, changed as values, written back where it changed."""

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, Literal

from wakeful.core.run.runs import Run, unplanned
from wakeful.core.schedule.cadence import Gap
from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import Handler, HandlerRun, Phase, Subscription, Workflow
from wakeful.core.workflow.rules import WorkflowState, moved, rings_at
from wakeful.engine.planning import SkippedTimes
from wakeful.features.workflows.message_rows import Message, Messages, MessageStatus
from wakeful.features.workflows.session_rows import SessionResult, Sessions
from wakeful.features.workflows.state_rows import Handlers, Subscriptions, Topics
from wakeful.ports.event import EventKind
from wakeful.ports.event_data import WorkflowChanged
from wakeful.ports.store import Report, Tx
from wakeful.ports.workflows import ALARM_WORKFLOW, StoredWorkflows

HANDLER: Final = "handler"
"""The field that names the producer in a ledger row without a handler run."""


def read_flows(tx: Tx, workflows: Iterable[Workflow]) -> dict[int, WorkflowState]:
    """These locked workflows with their handlers, topics and subscriptions, in three queries."""
    rows = {row.workflow_id: row for row in workflows}
    handlers, topics, subscriptions = (
        tx[Handlers].of(rows),
        tx[Topics].of(rows),
        tx[Subscriptions].of(rows),
    )
    return {
        workflow_id: WorkflowState(
            workflow,
            {handler.name: handler for handler in handlers.get(workflow_id, ())},
            {topic.name: topic for topic in topics.get(workflow_id, ())},
            {
                (subscription.topic, subscription.consumer): subscription
                for subscription in subscriptions.get(workflow_id, ())
            },
        )
        for workflow_id, workflow in rows.items()
    }


def save_flows(tx: Tx, pairs: Iterable[tuple[WorkflowState, WorkflowState]], now: Instant) -> None:
    """Write what changed from before to after, and recompute the alarms."""
    changed = [(before, after) for before, after in pairs if after is not before]
    workflows = [after.workflow for before, after in changed if after.workflow != before.workflow]
    handlers = [
        row for before, after in changed for name, row in after.handlers.items() if before.handlers.get(name) != row
    ]
    topics = [row for before, after in changed for name, row in after.topics.items() if before.topics.get(name) != row]
    subscriptions = [
        row
        for before, after in changed
        for key, row in after.subscriptions.items()
        if before.subscriptions.get(key) != row
    ]
    if workflows:
        tx[StoredWorkflows].save_many(sorted(workflows))
    if handlers:
        tx[Handlers].put_many(handlers)
    if topics:
        tx[Topics].put_many(topics)
    if subscriptions:
        tx[Subscriptions].put_many(subscriptions)
    touch(tx, [after for _, after in changed], now)


def touch(tx: Tx, flows: Iterable[WorkflowState], now: Instant) -> None:
    """Recompute alarms."""
    moves = [(flow.workflow.workflow_id, rings_at(flow, now)) for flow in flows]
    if moves:
        tx.alarms.move_many(ALARM_WORKFLOW, moves)


def with_workflow(flow: WorkflowState, **changes: Any) -> WorkflowState:
    """The flow with fields of its row changed."""
    return flow._replace(workflow=flow.workflow._replace(**changes))


def with_handler(flow: WorkflowState, handler: Handler) -> WorkflowState:
    """The flow with one handler changed; an unknown handler changes nothing."""
    if handler.name not in flow.handlers:
        return flow
    return flow._replace(handlers={**flow.handlers, handler.name: handler})


def with_subscriptions(flow: WorkflowState, subscriptions: Iterable[Subscription]) -> WorkflowState:
    """The flow with some subscriptions changed."""
    changed = {(subscription.topic, subscription.consumer): subscription for subscription in subscriptions}
    return flow._replace(subscriptions={**flow.subscriptions, **changed})


def reached(run: HandlerRun, phase: Phase, now: Instant) -> HandlerRun:
    """The run in a new phase, with the time recorded."""
    phases: dict[str, Instant] = json.loads(run.phases)
    return moved(run, phase)._replace(phases=json.dumps({**phases, phase: now}, separators=(",", ":")))


def release(tx: Tx, flow: WorkflowState, run_id: int, now: Instant) -> WorkflowState:
    """Release a run's reservations: pending again, with one more attempt, under a new sequence in the topic.

    That makes its consumer dirty again, so it runs for them once more; other consumers of the topic do not."""
    return pending_again(tx, flow, tx[Messages].of_run(run_id), now)


def pending_again(tx: Tx, flow: WorkflowState, messages: Sequence[Message], now: Instant) -> WorkflowState:
    """Like `release`, for messages that were reserved or skipped."""
    topics, subscriptions = dict(flow.topics), dict(flow.subscriptions)
    released: list[Message] = []
    for message in messages:
        topic = topics[message.topic]
        topics[message.topic] = topic = topic._replace(published=topic.published + 1)
        key = (message.topic, message.consumer)
        if key in subscriptions:  # else its consumer was removed
            subscriptions[key] = subscriptions[key]._replace(published=topic.published)
        row = message._replace(status="pending", attempt=message.attempt + 1, seq=topic.published, run_id=None)
        released.append(row._replace(updated_at=now))
    if not released:
        return flow
    tx[Messages].save_many(released)
    return flow._replace(topics=topics, subscriptions=subscriptions)


def settle_messages(tx: Tx, run_id: int, status: MessageStatus, now: Instant) -> int:
    """Mark a run's reserved messages as consumed or skipped; returns how many."""
    rows = [message._replace(status=status, updated_at=now) for message in tx[Messages].of_run(run_id)]
    if rows:
        tx[Messages].save_many(rows)
    return len(rows)


def _of_producer(row: Run, producer: str) -> Run:
    """A ledger row for times at which a producer did not run, with the producer's name. Several producers may share an
    instant."""
    return row._replace(
        occurrence=unplanned(row.run_id, row.planned_at), result=json.dumps({HANDLER: producer}, separators=(",", ":"))
    )


def skipped_times(flow: WorkflowState, producer: str, gaps: Sequence[Gap]) -> SkippedTimes:
    """Times at which a producer did not run, to be written to the ledger."""
    workflow = flow.workflow
    mark = partial(_of_producer, producer=producer)
    return SkippedTimes("producer", workflow.owner_id, workflow.version, gaps, mark)


def end_session(tx: Tx, flow: WorkflowState, result: SessionResult, error: str | None, now: Instant) -> WorkflowState:
    """End the current session."""
    session_id = flow.workflow.session_id
    if session_id is None:
        return flow
    session = tx[Sessions].among([session_id]).get(session_id)
    if session is not None:
        tx[Sessions].save_many([session._replace(ended_at=now, result=result, error=error)])
    return with_workflow(flow, session_id=None)


def tell(
    tx: Tx,
    workflow: Workflow,
    event: EventKind[WorkflowChanged],
    text: str | None = None,
    *,
    level: Literal["debug", "info", "warn", "error"] = "info",
    **more: Any,
) -> None:
    """Report a workflow event, published after the commit."""
    said = None if text is None else f"workflow {workflow.name}: {text}"
    tx.report(Report(event, WorkflowChanged(workflow.name, **more), said, level, f"workflow:{workflow.name}"))
