"""A timing in plain English.

Theory of operation: a cron expression is described by two phrases, the days and the times. Each phrase is chosen from a
short list by the sets the fields contain, not by how they are written (`1-5` and `MON,TUE,WED,THU,FRI` are both
weekdays). If no phrase fits, the sentence quotes the expression, which is never wrong.
"""

from __future__ import annotations

from typing import Final, assert_never

from wakeful.core.time.cron import LAST, CronFields, parse_cron
from wakeful.core.time.instants import (
    DAY,
    HOUR,
    INSTANT_MAX,
    INSTANT_MIN,
    MINUTE,
    SECOND,
    Duration,
    Instant,
    format_duration,
    format_instant,
)
from wakeful.core.time.timing import AfterReset, Cron, Every, Manual, Once, Times, Timing, resolved
from wakeful.core.time.zones import segment_at

LISTED_MAX: Final = 6
"""Longer lists of times or days are quoted instead of spelt out."""

_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("", "January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_ORDINALS: Final = {1: "1st", 2: "2nd", 3: "3rd", 21: "21st", 22: "22nd", 23: "23rd", 31: "31st"}


def describe(timing: Timing) -> str:
    """One sentence, without a full stop, that says when it runs."""
    match timing:
        case Once(at, timezone):
            return f"once, at {_moment(resolved(at), timezone)}"
        case Every(every, anchor, timezone):
            grid = "" if anchor is None else f", aligned to {_moment(anchor, timezone)}"
            return f"every {_length(every)}{grid}"
        case Cron(expression, timezone):
            return f"{_cron(expression)}{_in_zone(timezone)}"
        case Times(times, timezone):
            return f"at {_and(sorted(times))} every day{_in_zone(timezone)}"
        case AfterReset(slot, offset):
            when = f"{_amount(offset)} after" if offset else "at"
            return f"{when} each reset of the quota slot '{slot}'"
        case Manual():
            return "only on request"
        case _:
            assert_never(timing)


def _in_zone(timezone: str | None) -> str:
    return "" if timezone is None else f" ({timezone})"


def _moment(t: Instant, timezone: str | None) -> str:
    offset = 0 if timezone is None else segment_at(timezone, t // SECOND).offset * SECOND
    if timezone is None or not INSTANT_MIN <= t + offset <= INSTANT_MAX:
        return format_instant(t)
    wall = format_instant(t + offset)
    return f"{wall[:10]} {wall[11:19].removesuffix(':00')} ({timezone})"


def _length(length: Duration) -> str:
    """A duration after "every": `2 hours`, `minute`."""
    return _amount(length).removeprefix("1 ") if _is_one(length) else _amount(length)


def _amount(length: Duration) -> str:
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second")):
        if length >= unit and length % unit == 0:
            return f"{length // unit} {name}{'s' * (length != unit)}"
    return format_duration(length)


def _is_one(length: Duration) -> bool:
    return length in (DAY, HOUR, MINUTE, SECOND)


def _cron(expression: str) -> str:
    fields = parse_cron(expression)
    days, moments = _days(fields), _times(fields)
    if days is not None and moments is not None:
        return f"{days} at {moments}"
    rhythm = _rhythm(fields)
    if days is not None and rhythm is not None:
        return rhythm if days == "every day" else f"{rhythm}, {days}"
    return f"whenever the wall clock matches '{expression.strip()}'"


def _times(fields: CronFields) -> str | None:
    """The times of day, if they are few enough to list."""
    if fields.seconds != fields.seconds[:1] or len(fields.hours) * len(fields.minutes) > LISTED_MAX:
        return None
    second = f":{fields.seconds[0]:02}" if fields.seconds[0] else ""
    return _and([f"{hour:02}:{minute:02}{second}" for hour in fields.hours for minute in fields.minutes])


def _rhythm(fields: CronFields) -> str | None:
    """A regular interval through the whole day, or through some of its hours."""
    hours = _step(fields.hours, 24)
    minutes, seconds = _step(fields.minutes, 60), _step(fields.seconds, 60)
    if hours == 1 and minutes == 1 and seconds:
        return f"every {_length(seconds * SECOND)}"
    if fields.seconds != (0,):
        return None
    if minutes and len(fields.minutes) > 1:
        within = _within(fields)
        return None if within is None else f"every {_length(minutes * MINUTE)}{within}"
    if len(fields.minutes) == 1 and len(fields.hours) < 24 and (within := _within(fields)):
        return f"every hour{within}"
    if len(fields.minutes) == 1 and hours:
        past = f" at minute {fields.minutes[0]}" if fields.minutes[0] else ""
        return f"every {_length(hours * HOUR)}{past}"
    return None


def _step(values: tuple[int, ...], size: int) -> int | None:
    """The step, if these values are an even step from 0 through the whole range."""
    step = size // len(values)
    return step if values == tuple(range(0, size, step)) and size % step == 0 else None


def _within(fields: CronFields) -> str | None:
    first, last = fields.hours[0], fields.hours[-1]
    if len(fields.hours) == 24:
        return ""
    if fields.hours != tuple(range(first, last + 1)):
        return None
    return f" from {first:02}:{fields.minutes[0]:02} to {last:02}:{fields.minutes[-1]:02}"


def _days(fields: CronFields) -> str | None:
    """The days, if a phrase fits them."""
    by_date = None if fields.any_day_of_month else _by_date(fields)
    by_weekday = None if fields.any_weekday else _by_weekday(fields)
    if fields.any_day_of_month and fields.any_weekday:
        return f"every day{_in_months(fields)}"
    if fields.any_weekday:
        return by_date
    if fields.any_day_of_month:
        return by_weekday
    if by_date is None or by_weekday is None or not fields.either_day:
        return None
    return f"{by_date} and also {by_weekday}"


def _by_date(fields: CronFields) -> str | None:
    named = [f"{_ordinal(day)}" for day in fields.days]
    if fields.last_day:
        named.append("last day")
    if fields.last_weekday:
        named.append("last weekday")
    return f"on the {_and(named)} {_of_months(fields)}" if len(named) <= LISTED_MAX else None


def _by_weekday(fields: CronFields) -> str | None:
    nth = [f"{'last' if n == LAST else _ordinal(n)} {_WEEKDAYS[day]}" for day, n in fields.nth_weekdays]
    if not nth:
        return f"every {_plain_weekdays(fields.weekdays)}{_in_months(fields)}"
    return None if fields.weekdays else f"the {_and(nth)} {_of_months(fields)}"


def _plain_weekdays(weekdays: tuple[int, ...]) -> str:
    return "weekday" if weekdays == (0, 1, 2, 3, 4) else _and([_WEEKDAYS[day] for day in weekdays])


def _of_months(fields: CronFields) -> str:
    return "of every month" if len(fields.months) == 12 else f"of {_and([_MONTHS[month] for month in fields.months])}"


def _in_months(fields: CronFields) -> str:
    return "" if len(fields.months) == 12 else f" in {_and([_MONTHS[month] for month in fields.months])}"


def _ordinal(number: int) -> str:
    return _ORDINALS.get(number, f"{number}th")


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
