"""The plain path, in PostgreSQL. Locks are taken in the usual order: cadences, then runs, each by id."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import Change, RunsAdded, RunsSucceeded, SchedulesDone
from wakeful.ports.plain import Advance, DueSchedule
from wakeful.ports.plans import ALARM_SCHEDULE
from wakeful.stores.postgres.alarms import MOVE
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import arrays_of, ids, int_array, unnest_of, update_some
from wakeful.stores.shared.plain import CLEAR, CLOSED, DONE, FREED, IN_ORDER, START_COLUMNS, START_CONSTANTS

_TEXTS: Final = frozenset({"kind", "trigger", "rung", "lane"})

# Schedules whose alarm is due, oldest first.
LOOK_DUE = f"""
SELECT schedule_id, version, next_at, alarms.due_at, ({CLEAR})::int
FROM alarms JOIN cadences ON schedule_id = ref
WHERE kind = 'schedule' AND priority = 1 AND parked = 0 AND due_at <= $1
ORDER BY due_at, ref LIMIT $2
"""

# The same, locked, without waiting for other nodes. Every tested column is on the locked rows.
DUE = f"{LOOK_DUE} FOR UPDATE SKIP LOCKED"

# Move clear cadences to their next instants, and their alarms with them.
_ADVANCED: Final = ("schedule_id", "planned_through", "next_at", "open_run_id", "last_row_id")
ADVANCE = update_some("cadences", frozenset(), key="schedule_id", columns=_ADVANCED[1:])

# Insert runs that start as they are written.
START = f"""
INSERT INTO runs ({", ".join((*START_COLUMNS, *START_CONSTANTS))})
SELECT new.*, {", ".join(START_CONSTANTS.values())} FROM {unnest_of(START_COLUMNS, _TEXTS)} AS new
"""
_started = attrgetter(*START_COLUMNS)

# Cadences by id, locked: their open run if they are in order, and whether it is the last.
LOCK = f"""
SELECT CASE WHEN {IN_ORDER} THEN open_run_id END, next_at IS NULL FROM cadences
WHERE schedule_id = ANY($1::bigint[]) ORDER BY schedule_id FOR UPDATE
"""

# Of these runs, those this node holds as it claimed them, locked.
HELD = """
SELECT run_id, fence FROM runs
WHERE run_id = ANY($1::bigint[]) AND owner = $2 AND outcome = 'running'
  AND ladder IS NULL AND process IS NULL AND definition IS NULL
ORDER BY run_id FOR UPDATE
"""

# Close runs, and free their schedules or finish them.
CLOSE = f"UPDATE runs SET {CLOSED}, ended_at = $2 WHERE run_id = ANY($1::bigint[])"
FREE = f"UPDATE cadences SET {FREED}, last_success_at = $2 WHERE schedule_id = ANY($1::bigint[])"
FINISH = f"UPDATE cadences SET {DONE}, last_success_at = $2, state_at = $2 WHERE schedule_id = ANY($1::bigint[])"


class PostgresPlainPath:
    """See `ports.plain.PlainPath`."""

    __slots__ = ("_changes", "_session")

    def __init__(self, session: Session, changes: list[Change]) -> None:
        self._session = session
        self._changes = changes

    def due(self, *, now: Instant, limit: int) -> list[DueSchedule]:
        query = LOOK_DUE if self._session.is_reading else DUE
        return list(map(DueSchedule._make, self._session.rows(query, now, limit)))

    def advance(self, moves: Sequence[Advance]) -> None:
        rows = [(move.schedule_id, move.planned_through, move.next_at, move.run_id, move.run_id) for move in moves]
        self._session.save(ADVANCE, len(rows), *arrays_of(rows, _ADVANCED, _TEXTS))
        refs, due_at = int_array(move.schedule_id for move in moves), int_array(move.due_at for move in moves)
        self._session.change(MOVE, ALARM_SCHEDULE, refs, due_at)

    def start(self, rows: Sequence[Run]) -> None:
        self._session.change(START, *arrays_of(list(map(_started, rows)), START_COLUMNS, _TEXTS))
        self._changes.append(RunsAdded(rows))

    def settle(self, node_id: int, ended: Sequence[Run], *, now: Instant) -> set[int]:
        open_runs = self._session.rows(LOCK, ids(run.schedule_id for run in ended))
        wanted = ids(run_id for run_id, _ in open_runs if run_id is not None)
        last = {run_id for run_id, is_last in open_runs if is_last}
        fences: dict[int, int] = dict(self._session.rows(HELD, wanted, node_id))
        held = [run for run in ended if fences.get(run.run_id) == run.fence]
        freed = [run.schedule_id for run in held if run.run_id not in last]
        done = [run for run in held if run.run_id in last]
        closed = {run.run_id for run in held}
        if freed:
            self._session.save(FREE, len(freed), ids(freed), now)
        if done:
            self._session.save(FINISH, len(done), ids(run.schedule_id for run in done), now)
            self._changes.append(SchedulesDone(done))
        if held:
            self._session.save(CLOSE, len(closed), ids(closed), now)
            self._changes.append(RunsSucceeded(held, now))
        return closed
