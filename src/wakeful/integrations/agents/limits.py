"""Parses the reset time of a usage limit from a program's output.

Supported are: seconds or milliseconds since 1970, RFC 3339, a duration ("in 2 hours 5 minutes", "90s"), and a time of
day with or without a date and a zone ("resets 8pm (Europe/Berlin)", "try again at Nov 17th, 2026 8:19 AM"). A time of
day was truncated to the minute by the program, so the end of that minute is used. Times beyond `AHEAD_MAX` are ignored.
"""

import re
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from wakeful.core.time.instants import DAY, MINUTE, SECOND, Instant

AHEAD_MAX: Final = 32 * DAY
"""The longest window is a month."""

_LATE_MAX: Final = DAY
_EPOCH: Final = re.compile(r"\b(\d{10})(\d{3})?\b")
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)")
_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PART: Final = r"(\d+(?:\.\d+)?)\s*(d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_LENGTH: Final = re.compile(rf"(?:\bin|after|for|again|^)\s*((?:{_PART}[\s,]*(?:and\s+)?)+)", re.IGNORECASE)
_BARE_SECONDS: Final = re.compile(r"(?:retry[- ]after|after|in)[:\s]*(\d+)\s*$|^\s*(\d{1,7})\s*$", re.IGNORECASE)
_DAY_TIME: Final = re.compile(
    r"(?:([A-Z][a-z]{2,8})\.?\s+(\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(\d{4}))?,?\s+(?:at\s+)?)?"
    r"\b(\d{1,2})(?::(\d\d))?\s*([ap]\.?m\.?)(?:\s*\(([A-Za-z_+\-/0-9]+)\))?",
    re.IGNORECASE,
)
_CLOCK: Final = re.compile(r"\bat\s+(\d{1,2}):(\d\d)\b(?!\s*[ap]\.?m)(?:\s*\(?([A-Za-z_]+/[A-Za-z_/]+|UTC)\)?)?")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def reset_at(text: str, now: Instant, zone: str) -> Instant | None:
    """The instant in a text, after now or a little before; None if there is no plausible one."""
    for read in (_rfc3339, _epoch, _day_time, _clock, _length):
        found = read(text[:2_000], now, zone)
        if found is not None:
            return found if now - _LATE_MAX <= found <= now + AHEAD_MAX else None
    return None


def _epoch(text: str, now: Instant, zone: str) -> Instant | None:
    found = _EPOCH.search(text)
    return None if found is None else int(found[1]) * SECOND + int(found[2] or 0)


def _rfc3339(text: str, now: Instant, zone: str) -> Instant | None:
    found = _RFC3339.search(text)
    try:
        return None if found is None else _instant(datetime.fromisoformat(found[0]))
    except ValueError:
        return None


def _length(text: str, now: Instant, zone: str) -> Instant | None:
    found = _LENGTH.search(text)
    if found is not None:
        parts = re.findall(_PART, found[1], re.IGNORECASE)
        return now + round(sum(float(count) * _UNITS[unit[0].lower()] for count, unit in parts) * SECOND)
    bare = _BARE_SECONDS.search(text)
    return None if bare is None else now + int(bare[1] or bare[2]) * SECOND


def _day_time(text: str, now: Instant, zone: str) -> Instant | None:
    found = _DAY_TIME.search(text)
    if found is None:
        return None
    month, day, year, hour, minute, half, named = found.groups()
    if not 1 <= int(hour) <= 12 or int(minute or 0) > 59:
        return None
    hours = int(hour) % 12 + (12 if half[0].lower() == "p" else 0)
    exact = 0 if minute is None else MINUTE
    local = datetime.fromtimestamp(now / SECOND, _zone(named, zone)).replace(
        hour=hours, minute=int(minute or 0), second=0, microsecond=0
    )
    if month is None:
        return _next(local, now, exact)
    try:
        dated = local.replace(month=_MONTHS.index(month[:3].lower()) + 1, day=int(day), year=int(year or local.year))
    except ValueError:
        return None
    if year is None and _instant(dated) < now - _LATE_MAX:
        dated = dated.replace(year=dated.year + 1)
    return _instant(dated) + exact


def _clock(text: str, now: Instant, zone: str) -> Instant | None:
    found = _CLOCK.search(text)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        return None
    local = datetime.fromtimestamp(now / SECOND, _zone(found[3], zone))
    return _next(local.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0), now, MINUTE)


def _next(local: datetime, now: Instant, exact: int) -> Instant:
    """The next occurrence, today or tomorrow."""
    at = _instant(local) + exact
    return at if at > now else _instant(local + timedelta(days=1)) + exact


def _instant(local: datetime) -> Instant:
    return round(local.timestamp() * SECOND)


def _zone(named: str | None, otherwise: str) -> ZoneInfo:
    for name in (named, otherwise):
        try:
            if name:
                return ZoneInfo(name)
        except (ValueError, OSError):
            continue
    return ZoneInfo("UTC")
