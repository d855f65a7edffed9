"""Timings as a Python program writes them: `cron("0 9 * * 1-5")`, `every("2h")`, `once(…)`, `times("09:00", "18:00")`.

Theory of operation: these check their arguments immediately, so a mistake shows where it was typed, and they leave open
what was not given (zone, anchor). `timing.resolve` fills that in when the definition is written, by the same rule as
for every other source of definitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final, overload
from zoneinfo import ZoneInfo

from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.time.active_hours import parse_time_of_day
from wakeful.core.time.cron import parse_cron
from wakeful.core.time.instants import (
    INSTANT_MAX,
    SECOND,
    Duration,
    Instant,
    format_instant,
    parse_duration,
    parse_instant,
)
from wakeful.core.time.timing import AfterReset, Cron, Every, Manual, Once, Times
from wakeful.core.time.zones import check_zone

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def cron(expression: str, tz: str | tzinfo | None = None) -> Cron:
    """A cron expression of five or six fields, in a zone (default: the configured one)."""
    errors: list[FieldError] = []
    zone = None
    try:
        parse_cron(expression)
    except Invalid as invalid:
        errors += invalid.errors
    try:
        zone = _zone(tz)
    except Invalid as invalid:
        errors += invalid.errors
    if errors:
        raise Invalid(*errors)
    return Cron(expression, zone)


def every(every: str | timedelta | int | float, anchor: str | datetime | None = None) -> Every:
    """A fixed interval (`"2h"`, a timedelta, or seconds) on the grid of `anchor` (default: the time of creation)."""
    length = as_duration(every, "every")
    if length < 1:
        refuse("every", f"{every!r} is not an interval; write more than zero, e.g. 30m")
    written = every if isinstance(every, str) else None
    if anchor is None:
        return Every(length, None, written=written)
    begins = as_instant(anchor, "anchor")
    anchor_written = anchor if isinstance(anchor, str) else format_instant(begins)
    return Every(length, begins, written=written, anchor_written=anchor_written)


def once(at: str | datetime | timedelta, tz: str | tzinfo | None = None) -> Once:
    """A single instant: RFC 3339 text or a datetime, with an offset or with `tz`. `"+5m"`, or a timedelta, is five
    minutes after the schedule is written."""
    zone = _zone(tz)
    if isinstance(at, timedelta):
        return Once(None, timezone=zone, delay=as_duration(at, "at"))
    if isinstance(at, str) and at.strip().startswith("+"):
        return Once(None, timezone=zone, delay=parse_duration(at.strip()[1:], "at"))
    return Once(as_instant(at, "at", zone), timezone=zone, written=at if isinstance(at, str) else None)


def times(*times: str | time, tz: str | tzinfo | None = None) -> Times:
    """Times of day (`HH:MM`, or a time), every day, in a zone (default: the configured one)."""
    written = tuple(as_time_of_day(at) if isinstance(at, time) else at for at in times)
    check_times(written, "times")
    return Times(written, _zone(tz))


def after_reset(slot: str, offset: str | timedelta | int | float = 0) -> AfterReset:
    """An offset after the reset of a quota slot."""
    if not slot:
        refuse("slot", "is empty; write the name of a quota slot")
    return AfterReset(slot, as_duration(offset, "offset"))


def manual() -> Manual:
    """Only when a person asks."""
    return Manual()


def as_duration(value: str | timedelta | int | float, field: str) -> Duration:
    """A length given as text, as a timedelta or in seconds."""
    match value:
        case str():
            ms = parse_duration(value, field)
        case timedelta():
            ms = value // _MILLISECOND
        case int() | float() if not isinstance(value, bool) and abs(value) <= INSTANT_MAX:
            ms = round(value * SECOND)
        case _:
            refuse(field, f"{value!r} is not a duration; write text such as 30m, a timedelta, or seconds")
    if not 0 <= ms <= INSTANT_MAX:
        refuse(field, f"{value!r} is not between zero and 9999 years; write a duration such as 30m")
    return ms


@overload
def as_datetime(instant: Instant) -> datetime: ...
@overload
def as_datetime(instant: Instant | None) -> datetime | None: ...
def as_datetime(instant: Instant | None) -> datetime | None:
    """An instant as an aware datetime in UTC. A `stagger` may lead beyond the last that can be written."""
    # Not `fromtimestamp`: a float cannot represent every millisecond, and it fails beyond the platform's time_t.
    return None if instant is None else _EPOCH + min(instant, INSTANT_MAX) * _MILLISECOND


def as_instant(value: str | datetime, field: str, zone: str | None = None) -> Instant:
    """An instant given as RFC 3339 text or as a datetime."""
    if isinstance(value, str):
        return parse_instant(value, zone, field)
    if not isinstance(value, datetime):
        refuse(field, f"{value!r} is not a date and time; write text such as 2026-01-30T09:00:00Z, or a datetime")
    if value.tzinfo is None:
        return parse_instant(value.isoformat(), zone, field)
    ms = (value - _EPOCH) // _MILLISECOND
    if not 0 <= ms <= INSTANT_MAX:
        refuse(field, f"{value.isoformat()} is outside the years 1970 to 9999; write a date within them")
    return ms


def as_given(value: datetime | str | Instant, field: str) -> Instant:
    """An instant as results contain it, in milliseconds, or as a person writes it."""
    return value if isinstance(value, int) else as_instant(value, field)


TIMES_MAX: Final = 1_440
"""One per minute of a day."""


def check_times(times: Sequence[object], field: str) -> None:
    """Refuse an empty list, invalid times and duplicates, reporting all errors together."""
    if not times:
        refuse(field, "is empty; write at least one time of day such as 09:00")
    if len(times) > TIMES_MAX:
        refuse(field, f"has {len(times)} times; write at most {TIMES_MAX}, or a cron expression")
    errors = []
    seen: set[str] = set()
    for index, text in enumerate(times):
        place = f"{field}[{index}]"
        if not isinstance(text, str):
            errors.append(FieldError(place, f"{text!r} is not a string; write a time of day such as '09:00'"))
            continue
        try:
            parse_time_of_day(text, place)
        except Invalid as invalid:
            errors += invalid.errors
        if text in seen:
            errors.append(FieldError(place, f"'{text}' is listed twice; remove one"))
        seen.add(text)
    if errors:
        raise Invalid(*errors)


def as_zone(value: str | tzinfo, field: str) -> str:
    """The name of a zone given as text, as a `ZoneInfo` or as `UTC`."""
    name = value.key if isinstance(value, ZoneInfo) else "UTC" if value is UTC else value
    if not isinstance(name, str):
        refuse(field, f"{value!r} is not a named zone; write 'Europe/Berlin', ZoneInfo('Europe/Berlin') or UTC")
    return check_zone(name, field)


def as_time_of_day(value: time) -> str:
    """A time as `HH:MM`; with seconds or an offset, which a time of day cannot have, in full, so that it is refused."""
    return value.isoformat() if value.second or value.microsecond else value.isoformat("minutes")


def _zone(tz: str | tzinfo | None) -> str | None:
    return None if tz is None else as_zone(tz, "timezone")
