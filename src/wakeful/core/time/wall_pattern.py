"""Wall patterns: which times of the wall clock match, by day, minute of the day and second of the minute.

Theory of operation: a pattern knows no zone and no instants, only wall times, as whole seconds since 1970 on the wall.
A wall time matches if its day, its minute of the day and its second all match. The minutes of the day are one sorted
array (so `0,30 9-17` needs no nested search), the days of a month are one bit mask. There are only 28 shapes of months
(7 first weekdays by 4 lengths), so all masks are built with the pattern, and a day costs a table lookup.

This supports three queries, none of which visits single matches: the next match after a wall time, the last one until
it, and how many lie between two (O(months)).

`makes_up` and `runs_once` say what the pattern does at a clock change; `wallclock` applies them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import date
from typing import Final

from wakeful.core.time.zones import DAY_SECONDS

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
DAY_MIN: Final = -2
DAY_MAX: Final = date(9999, 12, 31).toordinal() - _EPOCH_ORDINAL
WALL_MIN: Final = DAY_MIN * DAY_SECONDS - 1
"""Returned by `last_wall` if nothing matches: earlier than every wall time."""
WALL_MAX: Final = (DAY_MAX + 1) * DAY_SECONDS
"""Returned by `next_wall` if nothing matches: later than every wall time."""

_MONTH_DAYS: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class DayRule:
    """Which days match: `months` has bit m set for month m, `masks[shape]` bit d for day d of a month of that shape."""

    months: int
    masks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WallPattern:
    """The wall times that match; `days` None means every day.

    `makes_up`: a match inside a gap runs right after it. `runs_once`: in a repeated period only the first pass
    counts.
    """

    days: DayRule | None
    minutes: array[int]
    seconds: tuple[int, ...]
    makes_up: bool
    runs_once: bool


def next_wall(pattern: WallPattern, wall: int) -> int:
    """The first match strictly after `wall`, or WALL_MAX."""
    day, moment = divmod(wall, DAY_SECONDS)
    days = pattern.days
    if days is None or is_day(days, day):
        minute, second = divmod(moment, 60)
        minutes, seconds = pattern.minutes, pattern.seconds
        at = bisect_left(minutes, minute)
        if at < len(minutes) and minutes[at] == minute:
            if second < seconds[-1]:
                return wall - second + seconds[bisect_right(seconds, second)]
            at += 1
        if at < len(minutes):
            return day * DAY_SECONDS + minutes[at] * 60 + seconds[0]
    day = day + 1 if days is None else next_day(days, day)
    return day * DAY_SECONDS + pattern.minutes[0] * 60 + pattern.seconds[0] if day <= DAY_MAX else WALL_MAX


def last_wall(pattern: WallPattern, wall: int) -> int:
    """The last match at or before `wall`, or WALL_MIN."""
    day, moment = divmod(wall, DAY_SECONDS)
    days = pattern.days
    if days is None or is_day(days, day):
        minute, second = divmod(moment, 60)
        minutes, seconds = pattern.minutes, pattern.seconds
        at = bisect_right(minutes, minute) - 1
        if at >= 0 and minutes[at] == minute:
            if second >= seconds[0]:
                return wall - second + seconds[bisect_right(seconds, second) - 1]
            at -= 1
        if at >= 0:
            return day * DAY_SECONDS + minutes[at] * 60 + seconds[-1]
    day = day - 1 if days is None else last_day(days, day - 1)
    return day * DAY_SECONDS + pattern.minutes[-1] * 60 + pattern.seconds[-1] if day >= DAY_MIN else WALL_MIN


def count_walls(pattern: WallPattern, start: int, end: int) -> int:
    """How many matches lie in [start, end)."""
    (first, start_moment), (last, end_moment) = divmod(start, DAY_SECONDS), divmod(end, DAY_SECONDS)
    days = pattern.days
    whole = last - first if days is None else _count_days(days, first, last)
    count = whole * len(pattern.minutes) * len(pattern.seconds)
    if days is None or is_day(days, first):
        count -= _rank(pattern, start_moment)
    if days is None or is_day(days, last):
        count += _rank(pattern, end_moment)
    return count


def is_day(rule: DayRule, day: int) -> bool:
    """Whether the day (counted from 1970-01-01) matches."""
    if not DAY_MIN <= day <= DAY_MAX:
        return False
    on = date.fromordinal(day + _EPOCH_ORDINAL)
    return bool(_mask(rule, on.year, on.month) >> on.day & 1)


def next_day(rule: DayRule, day: int) -> int:
    """The first matching day strictly after `day`, or one beyond DAY_MAX."""
    if day >= DAY_MAX:
        return DAY_MAX + 1
    on = date.fromordinal(max(day, DAY_MIN - 1) + 1 + _EPOCH_ORDINAL)
    year, month = on.year, on.month
    mask = _mask(rule, year, month) >> on.day << on.day
    while not mask:
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        if year > 9999:
            return DAY_MAX + 1
        mask = _mask(rule, year, month)
    return date(year, month, 1).toordinal() - _EPOCH_ORDINAL + (mask & -mask).bit_length() - 2


def last_day(rule: DayRule, day: int) -> int:
    """The last matching day at or before `day`, or one before DAY_MIN."""
    if day < DAY_MIN:
        return DAY_MIN - 1
    on = date.fromordinal(min(day, DAY_MAX) + _EPOCH_ORDINAL)
    year, month = on.year, on.month
    mask = _mask(rule, year, month) & ((2 << on.day) - 1)
    while not mask:
        year, month = (year, month - 1) if month > 1 else (year - 1, 12)
        if year < 1969:
            return DAY_MIN - 1
        mask = _mask(rule, year, month)
    return date(year, month, 1).toordinal() - _EPOCH_ORDINAL + mask.bit_length() - 2


def month_shape(first_weekday: int, length: int) -> int:
    """The index into `DayRule.masks` of a month that starts on a weekday (Monday 0) and has this many days."""
    return (length - 28) * 7 + first_weekday


def _mask(rule: DayRule, year: int, month: int) -> int:
    if not rule.months >> month & 1:
        return 0
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return rule.masks[month_shape(date(year, month, 1).weekday(), 29 if leap else _MONTH_DAYS[month])]


def _count_days(rule: DayRule, first: int, last: int) -> int:
    """How many days of [first, last) match."""
    first, last = max(first, DAY_MIN), min(last, DAY_MAX + 1)
    if first >= last:
        return 0
    begin, end = date.fromordinal(first + _EPOCH_ORDINAL), date.fromordinal(last - 1 + _EPOCH_ORDINAL)
    months = range(begin.year * 12 + begin.month - 1, end.year * 12 + end.month)
    count = sum(_mask(rule, index // 12, index % 12 + 1).bit_count() for index in months)
    before = _mask(rule, begin.year, begin.month) & ((1 << begin.day) - 1)
    after = _mask(rule, end.year, end.month) >> (end.day + 1)
    return count - before.bit_count() - after.bit_count()


def _rank(pattern: WallPattern, moment: int) -> int:
    """How many matches of a matching day lie before the given second of the day."""
    minute, second = divmod(moment, 60)
    at = bisect_left(pattern.minutes, minute)
    rank = at * len(pattern.seconds)
    if at < len(pattern.minutes) and pattern.minutes[at] == minute:
        rank += bisect_left(pattern.seconds, second)
    return rank
