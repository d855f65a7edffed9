"""The laws of tiling for what is not a schedule: the rows of a producer, and the times of day of a slot.

A row covers what lies between its first and its last planned time. A `Line` keeps the rows of one owner in order, as
they are after each commit, and says whether two of them cover one instant (L2), and whether an instant up to where
everything is decided is covered by none (L1).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.timing import Timing, latest_until, next_after
from worlds.laws import describe

TRIED_AGAIN = ("failed", "timedOut", "unknown")
"""What ended like this is tried again: by itself if it could not be reached, or when a person lets it go on."""


class Span(NamedTuple):
    """What a row covers."""

    first: Instant
    last: Instant
    run_id: int
    is_tried_again: bool
    reach: Instant  # up to where it serves what was due with it


class Line:
    """The rows of one producer or slot."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._spans: list[Span] = []
        self._by_id: dict[int, Span] = {}
        self._checked = 0  # everything up to here is covered

    def forget(self, run_id: int) -> None:
        """The row is gone: it was pruned, or voided because the clock went back."""
        span = self._by_id.pop(run_id, None)
        if span is not None:
            del self._spans[bisect_left(self._spans, span)]

    def ahead(self, now: Instant) -> list[int]:
        """The rows that reach beyond now: they may be voided when the clock goes back."""
        return [span.run_id for span in self._spans if span.reach > now]

    def note(
        self, row: Run, *, last: Instant | None = None, reach: Instant = 0, grid: Timing | None = None
    ) -> Iterator[str]:
        """L2: an instant has one row, besides those after which it is tried again. `grid`: what longer rows count."""
        self.forget(row.run_id)
        last = (row.planned_until or row.planned_at) if last is None else last
        span = Span(row.planned_at, last, row.run_id, row.outcome in TRIED_AGAIN, max(last, reach))
        place = bisect_left(self._spans, span)
        if not span.is_tried_again:
            for other in self._beside(place, span):
                first, end = max(other.first, span.first), min(other.last, span.last)
                is_counted = other[:2] == span[:2] or grid is None or (next_after(grid, first - 1) or end + 1) <= end
                if first <= end and is_counted:
                    at = format_instant(first)
                    yield f"L2 {self.name}: {at} is covered by run {other.run_id} and again by {describe(row)}"
        self._spans.insert(place, span)
        self._by_id[row.run_id] = span

    def is_covered(self, timing: Timing, *, through: Instant, since: Instant) -> Iterator[str]:
        """L1: each instant up to `through`, where all are decided, is covered by a row. Before `since` rows may be gone
        or instants were not planned yet."""
        at = next_after(timing, max(min(self._checked, through), since))
        while at is not None and at <= through:
            last = self._covered_until(at)
            if last is None:
                decided = format_instant(through)
                yield f"L1 {self.name}: no row covers {format_instant(at)}, and all is decided up to {decided}"
                last = at
            at = next_after(timing, last)
        self._checked = through

    def _beside(self, place: int, span: Span) -> Iterator[Span]:
        """The nearest rows before and after a place that are final, as far as they may overlap."""
        for other in reversed(self._spans[max(0, place - 50) : place]):
            if not other.is_tried_again:
                yield other
                break
        for other in self._spans[place : place + 50]:
            if not other.is_tried_again:
                yield other
                break

    def _covered_until(self, at: Instant) -> Instant | None:
        end = bisect_right(self._spans, at, key=lambda span: span.first)
        return max((span.reach for span in self._spans[max(0, end - 50) : end] if at <= span.reach), default=None)


def is_on_grid(timing: Timing, row: Run) -> bool:
    """Whether a row stands for an instant of the timing, and not for something that was asked for."""
    return row.trigger != "manual" or latest_until(timing, row.planned_at, row.planned_at - 1) == row.planned_at
