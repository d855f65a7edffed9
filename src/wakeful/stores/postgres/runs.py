"""The ledger, in PostgreSQL. The run row is the lock of its run.

A run's key (id, kind, schedule, occurrence) never changes. Every method locks rows in id order; a claim skips those
another node has locked.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import Change, RunsAdded, RunsAnnotated, RunsMarked, RunsSaved
from wakeful.ports.database import columns_of, fields_of, texts_of
from wakeful.ports.runs import Runs
from wakeful.ports.store import CLOSED_COLUMNS, Mark, RunGlance
from wakeful.stores.postgres.cadences import LOCK as LOCK_CADENCES
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.database import PostgresDatabase
from wakeful.stores.postgres.lanes import PRUNE as PRUNE_LANES
from wakeful.stores.postgres.rows import (
    arrays,
    arrays_of,
    ids,
    insert_into,
    int_array,
    unnest_of,
    update_of,
    update_some,
)

_COLUMNS = columns_of(Run, "runs")
_GLANCE = columns_of(RunGlance, "runs")
_FIXED: Final = ("kind", "schedule_id", "occurrence")
_TEXTS: Final = texts_of(Run)

# Take the next n run ids. The sequence never returns one twice, and claims do not wait for each other.
RESERVE_IDS = "SELECT nextval('run_ids') FROM generate_series(1, $1::bigint)"

# Insert ledger rows.
ADD = insert_into("runs", Run, _TEXTS)

_OF_PRIORITY = f"""
SELECT {_COLUMNS} FROM alarms JOIN runs ON runs.run_id = alarms.ref
WHERE alarms.kind = 'run' AND alarms.priority = {{priority}} AND alarms.parked = 0 AND alarms.due_at <= $1
  AND runs.outcome = 'waiting'
ORDER BY alarms.due_at, alarms.ref LIMIT {{limit}}
"""
_PERSONS = _OF_PRIORITY.format(priority=0, limit="$3")
_PLANNED = _OF_PRIORITY.format(priority=1, limit="$2")
_BACKFILL = _OF_PRIORITY.format(priority=2, limit="$2")
_DUE = """
SELECT * FROM ({persons}) AS persons UNION ALL SELECT * FROM ({planned}) AS planned
UNION ALL SELECT * FROM ({backfill}) AS backfill LIMIT $2
"""

# Waiting runs whose alarm is due: manual ones first, then planned ones if there is room, each oldest first.
LOOK_DUE = _DUE.format(persons=_PERSONS, planned=_PLANNED, backfill=_BACKFILL)

# The same, locked. Run and alarm are both locked, without waiting. A row that was changed after the statement started
# is evaluated again with its current values: a run that another node has claimed is no longer waiting.
_LOCKED = "FOR UPDATE SKIP LOCKED"
DUE = _DUE.format(persons=f"{_PERSONS} {_LOCKED}", planned=f"{_PLANNED} {_LOCKED}", backfill=f"{_BACKFILL} {_LOCKED}")

# Planned ones of them that are due later than a time, and need no lane.
LOOK_DUE_AFTER = f"""
SELECT {_COLUMNS} FROM alarms JOIN runs ON runs.run_id = alarms.ref
WHERE alarms.kind = 'run' AND alarms.priority = 1 AND alarms.parked = 0 AND alarms.due_at > $1 AND alarms.due_at <= $2
  AND alarms.lane IS NULL AND runs.outcome = 'waiting'
ORDER BY alarms.due_at, alarms.ref LIMIT $3
"""

# The same, locked.
DUE_AFTER = f"{LOOK_DUE_AFTER} {_LOCKED}"

# Runs by id.
LOOK = f"SELECT {_COLUMNS} FROM runs WHERE run_id = ANY($1::bigint[]) ORDER BY run_id"

# The same, locked.
LOCK = f"{LOOK} FOR UPDATE"

# Of these, those a node is running.
LOOK_HELD = f"""
SELECT {_COLUMNS} FROM runs
WHERE run_id = ANY($1::bigint[]) AND owner = $2 AND outcome = 'running' ORDER BY run_id
"""

# The same, locked.
HELD = f"{LOOK_HELD} FOR UPDATE"

# Update closed runs: only the columns that closing changes.
CLOSE = update_some(
    "runs",
    _TEXTS,
    key="run_id",
    columns=CLOSED_COLUMNS,
    also=", deadline_at = NULL, next_attempt_at = NULL, process = NULL, stuck = 0",
)
_CLOSED: Final = ("run_id", *CLOSED_COLUMNS)
_closed = attrgetter(*_CLOSED)

# Update whole rows, except their keys.
SAVE = update_of("runs", Run, _TEXTS, key="run_id", fixed=_FIXED)

# Record rungs, for runs that are still held. A mark without a process keeps the known one: rescue depends on it. The
# rows are not locked before, so they are joined; repeating the ids limits the cost of that.
MARK = f"""
UPDATE runs SET rung = new.rung, ladder = new.ladder, process = coalesce(new.process, runs.process)
FROM {unnest_of((*fields_of(Mark), "owner"), _TEXTS)} AS new (run_id, fence, rung, ladder, process, owner)
WHERE runs.run_id = ANY($1::bigint[]) AND runs.run_id = new.run_id AND runs.fence = new.fence
  AND runs.owner = new.owner AND runs.outcome = 'running'
RETURNING runs.run_id, runs.fence
"""
_held_as = attrgetter("run_id", "fence")

_IS_HELD = "owner = ANY($1::bigint[]) AND (outcome = 'running' OR stuck = 1)"

# Few runs are held, so they are sorted. Sorting is switched off in our sessions, and the planner would rather read the
# whole ledger in the order of its key; no index has the order of an expression.
_FEW_BY_ID = "run_id + 0"

# The runs these nodes hold: running, or stuck.
LOOK_OF_NODES = f"SELECT {_COLUMNS} FROM runs WHERE {_IS_HELD} ORDER BY {_FEW_BY_ID} LIMIT $2"

# Their ids, kinds and owners.
KEYS_OF_NODES = f"SELECT run_id, schedule_id FROM runs WHERE {_IS_HELD} ORDER BY {_FEW_BY_ID} LIMIT $2"

# Of these runs, those the nodes still hold, locked.
OF_NODES = f"SELECT {_COLUMNS} FROM runs WHERE run_id = ANY($2::bigint[]) AND {_IS_HELD} ORDER BY run_id FOR UPDATE"

# The newest rows of each schedule, without large columns, because many are read together.
LATEST = f"""
SELECT latest.* FROM unnest($1::bigint[]) AS wanted (schedule_id) CROSS JOIN LATERAL (
  SELECT {_GLANCE} FROM runs WHERE runs.schedule_id = wanted.schedule_id
  ORDER BY runs.schedule_id DESC, runs.run_id DESC LIMIT $2
) AS latest
"""

# How many free lanes one pruning step deletes.
LANES_PRUNED_MAX: Final = 1_000


class PostgresRuns(Runs):
    """See `ports.runs.Runs`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session, changes: list[Change]) -> None:
        super().__init__(PostgresDatabase(session), changes)
        self._session = session

    def reserve_ids(self, n: int) -> list[int]:
        return [run_id for (run_id,) in self._session.rows(RESERVE_IDS, n)] if n else []

    def add_many(self, rows: Sequence[Run]) -> None:
        if rows:
            self._session.change(ADD, *arrays(rows, Run, _TEXTS))
            self._changes.append(RunsAdded(rows))

    def due(
        self, *, now: Instant, limit: int, manual_max: int | None = None, after: Instant | None = None
    ) -> list[Run]:
        if after is not None:
            on_time = LOOK_DUE_AFTER if self._session.is_reading else DUE_AFTER
            return list(map(Run._make, self._session.rows(on_time, after, now, limit)))
        query = LOOK_DUE if self._session.is_reading else DUE
        manual = limit if manual_max is None else min(limit, manual_max)
        return list(map(Run._make, self._session.rows(query, now, limit, manual)))

    def held(self, node_id: int, fences: Mapping[int, int]) -> dict[int, Run]:
        if not fences:
            return {}
        query = LOOK_HELD if self._session.is_reading else HELD
        rows = map(Run._make, self._session.rows(query, ids(fences), node_id))
        return {row.run_id: row for row in rows if row.fence == fences[row.run_id]}

    def lock(self, run_ids: Sequence[int]) -> dict[int, Run]:
        if not run_ids:
            return {}
        query = LOOK if self._session.is_reading else LOCK
        rows = map(Run._make, self._session.rows(query, ids(run_ids)))
        return {row.run_id: row for row in rows}

    def save_many(self, rows: Sequence[Run], *, grown: Sequence[int] | None = None) -> None:
        if rows:
            self._session.save(SAVE, len(rows), *arrays(rows, Run, _TEXTS, fixed=_FIXED))
            self._changes.append(RunsSaved(rows, grown))

    def annotate_many(self, rows: Sequence[Run]) -> None:
        if rows:
            self._session.save(SAVE, len(rows), *arrays(rows, Run, _TEXTS, fixed=_FIXED))
            self._changes.append(RunsAnnotated(rows))

    def close_many(self, rows: Sequence[Run]) -> None:
        if rows:
            self._session.save(CLOSE, len(rows), *arrays_of(list(map(_closed, rows)), _CLOSED, _TEXTS))
            self._changes.append(RunsSaved(rows))

    def mark_many(self, node_id: int, marks: Sequence[Mark]) -> list[bool]:
        if not marks:
            return []
        merged: dict[tuple[int, int], Mark] = {}  # one statement must not write a row twice: the last rung counts
        for mark in marks:
            before = merged.get(_held_as(mark))
            process = before.process if before is not None and mark.process is None else mark.process
            merged[_held_as(mark)] = mark._replace(process=process)
        rows = sorted(merged.values(), key=_held_as)
        owners = int_array([node_id] * len(rows))
        written = self._session.change_returning(MARK, *arrays(rows, Mark, _TEXTS), owners)
        counted = set(written)
        fates = [_held_as(mark) in counted for mark in marks]
        if counted:
            self._changes.append(RunsMarked([mark for mark, is_held in zip(marks, fates, strict=True) if is_held]))
        return fates

    def of_nodes(self, node_ids: Sequence[int], *, limit: int) -> list[Run]:
        """The runs that these nodes hold. In a write, the cadences of these runs are locked before the runs: a rescue
        settles afterwards, and other settlers lock the cadence first and then the run."""
        if not node_ids:
            return []
        owners = ids(node_ids)
        if self._session.is_reading:
            return list(map(Run._make, self._session.rows(LOOK_OF_NODES, owners, limit)))
        keys = self._session.rows(KEYS_OF_NODES, owners, limit)
        if not keys:
            return []
        self._session.rows(LOCK_CADENCES, ids({schedule_id for _, schedule_id in keys}))
        found = self._session.rows(OF_NODES, owners, ids(run_id for run_id, _ in keys))
        return list(map(Run._make, found))

    def latest(self, schedule_ids: Sequence[int], *, limit: int) -> dict[int, list[RunGlance]]:
        of_schedules: dict[int, list[RunGlance]] = {key: [] for key in schedule_ids}
        for row in map(RunGlance._make, self._session.rows(LATEST, ids(set(schedule_ids)), limit)):
            of_schedules[row.schedule_id].append(row)
        return of_schedules

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        removed = super().prune(before=before, limit=limit, since=since)
        self._session.rows(PRUNE_LANES, LANES_PRUNED_MAX)  # in this store free lanes keep their rows
        return removed
