"""Times as a person reads them: on the clock of their own zone, and how far away they are."""

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
    """The zone of the person at this terminal (TZ, or the system's), found the way the daemon finds its own."""
    try:
        import tzlocal

        name = tzlocal.get_localzone_name()
        return name, ZoneInfo(name)
    except Exception:  # whatever is wrong with this machine's zone, times can still be shown by its offset
        here = datetime.now(UTC).astimezone()
        return here.strftime("%Z"), here.tzinfo or UTC


def now() -> datetime:
    """This moment, in UTC, by the clock of this terminal: it says how far off times are, and decides nothing."""
    return datetime.now(UTC)


def parse(text: str | None) -> datetime | None:
    """An instant as the daemon writes it; None for none, and for what nobody can read."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def wall(at: datetime | None, zone: tzinfo | None = None) -> str:
    """`Fri 2026-01-30 09:00 CET`, in the user's zone unless another is given; seconds only where they count."""
    if at is None:
        return NONE
    local = _in_zone(at, user_zone()[1] if zone is None else zone)
    clock = "%H:%M:%S" if local.second else "%H:%M"
    # The names of days and zones stay English whatever the locale: scripts and people read the same.
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[local.weekday()]
    return f"{day} {local.strftime(f'%Y-%m-%d {clock}')} {local.tzname() or ''}".rstrip()


def when(text: str | None, since: datetime) -> str:
    """An instant as the daemon writes it, on the user's clock, and how far away it is."""
    at = parse(text)
    return NONE if at is None else f"{wall(at)} ({relative(at, since)})"


def localised(sentence: str) -> str:
    """A sentence of the daemon with its instants on the user's clock."""
    return _INSTANT.sub(lambda found: wall(parse(found[0])), sentence)


def relative(at: datetime | None, since: datetime) -> str:
    """`in 2h 5min`, `3min ago`, `now`: the two greatest units, rounded down."""
    if at is None:
        return NONE
    seconds = (at - since) / timedelta(seconds=1)
    if abs(seconds) < 1:
        return "now"
    # A time ahead is rounded up: what was just planned in five minutes is not four minutes and 59 seconds away.
    length = spelt(int(-seconds) if seconds < 0 else int(seconds + 0.999))
    return f"{length} ago" if seconds < 0 else f"in {length}"


def spelt(seconds: int) -> str:
    """A length in its two greatest units: `2h 5min`; beyond two weeks days are exact enough."""
    if seconds >= _ONLY_DAYS:
        return f"{seconds // 86_400}d"
    parts: list[str] = []
    for unit, name in _UNITS:
        amount, seconds = divmod(seconds, unit)
        if amount:
            parts.append(f"{amount}{name}")
        elif parts:
            break  # `1h 5s` would say that the minutes were looked at and the seconds matter
    return " ".join(parts[:2]) or "0s"


def length(start: datetime | None, end: datetime | None) -> str:
    """How long something took: `0.4s`, `12s`, `2min 5s`."""
    if start is None or end is None:
        return NONE
    seconds = max(0.0, (end - start) / timedelta(seconds=1))
    return milliseconds(seconds * 1000)


def milliseconds(amount: float | None) -> str:
    """The same for a number of milliseconds."""
    if amount is None:
        return NONE
    return f"{amount / 1000:.1f}s" if amount < 10_000 else spelt(int(amount / 1000))


def zone_named(name: str | None) -> tzinfo | None:
    """The zone of that name, if this machine knows it."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return None


def _in_zone(at: datetime, zone: tzinfo) -> datetime:
    try:
        return at.astimezone(zone)
    except (OverflowError, ValueError):  # at the very ends of the calendar a local date may not exist
        return at.astimezone(UTC)
