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

The nouns have files of their own: `plans`, `ledger`, `heartbeats`, `workflows`, `slots`, `outbox`, `bus`. What the
kernel is made of is imported from here.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple, Protocol, TypeVar

from wakeful.core.time.instants import Instant
from wakeful.ports.bus import Bus
from wakeful.ports.heartbeats import ALARM_HEARTBEAT, Heartbeats, NewEvent, SystemEvent, SystemEvents
from wakeful.ports.ledger import CLOSED_COLUMNS, LONG_COLUMNS, Lanes, LedgerCounts, Mark, Node, Nodes, Runs
from wakeful.ports.logins import Logins
from wakeful.ports.outbox import Channels, Deliveries, Inbox, Incidents
from wakeful.ports.plans import (
    ALARM_RUN,
    ALARM_SCHEDULE,
    PLANNED_COLUMNS,
    SETTLED_COLUMNS,
    Alarm,
    Alarms,
    Cadences,
    NewSchedule,
    Schedule,
    Schedules,
)
from wakeful.ports.slots import Slots
from wakeful.ports.workflows import Messages, Sessions, Workflows

__all__ = [
    "ALARM_HEARTBEAT",
    "ALARM_RUN",
    "ALARM_SCHEDULE",
    "CLOSED_COLUMNS",
    "LONG_COLUMNS",
    "PLANNED_COLUMNS",
    "SETTLED_COLUMNS",
    "STORE_ID",
    "Alarm",
    "Alarms",
    "Answer",
    "Answers",
    "Cadences",
    "Heartbeats",
    "Lanes",
    "LedgerCounts",
    "Mark",
    "Meta",
    "NewEvent",
    "NewSchedule",
    "Node",
    "Nodes",
    "Owners",
    "Report",
    "Runs",
    "Schedule",
    "Schedules",
    "Store",
    "StoreUnavailable",
    "SystemEvent",
    "SystemEvents",
    "Tx",
]

T = TypeVar("T")

STORE_ID: Final = "store_id"
"""The fact that tells one store from all others; idempotency keys and ids of deliveries carry it."""


class Answer(NamedTuple):
    """What was answered to a request under a key, to be given again to whoever asks again."""

    key: str
    fingerprint: str  # of the request: another one under the same key is a mistake
    answer: str
    size: int  # in bytes
    answered_at: Instant


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


class Meta(Protocol):
    """Single facts of the store, by name."""

    def get(self, name: str) -> str | None: ...

    def set(self, name: str, value: str) -> None: ...


class Answers(Protocol):
    """Answers to be given again, by key; and who is about to give one."""

    def begin(self, key: str, asker: str, *, now: Instant, until: Instant) -> bool:
        """Whether it is this asker who answers under the key from now on, and nobody else before `until`; asked again,
        it has it for longer. Of several at once one is told so, wherever they are."""
        ...

    def release(self, key: str, asker: str) -> None:
        """This asker is done with it: it is answered, or may be tried again."""
        ...

    def get(self, key: str) -> Answer | None: ...

    def put(self, row: Answer) -> None:
        """Keep it, in place of an older one of that key."""
        ...

    def prune(self, *, before: Instant, most: int, size_max: int) -> int:
        """Forget those up to `before`, and all but the newest `most` that fit into `size_max`; answers how many.
        Whoever was to answer until before then never will, and is forgotten as well."""
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
    def logins(self) -> Logins: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def channels(self) -> Channels: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def incidents(self) -> Incidents: ...
    @property
    def bus(self) -> Bus: ...

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

    def trouble(self) -> str | None:
        """What went wrong with the place in the last minute, in a sentence, although it may work by now."""
        ...

    async def close(self) -> None: ...


class StoreUnavailable(Exception):
    """The store cannot be used now (disk full, locked, connection lost); nothing of the operation was kept."""
