"""The store port: what the engine and the features need from a database, in terms of the domain.

A transaction is a plain synchronous object, grouped by noun. To change something, pass a function `(tx) -> result` to
`Store.write`; the store runs it inside one transaction, together with others or alone, and returns only after the
commit (L7). If the function raises, it alone is rolled back and its caller gets the exception. It may run again from
the start if the database requires it (a serialization failure), so it must not change anything but the transaction.
`Store.read` does the same for functions that only read; it never blocks a writer.

SQL never reads the clock: `now` is an argument (L10). Methods for several rows process the whole batch in a fixed
number of statements, and lock and write rows in key order so that two nodes cannot deadlock.

Locking rule, the same in every store: the cadence row is the lock of a schedule, the run row the lock of a run, the
lane row the lock of a lane. Writing an alarm requires the lock of what the alarm rings. Locks are taken in the order
cadence or workflow, run, lane, budget, addressee; a claim locks budgets last, and never waits for one.

The nouns have their own files: `plans`, `ledger`, `heartbeats`, `workflows`, `slots`, `outbox`, `money`, `bus`,
`changes`. The names that the kernel uses are imported from here.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol, TypeVar

from wakeful.core.time.instants import Instant
from wakeful.ports.backfills import Backfills
from wakeful.ports.bus import Bus
from wakeful.ports.cancels import Cancels
from wakeful.ports.changes import Change, Report
from wakeful.ports.forecasts import Forecasts
from wakeful.ports.heartbeats import ALARM_HEARTBEAT, Heartbeats, NewEvent, SystemEvent, SystemEvents
from wakeful.ports.labelled import Labelled
from wakeful.ports.ledger import CLOSED_COLUMNS, Lanes, Mark, MergedRuns, Node, Nodes, RunGlance, Runs
from wakeful.ports.logins import Logins
from wakeful.ports.money import Budgets, Charges
from wakeful.ports.moving import Handovers, Origins
from wakeful.ports.outbox import Channels, Deliveries, Inbox, Incidents
from wakeful.ports.plain import PlainPath
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
    run_alarm,
)
from wakeful.ports.self_scheduling import Ownerships, Proposals
from wakeful.ports.slots import Slots
from wakeful.ports.totals import Totals
from wakeful.ports.workflows import Messages, Sessions, Workflows

__all__ = [
    "ALARM_HEARTBEAT",
    "ALARM_RUN",
    "ALARM_SCHEDULE",
    "CLOSED_COLUMNS",
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
    "Mark",
    "Meta",
    "NewEvent",
    "NewSchedule",
    "Node",
    "Nodes",
    "Owners",
    "Report",
    "RunGlance",
    "Runs",
    "Schedule",
    "Schedules",
    "Store",
    "StoreUnavailable",
    "SystemEvent",
    "SystemEvents",
    "Tx",
    "run_alarm",
]

T = TypeVar("T")

STORE_ID: Final = "store_id"
"""The unique id of a store; idempotency keys and delivery ids contain it."""


class Answer(NamedTuple):
    """The response to a request with a key, returned again when the request is repeated."""

    key: str
    fingerprint: str  # of the request: a different request with the same key is an error
    answer: str
    size: int  # in bytes
    answered_at: Instant


class Owners(Protocol):
    """Owners of runs other than schedules: the heartbeat, workflows, quota slots. Their ids are negative, so that a
    run's `schedule_id` shows which of the two it refers to."""

    def named(self, name: str) -> int:
        """The id of the owner with this name (`workflow:inbox`), assigned on first use, permanently. Only in a
        write."""
        ...

    def find(self, name: str) -> int | None:
        """The id, if there is one."""
        ...

    def names(self, owner_ids: Iterable[int]) -> dict[int, str]:
        """Names by id."""
        ...


class Meta(Protocol):
    """Single values of the store, by name."""

    def get(self, name: str) -> str | None: ...

    def set(self, name: str, value: str) -> None: ...


class Answers(Protocol):
    """Stored responses by key, and which process is about to produce one."""

    def begin(self, key: str, asker: str, *, now: Instant, until: Instant) -> bool:
        """Whether this process produces the response for the key, exclusively before `until`; calling it again extends
        that. Of several callers at the same time, on any node, one gets it."""
        ...

    def release(self, key: str, asker: str) -> None:
        """Give up the key: the response is stored, or may be tried again."""
        ...

    def get(self, key: str) -> Answer | None: ...

    def put(self, row: Answer) -> None:
        """Store a response, replacing an older one with that key."""
        ...

    def prune(self, *, before: Instant, most: int, size_max: int) -> int:
        """Delete responses up to `before`, and all but the newest `most` that fit into `size_max`; returns how many.
        Also deletes expired claims of processes that never responded."""
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
    def plain(self) -> PlainPath: ...
    @property
    def labelled(self) -> Labelled: ...
    @property
    def lanes(self) -> Lanes: ...
    @property
    def nodes(self) -> Nodes: ...
    @property
    def owners(self) -> Owners: ...
    @property
    def ownerships(self) -> Ownerships: ...
    @property
    def proposals(self) -> Proposals: ...
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
    def totals(self) -> Totals: ...
    @property
    def logins(self) -> Logins: ...
    @property
    def origins(self) -> Origins: ...
    @property
    def handovers(self) -> Handovers: ...
    @property
    def cancels(self) -> Cancels: ...
    @property
    def backfills(self) -> Backfills: ...
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
    @property
    def merged_runs(self) -> MergedRuns: ...
    @property
    def charges(self) -> Charges: ...
    @property
    def budgets(self) -> Budgets: ...
    @property
    def forecasts(self) -> Forecasts: ...

    @property
    def changes(self) -> list[Change]:
        """What this transaction has changed so far. The write methods add to it."""
        ...

    def report(self, report: Report) -> None:
        """Report this to listeners after the commit."""
        ...


class Store(Protocol):
    """Durable storage."""

    async def write(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        """Run a function in a transaction; returns after the commit. An urgent one goes ahead of others that wait: a
        claim or the renewal of a lease must not wait for the commands of many clients."""
        ...

    async def read(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        """Run a function on a consistent snapshot, without changing anything."""
        ...

    async def hold_clock(self) -> bool:
        """Try to become a node that ticks. On the embedded store only one process can."""
        ...

    async def release_clock(self) -> None: ...

    @property
    def is_exclusive(self) -> bool:
        """Whether holding the clock proves that no other node is alive, so that older ones can be voided
        immediately."""
        ...

    async def changed(self) -> bool:
        """Whether another process wrote since the last call: a hint, never a proof."""
        ...

    def trouble(self) -> str | None:
        """What went wrong with the store in the last minute, in a sentence, even if it works again."""
        ...

    async def close(self) -> None: ...


class StoreUnavailable(Exception):
    """The store cannot be used now (disk full, locked, connection lost); no part of the operation was stored."""
