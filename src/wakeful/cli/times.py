"""Times for display: in the user's zone, and how far away they are."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo

NONE: Final = "-"
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_ONLY_DAYS: Final = 14 * 86_400


@cache
def user_zone() -> tuple[str, tzinfo]:
    """The zone of this terminal's user (TZ, or the system's), determined as the daemon determines its own."""
    try:
        import tzlocal

        name = tzlocal.get_localzone_name()
        return name, ZoneInfo(name)
    except Exception:  # if the zone of this machine is broken, its UTC offset still works
        here = datetime.now(UTC).astimezone()
        return here.strftime("%Z"), here.tzinfo or UTC


def now() -> datetime:
    """The current time in UTC, by this machine's clock; only used to show how far away times are."""
    return datetime.now(UTC)


def parse(text: str | None) -> datetime | None:
    """Parse an instant as the daemon writes it; None if it is missing or unreadable."""
    if not text:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def wall(at: datetime | None, zone: tzinfo | None = None) -> str:
    """`Fri 2026-01-30 09:00 CET`, in the user's zone unless another is given; seconds only if not zero."""
    if at is None:
        return NONE
    local = _in_zone(at, user_zone()[1] if zone is None else zone)
    clock = "%H:%M:%S" if local.second else "%H:%M"
    # Day names stay English whatever the locale, so that scripts can parse them.
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[local.weekday()]
    return f"{day} {local.strftime(f'%Y-%m-%d {clock}')} {local.tzname() or ''}".rstrip()


def when(text: str | None, since: datetime) -> str:
    """An instant as the daemon writes it, in the user's zone, and how far away it is."""
    at = parse(text)
    return NONE if at is None else f"{wall(at)} ({relative(at, since)})"


def localised(sentence: str) -> str:
    """A sentence from the daemon with its instants in the user's zone."""
    return _INSTANT.sub(lambda match: wall(parse(match[0])), sentence)


def relative(at: datetime | None, since: datetime) -> str:
    """`in 2h 5min`, `3min ago`, `now`: the two largest units, rounded down."""
    if at is None:
        return NONE
    seconds = (at - since) / timedelta(seconds=1)
    if abs(seconds) < 1:
        return "now"
    # A future time is rounded up: one just planned five minutes ahead must not show as four minutes and 59 seconds.
    length = spelt(int(-seconds) if seconds < 0 else int(seconds + 0.999))
    return f"{length} ago" if seconds < 0 else f"in {length}"


def spelt(seconds: int) -> str:
    """A duration in its two largest units: `2h 5min`; only days beyond two weeks."""
    if seconds >= _ONLY_DAYS:
        return f"{seconds // 86_400}d"
    parts: list[str] = []
    for unit, name in _UNITS:
        amount, seconds = divmod(seconds, unit)
        if amount:
            parts.append(f"{amount}{name}")
        elif parts:
            break  # only adjacent units: not `1h 5s`
    return " ".join(parts[:2]) or "0s"


def length(start: datetime | None, end: datetime | None) -> str:
    """How long something took: `0.4s`, `12s`, `2min 5s`."""
    if start is None or end is None:
        return NONE
    seconds = max(0.0, (end - start) / timedelta(seconds=1))
    return milliseconds(seconds * 1000)


def milliseconds(amount: float | None) -> str:
    """Like `length`, for a number of milliseconds."""
    if amount is None:
        return NONE
    return f"{amount / 1000:.1f}s" if amount < 10_000 else spelt(int(amount / 1000))


def zone_named(name: str | None) -> tzinfo | None:
    """The zone of that name, or None if it is unknown to this machine."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return None


def _in_zone(at: datetime, zone: tzinfo) -> datetime:
    try:
        return at.astimezone(zone)
    except (OverflowError, ValueError):  # at the ends of the calendar a local date may not exist
        return at.astimezone(UTC)
