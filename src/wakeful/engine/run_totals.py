"""Totals over the ledger, by schedule and outcome.

Theory of operation: rows up to an id (`totalled_through`) are added up in `run_totals`; statistics add the few rows
after it. Rows that were open when their turn came are listed in `runs_to_total` and added once they are closed. If
a closed row changes later, or is deleted, a trigger takes its share back by adding a negative row: inserting never
waits for a lock, and `advance` merges the rows of a schedule. A row is added only ten minutes after it was written: ids
are assigned before the commit, so a row may appear below one that was already seen.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple

from wakeful.core.run.runs import Outcome
from wakeful.core.time.instants import MINUTE, Duration, Instant
from wakeful.ports.database import PerDatabase, Sql
from wakeful.ports.table import Rows

WRITTEN_WITHIN: Final[Duration] = 10 * MINUTE
NANO: Final = 1_000_000_000
LOOKED_AT: Final = 2
"""How many rows are read for each one that is returned: not every row started."""


class LedgerCounts(NamedTuple):
    """Statistics of one schedule since some time."""

    by_outcome: Mapping[Outcome, int]  # in instants: a stretch counts for as many as it covers
    durations: Sequence[Duration]  # of closed runs that started, newest first, limited
    last_outcomes: Sequence[Outcome]  # of closed runs that started, newest first, limited
    tokens: int | None = None  # of all runs that reported any; None if none did
    cost: float | None = None  # in US dollars, likewise


class RunTotal(NamedTuple):
    """A part of the total for a schedule and an outcome."""

    schedule_id: int
    outcome: str
    instants: int
    tokens: int | None
    cost: int | None  # in billionths of a US dollar: integer totals have no rounding errors


# What a run used; null if it is not a number. An older version stored what a program reported.
_TOKENS: Final = "coalesce(json_extract(result, '$.usage.total'), json_extract(result, '$.usage.totalTokens'))"
_COST: Final = "json_extract(result, '$.usage.cost')"
_USED: Final = PerDatabase(
    f"""CASE WHEN typeof({_TOKENS}) = 'integer' AND {_TOKENS} BETWEEN 0 AND 1e15 THEN {_TOKENS} END AS tokens,
    CASE WHEN typeof({_COST}) IN ('integer', 'real') AND {_COST} BETWEEN 0 AND 1e6
    THEN CAST(round({_COST} * 1e9) AS INTEGER) END AS cost""",
    "used_tokens(result) AS tokens, used_cost(result) AS cost",
)
_SUMS: Final = "CAST(sum(instants) AS bigint), CAST(sum(tokens) AS bigint), CAST(sum(cost) AS bigint)"


def _with_usage(text: str) -> PerDatabase:
    """The statement with the expressions for the usage of a run."""
    return PerDatabase(text.replace("USED", _USED.sqlite), text.replace("USED", _USED.postgres))


# A whole schedule: its totals, the rows after them, and those that were open when the totals were made.
OF_ALL_TIME: Final = _with_usage(f"""
SELECT outcome, {_SUMS} FROM (
  SELECT outcome, instants, tokens, cost FROM run_totals WHERE schedule_id = :schedule_id
  UNION ALL
  SELECT outcome, instants, USED FROM runs
  WHERE schedule_id = :schedule_id AND run_id > (SELECT value FROM counters WHERE name = 'totalled_through')
  UNION ALL
  SELECT outcome, instants, USED FROM runs
  WHERE run_id IN (SELECT run_id FROM runs_to_total WHERE schedule_id = :schedule_id)
) AS parts GROUP BY outcome
""")

# A schedule since a time: planned rows that start after it, the last one before it (it may span the time), and manual
# requests. Usage counts for rows that were planned after it.
SINCE: Final = _with_usage(f"""
SELECT outcome, {_SUMS} FROM (
  SELECT outcome, instants, planned_at, planned_until, USED FROM runs INDEXED BY runs_occurrence
  WHERE schedule_id = :schedule_id AND occurrence >= :since
  UNION ALL
  SELECT outcome, instants, planned_at, planned_until, USED FROM runs INDEXED BY runs_occurrence
  WHERE schedule_id = :schedule_id AND occurrence < 0
  UNION ALL
  SELECT outcome, instants, planned_at, planned_until, NULL AS tokens, NULL AS cost FROM (
    SELECT outcome, instants, planned_at, planned_until FROM runs INDEXED BY runs_occurrence
    WHERE schedule_id = :schedule_id AND occurrence >= 0 AND occurrence < :since ORDER BY occurrence DESC LIMIT 1
  ) AS across
) AS parts WHERE coalesce(planned_until, planned_at) >= :since GROUP BY outcome
""")

# Durations and outcomes of closed runs that started, newest first, among the latest rows.
ENDINGS: Final = """
SELECT ended_at - started_at, outcome FROM (
  SELECT run_id, planned_at, started_at, ended_at, outcome FROM runs INDEXED BY runs_of_schedule
  WHERE schedule_id = :schedule_id ORDER BY schedule_id DESC, run_id DESC LIMIT :looked_at
) AS latest
WHERE planned_at >= :since AND started_at IS NOT NULL AND ended_at IS NOT NULL
  AND outcome <> 'running' AND outcome <> 'waiting'
ORDER BY run_id DESC LIMIT :limit
"""

# Up to which id the ledger is totalled. One node at a time continues this.
THROUGH: Final = "SELECT value FROM counters WHERE name = 'totalled_through' FOR UPDATE SKIP LOCKED"
SET_THROUGH: Final = "UPDATE counters SET value = :through WHERE name = 'totalled_through'"

# The next rows, and when they were written.
NEXT: Final = """
SELECT run_id, coalesce(claimed_at, ended_at, due_at) FROM runs WHERE run_id > :through ORDER BY run_id LIMIT :limit
"""

# Rows that are still open are left for later.
LEAVE_OPEN: Final = """
INSERT INTO runs_to_total (schedule_id, run_id)
SELECT schedule_id, run_id FROM runs
WHERE run_id > :through AND run_id <= :until AND outcome IN ('running', 'waiting')
ON CONFLICT DO NOTHING
"""

# The totals of the others.
SUM_NEXT: Final = _with_usage(f"""
SELECT schedule_id, outcome, {_SUMS} FROM (
  SELECT schedule_id, outcome, instants, USED FROM runs
  WHERE run_id > :through AND run_id <= :until AND NOT EXISTS (
    SELECT 1 FROM runs_to_total
    WHERE runs_to_total.schedule_id = runs.schedule_id AND runs_to_total.run_id = runs.run_id
  )
) AS next GROUP BY schedule_id, outcome
""")

# Rows that were left for later and are closed now.
TAKE_CLOSED: Final = """
DELETE FROM runs_to_total WHERE NOT EXISTS (
  SELECT 1 FROM runs WHERE runs.run_id = runs_to_total.run_id AND outcome IN ('running', 'waiting')
) RETURNING run_id
"""
SUM_CLOSED: Final = _with_usage(f"""
SELECT schedule_id, outcome, {_SUMS} FROM (
  SELECT schedule_id, outcome, instants, USED FROM runs WHERE run_id IN :run_ids
) AS closed GROUP BY schedule_id, outcome
""")

# Schedules from whose totals something was subtracted.
TAKEN_BACK: Final = "SELECT DISTINCT schedule_id FROM run_totals WHERE instants < 0 ORDER BY schedule_id LIMIT :limit"

# The parts of these schedules, to be merged.
TAKE_PARTS: Final = """
DELETE FROM run_totals WHERE schedule_id IN :schedule_ids RETURNING schedule_id, outcome, instants, tokens, cost
"""


class RunTotals(Rows[RunTotal]):
    """Totals over the ledger, up to a run id."""

    row, table, key = RunTotal, "run_totals", ""

    def tallied(self, schedule_id: int, *, since: Instant, limit: int) -> LedgerCounts:
        """Counts, tokens and cost since a time, and the durations and outcomes of the latest runs, at most `limit`.

        Without a time (0) the cost does not grow with the ledger; with one, it grows with what was asked for."""
        query: Sql = SINCE if since else OF_ALL_TIME
        sums = self._db.rows(query, schedule_id=schedule_id, **({"since": since} if since else {}))
        endings = self._db.rows(ENDINGS, schedule_id=schedule_id, since=since, looked_at=limit * LOOKED_AT, limit=limit)
        cost = _added(cost for _, _, _, cost in sums)
        return LedgerCounts(
            {outcome: instants for outcome, instants, _, _ in sums if instants},
            [duration for duration, _ in endings],
            [outcome for _, outcome in endings],
            _added(tokens for _, _, tokens, _ in sums),
            None if cost is None else cost / NANO,
        )

    def advance(self, *, now: Instant, limit: int) -> int:
        """Add up the next rows of the ledger, at most `limit`; returns how many."""
        held = self._db.rows(THROUGH)
        if not held:
            return 0  # another node is doing this
        ((through,),) = held
        rows = self._db.rows(NEXT, through=through, limit=limit)
        settled = [run_id for run_id, _ in takewhile(lambda row: row[1] <= now - WRITTEN_WITHIN, rows)]
        until = settled[-1] if settled else through
        self._db.change(LEAVE_OPEN, through=through, until=until)
        sums = self._db.rows(SUM_NEXT, through=through, until=until)
        closed = [run_id for (run_id,) in self._db.change_returning(TAKE_CLOSED)]
        if closed:
            sums += self._db.rows(SUM_CLOSED, run_ids=closed)
        self._merge(sums, limit)
        if until != through:
            self._db.change(SET_THROUGH, through=until)
        return len(settled)

    def _merge(self, sums: list[tuple[Any, ...]], limit: int) -> None:
        """Add these to the existing totals, so that a schedule has one row per outcome again."""
        changed = {schedule_id for schedule_id, *_ in sums}
        changed |= {schedule_id for (schedule_id,) in self._db.rows(TAKEN_BACK, limit=limit)}
        if not changed:
            return
        parts: dict[tuple[int, str], list[RunTotal]] = {}
        for part in map(RunTotal._make, [*sums, *self._db.change_returning(TAKE_PARTS, schedule_ids=changed)]):
            parts.setdefault((part.schedule_id, part.outcome), []).append(part)
        merged = [
            RunTotal(
                *key,
                sum(part.instants for part in some),
                _added(part.tokens for part in some),
                _added(part.cost for part in some),
            )
            for key, some in sorted(parts.items())
        ]
        self.add_many([total for total in merged if total.instants])


def _added(values: Iterable[int | None]) -> int | None:
    """The sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
