"""Excluded days: local days on which a schedule does not run.

Theory of operation: the days are numbers since 1970-01-01, sorted, on the wall clock of one zone. An instant is
excluded if the zone's clock shows one of these days at that instant. A zone is a sequence of segments of constant
offset (`zones`), so inside a segment a day is a range of instants, and everything is found with an addition and a
binary search. A clock that is set back across midnight shows a day twice; each pass is a separate range.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

from wakeful.core.time.instants import DAY, SECOND, Instant
from wakeful.core.time.zones import segment_at

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class ExcludedDays:
    """At least one day, sorted, in a zone."""

    zone: str
    days: tuple[int, ...]


def day_number(day: date) -> int:
    return day.toordinal() - _EPOCH_ORDINAL


def local_day(zone: str, t: Instant) -> date:
    """The day that the zone's clock shows."""
    return date.fromordinal((t + segment_at(zone, t // SECOND).offset * SECOND) // DAY + _EPOCH_ORDINAL)


def is_excluded(excluded: ExcludedDays, t: Instant) -> bool:
    """Whether the instant is on an excluded day."""
    return _is_among(excluded.days, (t + segment_at(excluded.zone, t // SECOND).offset * SECOND) // DAY)


def end_after(excluded: ExcludedDays, t: Instant) -> Instant:
    """For an excluded instant: a later one up to which (exclusive) all are excluded; the next clock change at most."""
    segment = segment_at(excluded.zone, t // SECOND)
    offset = segment.offset * SECOND
    day = (t + offset) // DAY + 1
    while _is_among(excluded.days, day):
        day += 1
    return min(day * DAY - offset, segment.end * SECOND)


def start_before(excluded: ExcludedDays, t: Instant) -> Instant:
    """For an excluded instant: one not later from which on all are excluded; the last clock change at least."""
    segment = segment_at(excluded.zone, t // SECOND)
    offset = segment.offset * SECOND
    day = (t + offset) // DAY
    while _is_among(excluded.days, day - 1):
        day -= 1
    return max(day * DAY - offset, segment.start * SECOND)


def ranges(excluded: ExcludedDays, after: Instant, until: Instant) -> Iterator[tuple[Instant, Instant]]:
    """The instants in (after, until] on excluded days as ranges (first, last), in order; adjacent days are one."""
    days = excluded.days
    start, end = max(after + 1, (days[0] - 2) * DAY), min(until + 1, (days[-1] + 3) * DAY)
    first: Instant | None = None
    last = 0
    while start < end:
        segment = segment_at(excluded.zone, start // SECOND)
        stop, offset = min(end, segment.end * SECOND), segment.offset * SECOND
        for day in days[bisect_left(days, (start + offset) // DAY) : bisect_right(days, (stop - 1 + offset) // DAY)]:
            opens, closes = max(start, day * DAY - offset), min(stop, (day + 1) * DAY - offset)
            if first is not None and opens > last + 1:
                yield first, last
                first = None
            first, last = opens if first is None else first, closes - 1
        start = stop
    if first is not None:
        yield first, last


def _is_among(days: tuple[int, ...], day: int) -> bool:
    at = bisect_left(days, day)
    return at < len(days) and days[at] == day
