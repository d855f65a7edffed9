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

The nouns have their own files; the names that the kernel uses are imported from here. Access to a table that a feature
describes is `tx[Table]` (`ports.table`).
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from wakeful.ports.changes import Change, Report
from wakeful.ports.database import Database
from wakeful.ports.heartbeats import ALARM_HEARTBEAT, NewEvent, SystemEvent
from wakeful.ports.labelled import Labelled
from wakeful.ports.ledger import CLOSED_COLUMNS, Lanes, Mark, RunGlance
from wakeful.ports.nodes import Node, Nodes
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
    run_alarm,
)
from wakeful.ports.runs import Runs
from wakeful.ports.schedules import AddSchedules, Schedules
from wakeful.ports.table import Rows

__all__ = [
    "ALARM_HEARTBEAT",
    "ALARM_RUN",
    "ALARM_SCHEDULE",
    "CLOSED_COLUMNS",
    "PLANNED_COLUMNS",
    "SETTLED_COLUMNS",
    "STORE_ID",
    "STORE_MARK",
    "Alarm",
    "Alarms",
    "Cadences",
    "DatabaseRefused",
    "HotPath",
    "Lanes",
    "Mark",
    "NewEvent",
    "NewSchedule",
    "Node",
    "Nodes",
    "Report",
    "RunGlance",
    "Runs",
    "Schedule",
    "Schedules",
    "Store",
    "StoreUnavailable",
    "SystemEvent",
    "Tx",
    "run_alarm",
]

Access = TypeVar("Access", bound=Rows[Any])
T = TypeVar("T")

STORE_ID: Final = "store_id"
"""The unique id of a store; idempotency keys and delivery ids contain it."""

STORE_MARK: Final = "store_mark"
"""How far a store has got: grows at every renewal of a lease."""


class HotPath(NamedTuple):
    """The part that each database implements itself: the tables that every fire writes."""

    cadences: Cadences
    alarms: Alarms
    runs: Runs
    lanes: Lanes
    plain: PlainPath
    add_schedules: AddSchedules


class Tx:
    """One transaction on one connection, grouped by noun. It is reused for the next, after its changes were cleared."""

    __slots__ = (
        "_tables", "alarms", "cadences", "changes", "db", "labelled", "lanes", "nodes", "plain", "runs", "schedules",
    )  # fmt: skip

    def __init__(self, db: Database, hot: HotPath, changes: list[Change]) -> None:
        self.db = db
        self._tables: dict[Any, Any] = {}
        self.changes = changes  # so far; the write methods add to it
        self.cadences = hot.cadences
        self.alarms = hot.alarms
        self.runs = hot.runs
        self.lanes = hot.lanes
        self.plain = hot.plain
        self.schedules = Schedules(db, hot.add_schedules, changes)
        self.labelled = Labelled(db)
        self.nodes = Nodes(db, changes)

    def __getitem__(self, table: type[Access]) -> Access:
        """Access to a described table."""
        known: Access | None = self._tables.get(table)
        if known is None:
            known = self._tables[table] = table(self.db)
        return known

    def report(self, report: Report[Any]) -> None:
        """Report this to listeners after the commit."""
        self.changes.append(report)


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

    async def remember(self, mark: int) -> None:
        """Keep outside the database how far it has got, to notice a database that went back."""
        ...

    async def changed(self) -> bool:
        """Whether another process wrote since the last call: a hint, never a proof."""
        ...

    def trouble(self) -> str | None:
        """What went wrong with the store in the last minute, in a sentence, even if it works again."""
        ...

    async def close(self) -> None: ...


class DatabaseRefused(Exception):
    """The database cannot be used as the store. Nothing in it was changed."""


class StoreUnavailable(Exception):
    """The store cannot be used now (disk full, locked, connection lost); no part of the operation was stored."""
