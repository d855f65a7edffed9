"""Parse a time of day as typed: `9:00`, `today 18:00`, `tomorrow 9:00`, `monday at 9:00`.

It is read on the wall clock of a zone and becomes a local date and time. `parse_instant` then resolves it, also
across DST changes, as it does for every other local time.
"""

import re
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TYPED: Final = re.compile(
    r"(?:(?P<day>[a-z]+)\s+)?(?:at\s+)?(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?", re.ASCII
)


def upcoming_wall(text: str, now: datetime, zone: tzinfo) -> str | None:
    """The next such time after `now`, as `2026-01-30T09:00:00`; None if the text is not a time of day.

    With `today` it may be in the past. A weekday name means today if the time is still ahead."""
    typed = _typed(text)
    if typed is None:
        return None
    day, at = typed
    here = now.astimezone(zone)
    today, is_over = here.date(), at <= here.time().replace(tzinfo=None)
    if day == "":
        return _wall(today + timedelta(days=is_over), at)
    return _wall_of_day(day, at, today, is_over=is_over)


def wall_of_today(text: str, now: datetime, zone: tzinfo) -> str | None:
    """The given time today, past or future; `yesterday` and `tomorrow` also work. None if it is not a time of day."""
    typed = _typed(text)
    if typed is None:
        return None
    day, at = typed
    today = now.astimezone(zone).date()
    away = {"": 0, "today": 0, "yesterday": -1, "tomorrow": 1}.get(day)
    return None if away is None else _wall(today + timedelta(days=away), at)


def _wall_of_day(day: str, at: time, today: date, *, is_over: bool) -> str | None:
    if day in ("today", "tomorrow"):
        return _wall(today + timedelta(days=day == "tomorrow"), at)
    named = [number for number, name in enumerate(_WEEKDAYS) if name == day or name[:3] == day]
    if not named:
        return None
    away = (named[0] - today.weekday()) % 7
    return _wall(today + timedelta(days=7 if away == 0 and is_over else away), at)


def _typed(text: str) -> tuple[str, time] | None:
    match = _TYPED.fullmatch(text.strip().lower())
    if match is None:
        return None
    try:
        return match["day"] or "", time(int(match["hour"]), int(match["minute"]), int(match["second"] or 0))
    except ValueError:  # 25:00
        return None


def _wall(day: date, at: time) -> str:
    return f"{day.isoformat()}T{at.isoformat()}"
