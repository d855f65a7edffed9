"""The rows of workflows, in the order of their columns.

The row of a workflow is the lock of everything in it: its handlers, its topics, its messages, its sessions and the
phases of its runs are read and written by whoever holds that row. So nothing else needs a lock of its own, and one
handler runs at a time (`open_run_id`).
"""

from typing import Literal, NamedTuple, TypeAlias

from wakeful.core.instants import Duration, Instant

Status: TypeAlias = Literal["draft", "ready", "active", "paused"]
Origin: TypeAlias = Literal["rest", "python"]
HandlerKind: TypeAlias = Literal["producer", "consumer"]
MessageStatus: TypeAlias = Literal["pending", "reserved", "consumed", "skipped"]
SessionKind: TypeAlias = Literal["schedule", "manual", "event"]
SessionResult: TypeAlias = Literal["completed", "failed"]
Phase: TypeAlias = Literal["executing", "preparing", "prepared", "mutating", "mutated", "committed", "abandoned"]
MutationOutcome: TypeAlias = Literal["none", "applied", "skipped"]
Awaited: TypeAlias = Literal["uncertain", "stopped"]


class Workflow(NamedTuple):
    """A workflow as a person wrote it, and where it stands."""

    workflow_id: int
    name: str
    owner_id: int  # whom its runs name in the ledger: `workflow:<name>`
    definition: str  # JSON, canonical
    version: int
    origin: Origin  # who has the say over the definition
    status: Status  # set by persons only
    error: str | None  # set by the engine: it stands still until a person acts
    error_at: Instant | None
    created_at: Instant
    updated_at: Instant
    deleted_at: Instant | None
    open_run_id: int | None  # the one handler run under way, or waiting
    session_id: int | None  # the session under way
    freed_at: Instant | None  # when its last run was let go

    @property
    def slug(self) -> str:
        """Its name, as everything that is addressed by a name is asked for it."""
        return self.name


class Handler(NamedTuple):
    """Where a producer or a consumer stands."""

    workflow_id: int
    name: str
    kind: HandlerKind
    place: int  # in the definition
    state: str | None  # JSON
    next_at: Instant | None  # of a producer: its due time; it moves only when a run of it commits
    wake_at: Instant | None  # of a consumer
    is_flagged: int  # 1: a consumer to be looked at once, whatever its topics say
    last_run_id: int | None
    last_run_at: Instant | None


class Topic(NamedTuple):
    """A stream of messages."""

    workflow_id: int
    name: str
    consumer: str | None  # who subscribes; None: nobody does any more
    published: int  # the newest publish sequence
    seen: int  # the newest one when the last run of its consumer looked


class Message(NamedTuple):
    """One message of a topic."""

    workflow_id: int
    topic: str
    message_id: str  # unique in its topic
    place: int  # the sequence it was first published under: the order in which messages are looked at
    seq: int  # the sequence it was last published or released under
    payload: str  # JSON
    status: MessageStatus
    attempt: int  # how often it was reserved, this time included
    run_id: int | None  # who reserved, consumed or skipped it
    published_by: int | None  # the run that published it; None: a person
    published_at: Instant
    updated_at: Instant


class Session(NamedTuple):
    """A sequence of handler runs, for people to look at; it is never resumed."""

    session_id: int
    workflow_id: int
    kind: SessionKind
    started_at: Instant
    ended_at: Instant | None
    result: SessionResult | None
    error: str | None
    producers_left: str  # JSON: names of producers still to run in it
    consumers_run: int


class HandlerRun(NamedTuple):
    """What a line of the ledger cannot say of a handler's run: how far it got, and with what."""

    run_id: int
    workflow_id: int
    session_id: int
    handler: str
    kind: HandlerKind
    phase: Phase
    phases: str  # JSON: when each phase was reached last
    prepared: str | None  # JSON: what `prepare` answered
    mutation: MutationOutcome | None
    result: str | None  # JSON: what `mutate` answered
    reserved: int  # how many messages it holds or held
    prepares: int  # how often it committed a prepare: part of the key of its side effect
    tries: int  # transient failures in a row
    queued: Duration  # how long it was due before the workflow was free
    awaits: Awaited | None  # what a person has to decide
    published: int  # how many messages it published
