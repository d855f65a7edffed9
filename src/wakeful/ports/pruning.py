"""Finding the ledger rows to delete. The search is the same in every store, each has its own queries.

Ids ascend with time, so no index is needed: the search continues where the last one stopped, and wraps around once.

A row is deleted when it is old by both of its times, when it was due and when it ended: a clock that was wrong for a
while writes only one of them. If both were written by a clock that was not set, the row does not show its age; it is
deleted together with the next row that does.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from wakeful.core.time.instants import Instant
from wakeful.ports.database import NO_ID

# How many rows one pruning step reads at a time, and how many it reads in total: it holds the writer for some
# milliseconds.
PRUNE_WINDOW: Final = 1_000
PRUNE_EXAMINED_MAX: Final = 10_000

Window: TypeAlias = Sequence[tuple[int, bool | int, bool | int, Instant]]
"""Rows in id order: id, whether it may be deleted, whether the clock was set when it was written, when due."""


class Ledger(NamedTuple):
    """The queries the search needs from a store."""

    window: Callable[[int, int], Window]
    """Up to PRUNE_WINDOW rows after one id and up to another."""

    newest_due_at: Callable[[], Instant]
    """When the newest row was due."""


def doomed(ledger: Ledger, start: int, *, before: Instant, limit: int) -> tuple[list[int], int]:
    """Ids of rows to delete, and the id after which to continue next time."""
    found, cursor, examined = _search(ledger, start, NO_ID, before, limit, PRUNE_EXAMINED_MAX)
    if len(found) < limit and examined < PRUNE_EXAMINED_MAX and start:
        more, cursor, _ = _search(ledger, 0, start, before, limit - len(found), PRUNE_EXAMINED_MAX - examined)
        found += more
    return found, cursor


def _search(
    ledger: Ledger, cursor: int, until: int, before: Instant, limit: int, examined_max: int
) -> tuple[list[int], int, int]:
    """Ids to delete after the cursor; how far the search got (0: to the end), and how many rows it read."""
    found: list[int] = []
    examined = 0
    while examined < examined_max and len(found) < limit:
        window = ledger.window(cursor, until)
        examined += len(window)
        dated_id = max((run_id for run_id, is_prunable, is_dated, _ in window if is_prunable and is_dated), default=0)
        for run_id, is_prunable, is_dated, _ in window:
            cursor = run_id
            if is_prunable and (is_dated or run_id < dated_id):
                found.append(run_id)
                if len(found) == limit:
                    break
        is_end = len(window) < PRUNE_WINDOW
        if len(found) < limit and (is_end or _is_young(ledger, window, before)):
            return found, 0, examined
    return found, cursor, examined


def _is_young(ledger: Ledger, window: Window, before: Instant) -> bool:
    """Whether nothing in the window, and so nothing after it, can have ended before `before`. A row ends after it was
    due, and rows are written in the order of time, unless the clock went back: then newer rows are due before older
    ones, and the search continues.
    """
    if any(is_prunable or due_at < before for _, is_prunable, _, due_at in window):
        return False
    newest_due_at = ledger.newest_due_at()
    return all(due_at <= newest_due_at for _, _, _, due_at in window)
