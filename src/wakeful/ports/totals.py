"""Statistics of the ledger that do not read all of it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from wakeful.core.run.runs import Outcome
from wakeful.core.time.instants import Duration, Instant


class LedgerCounts(NamedTuple):
    """Statistics of one schedule since some time."""

    by_outcome: Mapping[Outcome, int]  # in instants: a stretch counts for as many as it covers
    durations: Sequence[Duration]  # of closed runs that started, newest first, limited
    last_outcomes: Sequence[Outcome]  # of closed runs that started, newest first, limited
    tokens: int | None = None  # of all runs that reported any; None if none did
    cost: float | None = None  # in US dollars, likewise


class Totals(Protocol):
    """Totals over the ledger, up to a run id."""

    def tallied(self, schedule_id: int, *, since: Instant, limit: int) -> LedgerCounts:
        """Counts, tokens and cost since a time, and the durations and outcomes of the latest runs, at most `limit`.

        Without a time (0) the cost does not grow with the ledger; with one, it grows with what was asked for."""
        ...

    def advance(self, *, now: Instant, limit: int) -> int:
        """Add up the next rows of the ledger, at most `limit`; returns how many."""
        ...
