"""Writes what was decided about planned instants: ledger rows, plan rows and alarms.

A schedule and the heartbeat have a plan row each (`core.schedule.cadence.Cadence`); a feature decides with the pure
functions there, and `record` writes the decision. The producers of a workflow and the wakes of a slot keep their own
state instead of a plan row, and hand in only the gaps (`add_gaps`).

After a clock that was ahead went back, gaps beyond now are voided or shortened (`void_ahead`), and the plan starts from
now (`turned_back`). Instants that ran stay in the ledger; `taken_ahead` finds them, so that none runs twice (L2).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from wakeful.core.run.runs import Run, RunKind
from wakeful.core.schedule.cadence import Cadence, Gap, Rules, Start, is_turned, stretch_of, turn_back, with_rows
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Timing, next_after, tally
from wakeful.ports.handlers import Due
from wakeful.ports.plans import PLANNED_COLUMNS
from wakeful.ports.store import Tx


class Planned(NamedTuple):
    """One kind of thing that has plan rows."""

    alarm: str  # the kind of its alarms
    run: RunKind  # the kind of its ledger rows
    repeats: Callable[[str], bool]  # whether gaps with this reason extend one row, instead of adding one each


class Decided(NamedTuple):
    """A plan row after a decision, and the ledger rows that follow, in time order."""

    before: Cadence  # as stored until now
    after: Cadence
    rows: Sequence[Start | Gap]
    rings_at: Callable[[Cadence], Instant | None]  # of the plan row with the ids of its runs
    start: Callable[[int, Start], Run] | None = None  # the run of an instant; None: none starts
    ask: Callable[[int], Run] | None = None  # a run that was asked for: it opens, but is no row of the plan
    timing: Timing | None = None  # the instants of the gaps; None: unknown
    version: int | None = None  # that the gaps belong to, if it is not the one of `after`
    definition: str | None = None  # the text of that version, to be kept with the gaps


class SkippedTimes(NamedTuple):
    """Gaps of something that has no plan row."""

    run: RunKind
    owner_id: int
    version: int
    gaps: Sequence[Gap]
    mark: Callable[[Run], Run]  # adds what tells them from other rows of their owner


def record(tx: Tx, planned: Planned, all_decided: Sequence[Decided], *, now: Instant) -> list[Due]:
    """Write the decisions in a fixed number of statements; returns the new runs, not yet written."""
    grown = _grow(tx, planned, all_decided)
    ids = iter(tx.runs.reserve_ids(sum(map(_count, all_decided)) - len(grown)))
    gaps: list[Run] = []
    due: list[Due] = []
    rung: list[Cadence] = []
    others: list[Cadence] = []
    turned: list[Cadence] = []
    moves: list[tuple[int, Instant | None]] = []
    for decision in all_decided:
        is_grown = decision.after.schedule_id in grown
        cadence = _with_rows(planned, decision, decision.rows[is_grown:], ids, gaps, due, now)
        is_rung = _unplanned(decision.before) == _unplanned(cadence)
        (rung if is_rung else others).append(cadence)
        if is_turned(decision.before, cadence):
            turned.append(cadence)
        moves.append((cadence.schedule_id, decision.rings_at(cadence)))
    if grown:
        extend(tx, sorted(grown.values()))
    if gaps:
        tx.runs.add_many(gaps)
    if rung:
        tx.cadences.save_planned(rung)
    if others:
        tx.cadences.save_many(others, turned=turned)
    tx.alarms.move_many(planned.alarm, moves)
    return due


def add_gaps(tx: Tx, skipped: Sequence[SkippedTimes], *, now: Instant) -> list[Run]:
    """Write gaps of things that have no plan row; returns their rows."""
    count = sum(len(times.gaps) for times in skipped)
    if not count:
        return []
    ids = iter(tx.runs.reserve_ids(count))
    rows = [
        times.mark(_row(gap, next(ids), times.run, times.owner_id, times.version, now))
        for times in skipped
        for gap in times.gaps
    ]
    tx.runs.add_many(rows)
    return rows


def extend(tx: Tx, continued: Sequence[tuple[Run, Gap]]) -> list[Run]:
    """Write the rows of gaps with other gaps that continue them; returns the longer rows."""
    rows = [row._replace(planned_until=gap.last, instants=row.instants + gap.instants) for row, gap in continued]
    tx.runs.save_many(rows, grown=[gap.instants for _, gap in continued])
    return rows


def taken_ahead(tx: Tx, cadence: Cadence, now: Instant) -> frozenset[Instant]:
    """Instants that already ran although they lie in the future, which happens only after the clock was set back."""
    if cadence.planned_through >= cadence.ran_through:
        return frozenset()
    return tx.runs.taken(cadence.schedule_id, after=cadence.planned_through, until=max(now, cadence.planned_through))


def turned_back(tx: Tx, cadence: Cadence, rules: Rules, *, now: Instant) -> Cadence:
    """The plan from now on, after a clock that was ahead went back."""
    through = max(cadence.planned_through, cadence.ran_through)
    taken = tx.runs.taken(cadence.schedule_id, after=now, until=through)
    return turn_back(cadence, rules, now=now, taken=taken)


def void_ahead(tx: Tx, gaps: Iterable[Run], shorten: Callable[[Run], Run | None], *, now: Instant) -> set[int]:
    """Void gaps beyond now, and return the ids of those: one that starts after now is removed, one that reaches past
    now is shortened. `shorten` returns None if its past instants can no longer be counted; then it is kept."""
    void: set[int] = set()
    cut: list[Run] = []
    for row in gaps:
        if row.planned_at > now:
            void.add(row.run_id)
        elif (shorter := shorten(row)) is not None:
            cut.append(shorter)
    if void:
        tx.runs.remove_many(sorted(void))
    if cut:
        tx.runs.save_many(sorted(cut), grown=[0] * len(cut))
    return void


def shortened(row: Run, timing: Timing | None, now: Instant) -> Run | None:
    """A gap that ends now, with its instants counted on the timing it was written with; None if that is unknown. The
    first one counts as it is: a producer's is due when it is deployed, which is on no grid."""
    if timing is None:
        return None
    further = tally(timing, row.planned_at, now)
    return row._replace(planned_until=further.last, instants=further.count + 1)


def _count(decision: Decided) -> int:
    return len(decision.rows) + (decision.ask is not None)


def _with_rows(
    planned: Planned,
    decision: Decided,
    rows: Sequence[Start | Gap],
    ids: Iterator[int],
    gaps: list[Run],
    due: list[Due],
    now: Instant,
) -> Cadence:
    """The plan row with the ids of its ledger rows, which are added to `gaps` and `due`."""
    cadence = decision.after
    open_run_id, queued_run_id, last_row_id = cadence.open_run_id, cadence.queued_run_id, cadence.last_row_id
    version = cadence.version if decision.version is None else decision.version
    for row in rows:
        last_row_id = run_id = next(ids)
        if isinstance(row, Gap):
            gap = _row(row, run_id, planned.run, cadence.schedule_id, version, now)
            gaps.append(gap if decision.definition is None else gap._replace(definition=decision.definition))
            continue
        assert decision.start is not None  # noqa: S101 - what starts nothing has no rows that start
        if row.behind is None:
            open_run_id = run_id
        else:
            queued_run_id = run_id
        due.append(Due(decision.start(run_id, row), rests=row.behind is not None))
    if decision.ask is not None:
        open_run_id = next(ids)
        due.append(Due(decision.ask(open_run_id)))
    return with_rows(cadence, open_run_id, queued_run_id, last_row_id)


def _row(gap: Gap, run_id: int, kind: RunKind, owner_id: int, version: int, now: Instant) -> Run:
    return stretch_of(gap, run_id=run_id, kind=kind, schedule_id=owner_id, version=version, now=now)


def _grow(tx: Tx, planned: Planned, all_decided: Sequence[Decided]) -> dict[int, tuple[Run, Gap]]:
    """The plans whose newest row is continued by their next gap: that row, and the gap."""
    candidates = {
        decision.before.last_row_id: (decision, gap)
        for decision in all_decided
        if decision.before.last_row_id is not None
        and decision.rows
        and isinstance(gap := decision.rows[0], Gap)
        and planned.repeats(gap.reason)
    }
    if not candidates:
        return {}
    grown: dict[int, tuple[Run, Gap]] = {}
    for row in tx.runs.lock(list(candidates)).values():
        decision, gap = candidates[row.run_id]
        if _continues(gap, row, decision):
            grown[decision.before.schedule_id] = row, gap
    return grown


def _continues(gap: Gap, row: Run, decision: Decided) -> bool:
    """Whether a gap is of the same kind as the newest row, and nothing lies in between. If the clock was set back, runs
    may lie in between."""
    before = decision.before
    if (row.outcome, row.reason, row.blocked_by) != (gap.outcome, gap.reason, gap.blocked_by):
        return False
    if row.version != before.version or (row.planned_until or row.planned_at) != before.planned_through:
        return False
    if before.planned_through >= before.ran_through:
        return True
    return decision.timing is not None and next_after(decision.timing, before.planned_through) == gap.first


_unplanned: Final = attrgetter(*(column for column in Cadence._fields if column not in PLANNED_COLUMNS))
"""The columns that a ring leaves as they are, unless it ends or halts the plan."""
