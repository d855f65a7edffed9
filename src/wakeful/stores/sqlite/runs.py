"""The ledger, in SQLite. There is one writer, so reading a row is locking it.

A run's key (id, kind, schedule, occurrence) never changes, and settling writes none of the columns of the two large
indexes: a run updates them only once, when it is written.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from sqlite3 import Connection

from wakeful.core.run.runs import PRIORITY_BACKFILL, PRIORITY_PERSON, PRIORITY_PLANNED, Run
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import Change, RunsAdded, RunsAnnotated, RunsMarked, RunsSaved
from wakeful.ports.database import columns_of
from wakeful.ports.runs import Runs
from wakeful.ports.store import CLOSED_COLUMNS, Mark, RunGlance
from wakeful.stores.sqlite.database import SqliteDatabase
from wakeful.stores.sqlite.rows import ids, insert_into, plain, update, update_of

_COLUMNS = columns_of(Run, "runs")
_GLANCE = columns_of(RunGlance, "runs")

# Take the next n run ids. A counter, because the id of a deleted row must never be reused.
RESERVE_IDS = "UPDATE counters SET value = value + ? WHERE name = 'run_id' RETURNING value"

# Insert a ledger row.
ADD = insert_into("runs", Run)

# Waiting runs of one priority whose alarm is due, oldest first.
DUE = f"""
SELECT {_COLUMNS} FROM alarms INDEXED BY alarms_due CROSS JOIN runs ON run_id = alarms.ref
WHERE alarms.kind = 'run' AND alarms.priority = ? AND parked = 0 AND alarms.due_at IS NOT NULL AND alarms.due_at <= ?
  AND outcome = 'waiting'
ORDER BY alarms.due_at, alarms.ref LIMIT ?
"""

# Planned ones of them that are due later than a time, and need no lane.
DUE_AFTER = f"""
SELECT {_COLUMNS} FROM alarms INDEXED BY alarms_due CROSS JOIN runs ON run_id = alarms.ref
WHERE alarms.kind = 'run' AND alarms.priority = 1 AND parked = 0 AND alarms.due_at IS NOT NULL
  AND alarms.due_at > ? AND alarms.due_at <= ? AND alarms.lane IS NULL AND outcome = 'waiting'
ORDER BY alarms.due_at, alarms.ref LIMIT ?
"""

# Runs by id.
LOCK = f"SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN runs ON run_id = wanted.value"

# Of these, those a node is running.
HELD = f"{LOCK} WHERE owner = ? AND outcome = 'running'"

# Update a closed run: only the columns that closing changes.
_LET_GO = ", deadline_at = NULL, next_attempt_at = NULL, process = NULL, stuck = 0"
CLOSE = update("runs", key="run_id", columns=CLOSED_COLUMNS, also=_LET_GO)
_closed = attrgetter(*CLOSED_COLUMNS, "run_id")

# The fences of those a node is running.
FENCES = """
SELECT run_id, fence FROM json_each(?) AS wanted CROSS JOIN runs ON run_id = wanted.value
WHERE owner = ? AND outcome = 'running'
"""

# Update a whole row, except its key.
SAVE = update_of("runs", Run, key=("run_id",), fixed=("kind", "schedule_id", "occurrence"))

# Record a rung. A mark without a process keeps the known one: rescue depends on it.
MARK = "UPDATE runs SET rung = ?, ladder = ?, process = coalesce(?, process) WHERE run_id = ? AND fence = ?"
_marked = attrgetter("rung", "ladder", "process", "run_id", "fence")

# The runs these nodes hold: running, or stuck.
OF_NODES = f"""
SELECT {_COLUMNS} FROM runs INDEXED BY runs_held
WHERE owner IN (SELECT value FROM json_each(?)) AND (outcome = 'running' OR stuck = 1)
ORDER BY run_id LIMIT ?
"""

# One schedule's newest rows, in brief, because many are read together.
LATEST = f"""
SELECT {_GLANCE} FROM runs INDEXED BY runs_of_schedule WHERE schedule_id = :schedule_id
ORDER BY run_id DESC LIMIT :limit
"""


class SqliteRuns(Runs):
    """See `ports.runs.Runs`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection, changes: list[Change]) -> None:
        super().__init__(SqliteDatabase(connection), changes)
        self._connection = connection

    def reserve_ids(self, n: int) -> list[int]:
        ((last_id,),) = self._connection.execute(RESERVE_IDS, (n,)).fetchall()
        return list(range(last_id - n + 1, last_id + 1))

    def add_many(self, rows: Sequence[Run]) -> None:
        self._connection.executemany(ADD, plain(rows))
        if rows:
            self._changes.append(RunsAdded(rows))

    def due(
        self, *, now: Instant, limit: int, manual_max: int | None = None, after: Instant | None = None
    ) -> list[Run]:
        if after is not None:
            return list(map(Run._make, self._connection.execute(DUE_AFTER, (after, now, limit))))
        manual = limit if manual_max is None else min(limit, manual_max)
        rows = list(map(Run._make, self._connection.execute(DUE, (PRIORITY_PERSON, now, manual))))
        if len(rows) < limit:
            rows += map(Run._make, self._connection.execute(DUE, (PRIORITY_PLANNED, now, limit - len(rows))))
        if len(rows) < limit:
            rows += map(Run._make, self._connection.execute(DUE, (PRIORITY_BACKFILL, now, limit - len(rows))))
        return rows

    def held(self, node_id: int, fences: Mapping[int, int]) -> dict[int, Run]:
        rows = map(Run._make, self._connection.execute(HELD, (ids(fences), node_id)))
        return {row.run_id: row for row in rows if row.fence == fences[row.run_id]}

    def lock(self, run_ids: Sequence[int]) -> dict[int, Run]:
        rows = map(Run._make, self._connection.execute(LOCK, (ids(run_ids),)))
        return {row.run_id: row for row in rows}

    def save_many(self, rows: Sequence[Run], *, grown: Sequence[int] | None = None) -> None:
        self._connection.executemany(SAVE, plain(rows))
        if rows:
            self._changes.append(RunsSaved(rows, grown))

    def annotate_many(self, rows: Sequence[Run]) -> None:
        self._connection.executemany(SAVE, plain(rows))
        if rows:
            self._changes.append(RunsAnnotated(rows))

    def close_many(self, rows: Sequence[Run]) -> None:
        self._connection.executemany(CLOSE, map(_closed, rows))
        if rows:
            self._changes.append(RunsSaved(rows))

    def mark_many(self, node_id: int, marks: Sequence[Mark]) -> list[bool]:
        fences = dict(self._connection.execute(FENCES, (ids({mark.run_id for mark in marks}), node_id)).fetchall())
        fates = [fences.get(mark.run_id) == mark.fence for mark in marks]
        held = [mark for mark, is_held in zip(marks, fates, strict=True) if is_held]
        self._connection.executemany(MARK, map(_marked, held))
        if held:
            self._changes.append(RunsMarked(held))
        return fates

    def of_nodes(self, node_ids: Sequence[int], *, limit: int) -> list[Run]:
        return list(map(Run._make, self._connection.execute(OF_NODES, (ids(node_ids), limit))))

    def latest(self, schedule_ids: Sequence[int], *, limit: int) -> dict[int, list[RunGlance]]:
        return {
            key: list(map(RunGlance._make, self._connection.execute(LATEST, {"schedule_id": key, "limit": limit})))
            for key in sorted(set(schedule_ids))
        }
