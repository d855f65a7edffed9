"""The plain path, in SQLite. There is one writer, so reading a row is locking it."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from sqlite3 import Connection
from typing import Any, Final

from wakeful.core.run.runs import PRIORITIES, Run
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import Change, RunsSaved, RunsStarted, RunsSucceeded, SchedulesDone
from wakeful.ports.claims import Batch, Claim
from wakeful.ports.database import columns_of
from wakeful.ports.ledger import CLAIMED_COLUMNS
from wakeful.ports.plain import NO_LANES, NO_RESULTS, DueSchedule
from wakeful.ports.plans import ALARM_RUN
from wakeful.stores.shared.plain import (
    CLEAR,
    CLOSED,
    DONE,
    EVER,
    FREED,
    IN_ORDER,
    START_COLUMNS,
    START_CONSTANTS,
    rows_of,
)
from wakeful.stores.sqlite.alarms import REMOVE
from wakeful.stores.sqlite.lanes import FREE as FREE_LANE
from wakeful.stores.sqlite.rows import ManyRows, ids, texts, update

# Schedules whose alarm is due, oldest first.
DUE = f"""
SELECT schedule_id, version, next_at, alarms.due_at, {CLEAR}
FROM alarms INDEXED BY alarms_due CROSS JOIN cadences ON schedule_id = ref
WHERE kind = 'schedule' AND priority = 1 AND parked = 0 AND due_at IS NOT NULL AND due_at <= ? AND due_at > ?
ORDER BY due_at, ref LIMIT ?
"""

# Move a clear cadence to its next instant, and its alarm with it.
ADVANCE = ManyRows(
    single="UPDATE cadences SET planned_through = ?, next_at = ?, open_run_id = ?, last_row_id = ? "
    "WHERE schedule_id = ?",
    together="UPDATE cadences SET planned_through = through, next_at = next, open_run_id = run, last_row_id = run "
    "FROM (SELECT column1 AS through, column2 AS next, column3 AS run, column5 AS id FROM (VALUES {rows})) "
    "WHERE schedule_id = id",
    row="(?, ?, ?, ?, ?)",
)
MOVE = ManyRows(
    single="UPDATE alarms SET due_at = ? WHERE kind = 'schedule' AND ref = ?",
    together="UPDATE alarms SET due_at = due FROM (SELECT column1 AS due, column2 AS id FROM (VALUES {rows})) "
    "WHERE kind = 'schedule' AND ref = id",
    row="(?, ?)",
)

# The same for a batch: its schedules are one parameter, in the order of the run ids, which follow each other.
BATCH_MIN: Final = 8
ADVANCE_BATCH = (
    "UPDATE cadences SET planned_through = :planned_at, next_at = :next_at, open_run_id = :first + key,"
    " last_row_id = :first + key FROM json_each(:schedules) WHERE schedule_id = value"
)
MOVE_BATCH = (
    "UPDATE alarms SET due_at = :next_due_at"
    " WHERE kind = 'schedule' AND ref IN (SELECT value FROM json_each(:schedules))"
)

# Insert runs that start as they are written.
_START_INTO = f"INSERT INTO runs ({', '.join((*START_COLUMNS, *START_CONSTANTS))}) VALUES "
_START_ROW = f"({', '.join('?' for _ in START_COLUMNS)}, {', '.join(START_CONSTANTS.values())})"
START = ManyRows(single=_START_INTO + _START_ROW, together=_START_INTO + "{rows}", row=_START_ROW)
_OF_BATCH = {
    "run_id": ":first + key",
    "kind": ":kind",
    "schedule_id": "value",
    "occurrence": ":planned_at",
    "planned_at": ":planned_at",
    "due_at": ":due_at",
    "trigger": ":trigger",
    "rung": ":rung",
    "priority": ":priority",
    "lane": ":lane",
    "owner": ":node_id",
    "version": ":version",
    "started_at": ":claimed_at",
    "claimed_at": ":claimed_at",
    "deadline_at": ":deadline_at",
}
START_BATCH = (
    f"INSERT INTO runs ({', '.join((*START_COLUMNS, *START_CONSTANTS))})"
    f" SELECT {', '.join((*(_OF_BATCH[name] for name in START_COLUMNS), *START_CONSTANTS.values()))}"
    " FROM json_each(:schedules)"
)

# Of these runs, those this node holds as it claimed them, with a schedule that is in order; and whether each is the
# last run of its schedule.
HELD = f"""
SELECT run_id, fence, next_at IS NULL FROM json_each(:run_ids) AS ended
CROSS JOIN runs ON run_id = ended.value CROSS JOIN cadences ON cadences.schedule_id = runs.schedule_id
WHERE owner = :node_id AND outcome = 'running' AND ladder IS NULL AND process IS NULL AND definition IS NULL
  AND open_run_id = run_id AND {IN_ORDER}
"""

# Close runs, and free their schedules or finish them. All get the same values, so one statement writes all of them.
_THESE = "IN (SELECT value FROM json_each(:ids))"
CLOSE = f"UPDATE runs SET {CLOSED}, ended_at = :now WHERE run_id {_THESE}"
CLOSE_WITH_RESULT = ManyRows(
    single=f"UPDATE runs SET {CLOSED}, ended_at = ?, result = ? WHERE run_id = ?",
    together=f"UPDATE runs SET {CLOSED}, ended_at = at, result = text "
    "FROM (SELECT column1 AS at, column2 AS text, column3 AS id FROM (VALUES {rows})) WHERE run_id = id",
    row="(?, ?, ?)",
)
FREE = f"UPDATE cadences SET {FREED}, last_success_at = :now WHERE schedule_id {_THESE}"
FINISH = f"UPDATE cadences SET {DONE}, last_success_at = :now, state_at = :now WHERE schedule_id {_THESE}"

# Whether a waiting run is due, or one that needs a label waits for one of these lanes.
_DUE_RUN = (
    "EXISTS (SELECT 1 FROM alarms INDEXED BY alarms_due WHERE kind = 'run' AND priority = {priority} AND parked = 0"
    " AND due_at IS NOT NULL AND due_at <= :now)"
)
OTHERS_DUE = f"""
SELECT {" OR ".join(_DUE_RUN.format(priority=priority) for priority in PRIORITIES)} OR EXISTS (
  SELECT 1 FROM json_each(:lanes) AS held CROSS JOIN alarms INDEXED BY alarms_parked_labelled ON lane = held.value
  WHERE parked = 3 AND kind = 'run' AND due_at IS NOT NULL
)
"""

# The first waiting run of each of these lanes, the holder of the lane, and whether the run may take it.
SUCCESSORS = f"""
SELECT lanes.lane, holder, alarms.due_at <= :now AND outcome = 'waiting', {columns_of(Run, "runs")}
FROM json_each(:lanes) AS held
CROSS JOIN alarms ON alarms.kind = 'run' AND ref = (
  SELECT ref FROM alarms AS waiting INDEXED BY alarms_parked
  WHERE waiting.lane = held.value AND parked = 1 AND kind = 'run' AND due_at IS NOT NULL
  ORDER BY priority, due_at, ref LIMIT 1
)
LEFT JOIN lanes ON lanes.lane = held.value LEFT JOIN runs ON run_id = ref
"""

# Update a run that waited and was claimed: only the columns that claiming changes.
_CLEARED = ", reason = NULL, next_attempt_at = NULL, ladder = NULL, process = NULL"
CLAIM = update("runs", key="run_id", columns=CLAIMED_COLUMNS, also=_CLEARED)
_claimed = attrgetter(*CLAIMED_COLUMNS, "run_id")

# Give a lane to the next run.
HAND_OVER = "UPDATE lanes SET holder = ? WHERE lane = ?"


def _is_together(batch: Batch) -> bool:
    """Whether one statement writes each table for all runs of a batch."""
    claims = batch.claims
    return len(claims) >= BATCH_MIN and not batch.waiting and claims[-1].run_id - claims[0].run_id == len(claims) - 1


def _is_uniform(batch: Batch) -> bool:
    """Whether all runs of a batch have the same lane and timeout."""
    return len({(claim.lane, claim.timeout) for claim in batch.claims}) == 1


def _values_of(batch: Batch) -> dict[str, Any]:
    """The values that all runs of a batch have, and their schedules. Lane and deadline are those of the first run."""
    first = batch.claims[0]
    return {
        "schedules": str([claim.schedule_id for claim in batch.claims]),
        "first": first.run_id,
        "kind": batch.kind,
        "planned_at": batch.planned_at,
        "due_at": batch.due_at,
        "next_at": batch.next_at,
        "next_due_at": batch.next_due_at,
        "trigger": batch.trigger,
        "rung": batch.rung,
        "priority": batch.priority,
        "lane": first.lane,
        "node_id": batch.node_id,
        "version": batch.version,
        "claimed_at": batch.claimed_at,
        "deadline_at": batch.claimed_at + first.timeout,
    }


class SqlitePlainPath:
    """See `ports.plain.PlainPath`."""

    __slots__ = ("_changes", "_connection")

    def __init__(self, connection: Connection, changes: list[Change]) -> None:
        self._connection = connection
        self._changes = changes

    def due(self, *, now: Instant, limit: int, after: Instant | None = None) -> list[DueSchedule]:
        wanted = (now, EVER if after is None else after, limit)
        return list(map(DueSchedule._make, self._connection.execute(DUE, wanted)))

    def start(self, batches: Sequence[Batch]) -> None:
        advanced: list[tuple[Any, ...]] = []
        moved: list[tuple[Any, ...]] = []
        started: list[tuple[Any, ...]] = []
        for batch in batches:
            if _is_together(batch):
                given = _values_of(batch)
                self._connection.execute(ADVANCE_BATCH, given)
                self._connection.execute(MOVE_BATCH, given)
                if _is_uniform(batch):
                    self._connection.execute(START_BATCH, given)
                    continue
            else:
                for claim in (*batch.claims, *batch.waiting):
                    run_id, schedule_id = claim.run_id, claim.schedule_id
                    advanced.append((batch.planned_at, batch.next_at, run_id, run_id, schedule_id))
                    moved.append((batch.next_due_at, schedule_id))
            started += rows_of(batch)
        ADVANCE.write(self._connection, advanced)
        MOVE.write(self._connection, moved)
        START.write(self._connection, started)
        if any(batch.claims for batch in batches):
            self._changes.append(RunsStarted([claim for batch in batches for claim in batch.claims]))

    def settle(
        self, node_id: int, ended: Sequence[Claim], *, now: Instant, results: Mapping[int, str] = NO_RESULTS
    ) -> set[int]:
        wanted = {"run_ids": ids(run.run_id for run in ended), "node_id": node_id}
        fences: dict[int, int] = {}
        last: set[int] = set()
        for run_id, fence, is_last in self._connection.execute(HELD, wanted):
            fences[run_id] = fence
            if is_last:
                last.add(run_id)
        held = [run for run in ended if fences.get(run.run_id) == run.batch.fence]
        freed = [run.schedule_id for run in held if run.run_id not in last]
        done = [run for run in held if run.run_id in last]
        closed = {run.run_id for run in held}
        if freed:
            self._connection.execute(FREE, {"ids": ids(freed), "now": now})
        if done:
            self._connection.execute(FINISH, {"ids": ids(run.schedule_id for run in done), "now": now})
            self._changes.append(SchedulesDone(done))
        if held:
            self._connection.execute(CLOSE, {"ids": ids(closed - results.keys()), "now": now})
            CLOSE_WITH_RESULT.write(
                self._connection, [(now, text, run_id) for run_id, text in results.items() if run_id in closed]
            )
            self._changes.append(RunsSucceeded(held, now, results))
        return closed

    def successors(self, held: Mapping[str, int], *, now: Instant) -> list[Run] | None:
        wanted = {"lanes": texts(held), "now": now}
        ((are_others_due,),) = self._connection.execute(OTHERS_DUE, wanted).fetchall()
        if are_others_due:
            return None
        found: list[Run] = []
        for lane, holder, may_take, *columns in self._connection.execute(SUCCESSORS, wanted):
            if not may_take or holder != held.get(lane):
                return None
            found.append(Run._make(columns))
        return found

    def claim(self, runs: Sequence[Run], passed_on: Mapping[str, int] = NO_LANES) -> None:
        if passed_on:
            taken = [(run.run_id, run.lane) for run in runs if run.lane in passed_on]
            self._connection.executemany(HAND_OVER, taken)
            self._connection.executemany(FREE_LANE, passed_on.items())  # those that still have their old holders
        if runs:
            self._connection.execute(REMOVE, (ALARM_RUN, ids(run.run_id for run in runs)))
            self._connection.executemany(CLAIM, map(_claimed, runs))
            self._changes.append(RunsSaved(runs))
