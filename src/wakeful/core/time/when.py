"""`when` as a string: `every 2h`, `0 9 * * 1-5`, `weekdays at 9:00`, `at 2026-12-01T09:00+01:00`, `in 20m`.

Theory of operation: the text is matched against a list of forms, each a pattern and the function that makes a timing of
it. A form that could mean two things is in the list too, and refuses the text with both readings, written so that each
of them is understood. What no form matches is refused with examples: nothing is guessed.

A zone at the end of the text (`weekdays at 9:00 Europe/Berlin`) counts like one given beside it. Times of day and dates
without one are in the default zone, which the timing then names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, NoReturn, TypeAlias

from wakeful.core.errors import Invalid, refuse
from wakeful.core.time.cron import NAMED, parse_cron
from wakeful.core.time.instants import HOUR, SECOND, Instant, format_duration, parse_instant
from wakeful.core.time.timing import Cron, Every, Once, Times, Timing, resolve
from wakeful.core.time.when_words import (
    DAYS,
    MONTH,
    ORDINALS,
    TIMES,
    WEEKDAYS,
    length_of,
    month_of,
    times_of,
    two_meanings,
    weekdays_of,
)
from wakeful.core.time.zones import check_zone, segment_at

TEXT_MAX: Final = 200
EXAMPLES: Final = "'every 2h', '0 9 * * 1-5', 'weekdays at 9:00', 'at 2026-12-01T09:00+01:00' or 'in 20m'"

_ZONED: Final = re.compile(r"(.*?\S)\s+(in\s+)?(\()?([A-Za-z]+(?:/[A-Za-z0-9_+-]+)+|UTC|utc)\)?")
_CRON: Final = re.compile(r"(?:cron\s+)?((?:[\d*][\d*/,-]*\s+){2}(?:[\w*/,#?-]+\s+){2,3}[\w*/,#?-]+)")
DATE: Final = (
    rf"(?P<iso>\d{{4}}-\d\d-\d\d)|(?P<near>today|tomorrow)"
    rf"|(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+(?P<month>{MONTH})(?:,?\s+(?P<year>\d{{4}}))?"
    rf"|(?P<month2>{MONTH})\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<year2>\d{{4}}))?"
    r"|(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<year3>\d{4})"
)
_NTH: Final = rf"(?:the\s+)?(?P<nth>{'|'.join(ORDINALS)}|last)\s+(?P<name>day|{'|'.join(WEEKDAYS)})"
_DAY_OF_MONTH: Final = r"(?:the\s+)?(?P<number>\d{1,2})(?:st|nd|rd|th)"
_OF_MONTH: Final = r"\s+(?:of|in)\s+(?:(?:every|each|the)\s+)month"
_MONTHLY: Final = r"(?:every\s+month|each\s+month|monthly)\s*,?\s+on\s+"


@dataclass(frozen=True, slots=True)
class _Reading:
    """The text being read, and what its meaning depends on."""

    text: str
    field: str
    now: Instant
    zone: str

    @property
    def today(self) -> date:
        return self.wall.date()

    @property
    def wall(self) -> datetime:
        offset = segment_at(self.zone, self.now // SECOND).offset
        return datetime.fromtimestamp(self.now // SECOND + offset, UTC).replace(tzinfo=None)

    def two_meanings(self, first: str, second: str) -> NoReturn:
        two_meanings(self.field, self.text, first, second)

    def times(self, match: re.Match[str]) -> list[str]:
        begin, end = match.span("times")
        return times_of(match["times"], (self.text[:begin], self.text[end:]), self.field)


_Form: TypeAlias = tuple[str, Callable[[_Reading, re.Match[str]], Timing]]


def read_when(
    text: object, *, now: Instant, default_zone: str, timezone: str | None = None, field: str = "when"
) -> Timing:
    """The timing that the text describes, complete but for the anchor of an interval; raises `Invalid` if it is not
    understood or has two meanings."""
    if not isinstance(text, str) or not text.strip():
        refuse(field, f"is empty; write for example {EXAMPLES}")
    if len(text) > TEXT_MAX or not text.isprintable():
        refuse(field, f"is not one short line of text; write for example {EXAMPLES}")
    words, zone = _split_zone(" ".join(text.split()), timezone, field)
    timing = _read(_Reading(words.lower(), field, now, zone or default_zone), words)
    if isinstance(timing, Once | Cron | Times):
        return resolve(timing, now=now, default_zone=zone or default_zone)
    return timing


def _split_zone(text: str, timezone: str | None, field: str) -> tuple[str, str | None]:
    """The text without the zone at its end, and that zone, or the one given beside it."""
    given = None if timezone is None else check_zone(timezone, "timezone")
    match = _ZONED.fullmatch(text)
    if match is None:
        return text, given
    named = "UTC" if match[4] == "utc" else match[4]
    try:
        check_zone(named, field)
    except Invalid:
        if match[2] or match[3]:
            raise
        return text, given
    if given not in (None, named):
        refuse(field, f"'{text}' names the zone {named}, and `timezone` is {given}; leave one of them out")
    return match[1], named


def _read(reading: _Reading, words: str) -> Timing:
    cron = _CRON.fullmatch(words)
    if cron is not None or reading.text in NAMED:
        expression = words.lower() if cron is None else cron[1]
        _check_cron(expression, reading.field)
        return Cron(expression)
    for pattern, make in _FORMS:
        match = re.fullmatch(pattern, reading.text, re.ASCII)
        if match is not None:
            return make(reading, match)
    return refuse(reading.field, f"'{words}' is not understood; write for example {EXAMPLES}")


def _check_cron(expression: str, field: str) -> None:
    try:
        parse_cron(expression)
    except Invalid as invalid:
        refuse(field, "; ".join(error.message for error in invalid.errors))


# --- lengths ----------------------------------------------------------------------------------------------------------


def _after(reading: _Reading, match: re.Match[str]) -> Timing:
    length = length_of(match["length"])
    if not length:
        refuse(reading.field, f"'{reading.text}' is not understood; write for example 'in 20m' or 'in 2 hours'")
    return Once(None, timezone=reading.zone, delay=length)


def _interval(reading: _Reading, match: re.Match[str]) -> Timing:
    words = match["length"]
    if words in ("week", "month", "year", "day"):
        return _open_period(reading, words)
    length = length_of(f"1 {words}" if words.isalpha() else words)
    if not length:
        refuse(
            reading.field, f"'{reading.text}' is not understood; write for example 'every 2h' or 'every monday at 9:00'"
        )
    return Every(length, written=format_duration(length))


def _open_period(reading: _Reading, words: str) -> Timing:
    """A period that does not say when in it."""
    time = f"{reading.wall:%H:%M}"
    if words == "day":
        reading.two_meanings("every 24h", f"every day at {time}")
    if words == "week":
        reading.two_meanings("every 7d", f"every {WEEKDAYS[reading.today.weekday()]} at {time}")
    cure = "'every month on the 1st at 9:00'" if words == "month" else "a cron expression such as '0 9 1 1 *'"
    refuse(reading.field, f"'{reading.text}' does not say when; write for example {cure}")


def _bare_length(reading: _Reading, match: re.Match[str]) -> Timing:
    length = length_of(reading.text)
    if not length:
        refuse(reading.field, f"'{reading.text}' is not understood; write for example {EXAMPLES}")
    reading.two_meanings(f"every {format_duration(length)}", f"in {format_duration(length)}")


# --- days and times ---------------------------------------------------------------------------------------------------


def _daily(reading: _Reading, match: re.Match[str]) -> Timing:
    days = match["days"]
    is_every = bool(re.match(r"(?:every|each)\s", days))
    days = re.sub(r"^(?:every|each)\s+", "", days)
    if days in ("day", "daily"):
        if days == "day" and not is_every:
            refuse(reading.field, f"'{reading.text}' is not understood; write 'every day at 9:00'")
        return Times(tuple(reading.times(match)))
    if days.rstrip("s") == "weekday":
        return _weekly("1-5", reading, match)
    if days.rstrip("s") == "weekend":
        return _weekly("0,6", reading, match)
    chosen = weekdays_of(days, reading.text, reading.field)
    if len(chosen) == 1 and not is_every and not days.endswith("days"):
        _one_or_each(reading, match, chosen[0])
    return _weekly(_cron_days(chosen), reading, match)


def _one_or_each(reading: _Reading, match: re.Match[str], weekday: int) -> None:
    """`monday at 9:00`: every Monday, or the coming one?"""
    times = reading.times(match)
    ahead = (weekday - reading.today.weekday()) % 7
    coming = reading.today + timedelta(days=ahead)
    if ahead == 0 and times[0] <= f"{reading.wall:%H:%M}":
        coming += timedelta(days=7)
    reading.two_meanings(f"every {WEEKDAYS[weekday]} at {' and '.join(times)}", f"{coming} at {times[0]}")


def _next_weekday(reading: _Reading, match: re.Match[str]) -> Timing:
    """`next monday`: the coming Monday, or next week's?"""
    times = reading.times(match)
    (weekday,) = weekdays_of(match["name"], reading.text, reading.field)
    coming = reading.today + timedelta(days=(weekday - reading.today.weekday() - 1) % 7 + 1)
    reading.two_meanings(f"{coming} at {times[0]}", f"{coming + timedelta(days=7)} at {times[0]}")


def _cron_days(weekdays: list[int]) -> str:
    if weekdays == [0, 1, 2, 3, 4]:
        return "1-5"
    return ",".join(str(day) for day in sorted((day + 1) % 7 for day in weekdays))


def _weekly(days: str, reading: _Reading, match: re.Match[str]) -> Timing:
    return _cron(f"* * {days}", reading, match)


def _cron(days: str, reading: _Reading, match: re.Match[str]) -> Timing:
    """A cron expression for times of day on some days. It has all hours with all minutes: each must go with each."""
    times = reading.times(match)
    pairs = {(int(time[:2]), int(time[3:])) for time in times}
    hours, minutes = sorted({hour for hour, _ in pairs}), sorted({minute for _, minute in pairs})
    if len(hours) * len(minutes) != len(pairs):
        cure = "use one schedule for each, or times with the same minute"
        refuse(reading.field, f"'{reading.text}' has times that no single cron expression can express; {cure}")
    return Cron(f"{','.join(map(str, minutes))} {','.join(map(str, hours))} {days}")


def _monthly(reading: _Reading, match: re.Match[str]) -> Timing:
    given = match.groupdict()
    if given.get("number"):
        return _cron(f"{int(given['number'])} * *", reading, match)
    nth, name = given["nth"], given["name"]
    if name == "day":
        return _cron(f"{'L' if nth == 'last' else ORDINALS[nth]} * *", reading, match)
    weekday = (WEEKDAYS.index(name) + 1) % 7
    return _cron(f"* * {weekday}L" if nth == "last" else f"* * {weekday}#{ORDINALS[nth]}", reading, match)


def _bare_times(reading: _Reading, match: re.Match[str]) -> Timing:
    times = reading.times(match)
    if len(times) > 1:
        return Times(tuple(times))
    tomorrow = times[0] <= f"{reading.wall:%H:%M}"
    return reading.two_meanings(f"every day at {times[0]}", f"{'tomorrow' if tomorrow else 'today'} at {times[0]}")


# --- dates ------------------------------------------------------------------------------------------------------------


def _exact(reading: _Reading, match: re.Match[str]) -> Timing:
    written = match["at"].upper()
    at = parse_instant(written, reading.zone, reading.field)
    return Once(at, timezone=reading.zone, written=written)


def _dated(reading: _Reading, match: re.Match[str]) -> Timing:
    day, (time, *more) = _date(reading, match), reading.times(match)
    if more:
        refuse(reading.field, f"'{reading.text}' has several times on one day; use one schedule for each")
    if match["times"] == "midnight":
        reading.two_meanings(f"{day} at 00:00", f"{day + timedelta(days=1)} at 00:00")
    written = f"{day.isoformat()}T{time}"
    return Once(parse_instant(written, reading.zone, reading.field), timezone=reading.zone, written=written)


def _no_time(reading: _Reading, match: re.Match[str]) -> Timing:
    refuse(reading.field, f"'{reading.text}' has no time of day; write for example '{reading.text} at 9:00'")


def _date(reading: _Reading, match: re.Match[str]) -> date:
    if match["near"]:
        return reading.today + timedelta(days=int(match["near"] == "tomorrow"))
    if match["iso"]:
        return _day(reading, *map(int, match["iso"].split("-")))
    if match["a"]:
        return _slashed(reading, int(match["a"]), int(match["b"]), int(match["year3"]))
    month, day = month_of(match["month"] or match["month2"]), int(match["day"] or match["day2"])
    year = match["year"] or match["year2"]
    if year:
        return _day(reading, int(year), month, day)
    this_year = _day(reading, reading.today.year, month, day)
    return this_year if this_year >= reading.today else _day(reading, reading.today.year + 1, month, day)


def _slashed(reading: _Reading, a: int, b: int, year: int) -> date:
    if a <= 12 and b <= 12 and a != b:
        first, second = _day(reading, year, b, a), _day(reading, year, a, b)
        slashed = r"\d{1,2}/\d{1,2}/\d{4}"
        reading.two_meanings(*(re.sub(slashed, str(day), reading.text) for day in (first, second)))
    return _day(reading, year, *((b, a) if a > 12 or a == b else (a, b)))


def _day(reading: _Reading, year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except ValueError as error:
        refuse(reading.field, f"'{reading.text}' has an impossible date ({error}); write it like 2026-12-01")


def _day_alone(reading: _Reading, match: re.Match[str]) -> Timing:
    """Days without a time."""
    if match["days"] in ("daily", "every day", "each day"):
        return _open_period(reading, "day")
    return refuse(reading.field, f"'{reading.text}' has no time of day; write for example '{reading.text} at 9:00'")


_PERIODS: Final = {"weekly": "week", "monthly": "month", "yearly": "year"}
_AT: Final = r"(?:\s+at|\s*,)?\s+"
# Not compiled here: that takes longer than importing the rest of the module, and most processes never read one.
_FORMS: Final[tuple[_Form, ...]] = (
    (r"in\s+(?P<length>.+)", _after),
    (r"(?P<length>.+?)\s+from\s+now", _after),
    (rf"(?:on\s+)?(?P<days>{DAYS}){_AT}(?P<times>{TIMES})", _daily),
    (rf"(?:at\s+)?(?P<times>{TIMES})\s+(?:on\s+)?(?P<days>{DAYS})", _daily),
    (rf"(?:on\s+)?next\s+(?P<name>{'|'.join(WEEKDAYS)}){_AT}(?P<times>{TIMES})", _next_weekday),
    (rf"(?:on\s+)?(?P<days>{DAYS})", _day_alone),
    (r"(?:at\s+|on\s+|once\s+at\s+)?(?P<at>\d{4}-\d\d-\d\d[t ]\d\d:\d\d\S*)", _exact),
    (rf"(?:on\s+|at\s+|once\s+on\s+)?(?:{DATE}){_AT}(?P<times>{TIMES})", _dated),
    (rf"(?:at\s+)?(?P<times>{TIMES})\s+(?:on\s+)?(?:{DATE})", _dated),
    (rf"(?:on\s+)?(?:{DATE})", _no_time),
    (rf"{_MONTHLY}(?:{_DAY_OF_MONTH}|{_NTH}){_AT}(?P<times>{TIMES})", _monthly),
    (rf"(?:on\s+)?(?:{_DAY_OF_MONTH}|{_NTH}){_OF_MONTH}{_AT}(?P<times>{TIMES})", _monthly),
    (r"(?:every|each)\s+(?P<length>.+)", _interval),
    (r"hourly", lambda _reading, _found: Every(HOUR, written="1h")),
    (r"(?P<length>weekly|monthly|yearly)", lambda reading, match: _open_period(reading, _PERIODS[match["length"]])),
    (rf"(?:at\s+)?(?P<times>{TIMES})", _bare_times),
    (r".+", _bare_length),
)
