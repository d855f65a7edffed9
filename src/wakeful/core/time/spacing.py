"""The shortest interval between two instants of a timing.

Theory of operation: a frequency limit must consider a whole cycle, not the next two instants, or `0,30 9 * * *` would
pass it for most of the day. The cycle is computed on the wall clock, not in real time: a daily 02:30 that a gap moves
to 03:00 has not become more frequent, and an hourly rhythm is an hour apart on every day. So the result follows from
the times of day (each to the next one) and from the shortest distance between two matching days (the last time of the
first day to the first time of the second).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Final, assert_never

from wakeful.core.time.instants import DAY, MINUTE, SECOND, Duration, format_duration
from wakeful.core.time.timing import AfterReset, Cron, Every, Manual, Once, Times, Timing, wall_pattern
from wakeful.core.time.wall_pattern import DayRule, WallPattern, next_day

# Weekdays and leap years repeat after 28 years; a century without its leap day can make the rarest days (a fifth Monday
# of February) wait for 40. A hundred years contain every pair of neighbours.
_CYCLE: Final = range(
    *(date(year, 1, 1).toordinal() - date(1970, 1, 1).toordinal() for year in (2000, 2100)),
)


def clamped(timing: Timing, every_min: Duration) -> tuple[Timing, str | None]:
    """Raise an interval below the minimum to the minimum, with a sentence that says so."""
    if not isinstance(timing, Every) or timing.every >= every_min:
        return timing, None
    warning = f"{format_duration(timing.every)} is below the minimum; {format_duration(every_min)} is used"
    return replace(timing, every=every_min, written=None), warning


def shortest_gap(timing: Timing) -> Duration | None:
    """The shortest interval between two successive instants, or None if there are never two."""
    match timing:
        case Every(every):
            return every
        case Cron(expression):
            return _shortest_cron_gap(expression)
        case Times():
            return _shortest_wall_gap(wall_pattern(timing))
        case Once() | AfterReset() | Manual():
            return None
        case _:
            assert_never(timing)


@lru_cache(maxsize=2048)
def _shortest_cron_gap(expression: str) -> Duration | None:
    return _shortest_wall_gap(wall_pattern(Cron(expression)))


def _shortest_wall_gap(pattern: WallPattern) -> Duration | None:
    gaps = []
    minutes, seconds = pattern.minutes, pattern.seconds
    if len(seconds) > 1:
        gaps.append(min(after - before for before, after in pairwise(seconds)) * SECOND)
    within_minute = (seconds[-1] - seconds[0]) * SECOND
    if len(minutes) > 1:
        gaps.append(min(after - before for before, after in pairwise(minutes)) * MINUTE - within_minute)
    days = _closest_days(pattern.days)
    if days is not None:
        gaps.append(days * DAY - (minutes[-1] - minutes[0]) * MINUTE - within_minute)
    return min(gaps, default=None)


def _closest_days(rule: DayRule | None) -> int | None:
    """The smallest number of days from one matching day to the next; None if there is only one."""
    if rule is None:
        return 1
    closest, day = None, next_day(rule, _CYCLE.start - 1)
    while day < _CYCLE.stop and closest != 1:
        following = next_day(rule, day)
        closest = following - day if closest is None else min(closest, following - day)
        day = following
    return closest
