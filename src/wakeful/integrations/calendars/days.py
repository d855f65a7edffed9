"""The days of a calendar's events, including recurrences.

All-day events (`VALUE=DATE`) are dates without a zone; their `DTEND` is the first day that no longer belongs to them.
Events with times are turned into instants, in UTC or in the zone of their `TZID`. Without a zone ("floating"), or with
one that is not an IANA zone, they count on the days they are written with. Cancelled events do not count. A rule
without an end is followed until `LAST_YEAR`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Final, TypeAlias

from wakeful.core.errors import Invalid
from wakeful.core.schedule.exclude import CalendarDays
from wakeful.core.time.excluded_days import day_number
from wakeful.core.time.instants import INSTANT_MAX, SECOND, Instant
from wakeful.core.time.zones import check_zone, segment_at, wall_to_second
from wakeful.integrations.calendars.content_lines import BadCalendar, Property, events_in

LAST_YEAR: Final = 2099
OCCURRENCES_MAX: Final = 100_000
"""The maximum number of occurrences of all events together."""
SPAN_MAX: Final = timedelta(days=3_660)
_FREQUENCIES: Final = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY")
_DURATION: Final = re.compile(r"\+?P(?:(\d{1,5})W)?(?:(\d{1,5})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?")
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - of wall times
_LAST: Final = datetime(LAST_YEAR, 12, 31, 23, 59, 59)  # noqa: DTZ001 - a wall time

When: TypeAlias = "date | datetime"
"""A date, or a wall time in the zone of its event."""


@dataclass(frozen=True, slots=True)
class _Event:
    """An event: when it starts, how long it lasts, when it repeats."""

    uid: str
    start: When
    zone: str | None  # of wall times; None: the reader's zone
    span: timedelta
    rule: str | None
    added: tuple[When, ...]
    removed: frozenset[When]
    replaces: When | None  # it replaces this occurrence of the event with the same uid


def calendar_days(text: str) -> CalendarDays:
    """All days of a calendar; raises `BadCalendar`."""
    events = list(events_in(text))
    replaced = _replaced(events)
    days: set[int] = set()
    times: list[tuple[Instant, Instant]] = []
    left = OCCURRENCES_MAX
    for event in [_event(properties) for properties in events if not _is_cancelled(properties)]:
        for start in _occurrences(event, replaced.get(event.uid, set()) if event.replaces is None else set()):
            left -= 1
            if left < 0:
                raise BadCalendar(f"has more than {OCCURRENCES_MAX} occurrences")
            if isinstance(start, datetime) and event.zone is not None:
                begin, end = _instant(start, event.zone), _instant(start + event.span, event.zone)
                times.append((begin, end))
            else:
                days.update(_written_days(start, event.span))
    return CalendarDays(frozenset(days), tuple(times))


def _replaced(events: Iterable[list[Property]]) -> dict[str, set[When]]:
    """The occurrences that another event replaces, by uid."""
    replaced: dict[str, set[When]] = {}
    for properties in events:
        uid, original = _value(properties, "UID"), _named(properties, "RECURRENCE-ID")
        if uid is not None and original is not None:
            replaced.setdefault(uid, set()).add(_when(original)[0])
    return replaced


def _written_days(start: When, span: timedelta) -> Iterable[int]:
    """The days as they are written, whatever the zone."""
    if not isinstance(start, datetime):
        return range(day_number(start), day_number(start) + max(span.days, 1))
    end = max(start + span - timedelta(seconds=1), start)
    return range(day_number(start.date()), day_number(end.date()) + 1)


def _is_cancelled(properties: Iterable[Property]) -> bool:
    return (_value(properties, "STATUS") or "").strip().upper() == "CANCELLED"


def _event(properties: list[Property]) -> _Event:
    begins = _named(properties, "DTSTART")
    if begins is None:
        raise BadCalendar("an event has no DTSTART")
    start, zone = _when(begins)
    rules = [entry.value for entry in properties if entry.name == "RRULE"]
    if len(rules) > 1:
        raise BadCalendar("an event has more than one RRULE")
    original = _named(properties, "RECURRENCE-ID")
    return _Event(
        _value(properties, "UID") or "",
        start,
        zone,
        _span(properties, start),
        rules[0] if rules else None,
        tuple(_list(properties, "RDATE")),
        frozenset(_list(properties, "EXDATE")),
        None if original is None else _when(original)[0],
    )


def _span(properties: list[Property], start: When) -> timedelta:
    """How long an event lasts. Without an end, an all-day event is one day, and any other a moment."""
    ends, lasts = _named(properties, "DTEND"), _value(properties, "DURATION")
    span = timedelta(0) if isinstance(start, datetime) else timedelta(days=1)
    if ends is not None:
        end, _ = _when(ends)
        if isinstance(end, datetime) != isinstance(start, datetime):
            raise BadCalendar(f"an event on {start} has a DTEND of another type than its DTSTART")
        span = _start_of(end) - _start_of(start)
    elif lasts is not None:
        span = _duration(lasts)
    if not timedelta(0) <= span <= SPAN_MAX:
        raise BadCalendar(f"an event on {start} ends before it starts, or lasts more than ten years")
    return span


def _duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise BadCalendar(f"DURATION {text[:40]!r} cannot be read")
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _occurrences(event: _Event, replaced: set[When]) -> Iterator[When]:
    """Every start time of an event."""
    left_out = event.removed | replaced
    starts = [event.start] if event.rule is None else _repeated(event.start, event.zone, event.rule)
    seen: set[When] = set()
    for start in (*islice(starts, OCCURRENCES_MAX + 1), *event.added):
        if start not in left_out and start not in seen and start.year <= LAST_YEAR:
            seen.add(start)
            yield start


def _repeated(start: When, zone: str | None, rule: str) -> Iterator[When]:
    """The times of a rule. This function applies the count, so that a rule that never matches ends with `LAST_YEAR`."""
    # Imported late: few homes have a calendar file. It has no type hints.
    from dateutil.rrule import rrulestr  # type: ignore[import-untyped]

    parts = dict(part.partition("=")[::2] for part in rule.upper().split(";") if part)
    if parts.get("FREQ") not in _FREQUENCIES:
        raise BadCalendar(f"RRULE {rule[:80]!r}: FREQ must be one of {', '.join(_FREQUENCIES)}")
    counted = parts.pop("COUNT", None)
    until = _until(parts.pop("UNTIL", None), zone)
    text = ";".join(f"{name}={value}" for name, value in parts.items())
    try:
        times = rrulestr(text, dtstart=_start_of(start)).replace(until=min(until, _LAST))
        count = None if counted is None else int(counted)
    except (ValueError, TypeError, KeyError) as error:
        raise BadCalendar(f"RRULE {rule[:80]!r} cannot be read ({error})") from None
    for at in islice(times, count):
        yield at if isinstance(start, datetime) else at.date()


def _start_of(at: When) -> datetime:
    return at if isinstance(at, datetime) else datetime(at.year, at.month, at.day)  # noqa: DTZ001 - a wall time


def _until(text: str | None, zone: str | None) -> datetime:
    """The end of a rule as a wall time."""
    if text is None:
        return datetime.max  # noqa: DTZ901 - of wall times
    at, is_utc = _parse(text, "UNTIL")
    if not isinstance(at, datetime):  # the whole day belongs to it
        return datetime(at.year, at.month, at.day, 23, 59, 59)  # noqa: DTZ001
    if not is_utc or zone is None:
        return at
    return at + timedelta(seconds=segment_at(zone, _seconds(at)).offset)


def _instant(wall: datetime, zone: str) -> Instant:
    return min(max(wall_to_second(zone, _seconds(wall)), 0) * SECOND, INSTANT_MAX)


def _seconds(wall: datetime) -> int:
    return (wall - _EPOCH) // timedelta(seconds=1)


def _when(entry: Property) -> tuple[When, str | None]:
    """A date or a wall time, and its zone."""
    value, is_utc = _parse(entry.value.strip(), entry.name)
    zone = entry.parameters.get("TZID")
    if is_utc:
        return value, "UTC"
    try:
        return value, None if zone is None else check_zone(zone.removeprefix("/"), "TZID")
    except Invalid:  # other systems' calendars use their own zone names
        return value, None


def _parse(text: str, name: str) -> tuple[When, bool]:
    form = {8: "%Y%m%d", 15: "%Y%m%dT%H%M%S", 16: "%Y%m%dT%H%M%SZ"}.get(len(text))
    try:
        if form is None:
            raise ValueError
        at = datetime.strptime(text, form)  # noqa: DTZ007 - wall times
    except ValueError:
        raise BadCalendar(f"{name} {text[:40]!r} is not a date such as 20261224, or a time") from None
    return (at.date() if len(text) == 8 else at), text.endswith("Z")


def _list(properties: Iterable[Property], name: str) -> Iterator[When]:
    for entry in properties:
        if entry.name == name:
            for text in entry.value.split(","):
                yield _when(entry._replace(value=text.partition("/")[0]))[0]


def _named(properties: Iterable[Property], name: str) -> Property | None:
    return next((entry for entry in properties if entry.name == name), None)


def _value(properties: Iterable[Property], name: str) -> str | None:
    entry = _named(properties, name)
    return None if entry is None else entry.value
