"""Active hours: the part of each local day in which something may happen.

Theory of operation: a window is two times of day on the wall clock of a zone, start included, end excluded. It may
cross midnight (22:00 to 06:00), end at 24:00, and start = end means always. Only the wall clock decides whether an
instant is inside, so a repeated hour is inside both times, and an hour that a gap leaves out is never waited for. The
next instant inside is therefore searched segment by segment: either the window opens within the segment, or the clock
jumps right into it at its start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Final

from wakeful.core.description import Field, described
from wakeful.core.errors import refuse
from wakeful.core.fields import Fields
from wakeful.core.kinds import ZONE, nested, parsed
from wakeful.core.time.instants import DAY, INSTANT_MAX, SECOND, Instant
from wakeful.core.time.zones import DAY_SECONDS, segment_at

_TIME_OF_DAY: Final = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d", re.ASCII)


def parse_time_of_day(text: str, field: str, *, end: bool = False) -> int:
    """Seconds since midnight of an `HH:MM`; `24:00` only as the end of something."""
    if end and text == "24:00":
        return DAY_SECONDS
    if not _TIME_OF_DAY.fullmatch(text):
        refuse(field, f"'{text}' is not a time of day; write HH:MM from 00:00 to {'24:00' if end else '23:59'}")
    return int(text[:2]) * 3600 + int(text[3:]) * 60


def _parse_end(text: str, field: str) -> int:
    return parse_time_of_day(text, field, end=True)


_CURE: Final = "write a time of day such as 09:00"
_START: Final = parsed("time of day", parse_time_of_day, cure=_CURE)
_END: Final = parsed("time of day, or 24:00", _parse_end, cure=_CURE)


@dataclass(frozen=True, slots=True)
class ActiveHours:
    """From `start` until just before `end` (`HH:MM`, the end also `24:00`) on the wall clock of `timezone`."""

    start: Annotated[str, Field(_START, "start of the active hours", "Active from", "09:00")]
    end: Annotated[str, Field(_END, "end (exclusive); equal to start: always active", "Active until", "22:00")]
    timezone: Annotated[
        str, Field(ZONE, "time zone of both", "Time zone of active hours", default=None, usual="the default time zone")
    ]


DESCRIPTION: Final = described(ActiveHours, says="The hours of the day during which it may start.")


def _read(fields: Fields, name: str) -> ActiveHours | None:
    hours = fields.nested(name, DESCRIPTION.read)
    return hours if hours is None or hours.timezone else replace(hours, timezone=fields.zone or "UTC")


ACTIVE_HOURS: Final = replace(nested(DESCRIPTION), read=_read)


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


def _window(hours: ActiveHours) -> tuple[int, int]:
    return parse_time_of_day(hours.start, "start"), parse_time_of_day(hours.end, "end", end=True)


def _is_inside(start: int, end: int, wall: int) -> bool:
    moment = wall % DAY_SECONDS
    if start < end:
        return start <= moment < end
    return start == end or moment >= start or moment < end
