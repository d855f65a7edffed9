"""Parses the reset time of a usage limit from a program's output.

Supported are: seconds or milliseconds since 1970, RFC 3339, a duration ("in 2 hours 5 minutes", "90s"), and a time of
day with or without a date and a zone ("resets 8pm (Europe/Berlin)", "try again at Nov 17th, 2026 8:19 AM"). Programs
truncate: a time of day with minutes means the end of that minute, a duration in whole seconds the end of its last
second. Times beyond `AHEAD_MAX` are ignored.

A duration counts from when it was printed. A program may run on for seconds after that, so the arrival time of the line
is used where it is known.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from wakeful.core.time.instants import DAY, MINUTE, SECOND, Instant
from wakeful.integrations.agents.presets.preset import Printed, ReadMoment
from wakeful.integrations.agents.printed import plain

AHEAD_MAX: Final = 32 * DAY
"""The longest window is a month."""

_LATE_MAX: Final = DAY
_TEXT_MAX: Final = 2_000
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


def printed_reset(text: str, printed: Printed, now: ReadMoment) -> Instant | None:
    """The reset named in the program's output, counted from the arrival of the line that names it."""
    named = _named(text, now.at, now.zone)
    return None if named is None else reset_at(text, _arrived_at(named[0], printed, now.at), now.zone)


def reset_at(text: str, now: Instant, zone: str) -> Instant | None:
    """The instant named in `text`, after now or a little before; None if there is no plausible one."""
    named = _named(text, now, zone)
    return named[1] if named is not None and now - _LATE_MAX <= named[1] <= now + AHEAD_MAX else None


def _named(text: str, now: Instant, zone: str) -> tuple[str, Instant] | None:
    """The words in `text` that name a time, and the instant."""
    for pattern, read in _FORMS:
        match = pattern.search(text[:_TEXT_MAX])
        at = None if match is None else read(match, now, zone)
        if match is not None and at is not None:
            return match[0], at
    return None


def _arrived_at(words: str, printed: Printed, now: Instant) -> Instant:
    """When these words last arrived on either stream; now if that is unknown."""
    # They may be wrapped differently in the output, or be part of a JSON string.
    pattern = re.compile(r"(?<![\w.])" + r"(?:\s|\\n)+".join(map(re.escape, words.split())) + r"(?!\w)")
    streams = ((printed.stdout, printed.stdout_arrived), (printed.stderr, printed.stderr_arrived))
    arrived = []
    for text, arrivals in streams:
        match = _last(pattern, plain(text)) if arrivals.marks else None
        at = None if match is None else arrivals.of(plain(text), match.end())
        arrived += [] if at is None else [at]
    return min(max(arrived, default=now), now)


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    return match


def _epoch(match: re.Match[str], now: Instant, zone: str) -> Instant | None:
    return int(match[1]) * SECOND + int(match[2] or 0)


def _rfc3339(match: re.Match[str], now: Instant, zone: str) -> Instant | None:
    try:
        return _instant(datetime.fromisoformat(match[0]))
    except ValueError:
        return None


def _length(match: re.Match[str], now: Instant, zone: str) -> Instant | None:
    parts = [(float(count), count, unit[0].lower()) for count, unit in re.findall(_PART, match[1], re.IGNORECASE)]
    _, count, unit = parts[-1]
    is_whole = unit == "s" and "." not in count
    return now + round(sum(number * _UNITS[unit] for number, _, unit in parts) * SECOND) + SECOND * is_whole


def _bare_seconds(match: re.Match[str], now: Instant, zone: str) -> Instant | None:
    return now + (int(match[1] or match[2]) + 1) * SECOND


def _day_time(match: re.Match[str], now: Instant, zone: str) -> Instant | None:
    month, day, year, hour, minute, half, named = match.groups()
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


def _clock(match: re.Match[str], now: Instant, zone: str) -> Instant | None:
    if int(match[1]) > 23 or int(match[2]) > 59:
        return None
    local = datetime.fromtimestamp(now / SECOND, _zone(match[3], zone))
    return _next(local.replace(hour=int(match[1]), minute=int(match[2]), second=0, microsecond=0), now, MINUTE)


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


_Form: TypeAlias = tuple[re.Pattern[str], Callable[[re.Match[str], Instant, str], Instant | None]]
# How a time may be written, most exact first; given when it was written and the zone.
_FORMS: Final[tuple[_Form, ...]] = (
    (_RFC3339, _rfc3339),
    (_EPOCH, _epoch),
    (_DAY_TIME, _day_time),
    (_CLOCK, _clock),
    (_LENGTH, _length),
    (_BARE_SECONDS, _bare_seconds),
)
