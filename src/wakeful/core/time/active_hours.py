"""Active hours: the part of each local day in which something may happen.

Theory of operation: a window is two times of day on the wall clock of a zone, start included, end excluded. It may
cross midnight (22:00 to 06:00), end at 24:00, and start = end means always. Only the wall clock decides whether an
instant is inside, so a repeated hour is inside both times, and an hour that a gap leaves out is never waited for. The
next instant inside is therefore searched segment by segment: either the window opens within the segment, or the clock
jumps right into it at its start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.time.instants import DAY, INSTANT_MAX, SECOND, Instant
from wakeful.core.time.zones import DAY_SECONDS, check_zone, segment_at

_TIME_OF_DAY: Final = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class ActiveHours:
    """From `start` until just before `end` (`HH:MM`, the end also `24:00`) on the wall clock of `timezone`."""

    start: str
    end: str
    timezone: str


def is_active(hours: ActiveHours, t: Instant) -> bool:
    """Whether the instant is inside the window."""
    second = t // SECOND
    start, end = _window(hours)
    return _is_inside(start, end, second + segment_at(hours.timezone, second).offset)


def next_active(hours: ActiveHours, t: Instant) -> Instant:
    """The first instant at or after `t` inside the window: `t` itself if it is."""
    second = t // SECOND
    start, end = _window(hours)
    segment = segment_at(hours.timezone, second)
    if _is_inside(start, end, second + segment.offset):
        return t
    while True:
        wall = second + segment.offset
        opens = second + (start - wall) % DAY_SECONDS
        if opens < segment.end or opens * SECOND > INSTANT_MAX:
            return min(opens * SECOND, INSTANT_MAX)
        second, segment = segment.end, segment_at(hours.timezone, segment.end)
        if _is_inside(start, end, second + segment.offset):
            return second * SECOND


def next_closing(hours: ActiveHours, t: Instant) -> Instant:
    """The first instant at or after `t` outside the window: `t` itself if it is. Only for windows that do close."""
    outside = ActiveHours("00:00" if hours.end == "24:00" else hours.end, hours.start, hours.timezone)
    return next_active(outside, t)


def last_active(hours: ActiveHours, t: Instant) -> Instant:
    """The last instant at or before `t` inside the window: `t` itself if it is."""
    if is_active(hours, t):
        return t
    opened = t - 3 * DAY  # a day that a gap leaves out, and the one before it
    while (opens := next_active(hours, opened)) < t:
        opened = next_closing(hours, opens)
    return opened - 1


def parse_time_of_day(text: str, field: str, *, end: bool = False) -> int:
    """Seconds since midnight of an `HH:MM`; `24:00` only as the end of something."""
    if end and text == "24:00":
        return DAY_SECONDS
    if not _TIME_OF_DAY.fullmatch(text):
        refuse(field, f"'{text}' is not a time of day; write HH:MM from 00:00 to {'24:00' if end else '23:59'}")
    return int(text[:2]) * 3600 + int(text[3:]) * 60


def active_hours_from_json(data: object, *, default_zone: str, field: str = "activeHours") -> ActiveHours:
    """The window a definition describes; all errors are raised in one `Invalid`."""
    if not isinstance(data, Mapping):
        refuse(field, f"{data!r} is not an object; write {{start, end, timezone}} or null")
    errors = [
        FieldError(f"{field}.{name}", "is not a field of active hours; write start, end and timezone")
        for name in data
        if name not in ("start", "end", "timezone")
    ]
    for name in ("start", "end", "timezone"):
        errors += _faults(data, name, field)
    if errors:
        raise Invalid(*errors)
    return ActiveHours(data["start"], data["end"], data.get("timezone") or default_zone)


def active_hours_to_json(hours: ActiveHours) -> dict[str, str]:
    """The window as a definition writes it."""
    return {"start": hours.start, "end": hours.end, "timezone": hours.timezone}


def _faults(data: Mapping[str, Any], name: str, field: str) -> list[FieldError]:
    place, value = f"{field}.{name}", data.get(name)
    if value is None:
        return [] if name == "timezone" else [FieldError(place, "is missing; write a time of day such as 09:00")]
    if not isinstance(value, str):
        return [FieldError(place, f"{value!r} is not text; write it in quotes")]
    try:
        if name == "timezone":
            check_zone(value, place)
        else:
            parse_time_of_day(value, place, end=name == "end")
    except Invalid as invalid:
        return list(invalid.errors)
    return []


def _window(hours: ActiveHours) -> tuple[int, int]:
    return parse_time_of_day(hours.start, "start"), parse_time_of_day(hours.end, "end", end=True)


def _is_inside(start: int, end: int, wall: int) -> bool:
    moment = wall % DAY_SECONDS
    if start < end:
        return start <= moment < end
    return start == end or moment >= start or moment < end
