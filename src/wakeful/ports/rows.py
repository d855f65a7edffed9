"""Finding the ledger row for a time, for owners of runs that are not schedules."""

from collections.abc import Iterator
from typing import Final

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant
from wakeful.ports.store import Tx

PAGE: Final = 200
PAGES_MAX: Final = 50


def row_at(tx: Tx, owner_id: int, at: Instant) -> Run | None:
    """The newest row that started by then, within `PAGES_MAX` pages."""
    return next((row for row in _rows(tx, owner_id) if row.planned_at <= at), None)


def _rows(tx: Tx, owner_id: int) -> Iterator[Run]:
    before: int | None = None
    for _ in range(PAGES_MAX):
        page = tx.runs.page(schedule_id=owner_id, before_id=before, limit=PAGE)
        yield from page
        if len(page) < PAGE:
            return
        before = page[-1].run_id
