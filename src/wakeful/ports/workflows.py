"""The store port for workflows: part of `ports.store.Tx`.

The row of a workflow is the lock for everything in it. Writing a handler, a topic, a message, a session or a handler's
run requires that lock (`Workflows.lock`, `Workflows.due`), so these methods neither lock nor check for concurrent
changes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import (
    Feed,
    Handler,
    HandlerRun,
    Loaded,
    Message,
    MessageStatus,
    Origin,
    Session,
    SessionKind,
    Status,
    Subscription,
    Topic,
    Workflow,
)

ALARM_WORKFLOW: Final = "workflow"

SubscriptionKey: TypeAlias = tuple[int, str, str]
"""A workflow's id, the name of one of its topics, and the name of a consumer of that topic."""


# The columns of a message that change after it was published.
MOVED_COLUMNS: Final = ("seq", "status", "attempt", "run_id", "published_by", "updated_at")


class NewWorkflow(NamedTuple):
    """A workflow about to be written; the store assigns its id."""

    name: str
    owner_id: int
    definition: str
    origin: Origin
    status: Status
    created_at: Instant


class NewSession(NamedTuple):
    """A session about to start."""

    workflow_id: int
    kind: SessionKind
    started_at: Instant
    producers_left: str


class Waiting(NamedTuple):
    """A subscription whose messages have been pending for a long time."""

    workflow: str
    topic: str
    consumer: str
    is_active: int
    since: Instant  # of the oldest


class Workflows(Protocol):
    """Workflows, their handlers and their topics."""

    def add(self, row: NewWorkflow) -> int | None:
        """Write a new workflow; returns its id, or None if the name is taken."""
        ...

    def by_names(self, names: Sequence[str]) -> dict[str, Workflow]:
        """Existing workflows with these names."""
        ...

    def by_ids(self, workflow_ids: Iterable[int]) -> dict[int, Workflow]:
        """Workflows by id, including deleted ones."""
        ...

    def lock(self, workflow_ids: Iterable[int]) -> dict[int, Workflow]:
        """Read these workflows, including deleted ones, and lock them until the transaction ends. A read transaction
        only reads."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Workflow]:
        """Workflows whose alarm is due, oldest first, locked; those another node has locked are left out."""
        ...

    def due_here(self, *, now: Instant, left_by: Instant, loaded: Iterable[str], limit: int) -> list[Workflow]:
        """Like `due`, without the Python workflows that are not `loaded` in this process, unless their alarm was due by
        `left_by`."""
        ...

    def loaded(self) -> list[Loaded]:
        """The processes that loaded Python workflows, by workflow and time."""
        ...

    def save_loaded(self, rows: Sequence[Loaded]) -> None:
        """Write what a process loaded, new or existing."""
        ...

    def forget_loaded(self, row: Loaded) -> None: ...

    def feeds(self, *, since: Instant) -> list[Feed]:
        """Which consumers published to which topics through the API since then."""
        ...

    def save_feeds(self, rows: Sequence[Feed]) -> None:
        """Write feeds, new or existing."""
        ...

    def forget_feeds(self, *, before: Instant) -> int:
        """Delete the feeds that were not seen since; returns how many."""
        ...

    def of_python(self, *, limit: int) -> list[Workflow]:
        """Active Python workflows that no error stopped, ordered by name."""
        ...

    def save_many(self, rows: Sequence[Workflow]) -> None:
        """Write whole rows. The caller holds their locks."""
        ...

    def page(self, *, after: str | None, limit: int) -> list[Workflow]:
        """Existing workflows ordered by name, after a name."""
        ...

    def stopped(self, *, limit: int) -> list[Workflow]:
        """Active workflows that an error stopped until a person acts, ordered by name."""
        ...

    def after(self, workflow_id: int, *, limit: int) -> list[Workflow]:
        """Existing workflows in id order after an id, locked."""
        ...

    def handlers(self, workflow_ids: Iterable[int]) -> dict[int, list[Handler]]:
        """Handlers of these workflows, in the order of their definitions."""
        ...

    def save_handlers(self, rows: Sequence[Handler]) -> None:
        """Write handlers, new or existing."""
        ...

    def remove_handlers(self, workflow_id: int, names: Sequence[str]) -> None: ...

    def topics(self, workflow_ids: Iterable[int]) -> dict[int, list[Topic]]:
        """Topics of these workflows, by name."""
        ...

    def save_topics(self, rows: Sequence[Topic]) -> None:
        """Write topics, new or existing."""
        ...

    def subscriptions(self, workflow_ids: Iterable[int]) -> dict[int, list[Subscription]]:
        """The subscriptions of these workflows, by topic and consumer."""
        ...

    def save_subscriptions(self, rows: Sequence[Subscription]) -> None:
        """Write subscriptions, new or existing."""
        ...

    def remove_subscriptions(self, workflow_id: int, keys: Sequence[tuple[str, str]]) -> None:
        """Delete subscriptions, named by topic and consumer."""
        ...

    def with_pending(self, *, after_id: int, limit: int) -> dict[int, list[str]]:
        """Consumers that subscribe and have pending messages, by workflow, for at most `limit` existing workflows
        after an id."""
        ...

    def forget_deleted(self, *, limit: int) -> int:
        """Delete up to `limit` messages of deleted workflows, and handlers, topics and subscriptions of those that have
        none left; returns the number of deleted rows."""
        ...


class Messages(Protocol):
    """The messages of topics: one row for each consumer of the topic."""

    def by_ids(self, workflow_id: int, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Message]]:
        """Messages by topic and id, and then by consumer."""
        ...

    def put_many(self, rows: Sequence[Message]) -> None:
        """Write messages, new or existing. A payload that several consumers get is stored once."""
        ...

    def save_many(self, rows: Sequence[Message]) -> None:
        """Write the columns of existing messages that change while their payload does not (`MOVED_COLUMNS`)."""
        ...

    def pending(
        self, workflow_id: int, topic: str, consumer: str, *, after_place: int = 0, limit: int
    ) -> list[Message]:
        """The pending messages of a consumer in a topic, oldest first, after a place."""
        ...

    def hand_over(self, workflow_id: int, topic: str, consumer: str, heir: str) -> int:
        """Move the messages of a consumer in a topic, in any status, to another consumer, except those it already has;
        returns how many the other then has pending."""
        ...

    def of_run(self, run_id: int) -> list[Message]:
        """The messages a run has reserved, in the order of their places."""
        ...

    def oldest(self, workflow_ids: Iterable[int]) -> dict[SubscriptionKey, Instant]:
        """For each subscription with pending messages, the time of the oldest."""
        ...

    def waiting_since(self, *, before: Instant, limit: int) -> list[Waiting]:
        """Subscriptions of active workflows whose oldest pending message was published before a time, oldest first."""
        ...

    def counts(self, workflow_ids: Iterable[int]) -> dict[SubscriptionKey, dict[MessageStatus, int]]:
        """The number of messages by status, for every consumer of every topic of these workflows, in one query."""
        ...

    def page(
        self,
        workflow_id: int,
        topic: str,
        *,
        after_place: int,
        limit: int,
        status: MessageStatus | None = None,
        consumer: str | None = None,
    ) -> list[Message]:
        """Messages of a topic in the order of their places, optionally only of one status or one consumer."""
        ...


class Sessions(Protocol):
    """Sessions, and the details of their runs that the ledger has no columns for."""

    def add(self, row: NewSession) -> int: ...

    def by_ids(self, session_ids: Iterable[int]) -> dict[int, Session]: ...

    def save_many(self, rows: Sequence[Session]) -> None: ...

    def page(self, workflow_id: int, *, before_id: int | None, limit: int) -> list[Session]:
        """Sessions of a workflow, newest first."""
        ...

    def add_runs(self, rows: Sequence[HandlerRun]) -> None: ...

    def runs(self, run_ids: Iterable[int]) -> dict[int, HandlerRun]: ...

    def save_runs(self, rows: Sequence[HandlerRun]) -> None: ...

    def runs_of(self, session_ids: Iterable[int]) -> Mapping[int, list[HandlerRun]]:
        """The runs of each session, in order."""
        ...

    def taken(self, owner_id: int, handler: str, *, since: Instant, until: Instant) -> frozenset[Instant]:
        """The planned times from `since` to `until` that a handler has a run for, unless that failed or is unknown."""
        ...

    def gaps_ahead(self, owner_id: int, *, after: Instant) -> list[int]:
        """The ids of a workflow's skipped or missed rows that reach beyond `after`."""
        ...

    def prune(self, *, limit: int) -> int:
        """Of the oldest `limit` handler runs, delete those that are no longer in the ledger, with the messages they
        consumed or skipped and the sessions that have no run left; returns the number of deleted handler runs."""
        ...
