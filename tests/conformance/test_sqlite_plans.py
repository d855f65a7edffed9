"""How SQLite finds rows: what is asked on every tick is found by seeking, never by reading past other rows."""

import importlib
import pkgutil
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from new_store import prepare
from wakeful.core.delivery.incidents import Incident
from wakeful.core.run.runs import Attempt, Run
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.slot.slot import Slot
from wakeful.engine import incident_rows
from wakeful.observe import bus_rows
from wakeful.ports import inbox, interactions, outbox, schedules, slots
from wakeful.ports import runs as ledger
from wakeful.ports.database import Sql
from wakeful.ports.meta import Meta
from wakeful.ports.outbox import Addressees, Deliveries
from wakeful.ports.slots import Read
from wakeful.ports.store import Alarm, Node, Schedule
from wakeful.server.http.kept_rows import Answers
from wakeful.stores import sqlite
from wakeful.stores.sqlite import alarms, cadences, lanes, new_schedules, runs
from wakeful.stores.sqlite.connection import connect
from wakeful.stores.sqlite.database import translated

HOT: dict[str, Sql] = {
    "alarms.SET": alarms.SET,
    "alarms.MOVE": alarms.MOVE,
    "alarms.REMOVE": alarms.REMOVE,
    "alarms.HOLD_OFF_FIRST": alarms.HOLD_OFF_FIRST,
    "alarms.BY_REFS": alarms.BY_REFS,
    "alarms.NEXT_PRIORITY": alarms.NEXT_PRIORITY,
    "alarms.NEXT_KIND": alarms.NEXT_KIND,
    "Answers.get": Answers._get,
    "bus.AFTER": bus_rows.AFTER,
    "cadences.LOCK": cadences.LOCK,
    "cadences.DUE": cadences.DUE,
    "cadences.BEGIN": cadences.BEGIN,
    "cadences.BEGIN_ALARMS": cadences.BEGIN_ALARMS,
    "cadences.SAVE": cadences.SAVE,
    "interactions.TOUCH": interactions.TOUCH,
    "Addressees.due": Addressees._due,
    "outbox.FIND": outbox.FIND,
    "outbox.HEAD": outbox.HEAD,
    "outbox.OF_RUNS": outbox.OF_RUNS,
    "outbox.PAGE_OF_STATUS": outbox.PAGE_OF_STATUS,
    "Deliveries.old": Deliveries._old,
    "inbox.PAGE_OF_UNREAD": inbox.PAGE_OF_UNREAD,
    "incidents.OPEN_OF": incident_rows.OPEN_OF,
    "lanes.HOLDERS_OF": lanes.HOLDERS_OF,
    "lanes.FREE": lanes.FREE,
    "lanes.UNPARK_HEADS": lanes.UNPARK_HEADS,
    "Meta.get": Meta._get,
    "runs.RESERVE_IDS": runs.RESERVE_IDS,
    "runs.DUE": runs.DUE,
    "runs.LOCK": runs.LOCK,
    "runs.HELD": runs.HELD,
    "runs.FENCES": runs.FENCES,
    "runs.SAVE": runs.SAVE,
    "runs.MARK": runs.MARK,
    "runs.OF_NODES": runs.OF_NODES,
    "ledger.TAKEN": ledger.TAKEN,
    "ledger.GAPS_AHEAD": ledger.GAPS_AHEAD,
    "ledger.PAGE": ledger.PAGE,
    "ledger.PAGE_OF_SCHEDULE": ledger.PAGE_OF_SCHEDULE,
    "ledger.PAGE_OF_WAITING": ledger.PAGE_OF_WAITING,
    "ledger.PAGE_OF_AMISS": ledger.PAGE_OF_AMISS,
    "ledger.PRUNABLE": ledger.PRUNABLE,
    "schedules.AFTER_RESET": schedules.AFTER_RESET,
    "schedules.AMISS": schedules.AMISS,
    "schedules.BY_IDS": schedules.BY_IDS,
    "schedules.BY_SLUGS": schedules.BY_SLUGS,
    "schedules.PAGE": schedules.PAGE,
    "schedules.REMOVED_BY_SLUG": schedules.REMOVED_BY_SLUG,
    "new_schedules.TAKEN": new_schedules.TAKEN,
    "slots.BY_NAMES": slots.BY_NAMES,
    "Slots.lock": slots.QuotaSlots._lock,
    **{f"slots.DUE {kind}": sql for kind, sql in slots.DUE.items()},
    "slots.READINGS": slots.READINGS,
}

# Reading all of these is the point: the keys that were handed in, and the few rows a subquery has found.
WHOLE = (
    "SCAN json_each",
    "SCAN wanted",
    "SCAN freed",
    "SCAN due",
    "SCAN persons",
    "SCAN planned",
    "SCAN opened",
    "SCAN started",
    "SCAN new",
    "SCAN CONSTANT",
    "SCAN cadences USING INDEX cadences_amiss",  # an index of the few
)
# These sort a handful: what is due, what a node holds, what lies ahead, what is amiss.
MAY_SORT = {
    "Addressees.due",
    "cadences.DUE",
    *(f"slots.DUE {kind}" for kind in slots.DUE),
    "runs.OF_NODES",
    "ledger.GAPS_AHEAD",
    "schedules.AMISS",
}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a new database."""
    prepare(tmp_path / "wakeful.db")
    opened = connect(tmp_path / "wakeful.db")
    yield opened
    opened.close()


def plan_of(connection: sqlite3.Connection, statement: Sql) -> list[str]:
    """The steps SQLite would take."""
    sql = translated(statement).text
    names = re.findall(r":(\w+)", sql)
    parameters = dict.fromkeys(names, "[1]") if names else ["[1]"] * sql.count("?")
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]


@pytest.mark.parametrize("name", HOT)
def test_it_seeks(connection: sqlite3.Connection, name: str) -> None:
    """No table is read from end to end, and nothing large is sorted."""
    for step in plan_of(connection, HOT[name]):
        assert not step.startswith("SCAN") or step.startswith(WHOLE), step
        assert name in MAY_SORT or "TEMP B-TREE" not in step, step


def test_settling_leaves_the_large_indexes_alone(connection: sqlite3.Connection) -> None:
    """The columns they are made of are not among those a run's row is written back with."""
    written_back = set(re.findall(r"(\w+) = new", runs.SAVE.partition(" FROM ")[0]))
    for index in ("runs_occurrence", "runs_of_schedule"):
        columns = {name for _, _, name in connection.execute(f"PRAGMA index_info({index})")}
        assert not columns & written_back


def test_columns_stand_in_the_order_of_the_rows(connection: sqlite3.Connection) -> None:
    """Rows are bound and read as they are, so a column out of place would be silent."""
    for table, row in {
        "schedules": Schedule,
        "cadences": Cadence,
        "alarms": Alarm,
        "runs": Run,
        "attempts": Attempt,
        "nodes": Node,
        "incidents": Incident,
        "slots": Slot,
        "slot_readings": Read,
    }.items():
        columns = tuple(column[1] for column in connection.execute(f"PRAGMA table_info({table})"))
        assert columns == row._fields


def test_parameters_are_plain_or_named() -> None:
    """Numbered ones, and named ones given as a list, are about to be refused by newer Pythons."""
    names = (f"{sqlite.__name__}.{each.name}" for each in pkgutil.iter_modules(sqlite.__path__))
    statements = [
        (f"{module.__name__}.{name}", said)
        for module in map(importlib.import_module, names)
        for name, said in vars(module).items()
        if isinstance(said, str) and re.search(r"\b(SELECT|INSERT|UPDATE|DELETE)\b", said)
    ]
    assert len(statements) > 50
    assert [name for name, said in statements if re.search(r"\?\d", said)] == []
