"""One transaction on one connection, grouped by noun. It is reused for the next, after its changes were cleared."""

from typing import Any, NamedTuple, TypeVar

from wakeful.ports.changes import Change
from wakeful.ports.database import Database
from wakeful.ports.plain import PlainPath
from wakeful.ports.store import Alarms, Cadences, Lanes, Report, Runs
from wakeful.ports.table import Rows
from wakeful.stores.shared.labelled import SharedLabelled
from wakeful.stores.shared.nodes import SharedNodes
from wakeful.stores.shared.schedules import AddSchedules, SharedSchedules

Access = TypeVar("Access", bound=Rows[Any])


class HotPath(NamedTuple):
    """The part that each database implements itself: the tables that every fire writes."""

    cadences: Cadences
    alarms: Alarms
    runs: Runs
    lanes: Lanes
    plain: PlainPath
    add_schedules: AddSchedules


class StoreTx:
    """See `ports.store.Tx`."""

    __slots__ = (
        "_tables",
        "alarms",
        "cadences",
        "changes",
        "db",
        "labelled",
        "lanes",
        "nodes",
        "plain",
        "runs",
        "schedules",
    )

    def __init__(self, db: Database, hot: HotPath, changes: list[Change]) -> None:
        self.db = db
        self._tables: dict[Any, Any] = {}
        self.changes = changes
        self.cadences = hot.cadences
        self.alarms = hot.alarms
        self.runs = hot.runs
        self.lanes = hot.lanes
        self.plain = hot.plain
        self.schedules = SharedSchedules(db, hot.add_schedules, changes)
        self.labelled = SharedLabelled(db)
        self.nodes = SharedNodes(db, changes)

    def __getitem__(self, table: type[Access]) -> Access:
        known: Access | None = self._tables.get(table)
        if known is None:
            known = self._tables[table] = table(self.db)
        return known

    def report(self, report: Report[Any]) -> None:
        self.changes.append(report)
