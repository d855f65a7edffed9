"""Shapes of workflows, for OpenAPI; the definition is described in `core.workflow.definition`."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wakeful.server.http.shapes import At, RunId, Shape, Slug

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples=["mail"])]
SessionId = Annotated[str, Field(pattern=r"^[0-9]{1,18}$", examples=["7"])]
Status = Literal["draft", "ready", "active", "paused"]
MessageStatus = Literal["pending", "reserved", "consumed", "skipped"]


class Counts(Shape):
    """The number of messages with each status in a topic, added up over its consumers."""

    pending: int
    reserved: int
    consumed: int
    skipped: int


class HandlerRun(Shape):
    """A run of a handler by phase. Fields no longer in the ledger are absent."""

    run_id: RunId
    handler: Name
    kind: Literal["producer", "consumer"]
    phase: Literal["executing", "preparing", "prepared", "mutating", "mutated", "committed", "abandoned"]
    phases: dict[str, At]
    reserved: int
    published: int
    mutation: Literal["none", "applied", "skipped"] | None
    ui: Any
    awaits: Annotated[
        Literal["uncertain", "stopped"] | None, Field(description="the decision that a person has to make")
    ]
    tries: int
    queued_for: Annotated[float, Field(description="seconds it waited for the workflow to be free")]
    outcome: str | None = None
    reason: str | None = None
    error: str | None = None
    attempt: int | None = None
    planned_at: At | None = None
    started_at: At | None = None
    ended_at: At | None = None
    next_attempt_at: At | None = None


class Workflow(Shape):
    """A workflow: definition and state."""

    id: Slug
    status: Status
    error: Annotated[str | None, Field(description="why it is stopped until a person acts")]
    error_at: At | None
    producers: dict[str, dict[str, Any]]
    consumers: dict[str, dict[str, Any]]
    topics: dict[str, Counts]
    open_run: HandlerRun | None
    session: SessionId | None
    next_run: At | None
    limited_until: Annotated[
        At | None, Field(description="until when its consumers wait because they publish to their own topics too often")
    ]
    origin: Literal["rest", "python"]
    version: int
    created_at: At
    updated_at: At


class Workflows(Shape):
    """A page of workflows."""

    workflows: list[Workflow]
    next: str | None


class Session(Shape):
    """A session: runs that belong together."""

    session_id: SessionId
    kind: Literal["schedule", "manual", "event"]
    started_at: At
    ended_at: At | None
    result: Literal["completed", "failed"] | None
    error: str | None
    runs: list[HandlerRun]


class Sessions(Shape):
    """A page of sessions, newest first."""

    sessions: list[Session]
    next: str | None


class SessionStarted(Shape):
    """A requested session."""

    session_id: SessionId


class NewMessage(Shape):
    """A message to publish; without an id it gets one."""

    id: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    payload: Any = None


class MessagePut(Shape):
    """The result of publishing."""

    topic: Name
    id: str
    result: Literal["published", "updated", "duplicate"]
    seq: int


class Message(Shape):
    """A message and its state for one consumer of the topic."""

    id: str
    consumer: Annotated[Name | None, Field(description="null if no consumer reads the topic")]
    payload: Any
    status: MessageStatus
    attempt: int
    seq: int
    run_id: RunId | None
    published_by: RunId | None
    published_at: At
    updated_at: At


class Messages(Shape):
    """A page of messages, oldest first."""

    messages: list[Message]
    next: str | None


class Skip(Shape):
    """Messages to skip."""

    ids: Annotated[list[str], Field(min_length=1, max_length=1_000)]
    consumer: Annotated[
        Name | None, Field(description="only for this consumer; default: all consumers of the topic")
    ] = None


class Skipped(Shape):
    """The result: each message counts once for each consumer it was pending for."""

    topic: Name
    skipped: int


class ReplayMessages(Shape):
    """Skipped messages to make pending again."""

    ids: Annotated[
        list[str] | None, Field(min_length=1, max_length=1_000, description="default: all that are skipped")
    ] = None
    consumer: Annotated[
        Name | None, Field(description="only for this consumer; default: all consumers of the topic")
    ] = None


class ReplayedMessages(Shape):
    """The result: each message counts once for each consumer it was skipped for."""

    topic: Name
    messages: int


class Resolve(Shape):
    """A person's decision about an uncertain side effect."""

    choice: Literal["retry", "didNotHappen", "skip"]
