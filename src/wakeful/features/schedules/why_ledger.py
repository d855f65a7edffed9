"""Finding the ledger row that covers an instant.

Theory of operation: rows of one schedule are written in time order, so ids and instants increase together, apart from
a few neighbours (a pause is written when it ends, after the manual runs made during it). The row is therefore found by
binary search over the ids, a few dozen index seeks however long the ledger is, plus some neighbours on both sides. Ids
are out of order over long stretches only if the clock was set back; only then are the rows scanned.
"""

from collections.abc import Sequence
from typing import Final

from wakeful.core.run.runs import OUTSIDE_PLAN, Run
from wakeful.core.time.instants import Instant
from wakeful.ports.store import Tx

NEIGHBOURS: Final = 32
WALK_STEP: Final = 500
WALK_MAX: Final = 40


def rows_around(tx: Tx, schedule_id: int, at: Instant) -> list[Run]:
    """Rows near an instant, newest first; any row that covers it is among them."""
    newest = tx.runs.page(schedule_id=schedule_id, limit=2 * NEIGHBOURS)
    if len(newest) < 2 * NEIGHBOURS or newest[-NEIGHBOURS].planned_at < at:
        return newest
    low, high = 0, newest[-1].run_id  # the newest row below `low` starts by `at`, those from `high` on do not
    while low < high:
        middle = (low + high + 1) // 2
        below = tx.runs.page(schedule_id=schedule_id, before_id=middle, limit=1)
        if not below or below[0].planned_at <= at:
            low = middle
        else:
            high = below[0].run_id
    return _both_sides(tx, schedule_id, low, newest[0].run_id)


def _both_sides(tx: Tx, schedule_id: int, border: int, last_id: int) -> list[Run]:
    """Some rows before an id and some from it on."""
    older = tx.runs.page(schedule_id=schedule_id, before_id=border, limit=NEIGHBOURS)
    newer: list[Run] = []
    step = NEIGHBOURS
    while len(newer) < NEIGHBOURS and border + step // 2 <= last_id:
        page = tx.runs.page(schedule_id=schedule_id, before_id=border + step, limit=step)
        newer = [row for row in page if row.run_id >= border]
        step *= 2
    return newer[-NEIGHBOURS:] + older


def walk(tx: Tx, schedule_id: int) -> list[Run]:
    """All rows, newest first, up to a limit: for a ledger written while the clock was set back."""
    rows: list[Run] = []
    before_id: int | None = None
    for _ in range(WALK_MAX):
        page = tx.runs.page(schedule_id=schedule_id, before_id=before_id, limit=WALK_STEP)
        rows += page
        if len(page) < WALK_STEP:
            break
        before_id = page[-1].run_id
    return rows


def covering(rows: Sequence[Run], start: Instant, end: Instant) -> Run | None:
    """The row of the first planned instant in [start, end), or None."""
    candidates = [
        row for row in rows if row.trigger not in OUTSIDE_PLAN and row.planned_at < end and reach(row) >= start
    ]
    return min(candidates, key=lambda row: (row.planned_at, row.run_id), default=None)


def manual_in(rows: Sequence[Run], start: Instant, end: Instant) -> Run | None:
    """A manual run requested in [start, end)."""
    return next((row for row in rows if row.trigger == "manual" and start <= row.planned_at < end), None)


def in_progress_at(rows: Sequence[Run], at: Instant) -> Run | None:
    """The run that had started and not ended at an instant."""
    for row in rows:
        if row.started_at is not None and row.started_at <= at and (row.ended_at is None or row.ended_at > at):
            return row
    return None


def reach(row: Run) -> Instant:
    """The last instant a row covers."""
    return row.planned_at if row.planned_until is None else row.planned_until
