"""Cron expressions: text to fields to a pattern of wall times.

Theory of operation: cronsim parses the grammar (numbers, names, ranges, steps, lists, `L`, `LW`, `5L`, `MON#2`) into
sets and refuses what is out of range. This module adds what it lacks: the `@` names, `?`, ranges of one value with a
step (`7-7/2` is 7), and messages that say which field is wrong and what to write. Its iterator is not used: the sets
are compiled once into a `WallPattern`, which finds the next match several times faster and can count matches without
visiting them.

Five fields are minute, hour, day of month, month, day of week; six have the second in front. If both day fields are
restricted, a day matches by either of them; a field that begins with `*` (also `*/2`) does not count as restricted, so
then both must match, as in Debian's cron. The definition keeps the expression as written.

Daylight saving, after Debian's cron, decided by how the fields are written:

- *Hours named* (the hour field has no `*`, and does not cover all 24): the owner means times of day. What a gap leaves
  out runs once, right after it. This also applies to `*/20 2 * * *`, which would otherwise not run that day.
- *Fixed times* (hours named, and no `*` in the minute field either): the repeated hour counts once, the first time.
- Everything else is a rhythm and follows real time: both passes of a repeated hour, nothing for a gap. `*/20 1 * * *`
  is a rhythm within an hour, so it runs in both passes.

The second field does not matter for this: `*/10 30 2 * * *` names the time 02:30.

Other schedulers have other rules. A definition that comes from one says so: `inGap` (run once after the gap, or skip)
and `inRepeat` (run in the first pass only, or in both) replace what follows from the fields.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from cronsim import CronSim, CronSimError

from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.time.wall_pattern import DAY_MAX, DayRule, WallPattern, month_shape, next_day

InGap: TypeAlias = Literal["run", "skip"]
InRepeat: TypeAlias = Literal["once", "twice"]

NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

EXPRESSION_MAX: Final = 1_000
"""Characters. A list of every minute and every hour takes 240."""

LAST: Final = 6
"""In `CronFields.nth_weekdays`: the last such weekday of the month (1 to 5 count from its start)."""

_FIELDS: Final = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L (last day) or LW (last weekday)",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT (0 and 7 are Sunday), 5L (last Friday) or MON#2 (second Monday)",
}
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS: Final = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CronFields:
    """The parsed fields of an expression, every set sorted. Weekdays count from Monday 0."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    last_day: bool
    last_weekday: bool
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    nth_weekdays: tuple[tuple[int, int], ...]
    either_day: bool
    hours_named: bool
    minutes_named: bool

    @property
    def any_day_of_month(self) -> bool:
        """Whether the day-of-month field matches every day."""
        return len(self.days) == 31

    @property
    def any_weekday(self) -> bool:
        """Whether the day-of-week field matches every day."""
        return len(self.weekdays) == 7


def parse_cron(expression: str, field: str = "expression") -> CronFields:
    """Parse an expression; refused with the field and the cure if it is invalid or never matches."""
    try:
        return _parsed(expression)
    except Invalid as invalid:
        raise Invalid(*(FieldError(field, error.message) for error in invalid.errors)) from None


@lru_cache(maxsize=2048)
def _parsed(expression: str) -> CronFields:
    """The fields of an expression, wherever it stands."""
    parts = _parts(expression)
    for name, part in zip(_FIELDS, parts, strict=True):
        _refuse_unsupported(name, part)
    try:
        sets = CronSim(
            " ".join(_without_single_ranges(name, part) for name, part in zip(_FIELDS, parts, strict=True)), _ANY_TIME
        )
    except CronSimError as error:
        name = str(error).removeprefix("Bad ")
        part = dict(zip(_FIELDS, parts, strict=True))[name]
        if name == "day-of-month" and _is_day_of_some_month(part):
            refuse("", f"'{expression}' never matches: none of its months has day {part}; write a day they have")
        refuse("", f"{name} '{part}' is not valid in '{expression}'; write {_FIELDS[name]}")
    fields = _fields(sets, parts)
    if next_day(_day_rule(fields), 0) > DAY_MAX:
        refuse("", f"'{expression}' never matches any day; write a day that its months have")
    return fields


@lru_cache(maxsize=2048)
def cron_pattern(expression: str, in_gap: InGap | None = None, in_repeat: InRepeat | None = None) -> WallPattern:
    """The pattern of wall times that an expression matches."""
    fields = parse_cron(expression)
    is_fixed = fields.hours_named and fields.minutes_named
    every_day = fields.any_day_of_month and fields.any_weekday and len(fields.months) == 12
    return WallPattern(
        days=None if every_day else _day_rule(fields),
        minutes=array("H", (hour * 60 + minute for hour in fields.hours for minute in fields.minutes)),
        seconds=fields.seconds,
        makes_up=fields.hours_named if in_gap is None else in_gap == "run",
        runs_once=is_fixed if in_repeat is None else in_repeat == "once",
    )


def _parts(expression: str) -> list[str]:
    """Always six fields in upper case; `@` names expanded, `?` as `*`."""
    if len(expression) > EXPRESSION_MAX:
        refuse("", f"has {len(expression)} characters; write at most {EXPRESSION_MAX}")
    text = expression.strip()
    if text.startswith("@"):
        if text.lower() not in NAMED:
            refuse("", f"'{expression}' is not a known name; write {', '.join(NAMED)} or five fields")
        text = NAMED[text.lower()]
    parts = text.upper().split()
    if len(parts) not in (5, 6):
        cure = "write five (minute hour day month weekday) or six with the second in front"
        refuse("", f"'{expression}' has {len(parts)} field{'s' * (len(parts) != 1)}; {cure}")
    if len(parts) == 5:
        parts.insert(0, "0")
    for day_field in (3, 5):
        parts[day_field] = "*" if parts[day_field] == "?" else parts[day_field]
    return parts


def _refuse_unsupported(name: str, part: str) -> None:
    """Refuse what only other cron dialects have, or what cronsim would silently read differently."""
    for term in part.split(","):
        if name == "day-of-month" and term.endswith("W") and term != "LW":
            refuse("", f"day-of-month '{term}': the nearest weekday (W) is not supported; write a day, or LW")
        if "L" in term and "/" in term:
            refuse("", f"{name} '{term}': L takes no step; write L alone")
        if "?" in term:
            refuse("", f"{name} '{term}': '?' must be alone, and only in a day field; write *")
        low, dash, high = term.partition("/")[0].partition("-")
        if dash and (order := _backwards(name, low, high)):
            refuse("", f"{name} '{term}' runs backwards; write {order}")


def is_single_range(expression: str) -> bool:
    """Whether a field has a range of one value with a step, such as `7-7/1`: until version 0.3 that was read as `7/1`,
    from 7 to the end of the field."""
    parts = _parts(expression)
    return any(_without_single_ranges(name, part) != part for name, part in zip(_FIELDS, parts, strict=True))


def _without_single_ranges(name: str, part: str) -> str:
    """Each range of one value as this value: cronsim takes its step as if no end were written."""
    return ",".join(_single(name, term) for term in part.split(","))


def _single(name: str, term: str) -> str:
    range_, slash, step = term.partition("/")
    low, dash, high = range_.partition("-")
    is_valid = slash and dash and step.isascii() and step.isdecimal() and int(step) > 0
    value = _number(name, low)
    return low if is_valid and value is not None and value == _number(name, high) else term


def _number(name: str, text: str) -> int | None:
    """The value of a number or a name."""
    names = {"month": _MONTHS, "day-of-week": _WEEKDAYS}.get(name, ())
    return names.index(text) if text in names else int(text) if text.isascii() and text.isdecimal() else None


def _backwards(name: str, low: str, high: str) -> str | None:
    """How to write a range that wraps around, e.g. FRI-MON as FRI-SAT,SUN-MON; None if it does not wrap."""
    names = {"month": _MONTHS, "day-of-week": _WEEKDAYS}.get(name, ())
    start, end = _number(name, low), _number(name, high)
    if start is None or end is None or start <= end:
        return None
    first, last = _FIELDS[name].split(" ")[0].rstrip(",").split("-")
    if name == "day-of-week":
        first, last = ("SUN", "SAT") if low in names or high in names else ("0", "6")
    elif low in names or high in names:
        first, last = "JAN", "DEC"
    ahead = low if low == last else f"{low}-{last}"
    behind = high if high == first else f"{first}-{high}"
    return f"{ahead},{behind}"


def _is_day_of_some_month(part: str) -> bool:
    """Whether the day field is valid by itself, so that the error is in the month field."""
    try:
        CronSim(f"0 0 {part} * *", _ANY_TIME)
    except CronSimError:
        return False
    return True


def _fields(sets: CronSim, parts: list[str]) -> CronFields:
    plain = {item for item in sets.weekdays if isinstance(item, int)}
    nth = {item for item in sets.weekdays if not isinstance(item, int)}
    hours = tuple(sorted(sets.hours))
    return CronFields(
        seconds=tuple(sorted(sets.seconds)),
        minutes=tuple(sorted(sets.minutes)),
        hours=hours,
        days=tuple(sorted(day for day in sets.days if day > 0)),
        last_day=CronSim.LAST in sets.days,
        last_weekday=CronSim.LAST_WEEKDAY in sets.days,
        months=tuple(sorted(sets.months)),
        weekdays=tuple(sorted({(day - 1) % 7 for day in plain})),
        nth_weekdays=tuple(sorted({((day - 1) % 7, LAST if n == CronSim.LAST else n) for day, n in nth})),
        either_day=not sets.day_and,
        hours_named="*" not in parts[2] and len(hours) < 24,
        minutes_named="*" not in parts[1],
    )


def _day_rule(fields: CronFields) -> DayRule:
    """The days of an expression, computed once for all that have the same days."""
    return _rule_of_days(replace(fields, seconds=(), minutes=(), hours=(), hours_named=False, minutes_named=False))


@lru_cache(maxsize=256)
def _rule_of_days(fields: CronFields) -> DayRule:
    masks = [0] * 28
    for length in range(28, 32):
        for first_weekday in range(7):
            masks[month_shape(first_weekday, length)] = _month_mask(fields, first_weekday, length)
    return DayRule(months=sum(1 << month for month in fields.months), masks=tuple(masks))


def _month_mask(fields: CronFields, first_weekday: int, length: int) -> int:
    by_date = sum(1 << day for day in fields.days if day <= length)
    if fields.last_day:
        by_date |= 1 << length
    if fields.last_weekday:
        by_date |= 1 << length - max(0, (first_weekday + length - 1) % 7 - 4)
    by_weekday = 0
    for weekday in fields.weekdays:
        by_weekday |= sum(1 << day for day in _occurrences(weekday, first_weekday, length))
    for weekday, nth in fields.nth_weekdays:
        days = _occurrences(weekday, first_weekday, length)
        if nth == LAST:
            by_weekday |= 1 << days[-1]
        elif nth <= len(days):
            by_weekday |= 1 << days[nth - 1]
    return by_date | by_weekday if fields.either_day else by_date & by_weekday


def _occurrences(weekday: int, first_weekday: int, length: int) -> range:
    """The days of a month on which a weekday falls."""
    return range(1 + (weekday - first_weekday) % 7, length + 1, 7)
