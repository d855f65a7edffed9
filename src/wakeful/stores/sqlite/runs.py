"""The ledger, in SQLite. There is one writer, so reading a row is locking it.

A run's key (id, kind, schedule, occurrence) never changes, and settling writes none of the columns of the two large
indexes: a run updates them only once, when it is written.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from sqlite3 import Connection

from wakeful.core.run.runs import PRIORITY_BACKFILL, PRIORITY_PERSON, PRIORITY_PLANNED, Attempt, Outcome, Run
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import AttemptsAdded, Change, RunsAdded, RunsAnnotated, RunsMarked, RunsRemoved, RunsSaved
from wakeful.ports.database import NO_ID, columns_of
from wakeful.ports.ledger import GapSummary
from wakeful.ports.store import CLOSED_COLUMNS, Mark, RunGlance
from wakeful.stores.pruning import PRUNE_WINDOW, Ledger, doomed
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

# Insert an attempt that ended without closing its run.
ADD_ATTEMPT = insert_into("attempts", Attempt)

# Earlier attempts of these runs, in order.
ATTEMPTS = f"""
SELECT {columns_of(Attempt, "attempts")} FROM json_each(?) AS wanted CROSS JOIN attempts ON run_id = wanted.value
ORDER BY run_id, attempt
"""

# Planned instants in a span that have a row. Manual requests have negative occurrences.
TAKEN = """
SELECT planned_at FROM runs INDEXED BY runs_occurrence
WHERE schedule_id = ? AND occurrence > max(?, -1) AND occurrence <= ?
"""

# Gaps that reach beyond an instant: all that start after it, and the one that may span it. Gaps tile time (L1), so
# only the last gap that starts before the instant can reach beyond it. A run that was ever tried is not a gap,
# unless others were merged into it: their checks found nothing.
GAPS_AHEAD = f"""
SELECT {_COLUMNS} FROM runs INDEXED BY runs_occurrence
WHERE schedule_id = :schedule_id AND outcome IN ('skipped', 'missed') AND (attempt = 0 OR instants > 1)
  AND coalesce(planned_until, planned_at) > :after
  AND occurrence >= coalesce(
    (
      SELECT max(occurrence) FROM runs
      WHERE schedule_id = :schedule_id AND occurrence BETWEEN 0 AND :after
        AND outcome IN ('skipped', 'missed') AND (attempt = 0 OR instants > 1)
    ), 0
  )
ORDER BY run_id
"""

# A copy of an earlier definition, stored when it changed. Scans the schedule's rows, only after a clock step.
KEPT_DEFINITION = """
SELECT definition FROM runs INDEXED BY runs_of_schedule
WHERE schedule_id = ? AND version = ? AND definition IS NOT NULL LIMIT 1
"""

# Delete rows from the ledger.
REMOVE = "DELETE FROM runs WHERE run_id IN (SELECT value FROM json_each(?))"

# Delete the attempts of rows from the ledger.
REMOVE_ATTEMPTS = "DELETE FROM attempts WHERE run_id IN (SELECT value FROM json_each(?))"

# The ledger, newest first.
PAGE = f"SELECT {_COLUMNS} FROM runs WHERE run_id < :before_id ORDER BY run_id DESC LIMIT :limit"

# One schedule's rows, newest first.
PAGE_OF_SCHEDULE = f"""
SELECT {_COLUMNS} FROM runs INDEXED BY runs_of_schedule
WHERE schedule_id = :schedule_id AND run_id < :before_id ORDER BY run_id DESC LIMIT :limit
"""

# One schedule's newest rows, in brief, because many are read together.
LATEST = f"""
SELECT {_GLANCE} FROM runs INDEXED BY runs_of_schedule WHERE schedule_id = :schedule_id
ORDER BY run_id DESC LIMIT :limit
"""

# One schedule's rows of one outcome, newest first.
PAGE_OF_SCHEDULE_AND_OUTCOME = f"""
SELECT {_COLUMNS} FROM runs INDEXED BY runs_of_schedule
WHERE schedule_id = :schedule_id AND run_id < :before_id AND outcome = :outcome ORDER BY run_id DESC LIMIT :limit
"""

# Succeeded rows, newest first: most are, so scanning backwards finds a page quickly.
PAGE_OF_SUCCEEDED = f"""
SELECT {_COLUMNS} FROM runs WHERE run_id < :before_id AND outcome = 'succeeded' ORDER BY run_id DESC LIMIT :limit
"""

# Running rows, newest first: there are few, so they are sorted.
PAGE_OF_RUNNING = f"""
SELECT {_COLUMNS} FROM runs INDEXED BY runs_held
WHERE (outcome = 'running' OR stuck = 1) AND outcome = 'running' AND run_id < :before_id
ORDER BY run_id DESC LIMIT :limit
"""

# Waiting rows, newest first: found by their alarms.
PAGE_OF_WAITING = f"""
SELECT {_COLUMNS} FROM alarms CROSS JOIN runs ON run_id = alarms.ref
WHERE alarms.kind = 'run' AND alarms.ref < :before_id AND outcome = 'waiting' ORDER BY alarms.ref DESC LIMIT :limit
"""

# Rows of one of the rarer outcomes, newest first.
PAGE_OF_AMISS = f"""
SELECT {_COLUMNS} FROM runs INDEXED BY runs_amiss
WHERE outcome = :outcome AND outcome <> 'running' AND outcome <> 'waiting' AND outcome <> 'succeeded'
  AND run_id < :before_id
ORDER BY run_id DESC LIMIT :limit
"""

# A range of the ledger in id order, and which of its rows may be deleted: closed, due and ended before `before`, not
# stuck, and no cadence refers to them. Then whether one of these times was written by a clock that was set.
PRUNABLE = """
SELECT run_id,
  ended_at < :before AND due_at < :before AND stuck = 0 AND outcome NOT IN ('running', 'waiting') AND NOT EXISTS (
    SELECT 1 FROM cadences
    WHERE cadences.schedule_id = runs.schedule_id AND run_id IN (open_run_id, queued_run_id, last_row_id)
  ),
  ended_at >= :since OR due_at >= :since,
  due_at
FROM runs WHERE run_id > :after_id AND run_id <= :until_id ORDER BY run_id LIMIT :limit
"""

# When the newest row was due.
NEWEST_DUE_AT = "SELECT due_at FROM runs ORDER BY run_id DESC LIMIT 1"

# Up to which id pruning has progressed.
PRUNED_THROUGH = "SELECT value FROM counters WHERE name = 'pruned_through'"

# Record up to which id pruning has progressed.
SET_PRUNED_THROUGH = "UPDATE counters SET value = ? WHERE name = 'pruned_through'"


# The id of the newest row.
LAST_ID = "SELECT coalesce(max(run_id), 0) FROM runs"

# Missed and caught-up instants after an id, by owner. There are few such rows: they were written since a start.
FALLEN = """
SELECT schedule_id, sum(iif(outcome = 'missed', instants, 0)), sum(iif(trigger = 'catchUp', 1, 0)) FROM runs
WHERE run_id > :after_id AND planned_at <= :until AND coalesce(planned_until, planned_at) >= :since
  AND (outcome = 'missed' OR trigger = 'catchUp')
GROUP BY schedule_id ORDER BY schedule_id
"""


class SqliteRuns:
    """See `ports.store.Runs`."""

    __slots__ = ("_changes", "_connection")

    def __init__(self, connection: Connection, changes: list[Change]) -> None:
        self._connection = connection
        self._changes = changes

    def last_id(self) -> int:
        return int(self._connection.execute(LAST_ID).fetchone()[0])

    def fallen(self, *, after_id: int, since: Instant, until: Instant) -> list[GapSummary]:
        params = {"after_id": after_id, "since": since, "until": until}
        return list(map(GapSummary._make, self._connection.execute(FALLEN, params)))

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

    def add_attempts(self, rows: Sequence[Attempt]) -> None:
        self._connection.executemany(ADD_ATTEMPT, plain(rows))
        if rows:
            self._changes.append(AttemptsAdded(rows))

    def attempts(self, run_ids: Sequence[int]) -> dict[int, list[Attempt]]:
        of_runs: dict[int, list[Attempt]] = {}
        for row in map(Attempt._make, self._connection.execute(ATTEMPTS, (ids(set(run_ids)),))):
            of_runs.setdefault(row.run_id, []).append(row)
        return of_runs

    def taken(self, schedule_id: int, *, after: Instant, until: Instant) -> frozenset[Instant]:
        return frozenset(instant for (instant,) in self._connection.execute(TAKEN, (schedule_id, after, until)))

    def gaps_ahead(self, schedule_id: int, *, after: Instant) -> list[Run]:
        return list(map(Run._make, self._connection.execute(GAPS_AHEAD, {"schedule_id": schedule_id, "after": after})))

    def kept_definition(self, schedule_id: int, version: int) -> str | None:
        found = self._connection.execute(KEPT_DEFINITION, (schedule_id, version)).fetchone()
        return None if found is None else found[0]

    def remove_many(self, run_ids: Sequence[int]) -> None:
        self._remove(run_ids)
        if run_ids:
            self._changes.append(RunsRemoved(run_ids))

    def _remove(self, run_ids: Sequence[int]) -> None:
        wanted = (ids(run_ids),)
        self._connection.execute(REMOVE_ATTEMPTS, wanted)
        self._connection.execute(REMOVE, wanted)

    def page(
        self,
        *,
        schedule_id: int | None = None,
        before_id: int | None = None,
        limit: int,
        outcome: Outcome | None = None,
    ) -> list[Run]:
        params = {
            "before_id": NO_ID if before_id is None else before_id,
            "limit": limit,
            "schedule_id": schedule_id,
            "outcome": outcome,
        }
        return list(map(Run._make, self._connection.execute(_page(schedule_id, outcome), params)))

    def latest(self, schedule_ids: Sequence[int], *, limit: int) -> dict[int, list[RunGlance]]:
        return {
            key: list(map(RunGlance._make, self._connection.execute(LATEST, {"schedule_id": key, "limit": limit})))
            for key in sorted(set(schedule_ids))
        }

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        (start,) = self._connection.execute(PRUNED_THROUGH).fetchone()
        found, cursor = doomed(self._ledger(before, since), start, before=before, limit=limit)
        if found:
            self._remove(found)
        if cursor != start:
            self._connection.execute(SET_PRUNED_THROUGH, (cursor,))
        return len(found)

    def _ledger(self, before: Instant, since: Instant) -> Ledger:
        ask = self._connection.execute
        params = {"before": before, "since": since, "limit": PRUNE_WINDOW}
        return Ledger(
            window=lambda after_id, until_id: ask(
                PRUNABLE, {**params, "after_id": after_id, "until_id": until_id}
            ).fetchall(),
            newest_due_at=lambda: int(ask(NEWEST_DUE_AT).fetchone()[0]),
        )


def _page(schedule_id: int | None, outcome: Outcome | None) -> str:
    """The query for a page: each filter uses an index that finds its rows without reading others."""
    if schedule_id is not None:
        return PAGE_OF_SCHEDULE if outcome is None else PAGE_OF_SCHEDULE_AND_OUTCOME
    match outcome:
        case None:
            return PAGE
        case "succeeded":
            return PAGE_OF_SUCCEEDED
        case "running":
            return PAGE_OF_RUNNING
        case "waiting":
            return PAGE_OF_WAITING
        case _:
            return PAGE_OF_AMISS
