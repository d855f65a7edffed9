"""Cron fields as other schedulers read them: parsed here, so that our own parser is compared, not trusted."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final, Literal

from wakeful.integrations.imports.entries import refuse
from wakeful.integrations.imports.wall_rules import Gap, WallRules

NAMED: Final[Mapping[str, str]] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_SECOND: Final = ("second", 0, 59, ())
_TERM: Final = re.compile(r"(\*|[A-Za-z0-9]+)(?:-([A-Za-z0-9]+))?(?:/(\d+))?")


@dataclass(frozen=True, slots=True)
class CronSets:
    """The fields of an expression as sets."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday 0
    is_either_day: bool
    is_rhythm: bool  # a `*` begins the minute or the hour field

    def matches_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_date, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_date or by_weekday if self.is_either_day else by_date and by_weekday

    @property
    def times(self) -> tuple[int, ...]:
        """The matching seconds of a day."""
        return tuple(
            hour * 3600 + minute * 60 + second
            for hour in sorted(self.hours)
            for minute in sorted(self.minutes)
            for second in sorted(self.seconds)
        )


@lru_cache(maxsize=512)
def cron_sets(expression: str, *, has_open_steps: bool = False) -> CronSets:
    """Parse five fields, or six with the second in front. `has_open_steps`: `5/15` means `5-59/15`."""
    parts = expression.split()
    fields = (_SECOND, *_FIELDS) if len(parts) == 6 else _FIELDS
    if len(parts) != len(fields):
        refuse(f"'{expression}' has {len(parts)} fields, not five")
    sets = [
        _field(part, name, low, high, names, has_open_steps)
        for part, (name, low, high, names) in zip(parts, fields, strict=True)
    ]
    seconds = sets.pop(0) if len(parts) == 6 else frozenset({0})
    minute, hour, day, _, weekday = parts[-5:]
    return CronSets(
        seconds,
        sets[0],
        sets[1],
        sets[2],
        sets[3],
        frozenset(number % 7 for number in sets[4]),
        not (_is_star(day) or _is_star(weekday)),
        _is_star(minute) or _is_star(hour),
    )


@lru_cache(maxsize=512)
def debian_times(expression: str, zone: str) -> WallRules:
    """The times of an expression under the rules of Debian's cron and cronie: fixed times are made up after a gap and
    run once when repeated, those with a `*` in the minute or the hour follow real time."""
    sets = cron_sets(expression)
    return WallRules(
        zone, sets.matches_day, sets.times, "skip" if sets.is_rhythm else "run", "twice" if sets.is_rhythm else "once"
    )


def plain_times(expression: str, zone: str, *, gap: Gap, repeat: Literal["once", "twice"]) -> WallRules:
    """The times of an expression under simpler rules, the same for all expressions."""
    sets = cron_sets(expression, has_open_steps=True)
    return WallRules(zone, sets.matches_day, sets.times, gap, repeat)


def _is_star(part: str) -> bool:
    return part.startswith(("*", "?"))


def _field(part: str, name: str, low: int, high: int, names: tuple[str, ...], has_open_steps: bool) -> frozenset[int]:
    values: set[int] = set()
    for term in part.split(","):
        read = _TERM.fullmatch("*" if term == "?" and name.startswith("day") else term)
        if read is None:
            refuse(f"the {name} '{term}' is not valid")
        first, last, step = read[1], read[2], int(read[3] or 1)
        if first == "*":
            start, end = low, high
        else:
            start = _number(first, names, name)
            end = start if last is None else _number(last, names, name)
            if last is None and read[3] is not None:
                if not has_open_steps:
                    refuse(f"the {name} '{term}' has a step without a range; write {first}-{high}/{read[3]}")
                end = high
        if step == 0 or not low <= start <= end <= high:
            refuse(f"the {name} '{term}' is not valid: write {low} to {high}, the smaller first")
        values.update(range(start, end + 1, step))
    return frozenset(values)


def _number(text: str, names: tuple[str, ...], name: str) -> int:
    if text.isdecimal() and len(text) <= 4:
        return int(text)
    if text.lower() not in names:
        refuse(f"the {name} '{text}' is not valid")
    return names.index(text.lower()) + (1 if len(names) == 12 else 0)
