"""The plain path, in PostgreSQL. Locks are taken in the usual order: cadences, then runs, each by id."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final

from wakeful.core.run.runs import PRIORITIES, Run
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import Change, RunsSaved, RunsStarted, RunsSucceeded, SchedulesDone
from wakeful.ports.claims import Batch, Claim
from wakeful.ports.database import columns_of, texts_of
from wakeful.ports.ledger import CLAIMED_COLUMNS
from wakeful.ports.plain import NO_LANES, NO_RESULTS, DueSchedule
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.lanes import FREE as FREE_LANES
from wakeful.stores.postgres.lanes import LOCK as LOCK_LANES
from wakeful.stores.postgres.rows import arrays_of, ids, int_array, text_array, texts, unnest_of, update_some
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

_TEXTS: Final = frozenset({"kind", "trigger", "rung", "lane"})

# Schedules whose alarm is due, oldest first.
LOOK_DUE = f"""
SELECT schedule_id, version, next_at, alarms.due_at, ({CLEAR})::int
FROM alarms JOIN cadences ON schedule_id = ref
WHERE kind = 'schedule' AND priority = 1 AND parked = 0 AND due_at <= $1 AND due_at > $3
ORDER BY due_at, ref LIMIT $2
"""

# The same, locked, without waiting for other nodes. Every tested column is on the locked rows.
DUE = f"{LOOK_DUE} FOR UPDATE SKIP LOCKED"

# Move clear cadences to their next instants, and their alarms with them, and insert the runs that start as they are
# written; returns how many cadences were moved.
_ADVANCED: Final = ("schedule_id", "planned_through", "next_at", "open_run_id", "last_row_id")
START = f"""
WITH advanced AS (
  {update_some("cadences", frozenset(), key="schedule_id", columns=_ADVANCED[1:])} RETURNING 1
), moved AS (
  UPDATE alarms SET due_at = ($6::bigint[])[array_position($1::bigint[], ref)]
  WHERE kind = 'schedule' AND ref = ANY($1::bigint[])
), started AS (
  INSERT INTO runs ({", ".join((*START_COLUMNS, *START_CONSTANTS))})
  SELECT new.*, {", ".join(START_CONSTANTS.values())}
  FROM {unnest_of(START_COLUMNS, _TEXTS, first=len(_ADVANCED) + 2)} AS new
)
SELECT count(*) FROM advanced
"""

# Cadences by id, locked: their open run if they are in order, and whether it is the last.
LOCK = f"""
SELECT schedule_id, CASE WHEN {IN_ORDER} THEN open_run_id END, next_at IS NULL FROM cadences
WHERE schedule_id = ANY($1::bigint[]) ORDER BY schedule_id FOR UPDATE
"""

# Of these runs, those this node holds as it claimed them, locked.
HELD = """
SELECT run_id, fence FROM runs
WHERE run_id = ANY($1::bigint[]) AND owner = $2 AND outcome = 'running'
  AND ladder IS NULL AND process IS NULL AND definition IS NULL
ORDER BY run_id FOR UPDATE
"""

# Close runs, and free their schedules or finish them; returns how many rows were written. All of them are locked.
SETTLE = f"""
WITH closed AS (
  UPDATE runs SET {CLOSED}, ended_at = $4 WHERE run_id = ANY($1::bigint[]) RETURNING 1
), closed_with_result AS (
  UPDATE runs SET {CLOSED}, ended_at = $4, result = ($6::text[])[array_position($5::bigint[], run_id)]
  WHERE run_id = ANY($5::bigint[]) RETURNING 1
), freed AS (
  UPDATE cadences SET {FREED}, last_success_at = $4 WHERE schedule_id = ANY($2::bigint[]) RETURNING 1
), finished AS (
  UPDATE cadences SET {DONE}, last_success_at = $4, state_at = $4 WHERE schedule_id = ANY($3::bigint[]) RETURNING 1
)
SELECT (SELECT count(*) FROM closed) + (SELECT count(*) FROM closed_with_result),
  (SELECT count(*) FROM freed) + (SELECT count(*) FROM finished)
"""

# For each of these lanes, which are locked: whether the lanes cannot be passed on because a waiting run is due or one
# that needs a label waits for a lane; the first waiting run; and its row, locked, if it is due. A run that another node
# has locked is not waited for: runs are locked before lanes.
_DUE_RUN = "EXISTS (SELECT 1 FROM alarms WHERE kind = 'run' AND priority = {priority} AND parked = 0 AND due_at <= $2)"
SUCCESSORS = f"""
SELECT {" OR ".join(_DUE_RUN.format(priority=priority) for priority in PRIORITIES)} OR EXISTS (
  SELECT 1 FROM alarms WHERE lane = ANY($1::text[]) AND parked = 3 AND kind = 'run' AND due_at IS NOT NULL
), first.ref, run.*
FROM unnest($1::text[]) AS held (lane)
LEFT JOIN LATERAL (
  SELECT ref, due_at FROM alarms
  WHERE alarms.lane = held.lane AND parked = 1 AND kind = 'run' AND due_at IS NOT NULL
  ORDER BY lane, priority, due_at, ref LIMIT 1
) AS first ON true
LEFT JOIN LATERAL (
  SELECT {columns_of(Run, "runs")} FROM runs
  WHERE run_id = first.ref AND first.due_at <= $2 AND outcome = 'waiting' FOR UPDATE SKIP LOCKED
) AS run ON true
"""

# Update runs that waited and were claimed, only the columns that claiming changes; remove their alarms, and give lanes
# that are passed on to them, or free these. Runs and lanes are locked, and so are alarms that are not parked.
_CLAIMED: Final = ("run_id", *CLAIMED_COLUMNS)
_claimed = attrgetter(*_CLAIMED)
_CLEARED: Final = ", reason = NULL, next_attempt_at = NULL, ladder = NULL, process = NULL"
CLAIM = f"""
WITH gone AS (
  DELETE FROM alarms WHERE kind = 'run' AND ref = ANY($1::bigint[])
), passed AS (
  UPDATE lanes SET holder = (${len(_CLAIMED) + 2}::bigint[])[array_position(${len(_CLAIMED) + 1}::text[], lane)]
  WHERE lane = ANY(${len(_CLAIMED) + 1}::text[])
)
{update_some("runs", texts_of(Run), key="run_id", columns=CLAIMED_COLUMNS, also=_CLEARED)}
"""


class PostgresPlainPath:
    """See `ports.plain.PlainPath`."""

    __slots__ = ("_changes", "_session")

    def __init__(self, session: Session, changes: list[Change]) -> None:
        self._session = session
        self._changes = changes

    def due(self, *, now: Instant, limit: int, after: Instant | None = None) -> list[DueSchedule]:
        query = LOOK_DUE if self._session.is_reading else DUE
        wanted = (now, limit, EVER if after is None else after)
        return list(map(DueSchedule._make, self._session.rows(query, *wanted)))

    def start(self, batches: Sequence[Batch]) -> None:
        moves = [
            (claim.schedule_id, batch.planned_at, batch.next_at, claim.run_id, claim.run_id, batch.next_due_at)
            for batch in batches
            for claim in (*batch.claims, *batch.waiting)
        ]
        rows = [row for batch in batches for row in rows_of(batch)]
        params = [int_array(column) for column in zip(*moves, strict=True)]
        ((count,),) = self._session.change_returning(START, *params, *arrays_of(rows, START_COLUMNS, _TEXTS))
        if count != len(moves):
            raise LookupError(
                f"{len(moves) - count} of {len(moves)} schedules to be moved are gone, or were not locked"
            )
        if rows:
            self._changes.append(RunsStarted([claim for batch in batches for claim in batch.claims]))

    def settle(
        self, node_id: int, ended: Sequence[Claim], *, now: Instant, results: Mapping[int, str] = NO_RESULTS
    ) -> set[int]:
        open_runs = self._session.rows(LOCK, ids(run.schedule_id for run in ended))
        of_schedule = {schedule_id: run_id for schedule_id, run_id, _ in open_runs}
        last = {schedule_id for schedule_id, _, is_last in open_runs if is_last}
        wanted = ids(run.run_id for run in ended if of_schedule.get(run.schedule_id) == run.run_id)
        fences: dict[int, int] = dict(self._session.rows(HELD, wanted, node_id))
        held = [run for run in ended if fences.get(run.run_id) == run.batch.fence]
        freed = [run.schedule_id for run in held if run.schedule_id not in last]
        done = [run for run in held if run.schedule_id in last]
        closed = {run.run_id for run in held}
        if held:
            texts_of = {run_id: text for run_id, text in results.items() if run_id in closed}
            written = self._session.change_returning(
                SETTLE,
                ids(closed - texts_of.keys()),
                ids(freed),
                ids(run.schedule_id for run in done),
                now,
                int_array(texts_of),
                text_array(list(texts_of.values())),
            )
            if written != [(len(closed), len(closed))]:
                raise LookupError(f"of {len(closed)} runs and as many schedules, only {written} could be written")
            self._changes += [SchedulesDone(done)] if done else []
            self._changes.append(RunsSucceeded(held, now, results))
        return closed

    def successors(self, held: Mapping[str, int], *, now: Instant) -> list[Run] | None:
        if dict(self._session.rows(LOCK_LANES, texts(held))) != dict(held):
            return None
        found: list[Run] = []
        for are_others_due, ref, *columns in self._session.rows(SUCCESSORS, texts(held), now):
            row = Run._make(columns)
            if are_others_due or row.run_id != ref:
                return None
            if ref is not None:
                found.append(row)
        return found

    def claim(self, runs: Sequence[Run], passed_on: Mapping[str, int] = NO_LANES) -> None:
        if not runs:
            self._session.change(FREE_LANES, texts(passed_on))
            return
        holders = dict.fromkeys(passed_on) | {run.lane: run.run_id for run in runs if run.lane in passed_on}
        params = arrays_of(list(map(_claimed, runs)), _CLAIMED, texts_of(Run))
        self._session.save(CLAIM, len(runs), *params, text_array(list(holders)), int_array(holders.values()))
        self._changes.append(RunsSaved(runs))
