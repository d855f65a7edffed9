"""OnCalendar expressions: parsed as systemd reads them, and converted to cron where cron can say the same.

Weekday and date must both match. `~` counts days from the end of the month. A time that daylight saving leaves out is
skipped; a repeated one counts once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final

from wakeful.core.errors import Invalid
from wakeful.core.time.zones import check_zone
from wakeful.integrations.imports.cron_text import cron_text, with_days
from wakeful.integrations.imports.entries import refuse
from wakeful.integrations.imports.wall_rules import WallRules

_NAMED: Final[Mapping[str, str]] = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "yearly": "*-01-01 00:00:00",
    "annually": "*-01-01 00:00:00",
    "anually": "*-01-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00",
    "semiannually": "*-01,07-01 00:00:00",
    "semi-annually": "*-01,07-01 00:00:00",
    "biannually": "*-01,07-01 00:00:00",
    "bi-annually": "*-01,07-01 00:00:00",
}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIME: Final = re.compile(r"([^:\s]+):([^:\s]+)(?::([^:\s]+))?")
_DATE: Final = re.compile(r"(?:([^-~\s]+)-)?([^-~\s]+)([-~])([^-~\s]+)")
_PART: Final = re.compile(r"(\d{1,4})(?:\.\.(\d{1,4}))?(?:/(\d{1,4}))?")


_TIMES_MAX: Final = 48
"""Times of day that are still readable as a list."""
_JOINABLE: Final = ("weekdays", "years", "months", "days", "hours", "minutes", "seconds")


@dataclass(frozen=True, slots=True)
class Calendar:
    """One OnCalendar expression as sets; None matches anything."""

    text: str
    zone: str
    weekdays: frozenset[int] | None  # Monday 0
    years: frozenset[int] | None
    months: frozenset[int] | None
    days: frozenset[int] | None
    is_from_end: bool
    hours: frozenset[int]
    minutes: frozenset[int]
    seconds: frozenset[int]

    def matches_day(self, day: date) -> bool:
        if self.years is not None and day.year not in self.years:
            return False
        if self.months is not None and day.month not in self.months:
            return False
        if self.weekdays is not None and day.weekday() not in self.weekdays:
            return False
        if self.days is None:
            return True
        return (_length(day) - day.day + 1 if self.is_from_end else day.day) in self.days

    @property
    def times(self) -> WallRules:
        """The expression's times by systemd's rules."""
        seconds = tuple(sorted(h * 3600 + m * 60 + s for h in self.hours for m in self.minutes for s in self.seconds))
        return WallRules(self.zone, self.matches_day, seconds, "skip", "once")

    def covers(self, other: "Calendar") -> bool:
        """Whether this expression includes all times of `other`."""
        if self.zone != other.zone or (self.days is not None and self.is_from_end != other.is_from_end):
            return False
        pairs = [(self.weekdays, other.weekdays), (self.years, other.years), (self.months, other.months)]
        pairs.append((self.days, other.days))
        return all(mine is None or (theirs is not None and theirs <= mine) for mine, theirs in pairs) and (
            other.hours <= self.hours and other.minutes <= self.minutes and other.seconds <= self.seconds
        )

    def joined(self, other: "Calendar") -> "Calendar | None":
        """The expression that includes the times of both, and no other; None if there is none. They may differ in one
        field only."""
        if self.zone != other.zone or self.is_from_end != other.is_from_end:
            return None
        differing = [name for name in _JOINABLE if getattr(self, name) != getattr(other, name)]
        if len(differing) != 1:
            return None
        mine, theirs = getattr(self, differing[0]), getattr(other, differing[0])
        if mine is None or theirs is None:
            return None
        changes: dict[str, Any] = {differing[0]: mine | theirs, "text": f"{self.text}; {other.text}"}
        return replace(self, **changes)

    @property
    def is_daily(self) -> bool:
        """Whether it matches every day."""
        return self.weekdays is None and self.years is None and self.months is None and self.days is None

    def schedule(self) -> dict[str, Any]:
        """The expression as a schedule; refused if cron cannot express it."""
        if self.years is not None:
            return self._once()
        return {"type": "cron", "expression": self._expression(), "timezone": self.zone}

    def _once(self) -> dict[str, Any]:
        sets = (self.years, self.months, self.days, self.hours, self.minutes, self.seconds)
        if self.weekdays is not None or self.is_from_end or any(values is None or len(values) != 1 for values in sets):
            refuse(f"'{self.text}' names a year, which a cron schedule cannot express")
        year, month, day, hour, minute, second = (next(iter(values)) for values in sets if values is not None)
        at = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        return {"type": "once", "at": at, "timezone": self.zone}

    def _expression(self) -> str:
        weekdays = None if self.weekdays is None else {(day + 1) % 7 for day in self.weekdays}
        if not self.is_from_end or self.days is None:
            return self._cron(self.days, weekdays)
        if self.days == {1} and weekdays is None:
            return with_days(self._cron(None, None), "L", "*")
        if self.days != set(range(1, 8)) or weekdays is None:
            refuse(f"'{self.text}' counts days from the end of the month in a way that cron cannot express")
        return with_days(self._cron(None, None), "*", ",".join(f"{day}L" for day in sorted(weekdays)))

    def _cron(self, days: frozenset[int] | None, weekdays: set[int] | None) -> str:
        return cron_text(self.minutes, self.hours, days, self.months, weekdays, seconds=self.seconds, source=self.text)


def joined_calendars(calendars: Sequence[Calendar]) -> list[Calendar]:
    """The same times in as few expressions as possible."""
    kept: list[Calendar] = []
    for calendar in calendars:
        for number, other in enumerate(kept):
            both = other.joined(calendar)
            if both is not None:
                kept[number] = both
                break
        else:
            kept.append(calendar)
    return kept if len(kept) == len(calendars) else joined_calendars(kept)


def daily_times(calendars: Sequence[Calendar]) -> tuple[dict[str, Any], WallRules] | None:
    """Several expressions for every day as one list of times of day; None if one of them is for some days, or has
    seconds."""
    zone = calendars[0].zone
    if not all(calendar.is_daily and calendar.seconds == {0} and calendar.zone == zone for calendar in calendars):
        return None
    seconds = sorted({second for calendar in calendars for second in calendar.times.seconds})
    texts = [f"{second // 3600:02}:{second // 60 % 60:02}" for second in seconds]
    if len(texts) > _TIMES_MAX:
        return None
    rules = WallRules(zone, calendars[0].matches_day, tuple(seconds), "skip", "once")
    return {"type": "times", "times": texts, "timezone": zone}, rules


def parse_calendar(text: str, zone: str) -> Calendar:
    """Parse an OnCalendar expression; `zone` is the machine's."""
    words = text.split()
    if len(words) > 1 and _is_zone(words[-1]):
        zone = check_zone(words.pop())
    if len(words) == 1 and words[0].lower() in _NAMED:
        words = _NAMED[words[0].lower()].split()
    weekdays = None
    if words and words[0][:1].isalpha():
        weekdays = _weekdays(words.pop(0).rstrip(","), text)
    days, times = "*-*-*", "00:00:00"
    if words and ":" not in words[0]:
        days = words.pop(0)
    if words:
        times = words.pop(0)
    if words or not text.strip():
        refuse(f"'{text}' is not a calendar expression")
    named, time = _DATE.fullmatch(days), _TIME.fullmatch(times)
    if named is None or time is None:
        refuse(f"'{text}' is not a calendar expression")
    return Calendar(
        text,
        zone,
        weekdays,
        _set(named[1] or "*", 1970, 2199, text, is_year=True),
        _set(named[2], 1, 12, text),
        _set(named[4], 1, 31, text, is_from_end=named[3] == "~"),
        named[3] == "~",
        _set(time[1], 0, 23, text) or frozenset(range(24)),
        _set(time[2], 0, 59, text) or frozenset(range(60)),
        _set(time[3] or "0", 0, 59, text) or frozenset(range(60)),
    )


def _is_zone(word: str) -> bool:
    if not word[0].isalpha() or ":" in word:
        return False
    if word[:3].lower() in {day[:3] for day in _WEEKDAYS} and "/" not in word:
        return False
    try:
        check_zone(word)
    except Invalid:
        return False
    return True


def _weekdays(word: str, text: str) -> frozenset[int]:
    weekdays: set[int] = set()
    for term in word.split(","):
        first, dots, last = term.partition("..")
        start = _weekday(first, text)
        end = _weekday(last, text) if dots else start
        if start > end:
            refuse(f"'{text}': {term} runs backwards")
        weekdays.update(range(start, end + 1))
    return frozenset(weekdays)


def _weekday(name: str, text: str) -> int:
    numbers = [number for number, full in enumerate(_WEEKDAYS) if name.lower() in (full, full[:3])]
    if not numbers:
        refuse(f"'{text}': '{name}' is not a day of the week")
    return numbers[0]


def _set(
    part: str, low: int, high: int, text: str, *, is_year: bool = False, is_from_end: bool = False
) -> frozenset[int] | None:
    if part == "*":
        return None
    values: set[int] = set()
    for term in part.split(","):
        read = _PART.fullmatch(term)
        if read is None:
            refuse(f"'{text}': '{term[:80]}' is not valid")
        start = int(read[1])
        if is_year and start < 100:
            start += 2000 if start < 70 else 1900
        step = int(read[3]) if read[3] else 1
        if is_from_end and read[3]:
            end, start = start, 1  # from there towards the end of the month
            values.update(range(end, start - 1, -max(step, 1)))
            continue
        end = int(read[2]) if read[2] else high if read[3] else start
        if step == 0 or not low <= start <= end <= high:
            refuse(f"'{text}': '{term[:80]}' is out of range")
        values.update(range(start, end + 1, step))
    return frozenset(values)


def _length(day: date) -> int:
    following = day.replace(day=28) + timedelta(days=4)
    return (following - timedelta(days=following.day)).day
