"""Views of workflows, their sessions, runs and messages."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeAlias

from wakeful.core.description import COMPONENTS
from wakeful.core.returned import BESIDE, At, RunCursor, RunId, Slug, kind, returned
from wakeful.core.run.runs import Outcome, Run
from wakeful.core.time.instants import Instant
from wakeful.core.workflow import rows
from wakeful.core.workflow.definition import NAME_PATTERN, STOPPED
from wakeful.core.workflow.definition_json import handler_to_json
from wakeful.core.workflow.rules import WorkflowState, is_dirty, is_held, is_limited, is_queued
from wakeful.features.workflows.compiled import Broken, Known
from wakeful.features.workflows.message_rows import Message, MessageStatus
from wakeful.features.workflows.session_rows import Session, SessionKind, SessionResult

MESSAGE_STATUSES: Final[tuple[MessageStatus, ...]] = ("pending", "reserved", "consumed", "skipped")
Status: TypeAlias = Literal["draft", "ready", "active", "paused", "stopped"]
NAME_SCHEMA: Final = {"type": "string", "pattern": f"^{NAME_PATTERN.pattern}$", "examples": ["mail"]}
Name: TypeAlias = Annotated[str, kind(NAME_SCHEMA)]
SessionId: TypeAlias = Annotated[int, kind({"type": "string", "pattern": "^[0-9]{1,18}$", "examples": ["7"]}, str)]


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of messages with each status in a topic, added up over its consumers."""

    pending: int
    reserved: int
    consumed: int
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerView:
    """A producer: definition and state."""

    definition: Annotated[Mapping[str, Any], BESIDE]
    next_run: At | None
    queued: bool
    state: Any
    last_run: At | None
    held_until: At | None
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerView:
    """A consumer: definition and state."""

    definition: Annotated[Mapping[str, Any], BESIDE]
    wake_at: At | None
    dirty: bool
    messages: Mapping[str, Counts]  # by topic
    state: Any
    last_run: At | None
    held_until: At | None
    last_error: str | None


_PRODUCER: Final = returned(ProducerView)
_CONSUMER: Final = returned(ConsumerView)
_HANDLERS: Final = {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": True}}


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerRunView:
    """A run of a handler by phase. Fields no longer in the ledger are absent."""

    run_id: RunId
    handler: Name
    kind: rows.HandlerKind
    phase: rows.Phase
    phases: Mapping[str, At]
    reserved: int
    published: int
    mutation: rows.MutationOutcome | None
    ui: Any
    awaits: Annotated[rows.Awaited | None, "the decision that a person has to make"]
    tries: int
    queued_for: Annotated[float, "seconds it waited for the workflow to be free"]
    outcome: Outcome | None = None
    reason: str | None = None
    error: str | None = None
    attempt: int | None = None
    planned_at: At | None = None
    started_at: At | None = None
    ended_at: At | None = None
    next_attempt_at: At | None = None


_HANDLER_RUN: Final = returned(HandlerRunView, name="HandlerRun")
ShownRun: TypeAlias = Annotated[
    HandlerRunView,
    kind(
        {"$ref": COMPONENTS + _HANDLER_RUN.name},
        lambda run: _HANDLER_RUN.write(run, full=run.outcome is not None),  # it has all fields of the ledger, or none
        "",
        _HANDLER_RUN,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowView:
    """A workflow: definition and state."""

    id: Slug
    status: Annotated[Status, "`stopped`: after an error, until a person acts"]
    producers: Annotated[
        Mapping[str, ProducerView],
        kind(_HANDLERS, lambda views: {name: _PRODUCER.write(view) for name, view in views.items()}),
    ]
    consumers: Annotated[
        Mapping[str, ConsumerView],
        kind(_HANDLERS, lambda views: {name: _CONSUMER.write(view) for name, view in views.items()}),
    ]
    error: Annotated[str | None, "why it is stopped until a person acts"]
    error_at: At | None
    topics: Mapping[str, Counts]
    open_run: ShownRun | None
    session: SessionId | None
    next_run: At | None
    limited_until: Annotated[
        At | None, "until when its consumers wait because they publish to their own topics too often"
    ]
    origin: rows.Origin
    version: int
    created_at: At
    updated_at: At


WORKFLOW: Final = returned(WorkflowView, name="Workflow")


@dataclass(frozen=True, slots=True)
class WorkflowsPage:
    """A page of workflows."""

    workflows: list[WorkflowView]
    next: str | None


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session: runs that belong together."""

    session_id: SessionId
    kind: SessionKind
    started_at: At
    ended_at: At | None
    result: SessionResult | None
    error: str | None
    runs: list[ShownRun]


returned(SessionView, name="Session")


@dataclass(frozen=True, slots=True)
class SessionsPage:
    """A page of sessions, newest first."""

    sessions: list[SessionView]
    next: RunCursor


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message and its state for one consumer of the topic."""

    id: str
    consumer: Annotated[Name | None, "null if no consumer reads the topic"]
    payload: Any
    status: MessageStatus
    attempt: int
    seq: int
    run_id: RunId | None
    published_by: RunId | None
    published_at: At
    updated_at: At


returned(MessageView, name="Message")


@dataclass(frozen=True, slots=True)
class MessagesPage:
    """A page of messages, oldest first."""

    messages: list[MessageView]
    next: RunCursor


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """A requested session."""

    session_id: SessionId


@dataclass(frozen=True, slots=True)
class Skipped:
    """The result: each message counts once for each consumer it was pending for."""

    topic: Name
    skipped: int


@dataclass(frozen=True, slots=True)
class ReplayedMessages:
    """The result: each message counts once for each consumer it was skipped for."""

    topic: Name
    messages: int


def workflow_view(
    flow: WorkflowState,
    known: Known,
    counts: Mapping[tuple[str, str], Mapping[MessageStatus, int]],
    run: Run | None,
    own: rows.HandlerRun | None,
    next_at: Instant | None,
    now: Instant,
) -> WorkflowView:
    """The view of a workflow. `counts` are by topic and consumer; `run` and `own` are its open run, if there is one."""
    workflow = flow.workflow
    # Each handler of the definition has a row, which is written with it.
    handlers = () if isinstance(known, Broken) else known.definition.handlers
    listed = [(flow.handlers[handler.name], handler_to_json(handler)) for handler in handlers]
    return WorkflowView(
        id=workflow.name,
        status=workflow.status if workflow.error is None else STOPPED,
        producers={row.name: _producer(flow, row, text, now) for row, text in listed if row.kind == "producer"},
        consumers={row.name: _consumer(flow, row, text, counts, now) for row, text in listed if row.kind == "consumer"},
        error=workflow.error,
        error_at=workflow.error_at,
        topics={name: _counts([by for (topic, _), by in counts.items() if topic == name]) for name in flow.topics},
        open_run=None if own is None or run is None else run_view(own, run),
        session=workflow.session_id,
        next_run=next_at,
        limited_until=workflow.limited_until if is_limited(workflow, now) else None,
        origin=workflow.origin,
        version=workflow.version,
        created_at=workflow.created_at,
        updated_at=workflow.updated_at,
    )


def _producer(flow: WorkflowState, row: rows.Handler, definition: Mapping[str, Any], now: Instant) -> ProducerView:
    return ProducerView(
        definition=definition,
        next_run=row.next_at,
        queued=is_queued(flow.workflow, row, now),
        state=_read(row.state),
        last_run=row.last_run_at,
        held_until=row.held_until if is_held(row, now) else None,
        last_error=row.last_error,
    )


def _consumer(
    flow: WorkflowState,
    row: rows.Handler,
    definition: Mapping[str, Any],
    counts: Mapping[tuple[str, str], Mapping[MessageStatus, int]],
    now: Instant,
) -> ConsumerView:
    topics = [subscription.topic for subscription in flow.subscribed_by(row.name)]
    return ConsumerView(
        definition=definition,
        wake_at=row.wake_at,
        dirty=is_dirty(flow, row),
        messages={topic: _counts([counts.get((topic, row.name), {})]) for topic in topics},
        state=_read(row.state),
        last_run=row.last_run_at,
        held_until=row.held_until if is_held(row, now) else None,
        last_error=row.last_error,
    )


def _counts(several: Sequence[Mapping[MessageStatus, int]]) -> Counts:
    return Counts(*(sum(counts.get(status, 0) for counts in several) for status in MESSAGE_STATUSES))


def run_view(own: rows.HandlerRun, run: Run | None) -> HandlerRunView:
    """A handler's run: its ledger row and its progress."""
    prepared = None if own.prepared is None else json.loads(own.prepared)
    view = HandlerRunView(
        run_id=own.run_id,
        handler=own.handler,
        kind=own.kind,
        phase=own.phase,
        phases=json.loads(own.phases),
        reserved=own.reserved,
        published=own.published,
        mutation=own.mutation,
        ui=None if prepared is None else prepared.get("ui"),
        awaits=own.awaits,
        tries=own.tries,
        queued_for=own.queued / 1000,
    )
    if run is None:
        return view
    return replace(
        view,
        outcome=run.outcome,
        reason=run.reason,
        error=run.error,
        attempt=run.attempt,
        planned_at=run.planned_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        next_attempt_at=run.next_attempt_at,
    )


def session_view(session: Session, runs: list[HandlerRunView]) -> SessionView:
    """A session with its runs."""
    return SessionView(
        session.session_id, session.kind, session.started_at, session.ended_at, session.result, session.error, runs
    )


def message_view(message: Message) -> MessageView:
    """A message for one of its consumers."""
    return MessageView(
        id=message.message_id,
        consumer=message.consumer or None,
        payload=_read(message.payload),
        status=message.status,
        attempt=message.attempt,
        seq=message.seq,
        run_id=message.run_id,
        published_by=message.published_by,
        published_at=message.published_at,
        updated_at=message.updated_at,
    )


def _read(text: str | None) -> Any:
    """A stored JSON value; unreadable text is returned as is, so that it can be repaired."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
