"""Facts about a store: which rows a commit touched, and what they say afterwards.

Theory of operation
-------------------
Reading the whole ledger after every commit would make years of simulated time unaffordable. So the database itself
notes what changes: triggers write the ids of touched rows into a table beside the others, inside the transaction that
touches them. Nobody who writes can forget to tell, and what was rolled back or never committed was never noted. After a
commit exactly the noted rows are read, and what the store then says of them is a fact.
"""

from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import Final, NamedTuple

from wakeful.core.heartbeat.heartbeat import Heartbeat
from wakeful.core.run.runs import Attempt, Run
from wakeful.core.schedule.cadence import Cadence
from wakeful.engine.merged_runs import MergedRuns
from wakeful.ports.heartbeats import Heartbeats
from wakeful.ports.store import ALARM_RUN, ALARM_SCHEDULE, Alarm, Node, Schedule, Tx
from wakeful.stores.sqlite.connection import Opened
from worlds.inhabitants import Touch

_NOTES: Final = "CREATE TABLE touched (note INTEGER PRIMARY KEY, kind TEXT NOT NULL, id INTEGER NOT NULL) STRICT"

# Which id names what was touched: table, events, kind of fact, and the columns as they are after and before.
_TOUCHES: Final = (
    ("schedules", ("INSERT", "UPDATE"), "schedule", "schedule_id"),
    ("cadences", ("INSERT", "UPDATE", "DELETE"), "schedule", "schedule_id"),
    ("alarms", ("INSERT", "UPDATE", "DELETE"), None, "ref"),
    ("runs", ("INSERT", "UPDATE", "DELETE"), "run", "run_id"),
    ("attempts", ("INSERT",), "run", "run_id"),
    ("lanes", ("INSERT", "UPDATE", "DELETE"), "run", "holder"),
    ("nodes", ("INSERT", "UPDATE OF voided_at"), "node", "node_id"),
)

_NONE: Final[frozenset[int]] = frozenset()

# What was noted after a note.
_NOTED_AFTER: Final = "SELECT note, kind, id FROM touched WHERE note > ? ORDER BY note"


class Facts(NamedTuple):
    """What the store says about everything a commit touched."""

    schedules: Mapping[int, Schedule]
    beats: Mapping[int, Heartbeat]  # whose cadences are among these
    cadences: Mapping[int, Cadence]
    alarms: Mapping[int, Alarm]  # of the schedules above
    runs: Mapping[int, Run]
    gone: Sequence[int]  # touched runs that are no longer in the ledger
    attempts: Mapping[int, Sequence[Attempt]]
    holders: Mapping[str, int]
    queue: Sequence[Alarm]  # of waiting runs that have a lane
    nodes: Sequence[Node]
    merged: Mapping[int, int]  # of those that are gone: the row that covers their instant now


class Touched(NamedTuple):
    """What commits wrote since one last looked."""

    runs: frozenset[int]
    schedules: frozenset[int]
    is_node: bool
    others: Mapping[str, frozenset[int]]  # what inhabitants watch, by its kind


class Notes:
    """The notes of one database, read on."""

    def __init__(self, observer: Opened) -> None:
        self._connection = observer.connection
        self._read = 0

    def read_on(self) -> Touched | None:
        """What was touched since the last call; None if nothing was."""
        noted = self._connection.execute(_NOTED_AFTER, (self._read,)).fetchall()
        if not noted:
            return None
        self._read = noted[-1][0]
        by_kind: dict[str, set[int]] = {}
        for _, kind, ref in noted:
            by_kind.setdefault(kind, set()).add(ref)
        touched = {kind: frozenset(refs) for kind, refs in by_kind.items()}
        return Touched(
            runs=touched.pop("run", _NONE),
            schedules=touched.pop("schedule", _NONE),
            is_node=touched.pop("node", None) is not None,
            others=touched,
        )


def take_notes(connection: Connection, also: Iterable[Touch] = ()) -> None:
    """Let the database note what is touched from now on; `also` are the tables of inhabitants."""
    connection.execute(_NOTES)
    others = [(touch.table, ("INSERT", "UPDATE", "DELETE"), touch.kind, touch.column) for touch in also]
    for table, events, kind, column in (*_TOUCHES, *others):
        for number, event in enumerate(events):
            row = "OLD" if event == "DELETE" else "NEW"
            noted = f"{row}.kind" if kind is None else f"'{kind}'"
            connection.execute(
                f"CREATE TRIGGER note_{table}_{number} AFTER {event} ON {table} "
                f"BEGIN INSERT INTO touched (kind, id) VALUES ({noted}, {row}.{column}); END"
            )


def read_facts(tx: Tx, touched: Touched, *, waiting: Iterable[int] = ()) -> Facts:
    """Read back what was touched. `waiting` are known runs that may be parked behind a lane."""
    run_ids = sorted(touched.runs)
    runs = tx.runs.lock(run_ids) if run_ids else {}
    schedule_ids = sorted({*touched.schedules, *(run.schedule_id for run in runs.values())})
    owner_ids = [schedule_id for schedule_id in schedule_ids if schedule_id < 0]
    tried = [run.run_id for run in runs.values() if run.attempt > 1 or run.outcome == "waiting"]
    gone = [run_id for run_id in run_ids if run_id not in runs]
    queued = sorted({*waiting, *(run.run_id for run in runs.values() if run.lane and run.outcome == "waiting")})
    alarms = tx.alarms.by_refs(ALARM_RUN, queued) if queued else {}
    return Facts(
        schedules=tx.schedules.by_ids(schedule_ids) if touched.schedules else {},
        beats=tx[Heartbeats].lock(owner_ids) if owner_ids else {},
        cadences=tx.cadences.lock(schedule_ids) if schedule_ids else {},
        alarms=tx.alarms.by_refs(ALARM_SCHEDULE, schedule_ids) if schedule_ids else {},
        runs=runs,
        gone=gone,
        attempts=tx.runs.attempts(tried) if tried else {},
        holders=tx.lanes.holders(),
        queue=list(alarms.values()),
        nodes=tx.nodes.all() if touched.is_node else (),
        merged={run_id: row.into_id for run_id, row in tx[MergedRuns].among(gone).items()},
    )
