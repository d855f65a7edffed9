"""The shapes of workflows, for the OpenAPI page. They describe; `core.workflow_json` reads."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wakeful.server.http.shapes import At, Cron, Duration, Every, Interval, Manual, Once, RunId, Shape, Slug, Times

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples=["mail"])]
SessionId = Annotated[str, Field(pattern=r"^[0-9]{1,18}$", examples=["7"])]
Status = Literal["draft", "ready", "active", "paused"]
MessageStatus = Literal["pending", "reserved", "consumed", "skipped"]
ProducerTiming = Annotated[Cron | Every | Interval | Once | Times | Manual, Field(discriminator="type")]


class HttpHandler(Shape):
    """Asked with a POST."""

    url: Annotated[str, Field(examples=["http://127.0.0.1:9100/poll"])]
    headers: dict[str, str] | None = None


class CommandHandler(Shape):
    """Asked over stdin, answers on stdout."""

    argv: Annotated[list[str], Field(min_length=1, examples=[["python", "handler.py"]])]
    cwd: str | None = None
    env: dict[str, str] | None = None


class OverHttp(Shape):
    """A handler behind an address."""

    http: HttpHandler


class ByCommand(Shape):
    """A handler that is a program."""

    command: CommandHandler


class Producer(Shape):
    """Publishes on a schedule of its own."""

    schedule: ProducerTiming
    publishes: list[Name] | None = None
    handler: OverHttp | ByCommand
    timeout: Duration | None = None
    next_run: Any = None
    queued: Any = None
    last_run: Any = None
    state: Any = None
    held_until: Any = None
    last_error: Any = None


class Consumer(Shape):
    """Takes messages."""

    subscribe: Annotated[list[Name], Field(min_length=1)]
    publishes: list[Name] | None = None
    handler: OverHttp | ByCommand
    mutate: bool | None = None
    timeout: Duration | None = None
    wake_at: Any = None
    dirty: Any = None
    last_run: Any = None
    state: Any = None
    messages: Any = None
    held_until: Any = None
    last_error: Any = None


class WorkflowDefinition(Shape):
    """A workflow as its owner writes it; what it reads back with besides is ignored."""

    id: Slug | None = None
    status: Status | None = None
    producers: dict[str, Producer] | None = None
    consumers: dict[str, Consumer] | None = None
    error: Any = None
    error_at: Any = None
    version: Any = None
    origin: Any = None
    created_at: Any = None
    updated_at: Any = None
    topics: Any = None
    open_run: Any = None
    session: Any = None
    next_run: Any = None
    limited_until: Any = None


class Counts(Shape):
    """How many messages of each status a topic holds, summed up over its consumers."""

    pending: int
    reserved: int
    consumed: int
    skipped: int


class HandlerRun(Shape):
    """A run of a handler, phase by phase. What the ledger has forgotten is left out."""

    run_id: RunId
    handler: Name
    kind: Literal["producer", "consumer"]
    phase: Literal["executing", "preparing", "prepared", "mutating", "mutated", "committed", "abandoned"]
    phases: dict[str, At]
    reserved: int
    published: int
    mutation: Literal["none", "applied", "skipped"] | None
    ui: Any
    awaits: Annotated[Literal["uncertain", "stopped"] | None, Field(description="what a person has to decide")]
    tries: int
    queued_for: Annotated[float, Field(description="seconds it was due before the workflow was free")]
    outcome: str | None = None
    reason: str | None = None
    error: str | None = None
    attempt: int | None = None
    planned_at: At | None = None
    started_at: At | None = None
    ended_at: At | None = None
    next_attempt_at: At | None = None


class Workflow(Shape):
    """A workflow as it stands: what was written, and where everything is."""

    id: Slug
    status: Status
    error: Annotated[str | None, Field(description="why it stands still until a person acts")]
    error_at: At | None
    producers: dict[str, dict[str, Any]]
    consumers: dict[str, dict[str, Any]]
    topics: dict[str, Counts]
    open_run: HandlerRun | None
    session: SessionId | None
    next_run: At | None
    limited_until: Annotated[At | None, Field(description="its consumers publish to themselves too often, and wait")]
    origin: Literal["rest", "python"]
    version: int
    created_at: At
    updated_at: At


class Workflows(Shape):
    """A page of workflows."""

    workflows: list[Workflow]
    next: str | None


class Session(Shape):
    """Runs that belong together."""

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
    """A session that was asked for."""

    session_id: SessionId


class NewMessage(Shape):
    """A message to be published; without an id it gets one."""

    id: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    payload: Any = None


class MessagePut(Shape):
    """What became of it."""

    topic: Name
    id: str
    result: Literal["published", "updated", "duplicate"]
    seq: int


class Message(Shape):
    """A message as it stands for one consumer of its topic."""

    id: str
    consumer: Annotated[Name | None, Field(description="null: no consumer reads its topic")]
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
    """Messages that are not to be shown to a consumer again."""

    ids: Annotated[list[str], Field(min_length=1, max_length=1_000)]
    consumer: Annotated[Name | None, Field(description="only for this one; left out: for all of the topic")] = None


class Skipped(Shape):
    """What became of them: each counts once for each consumer it was pending for."""

    topic: Name
    skipped: int


class Resolve(Shape):
    """What a person says of a side effect nobody was sure of."""

    choice: Literal["retry", "didNotHappen", "skip"]
