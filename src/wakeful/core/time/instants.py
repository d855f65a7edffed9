"""Instants and durations: whole milliseconds, and their text.

Theory of operation: an instant is an int, milliseconds since 1970 in UTC; a duration is an int, milliseconds. Ints
compare, subtract and go into a database as they are, and no value carries a hidden zone. Text appears only at the
edges: RFC 3339 for instants (any offset in, always UTC with milliseconds out), `1h30m` for durations. The calendar is
limited to 1970..9999, the range that every part (date arithmetic, the stores, RFC 3339 itself) supports.

A string without an offset does not identify an instant. It is refused, unless a zone is given with it: then it is that
zone's wall clock, by the same rule as fixed times in `wallclock` (in a gap: right after it; repeated: the first).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, TypeAlias

from wakeful.core.errors import refuse
from wakeful.core.time.zones import check_zone, wall_to_second

Instant: TypeAlias = int
"""Milliseconds since 1970-01-01T00:00:00Z."""

Duration: TypeAlias = int
"""Milliseconds."""

SECOND: Final[Duration] = 1_000
MINUTE: Final[Duration] = 60 * SECOND
HOUR: Final[Duration] = 60 * MINUTE
DAY: Final[Duration] = 24 * HOUR
WEEK: Final[Duration] = 7 * DAY

INSTANT_MIN: Final[Instant] = 0
INSTANT_MAX: Final[Instant] = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z, the last instant RFC 3339 can write."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TWO_DIGITS: Final = tuple(f"{n:02}" for n in range(60))
HOURS_KEPT: Final = 4_096
TEXTS_KEPT: Final = 16_384
"""How many formatted instants are kept: a timeline has 3,500, and a page shows the same ones again and again."""
_RFC_3339: Final = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[Tt ](?P<hour>\d\d):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?(?P<offset>[Zz]|[+-]\d\d:\d\d)?",
    re.ASCII,
)
_DURATION: Final = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)
_UNITS: Final = (WEEK, DAY, HOUR, MINUTE, SECOND, 1)


@lru_cache(maxsize=TEXTS_KEPT)
def format_instant(ms: Instant) -> str:
    """An instant as RFC 3339 in UTC with milliseconds, e.g. `2026-01-30T09:00:00.000Z`."""
    if not INSTANT_MIN <= ms <= INSTANT_MAX:
        refuse("instant", f"{ms} ms is outside the years 1970 to 9999; check the clock or the unit (milliseconds)")
    hour, rest = divmod(ms, HOUR)
    return f"{_hour_text(hour)}{_TWO_DIGITS[rest // MINUTE]}:{_TWO_DIGITS[rest // SECOND % 60]}.{rest % SECOND:03}Z"


def format_optional(at: Instant | None) -> str | None:
    """`format_instant`, for a time that may be missing."""
    return None if at is None else format_instant(at)


@lru_cache(maxsize=HOURS_KEPT)
def _hour_text(hour: int) -> str:
    """Date and hour: a list of runs has thousands of instants in few hours."""
    return f"{(_EPOCH + timedelta(hours=hour)).isoformat()[:13]}:"


def parse_instant(text: str, zone: str | None = None, field: str = "instant") -> Instant:
    """Parse RFC 3339 text; without an offset it is read on the wall clock of `zone`."""
    match = _RFC_3339.fullmatch(text.strip())
    if match is None:
        refuse(field, f"'{text}' is not a date and time; write it like 2026-01-30T09:00:00Z")
    wall = _wall_milliseconds(match, text, field)
    ms = wall - _offset(match["offset"], text, field) if match["offset"] else _on_wall_clock(wall, zone, text, field)
    if not INSTANT_MIN <= ms <= INSTANT_MAX:
        refuse(field, f"'{text}' is outside the years 1970 to 9999; write a date within them")
    return ms


def parse_duration(text: str, field: str = "duration") -> Duration:
    """Parse a duration such as `90s`, `30m`, `1h30m` or `500ms`."""
    ms = _milliseconds(text)
    if ms is None:
        refuse(field, f"'{text}' is not a duration; write it like 90s, 30m, 2h, 1d or 1h30m")
    if ms > INSTANT_MAX:
        refuse(field, f"'{text}' is longer than 9999 years; write a shorter duration")
    return ms


@lru_cache(maxsize=1024)  # the same few durations are parsed again and again
def _milliseconds(text: str) -> int | None:
    match = _DURATION.fullmatch(text.strip())
    if match is None or match.lastindex is None:
        return None
    return sum(int(amount) * unit for amount, unit in zip(match.groups(), _UNITS, strict=True) if amount)


@lru_cache(maxsize=1024)
def format_duration(ms: Duration) -> str:
    """A duration as short text that `parse_duration` reads back exactly, e.g. `1h30m`; zero is `0s`."""
    if ms < 0:
        refuse("duration", f"{ms} ms is negative; a duration is zero or more")
    parts = []
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (1, "ms")):
        amount, ms = divmod(ms, unit)
        if amount:
            parts.append(f"{amount}{name}")
    return "".join(parts) or "0s"


def _wall_milliseconds(match: re.Match[str], text: str, field: str) -> int:
    year, month, day, hour, minute, second, fraction, _ = match.groups()
    # Digits beyond the millisecond are cut, not rounded: rounding could produce an instant in the future.
    milli = int(fraction.ljust(3, "0")[:3]) if fraction else 0
    try:
        wall = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=UTC)
    except ValueError as error:
        refuse(field, f"'{text}' is not a valid date and time ({error}); write a real date and time")
    since = wall - _EPOCH
    return since.days * DAY + since.seconds * SECOND + milli


def _offset(offset: str, text: str, field: str) -> Duration:
    if offset in "Zz":
        return 0
    hours, minutes = int(offset[1:3]), int(offset[4:6])
    if hours > 23 or minutes > 59:
        refuse(field, f"'{text}' has the impossible offset {offset}; write Z or at most ±23:59")
    return (hours * HOUR + minutes * MINUTE) * (-1 if offset[0] == "-" else 1)


def _on_wall_clock(wall: int, zone: str | None, text: str, field: str) -> Instant:
    if zone is None:
        refuse(field, f"'{text}' has no offset, so it is ambiguous; add Z or an offset such as +02:00")
    check_zone(zone, "timezone")
    return wall_to_second(zone, wall // SECOND) * SECOND + wall % SECOND
