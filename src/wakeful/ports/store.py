"""The store port: what the engine and the features ask of a database, at the height of the domain.

A transaction is a plain synchronous object, grouped by noun. Whoever wants to change something passes a function
`(tx) -> result` to `Store.write`; the store runs it inside one transaction, together with others or alone, and answers
only after the commit (L7). A function that raises is rolled back alone and its caller gets the exception. It may run
again from the start if the database asks for it (a serialization failure), so it must not change anything but the
transaction. `Store.read` does the same for functions that only look; it never blocks a writer.

SQL never asks the time: `now` comes in (L10). Methods over several rows do the whole batch in a fixed number of
statements, and take and write rows in key order so that two nodes cannot deadlock.

Locking rule, the same in every store: the cadence row is the lock of a schedule, the run row the lock of a run, the
lane row the lock of a lane. Whoever writes an alarm holds the lock of what the alarm rings. Locks are taken in the
order cadence or workflow, run, lane, addressee.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeVar

from wakeful.core.cadence import Cadence
from wakeful.core.heartbeat import Heartbeat
from wakeful.core.instants import Duration, Instant
from wakeful.core.runs import Attempt, Outcome, Run, RungName
from wakeful.ports.outbox import Channels, Deliveries, Inbox, Incidents
from wakeful.ports.slots import Slots
from wakeful.ports.workflows import Messages, Sessions, Workflows

T = TypeVar("T")

ALARM_SCHEDULE: Final = "schedule"
ALARM_RUN: Final = "run"
STORE_ID: Final = "store_id"
"""The fact that tells one store from all others; idempotency keys and ids of deliveries carry it."""
ALARM_HEARTBEAT: Final = "heartbeat"


# What ringing an alarm changes of a cadence, and what settling a run does: the hot path writes no more than that.
PLANNED_COLUMNS: Final = (
    "planned_through", "next_at", "backoff_until", "catch_up_until", "open_run_id", "queued_run_id", "last_row_id",
)  # fmt: skip
SETTLED_COLUMNS: Final = (
    "state", "state_reason", "state_at", "backoff_until", "open_run_id", "queued_run_id", "consecutive_errors",
    "last_run_at", "last_outcome", "last_error", "last_success_at", "session_id",
)  # fmt: skip
# What closing a run changes, besides giving up owner, deadline, next attempt, process and being stuck.
CLOSED_COLUMNS: Final = ("outcome", "reason", "rung", "ended_at", "error", "result")
# What a run may carry at length, and whoever only looks over many does not need.
LONG_COLUMNS: Final = ("result", "ladder", "definition")


class Alarm(NamedTuple):
    """A row that will ring: for a schedule its next instant, for a waiting run its next attempt."""

    kind: str
    ref: int  # the id of what it rings
    due_at: Instant | None  # None: it rests until someone touches it
    priority: int
    lane: str | None
    parked: int  # 1: due, but its lane is held; freeing the lane unparks one


class Schedule(NamedTuple):
    """What a person wrote. Where the schedule stands is its cadence."""

    schedule_id: int
    slug: str
    definition: str  # JSON, canonical
    version: int
    is_zoned: int  # 1: its instants depend on a time zone's rules
    created_at: Instant
    updated_at: Instant
    deleted_at: Instant | None


class NewSchedule(NamedTuple):
    """A schedule about to be written; the store gives it its id."""

    slug: str
    definition: str
    is_zoned: int
    created_at: Instant


class Node(NamedTuple):
    """One incarnation of a process that ticks."""

    node_id: int
    name: str
    host: str
    pid: int
    started_at: Instant
    lease_until: Instant
    last_tick_at: Instant
    lag: Duration
    running: int
    capacity: int
    voided_at: Instant | None  # it lost its lease; whatever it still says is fenced off


class Mark(NamedTuple):
    """A rung reached while the run goes on."""

    run_id: int
    fence: int
    rung: RungName
    ladder: str
    process: str | None


class Answer(NamedTuple):
    """What was answered to a request under a key, to be given again to whoever asks again."""

    key: str
    fingerprint: str  # of the request: another one under the same key is a mistake
    answer: str
    size: int  # in bytes
    answered_at: Instant


class Tallied(NamedTuple):
    """What the ledger holds of one schedule since some time."""

    by_outcome: Mapping[Outcome, int]  # in instants: a stretch counts as many as it covers
    durations: Sequence[Duration]  # of closed runs that started, newest first, bounded
    last_outcomes: Sequence[Outcome]  # of closed runs that started, newest first, bounded


class SystemEvent(NamedTuple):
    """Something the agent is to be told in its next turn."""

    event_id: int
    context_key: str | None  # one event per key; None: nothing replaces it
    source: str
    text: str
    raised_at: Instant
    revision: int  # grows when a newer one takes its place
    slug: str | None  # the schedule that raised it
    run_id: int | None  # the run that waits for a turn to have carried it
    carried_by: int | None  # the turn that last gave it to the agent
    carried_revision: int | None  # and in which revision


class NewEvent(NamedTuple):
    """A system event about to be written; the store gives it its id."""

    context_key: str | None
    source: str
    text: str
    raised_at: Instant
    slug: str | None
    run_id: int | None


class Report(NamedTuple):
    """Something a feature wants told when its transaction is durable: on a stream of its own, and as a line of the log.

    The names of `data` are JSON names; its values are what JSON can hold, secrets never among them."""

    stream: str  # "deliveries"
    what: str  # "delivered"
    data: Mapping[str, object]
    text: str | None = None  # what people read in server.log; None: only programs are told
    level: Literal["debug", "info", "warn", "error"] = "info"
    slug: str | None = None
    slot: str | None = None
    action: str | None = None  # what the log calls it; None: the stream and what


class Schedules(Protocol):
    """Definitions."""

    def add_many(self, rows: Sequence[NewSchedule]) -> list[int | None]:
        """Write new schedules; answers each one's id, or None where the slug is taken."""
        ...

    def by_slugs(self, slugs: Sequence[str]) -> dict[str, Schedule]:
        """The living schedules of these slugs, definitions included."""
        ...

    def by_ids(self, schedule_ids: Iterable[int]) -> dict[int, Schedule]:
        """Schedules by id, deleted ones included."""
        ...

    def save_many(self, rows: Sequence[Schedule]) -> None:
        """Write changed definitions, or `deleted_at`, back. The caller holds the cadences."""
        ...

    def page(self, *, after: str | None, limit: int, contains: str | None = None) -> list[Schedule]:
        """Living schedules in slug order after a slug; `contains` keeps slugs with this text in them."""
        ...

    def zoned(self, *, after_id: int, limit: int) -> list[Schedule]:
        """Living schedules whose instants depend on a zone, in id order."""
        ...

    def after_reset(self, *, after_id: int, limit: int) -> list[Schedule]:
        """Living schedules that may wait for the reset of a quota slot, in id order: those that mention the kind."""
        ...

    def removed_by_slug(self, slug: str, *, limit: int) -> list[Schedule]:
        """Removed schedules that had this slug, the newest first."""
        ...

    def count(self) -> int:
        """How many live."""
        ...


class Cadences(Protocol):
    """Where schedules stand."""

    def add_many(self, rows: Sequence[Cadence]) -> None: ...

    def lock(self, schedule_ids: Iterable[int]) -> dict[int, Cadence]:
        """Read these cadences and hold them until the transaction ends. In a read, just read."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Cadence]:
        """Cadences whose alarm is due, oldest due first, held; those another node holds are left out."""
        ...

    def save_many(self, rows: Sequence[Cadence]) -> None:
        """Write changed rows back whole. The caller holds them."""
        ...

    def save_planned(self, rows: Sequence[Cadence]) -> None:
        """Write back what ringing changes (`PLANNED_COLUMNS`); the rest is as it was read."""
        ...

    def save_settled(self, rows: Sequence[Cadence]) -> None:
        """Write back what settling changes (`SETTLED_COLUMNS`); the rest is as it was read."""
        ...

    def ahead_of(self, now: Instant, *, after_id: int, limit: int) -> list[Cadence]:
        """Cadences planned beyond `now` (the clock came back) after a schedule id, held, in id order."""
        ...


class Alarms(Protocol):
    """What will ring."""

    def set_many(self, rows: Sequence[Alarm]) -> None:
        """Write alarms, new or known, by (kind, ref)."""
        ...

    def move_many(self, kind: str, moves: Sequence[tuple[int, Instant | None]]) -> None:
        """Give alarms of one kind that are there (ref → due time) another due time."""
        ...

    def remove_many(self, kind: str, refs: Sequence[int]) -> None: ...

    def by_refs(self, kind: str, refs: Sequence[int]) -> dict[int, Alarm]: ...

    def due_kinds(self, *, now: Instant) -> set[str]:
        """The kinds of which something not parked is due."""
        ...

    def next_due_at(self, *, besides: Sequence[str] = ()) -> Instant | None:
        """The earliest due time of anything not parked; alarms of the kinds `besides` names are left out."""
        ...

    def shift_waiting(self, *, by: Duration, beyond: Instant) -> int:
        """Bring run alarms due after `beyond`, and parked ones, nearer by `by`: their clock was ahead."""
        ...


class Runs(Protocol):
    """The ledger."""

    def reserve_ids(self, n: int) -> list[int]:
        """Ids for n new runs, ascending."""
        ...

    def add_many(self, rows: Sequence[Run]) -> None:
        """Write new ledger rows; an occurrence already there is an error."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Run]:
        """Waiting runs whose alarm is due, persons first, then by due time, held; others' are left out."""
        ...

    def held(self, node_id: int, claimed: Mapping[int, Run]) -> dict[int, Run]:
        """Of these runs, as they were claimed, those still running under this node and fence: as they are now, held.

        A row that nobody touched since its claim may be answered by the very object given."""
        ...

    def lock(self, run_ids: Sequence[int]) -> dict[int, Run]:
        """Read these runs and hold them. In a read, just read."""
        ...

    def save_many(self, rows: Sequence[Run]) -> None:
        """Write changed rows back whole. The caller holds them."""
        ...

    def close_many(self, rows: Sequence[Run]) -> None:
        """Write back runs that closed and are not stuck: only what closing changes. The caller holds them."""
        ...

    def mark_many(self, node_id: int, marks: Sequence[Mark]) -> list[bool]:
        """Record rungs reached; False where the run is no longer held under that fence."""
        ...

    def of_nodes(self, node_ids: Sequence[int], *, limit: int) -> list[Run]:
        """Runs (running, or stuck) owned by these nodes, held, in id order."""
        ...

    def add_attempts(self, rows: Sequence[Attempt]) -> None: ...

    def attempts(self, run_ids: Sequence[int]) -> dict[int, list[Attempt]]: ...

    def taken(self, schedule_id: int, *, after: Instant, until: Instant) -> frozenset[Instant]:
        """Planned instants in (after, until] that have a row, a run given up before its first attempt included."""
        ...

    def gaps_ahead(self, schedule_id: int, *, after: Instant) -> list[Run]:
        """Skipped or missed rows that reach beyond `after`, held."""
        ...

    def kept_definition(self, schedule_id: int, version: int) -> str | None:
        """The text of an earlier version of a schedule, if one of its rows of that version carries a copy."""
        ...

    def remove_many(self, run_ids: Sequence[int]) -> None:
        """Void rows that lie ahead after the clock came back."""
        ...

    def page(
        self,
        *,
        schedule_id: int | None = None,
        before_id: int | None = None,
        limit: int,
        outcome: Outcome | None = None,
    ) -> list[Run]:
        """Rows newest first, of one schedule or of all, before a run id."""
        ...

    def latest(self, schedule_ids: Sequence[int], *, limit: int) -> dict[int, list[Run]]:
        """The newest rows of each of these schedules, newest first, `limit` of each at most: only looked at.

        What a row may carry at length (its result, its ladder, a copy of a definition) is left out."""
        ...

    def tallied(self, schedule_id: int, *, since: Instant, limit: int) -> Tallied:
        """Counts and durations for statistics; `limit` bounds the durations."""
        ...

    def prune(self, *, before: Instant, limit: int) -> int:
        """Delete up to `limit` closed rows (with their attempts) that ended before; answers how many."""
        ...


class Lanes(Protocol):
    """One at a time per lane (L5)."""

    def take_many(self, wanted: Sequence[tuple[str, int]]) -> set[int]:
        """For (lane, run id) in order of preference: the ids that now hold their lane. Never waits."""
        ...

    def free_many(self, held: Sequence[tuple[str, int]]) -> None:
        """Free lanes these runs hold, and unpark the best waiting run of each."""
        ...

    def holders(self) -> dict[str, int]:
        """Who holds what."""
        ...


class Nodes(Protocol):
    """Who ticks."""

    def register(self, *, name: str, host: str, pid: int, now: Instant, lease_until: Instant, capacity: int) -> int: ...

    def renew(
        self, node_id: int, *, now: Instant, lease_until: Instant, lag: Duration, running: int, capacity: int
    ) -> bool:
        """Push the lease out; False when the node was voided meanwhile."""
        ...

    def hold(self, node_id: int) -> bool:
        """Whether the node still has its lease; if so, nobody takes it before this transaction ends."""
        ...

    def expired(self, *, now: Instant) -> list[Node]:
        """Nodes not voided whose lease is over."""
        ...

    def void(self, node_ids: Sequence[int], *, now: Instant) -> list[int]:
        """Take their leases; answers those that were not yet voided."""
        ...

    def with_leftovers(self) -> list[int]:
        """Voided nodes that still own runs."""
        ...

    def all(self) -> list[Node]: ...

    def prune(self, *, before: Instant) -> None:
        """Forget voided nodes that own nothing."""
        ...


class Owners(Protocol):
    """Who has runs besides schedules: the heartbeat, workflows, quota slots. Their ids are below zero, so that a run's
    `schedule_id` says of itself which of the two it names."""

    def named(self, name: str) -> int:
        """The id of the owner of this name (`workflow:inbox`), given at the first ask and for good. In a write only."""
        ...

    def find(self, name: str) -> int | None:
        """The id, if there is one."""
        ...

    def names(self, owner_ids: Iterable[int]) -> dict[int, str]:
        """Names by id."""
        ...


class Heartbeats(Protocol):
    """Where the heartbeat stands. Its row is the lock of its wakes and of the system events."""

    def add(self, row: Heartbeat) -> None:
        """Write it, unless it is there."""
        ...

    def lock(self, owner_ids: Iterable[int]) -> dict[int, Heartbeat]:
        """Read them and hold them until the transaction ends. In a read, just read."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Heartbeat]:
        """Heartbeats whose alarm is due, held; one that another node holds is left out."""
        ...

    def save(self, row: Heartbeat) -> None:
        """Write it back whole. The caller holds it."""
        ...


class SystemEvents(Protocol):
    """What waits for the next turn. Whoever writes holds the heartbeat, or the run that carries."""

    def put(self, new: NewEvent) -> tuple[SystemEvent, SystemEvent | None]:
        """Write an event, in place of the one of its key if there is one; answers it, and the one it replaced."""
        ...

    def all(self) -> list[SystemEvent]:
        """Everything that waits, oldest first."""
        ...

    def of_run(self, run_id: int) -> SystemEvent | None:
        """The event that this run waits for."""
        ...

    def carry(self, run_id: int) -> list[SystemEvent]:
        """Mark everything that waits as given to the agent by this run; answers it as it was marked, oldest first."""
        ...

    def carried(self, run_id: int) -> list[SystemEvent]:
        """What this run gave to the agent, as far as neither a newer event nor a later run took its place."""
        ...

    def remove_many(self, event_ids: Iterable[int]) -> None: ...


class Meta(Protocol):
    """Single facts of the store, by name."""

    def get(self, name: str) -> str | None: ...

    def set(self, name: str, value: str) -> None: ...


class Answers(Protocol):
    """Answers to be given again, by key."""

    def get(self, key: str) -> Answer | None: ...

    def put(self, row: Answer) -> None:
        """Keep it, in place of an older one of that key."""
        ...

    def prune(self, *, before: Instant, most: int, size_max: int) -> int:
        """Forget those up to `before`, and all but the newest `most` that fit into `size_max`; answers how many."""
        ...


class Tx(Protocol):
    """One transaction, grouped by noun."""

    @property
    def schedules(self) -> Schedules: ...
    @property
    def cadences(self) -> Cadences: ...
    @property
    def alarms(self) -> Alarms: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def lanes(self) -> Lanes: ...
    @property
    def nodes(self) -> Nodes: ...
    @property
    def owners(self) -> Owners: ...
    @property
    def heartbeats(self) -> Heartbeats: ...
    @property
    def system_events(self) -> SystemEvents: ...
    @property
    def workflows(self) -> Workflows: ...
    @property
    def messages(self) -> Messages: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def meta(self) -> Meta: ...
    @property
    def slots(self) -> Slots: ...
    @property
    def answers(self) -> Answers: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def channels(self) -> Channels: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def incidents(self) -> Incidents: ...

    def report(self, report: Report) -> None:
        """Tell whoever listens, once this is committed."""
        ...


class Store(Protocol):
    """A durable place for all of it."""

    async def write(self, operation: Callable[[Tx], T]) -> T:
        """Run it in a transaction; answers after the commit."""
        ...

    async def read(self, operation: Callable[[Tx], T]) -> T:
        """Run it on a consistent view, without changing anything."""
        ...

    async def hold_clock(self) -> bool:
        """Try to become one of those who tick. On the embedded store that is one process at a time."""
        ...

    async def release_clock(self) -> None: ...

    @property
    def is_exclusive(self) -> bool:
        """Whether holding the clock proves that no other node is alive, so that older ones are void at once."""
        ...

    async def changed(self) -> bool:
        """Whether another process wrote since the last call: a hint to look, never a proof."""
        ...

    async def close(self) -> None: ...


class StoreUnavailable(Exception):
    """The store cannot be used now (disk full, locked, connection lost); nothing of the operation was kept."""
