"""Searching the ledger: by text, time, outcome and schedule, and a summary since a given time.

Rows are read newest first, in steps, and a request reads a bounded number of them: if it found too little, its cursor
continues. A time is found by bisecting the ids, because they grow with time.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from wakeful.core.returned import At, RunCursor, kind_of_object
from wakeful.core.run.runs import ERRORS, Outcome, Run
from wakeful.core.time.instants import INSTANT_MAX, Instant
from wakeful.features.schedules import queries
from wakeful.features.schedules.run_views import RUN, RunView
from wakeful.ports.names import names_of
from wakeful.ports.store import Tx

STEP: Final = 250
READ_MAX: Final = 2_000
"""How many rows one request reads."""
SLACK: Final = 500
"""How many more rows are read beyond a time's id: a run may start long after its row was written."""
HAPPENED_MAX: Final = 200


class Search(NamedTuple):
    """Which rows to find."""

    slug: str | None = None
    outcome: Outcome | None = None
    contains: str = ""
    since: Instant = 0
    until: Instant = INSTANT_MAX

    @property
    def is_plain(self) -> bool:
        """Whether an index alone finds the rows."""
        return not self.contains and self.since == 0 and self.until == INSTANT_MAX


class SearchPage(NamedTuple):
    """A page of the ledger, newest first."""

    runs: list[Annotated[RunView, kind_of_object(RUN)]]
    next: Annotated[RunCursor, "cursor of the next page; null on the last page"]


def search(tx: Tx, wanted: Search, *, limit: int, before_id: int | None) -> SearchPage:
    """Rows that match, newest first."""
    if wanted.is_plain:
        runs = queries.runs(tx, wanted.slug, limit=limit + 1, before_id=before_id, outcome=wanted.outcome)
        return SearchPage(runs[:limit], runs[limit - 1].run_id if len(runs) > limit else None)
    owner_id = None if wanted.slug is None else queries.recorded_id(tx, wanted.slug)
    before = before_id if before_id is not None or wanted.until == INSTANT_MAX else _id_after(tx, wanted.until)
    matching: list[Run] = []
    for _ in range(READ_MAX // STEP):
        rows = tx.runs.page(schedule_id=owner_id, before_id=before, limit=STEP, outcome=wanted.outcome)
        names = names_of(tx, {row.schedule_id for row in rows})
        for row in rows:
            if _matches(row, names[row.schedule_id], wanted):
                matching.append(row)
                if len(matching) == limit:
                    return SearchPage(queries.run_views(tx, matching), row.run_id)
        is_past = all(happened_at(row) < wanted.since for row in rows)
        if len(rows) < STEP or is_past:
            return SearchPage(queries.run_views(tx, matching), None)
        before = rows[-1].run_id
    return SearchPage(queries.run_views(tx, matching), before)


def happened_at(run: Run) -> Instant:
    """When a row happened: its start, or when it was due."""
    return run.due_at if run.started_at is None else run.started_at


def _matches(run: Run, name: str, wanted: Search) -> bool:
    if not wanted.since <= happened_at(run) < wanted.until:
        return False
    text = wanted.contains.casefold()
    return not text or any(text in (part or "").casefold() for part in (name, run.error, run.reason, run.result))


def _id_after(tx: Tx, at: Instant) -> int | None:
    """An id above every row that happened before `at`."""
    newest = next(iter(tx.runs.page(limit=1)), None)
    low, high = 0, 0 if newest is None else newest.run_id + 1
    while high - low > 1:
        middle = (low + high) // 2
        row = next(iter(tx.runs.page(before_id=middle + 1, limit=1)), None)
        if row is None or happened_at(row) < at:
            low = middle
        else:
            high = middle
    return high + SLACK


@dataclass(frozen=True, slots=True)
class Happened:
    """What happened since the last visit."""

    since: At
    counts: Annotated[Mapping[Outcome, int], "instants by outcome, among the newest 200 rows"]
    failed: Annotated[int, "how many of them failed"]
    is_cut: Annotated[bool, "whether there was more than is counted"]
    runs: Annotated[list[Annotated[RunView, kind_of_object(RUN)]], "the newest that failed or have a reply"]


def happened_since(tx: Tx, since: Instant, *, listed_max: int) -> Happened:
    """Summarize what happened since `since`. Reads the newest rows only, so the cost is the same for any time."""
    rows = tx.runs.page(limit=HAPPENED_MAX)
    recent = [row for row in rows if (row.ended_at or happened_at(row)) >= since and not row.is_open]
    counts: Counter[Outcome] = Counter()
    for row in recent:
        counts[row.outcome] += row.instants
    listed = [row for row in recent if row.outcome in ERRORS or '"reply"' in (row.result or "")]
    failed = sum(counts[outcome] for outcome in ERRORS)
    is_cut = len(recent) == HAPPENED_MAX
    return Happened(since, counts, failed, is_cut, queries.run_views(tx, listed[:listed_max]))
