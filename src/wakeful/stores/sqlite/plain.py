"""The plain path, in SQLite. There is one writer, so reading a row is locking it."""

from collections.abc import Sequence
from operator import attrgetter
from sqlite3 import Connection

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import Change, RunsAdded, RunsSucceeded, SchedulesDone
from wakeful.ports.plain import Advance, DueSchedule
from wakeful.stores.shared.plain import CLEAR, CLOSED, DONE, FREED, IN_ORDER, START_COLUMNS, START_CONSTANTS
from wakeful.stores.sqlite.rows import ids

# Schedules whose alarm is due, oldest first.
DUE = f"""
SELECT schedule_id, version, next_at, alarms.due_at, {CLEAR}
FROM alarms INDEXED BY alarms_due CROSS JOIN cadences ON schedule_id = ref
WHERE kind = 'schedule' AND priority = 1 AND parked = 0 AND due_at IS NOT NULL AND due_at <= ?
ORDER BY due_at, ref LIMIT ?
"""

# Move a clear cadence to its next instant, and its alarm with it.
ADVANCE = """
UPDATE cadences SET planned_through = ?, next_at = ?, open_run_id = ?, last_row_id = ? WHERE schedule_id = ?
"""
MOVE = "UPDATE alarms SET due_at = ? WHERE kind = 'schedule' AND ref = ?"

# Insert a run that starts as it is written.
START = f"""
INSERT INTO runs ({", ".join((*START_COLUMNS, *START_CONSTANTS))})
VALUES ({", ".join("?" for _ in START_COLUMNS)}, {", ".join(START_CONSTANTS.values())})
"""
_started = attrgetter(*START_COLUMNS)

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
FREE = f"UPDATE cadences SET {FREED}, last_success_at = :now WHERE schedule_id {_THESE}"
FINISH = f"UPDATE cadences SET {DONE}, last_success_at = :now, state_at = :now WHERE schedule_id {_THESE}"


class SqlitePlainPath:
    """See `ports.plain.PlainPath`."""

    __slots__ = ("_changes", "_connection")

    def __init__(self, connection: Connection, changes: list[Change]) -> None:
        self._connection = connection
        self._changes = changes

    def due(self, *, now: Instant, limit: int) -> list[DueSchedule]:
        return list(map(DueSchedule._make, self._connection.execute(DUE, (now, limit))))

    def advance(self, moves: Sequence[Advance]) -> None:
        self._connection.executemany(
            ADVANCE,
            [(move.planned_through, move.next_at, move.run_id, move.run_id, move.schedule_id) for move in moves],
        )
        self._connection.executemany(MOVE, [(move.due_at, move.schedule_id) for move in moves])

    def start(self, rows: Sequence[Run]) -> None:
        self._connection.executemany(START, map(_started, rows))
        self._changes.append(RunsAdded(rows))

    def settle(self, node_id: int, ended: Sequence[Run], *, now: Instant) -> set[int]:
        wanted = {"run_ids": ids(run.run_id for run in ended), "node_id": node_id}
        fences: dict[int, int] = {}
        last: set[int] = set()
        for run_id, fence, is_last in self._connection.execute(HELD, wanted):
            fences[run_id] = fence
            if is_last:
                last.add(run_id)
        held = [run for run in ended if fences.get(run.run_id) == run.fence]
        freed = [run.schedule_id for run in held if run.run_id not in last]
        done = [run for run in held if run.run_id in last]
        closed = {run.run_id for run in held}
        if freed:
            self._connection.execute(FREE, {"ids": ids(freed), "now": now})
        if done:
            self._connection.execute(FINISH, {"ids": ids(run.schedule_id for run in done), "now": now})
            self._changes.append(SchedulesDone(done))
        if held:
            self._connection.execute(CLOSE, {"ids": ids(closed), "now": now})
            self._changes.append(RunsSucceeded(held, now))
        return closed
