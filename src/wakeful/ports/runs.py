"""The ledger: runs and their attempts.

Both databases share its reports and its upkeep. The statements of claiming and settling are written for each.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from wakeful.core.run.runs import Attempt, Outcome, Run
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import AttemptsAdded, Change, RunsRemoved
from wakeful.ports.database import NO_ID, Database, Table, columns_of, grouped
from wakeful.ports.ledger import GapSummary, Mark, RunGlance
from wakeful.ports.pruning import PRUNE_WINDOW, Ledger, doomed

_COLUMNS = columns_of(Run, "runs")
_ATTEMPTS = Table("attempts", Attempt, key=("run_id", "attempt"))

# The id of the newest row.
LAST_ID = "SELECT coalesce((SELECT run_id FROM runs ORDER BY run_id DESC LIMIT 1), 0)"

# Missed and caught-up instants after an id, by owner. There are few such rows: they were written since a start.
FALLEN = """
SELECT schedule_id, CAST(sum(CASE WHEN outcome = 'missed' THEN instants ELSE 0 END) AS bigint),
  CAST(sum(CASE WHEN trigger = 'catchUp' THEN 1 ELSE 0 END) AS bigint)
FROM runs
WHERE run_id > :after_id AND planned_at <= :until AND coalesce(planned_until, planned_at) >= :since
  AND (outcome = 'missed' OR trigger = 'catchUp')
GROUP BY schedule_id
"""

# Earlier attempts of these runs, in order.
ATTEMPTS = f"SELECT {_ATTEMPTS.columns} FROM attempts WHERE run_id IN :run_ids ORDER BY run_id, attempt"

# Planned instants in a span that have a row. Manual requests have negative occurrences.
TAKEN = """
SELECT planned_at FROM runs INDEXED BY runs_occurrence
WHERE schedule_id = :schedule_id AND occurrence > :after AND occurrence <= :until
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
ORDER BY run_id FOR UPDATE
"""

# A copy of an earlier definition, stored when it changed. Scans the schedule's rows, only after a clock step.
KEPT_DEFINITION = """
SELECT definition FROM runs INDEXED BY runs_of_schedule
WHERE schedule_id = :schedule_id AND version = :version AND definition IS NOT NULL LIMIT 1
"""

# Delete rows from the ledger, with their attempts.
REMOVE_ATTEMPTS = "DELETE FROM attempts WHERE run_id IN :run_ids"
REMOVE = "DELETE FROM runs WHERE run_id IN :run_ids"

# The ledger, newest first.
PAGE = f"SELECT {_COLUMNS} FROM runs WHERE run_id < :before_id ORDER BY run_id DESC LIMIT :limit"

# One schedule's rows, newest first.
PAGE_OF_SCHEDULE = f"""
SELECT {_COLUMNS} FROM runs INDEXED BY runs_of_schedule WHERE schedule_id = :schedule_id AND run_id < :before_id
ORDER BY schedule_id DESC, run_id DESC LIMIT :limit
"""

# One schedule's rows of one outcome, newest first.
PAGE_OF_SCHEDULE_AND_OUTCOME = f"""
SELECT {_COLUMNS} FROM runs INDEXED BY runs_of_schedule
WHERE schedule_id = :schedule_id AND run_id < :before_id AND outcome = :outcome
ORDER BY schedule_id DESC, run_id DESC LIMIT :limit
"""

# Succeeded rows, newest first: most are, so scanning backwards finds a page quickly.
PAGE_OF_SUCCEEDED = f"""
SELECT {_COLUMNS} FROM runs WHERE run_id < :before_id AND outcome = 'succeeded' ORDER BY run_id DESC LIMIT :limit
"""

# Running rows, newest first: there are few, so they are sorted. Sorting is switched off in PostgreSQL's sessions, and
# its planner would rather read the whole ledger in the order of its key; no index has the order of an expression.
PAGE_OF_RUNNING = f"""
SELECT {_COLUMNS} FROM runs INDEXED BY runs_held
WHERE (outcome = 'running' OR stuck = 1) AND outcome = 'running' AND run_id < :before_id
ORDER BY run_id + 0 DESC LIMIT :limit
"""

# Waiting rows, newest first: found by their alarms.
PAGE_OF_WAITING = f"""
SELECT {_COLUMNS} FROM alarms CROSS JOIN runs
WHERE alarms.kind = 'run' AND alarms.ref < :before_id AND run_id = alarms.ref AND outcome = 'waiting'
ORDER BY alarms.kind DESC, alarms.ref DESC LIMIT :limit
"""

# Rows of one of the rarer outcomes, newest first.
PAGE_OF_AMISS = f"""
SELECT {_COLUMNS} FROM runs INDEXED BY runs_amiss
WHERE outcome = :outcome AND outcome <> 'running' AND outcome <> 'waiting' AND outcome <> 'succeeded'
  AND run_id < :before_id
ORDER BY outcome DESC, run_id DESC LIMIT :limit
"""

# A range of the ledger in id order, and which of its rows may be deleted: closed, due and ended before `before`, not
# stuck, and no cadence refers to them. Then whether one of these times was written by a clock that was set.
PRUNABLE = """
SELECT run_id,
  ended_at IS NOT NULL AND ended_at < :before AND due_at < :before AND stuck = 0
  AND outcome <> 'running' AND outcome <> 'waiting' AND NOT EXISTS (
    SELECT 1 FROM cadences
    WHERE cadences.schedule_id = runs.schedule_id AND run_id IN (open_run_id, queued_run_id, last_row_id)
  ),
  ended_at >= :since OR due_at >= :since,
  due_at
FROM runs WHERE run_id > :after_id AND run_id <= :until_id ORDER BY run_id LIMIT :limit
"""

# When the newest row was due.
NEWEST_DUE_AT = "SELECT due_at FROM runs ORDER BY run_id DESC LIMIT 1"

# Up to which id pruning has progressed. The transaction that locks this row prunes; no other waits for it.
PRUNED_THROUGH = "SELECT value FROM counters WHERE name = 'pruned_through' FOR UPDATE SKIP LOCKED"

# Record up to which id pruning has progressed.
SET_PRUNED_THROUGH = "UPDATE counters SET value = :value WHERE name = 'pruned_through' RETURNING value"


class Runs(ABC):
    """The ledger, in one transaction."""

    __slots__ = ("_changes", "_db")

    def __init__(self, db: Database, changes: list[Change]) -> None:
        self._db = db
        self._changes = changes

    # --- for each database -------------------------------------------------------------------------------------------

    @abstractmethod
    def reserve_ids(self, n: int) -> list[int]:
        """Ids for n new runs, ascending."""

    @abstractmethod
    def add_many(self, rows: Sequence[Run]) -> None:
        """Write new ledger rows; an existing occurrence is an error."""

    @abstractmethod
    def due(
        self, *, now: Instant, limit: int, manual_max: int | None = None, after: Instant | None = None
    ) -> list[Run]:
        """Waiting runs whose alarm is due, manual ones first (at most `manual_max`), then by due time; locked, without
        those locked elsewhere. With `after`, only planned ones that are due later than that and need no lane."""

    @abstractmethod
    def held(self, node_id: int, fences: Mapping[int, int]) -> dict[int, Run]:
        """Of these runs (id → fence), those that this node still runs under that fence, locked."""

    @abstractmethod
    def lock(self, run_ids: Sequence[int]) -> dict[int, Run]:
        """Read these runs and lock them. A read transaction only reads."""

    @abstractmethod
    def save_many(self, rows: Sequence[Run], *, grown: Sequence[int] | None = None) -> None:
        """Write whole rows whose state changed. The caller holds their locks. For gaps that were extended or shortened,
        `grown` is how many instants each covers more than before."""

    @abstractmethod
    def annotate_many(self, rows: Sequence[Run]) -> None:
        """Write whole rows whose state is the same, such as with a copy of a definition: no listener hears of it."""

    @abstractmethod
    def close_many(self, rows: Sequence[Run]) -> None:
        """Write runs that closed and are not stuck: only the columns that closing changes. The caller holds their
        locks."""

    @abstractmethod
    def mark_many(self, node_id: int, marks: Sequence[Mark]) -> list[bool]:
        """Record the rungs reached; False for a run that is no longer held under that fence."""

    @abstractmethod
    def of_nodes(self, node_ids: Sequence[int], *, limit: int) -> list[Run]:
        """Runs (running, or stuck) owned by these nodes, locked, in id order."""

    @abstractmethod
    def latest(self, schedule_ids: Sequence[int], *, limit: int) -> dict[int, list[RunGlance]]:
        """The newest rows of each of these schedules, newest first, at most `limit` of each; read only."""

    # --- shared ------------------------------------------------------------------------------------------------------

    def last_id(self) -> int:
        """The id of the newest row; 0 if there is none."""
        ((last,),) = self._db.rows(LAST_ID)
        return int(last)

    def fallen(self, *, after_id: int, since: Instant, until: Instant) -> list[GapSummary]:
        """Missed and caught-up instants between two times, in rows written after an id, by owner."""
        return sorted(map(GapSummary._make, self._db.rows(FALLEN, after_id=after_id, since=since, until=until)))

    def add_attempts(self, rows: Sequence[Attempt]) -> None:
        """Write attempts that ended without closing their runs."""
        self._db.insert(_ATTEMPTS, rows)
        if rows:
            self._changes.append(AttemptsAdded(rows))

    def attempts(self, run_ids: Sequence[int]) -> dict[int, list[Attempt]]:
        """Earlier attempts of these runs, in order."""
        rows = map(Attempt._make, self._db.rows(ATTEMPTS, run_ids=set(run_ids)))
        return grouped((row.run_id, row) for row in rows)

    def taken(self, schedule_id: int, *, after: Instant, until: Instant) -> frozenset[Instant]:
        """Planned instants in (after, until] that have a row, including runs given up before their first attempt."""
        rows = self._db.rows(TAKEN, schedule_id=schedule_id, after=max(after, -1), until=until)
        return frozenset(instant for (instant,) in rows)

    def gaps_ahead(self, schedule_id: int, *, after: Instant) -> list[Run]:
        """Skipped or missed rows that reach beyond `after`, locked."""
        return list(map(Run._make, self._db.rows(GAPS_AHEAD, schedule_id=schedule_id, after=after)))

    def kept_definition(self, schedule_id: int, version: int) -> str | None:
        """The text of an earlier version of a schedule, if one of its rows of that version has a copy."""
        found = self._db.rows(KEPT_DEFINITION, schedule_id=schedule_id, version=version)
        return next((definition for (definition,) in found), None)

    def remove_many(self, run_ids: Sequence[int]) -> None:
        """Delete rows that lie ahead after the clock went back."""
        self._remove(run_ids)
        if run_ids:
            self._changes.append(RunsRemoved(run_ids))

    def page(
        self,
        *,
        schedule_id: int | None = None,
        before_id: int | None = None,
        limit: int,
        outcome: Outcome | None = None,
    ) -> list[Run]:
        """Rows newest first, of one schedule or of all, before a run id."""
        rows = self._db.rows(
            _page(schedule_id, outcome),
            schedule_id=schedule_id,
            before_id=NO_ID if before_id is None else before_id,
            limit=limit,
            outcome=outcome,
        )
        return list(map(Run._make, rows))

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` closed rows (with their attempts) due and ended before `before`; returns how many.

        Times before `since` come from a clock that was not set, and say nothing about a row's age."""
        held = self._db.rows(PRUNED_THROUGH)
        if not held:
            return 0  # another node is pruning
        ((start,),) = held
        found, cursor = doomed(self._ledger(before, since), start, before=before, limit=limit)
        if found:
            self._remove(found)
        if cursor != start:
            self._db.rows(SET_PRUNED_THROUGH, value=cursor)
        return len(found)

    def _remove(self, run_ids: Sequence[int]) -> None:
        self._db.change(REMOVE_ATTEMPTS, run_ids=run_ids)
        self._db.change(REMOVE, run_ids=run_ids)

    def _ledger(self, before: Instant, since: Instant) -> Ledger:
        def window(after_id: int, until_id: int) -> list[tuple[int, bool, bool, Instant]]:
            return self._db.rows(
                PRUNABLE, before=before, since=since, limit=PRUNE_WINDOW, after_id=after_id, until_id=until_id
            )

        return Ledger(window, newest_due_at=lambda: int(self._db.rows(NEWEST_DUE_AT)[0][0]))


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
