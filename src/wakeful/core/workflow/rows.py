"""The rows of workflows, in the order of their columns.

The row of a workflow is the lock for everything in it: its handlers, topics, messages, sessions and the phases of its
runs are read and written only while that row is locked. So nothing else needs its own lock, and one handler runs at a
time (`open_run_id`).
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.time.instants import Duration, Instant

Status: TypeAlias = Literal["draft", "ready", "active", "paused"]
Origin: TypeAlias = Literal["rest", "python"]
HandlerKind: TypeAlias = Literal["producer", "consumer"]
Phase: TypeAlias = Literal["executing", "preparing", "prepared", "mutating", "mutated", "committed", "abandoned"]
MutationOutcome: TypeAlias = Literal["none", "applied", "skipped"]
Awaited: TypeAlias = Literal["uncertain", "stopped"]

FRESH: Final = 1
"""A person, a deployment or a start requested a run of the consumer: every page is shown again."""
FOLLOWING: Final = 2
"""It reserved something and there are messages left: the heads of its topics are shown once more."""


class Workflow(NamedTuple):
    """A workflow as a person wrote it, and its state."""

    workflow_id: int
    name: str
    owner_id: int  # the owner of its runs in the ledger: `workflow:<name>`
    definition: str  # JSON, canonical
    version: int
    origin: Origin  # where the definition is managed
    status: Status  # set by people only
    error: str | None  # set by the engine: stopped until a person acts
    error_at: Instant | None
    created_at: Instant
    updated_at: Instant
    deleted_at: Instant | None
    open_run_id: int | None  # the one handler run in progress, or waiting
    session_id: int | None  # the session in progress
    freed_at: Instant | None  # when its last run was released
    tried_version: int = 0  # the version whose handlers passed a dry prepare; 0: none
    window_at: Instant | None = None  # when the current minute of its rate limit started
    window_runs: int = 0  # consumer runs counted in that minute
    limited_until: Instant | None = None  # when the rate limit lets its consumers run again

    @property
    def slug(self) -> str:
        """Its name; everything addressed by a name has a slug."""
        return self.name


class Handler(NamedTuple):
    """The state of a producer or a consumer."""

    workflow_id: int
    name: str
    kind: HandlerKind
    place: int  # in the definition
    state: str | None  # JSON
    next_at: Instant | None  # of a producer: its due time; it moves only when a run of it commits
    wake_at: Instant | None  # of a consumer
    is_flagged: int  # of a consumer: 1 (`FRESH`) or 2 (`FOLLOWING`): run once regardless of its topics
    last_run_id: int | None
    last_run_at: Instant | None
    tries: int = 0  # transient failures in a row
    held_until: Instant | None = None  # not run before this, because of them
    last_error: str | None = None  # the last of them
    turn_topic: str | None = None  # of a consumer: the topic whose page is shown next; None: no page is left
    turn_place: int = 0  # that page starts after this place
    lap_topic: str | None = None  # the page shown first since the last publish, wakeAt or resume; None: the heads
    lap_place: int = 0
    faults: int = 0  # errors of its server in a row (500): tried again, but only a few times
    ran_through: Instant = 0  # of a producer: instants up to here may have run although they lie ahead


class Topic(NamedTuple):
    """A stream of messages."""

    workflow_id: int
    name: str
    published: int  # the newest sequence in it


class Subscription(NamedTuple):
    """A consumer of a topic, and how far it has read."""

    workflow_id: int
    topic: str
    consumer: str
    published: int  # the sequence of the newest message published or released for it
    seen: int  # the same, when its last run started
    is_active: int  # 0: the consumer was removed or no longer subscribes, and left messages pending


class HandlerRun(NamedTuple):
    """The details of a handler's run that a ledger row has no columns for: how far it got, and with what."""

    run_id: int
    workflow_id: int
    session_id: int
    handler: str
    kind: HandlerKind
    phase: Phase
    phases: str  # JSON: when each phase was reached last
    prepared: str | None  # JSON: the reply to `prepare`
    mutation: MutationOutcome | None
    result: str | None  # JSON: the reply to `mutate`
    reserved: int  # how many messages it holds or held
    prepares: int  # how many times it committed a prepare: part of the key of its side effect
    tries: int  # transient failures in a row
    queued: Duration  # how long it was due before the workflow was free
    awaits: Awaited | None  # what a person has to decide
    published: int  # how many messages it published
