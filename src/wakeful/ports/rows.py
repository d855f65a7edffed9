"""The ledger of owners of runs that are not schedules: `slot:NAME` and `workflow:ID`."""

from collections.abc import Iterator
from typing import Any, Final

from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant, format_instant, format_optional
from wakeful.ports.owners import Owners
from wakeful.ports.store import Tx

PAGE: Final = 200
PAGES_MAX: Final = 50


def begin_why(
    tx: Tx, kind: str, name: str, *, is_known: bool, at: Instant | None, now: Instant
) -> tuple[dict[str, Any], Run | None]:
    """The facts that an explanation of `kind:name` starts with, and the row of a past `at`. Raises `NotFound` if it
    neither exists nor has an entry in the ledger."""
    owner = tx[Owners].find(f"{kind}:{name}")
    if not is_known and owner is None:
        raise NotFound(f"there is no {kind} {shown(name)}")
    facts: dict[str, Any] = {"slug": f"{kind}:{name}", "at": format_optional(at)}
    if at is None or at > now:
        return facts, None
    row = None if owner is None else row_at(tx, owner, at)
    facts["run"] = None if row is None else _facts(row)
    return facts, row


def at_text(at: Instant | None) -> str:
    """A time as text for a sentence."""
    return "?" if at is None else format_instant(at)


def row_at(tx: Tx, owner_id: int, at: Instant) -> Run | None:
    """The newest row planned no later than `at`, searched within `PAGES_MAX` pages."""
    return next((row for row in _rows(tx, owner_id) if row.planned_at <= at), None)


def _rows(tx: Tx, owner_id: int) -> Iterator[Run]:
    before: int | None = None
    for _ in range(PAGES_MAX):
        page = tx.runs.page(schedule_id=owner_id, before_id=before, limit=PAGE)
        yield from page
        if len(page) < PAGE:
            return
        before = page[-1].run_id


def _facts(row: Run) -> dict[str, Any]:
    return {"runId": str(row.run_id), "outcome": row.outcome, "reason": row.reason, "error": row.error}
