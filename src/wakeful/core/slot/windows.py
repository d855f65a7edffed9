"""What an agent's program reports about the usage windows of its account: five hours, seven days.

A report with a turn is a reading of the agent's own slot (`slot_name`). Nothing polls such a slot: its state is what
the last turn reported, and a window whose reset has passed says nothing any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from wakeful.core.slot.slot import Reading
from wakeful.core.time.instants import DAY, HOUR, Duration, Instant

PREFIX: Final = "agent-"
FIVE_HOURS: Final = "five_hour"
SEVEN_DAYS: Final = "seven_day"
LENGTHS: Final[dict[str, Duration]] = {FIVE_HOURS: 5 * HOUR, SEVEN_DAYS: 7 * DAY}
WINDOWS_MAX: Final = 10
_HOURS, _DAYS = 3, 4  # units of a limit, as other providers number them


def slot_name(agent: str) -> str:
    return f"{PREFIX}{agent}"


@dataclass(frozen=True, slots=True)
class UsageWindow:
    """One window, as reported."""

    name: str
    percentage: float | None
    reset_at: Instant | None
    length: Duration | None = None
    is_exhausted: bool = False  # requests are refused because of it

    @property
    def is_shared(self) -> bool:
        """Whether it holds for every model. A window of one model must not stop turns with another."""
        return self.length in LENGTHS.values()


def window_name(length: Duration | None) -> str:
    """The name of a window that is reported by its length alone."""
    return next((name for name, known in LENGTHS.items() if known == length), "window")


def open_windows(windows: Sequence[UsageWindow], now: Instant) -> list[UsageWindow]:
    """The windows that have not ended yet, at most `WINDOWS_MAX`."""
    return [window for window in windows if window.reset_at is None or window.reset_at > now][:WINDOWS_MAX]


def reading_of(windows: Sequence[UsageWindow], now: Instant) -> Reading | None:
    """The reading of the slot: the window that is used most, with all of them as its limits. None if all have ended."""
    current = open_windows(windows, now)
    if not current:
        return None
    tightest = max(current, key=lambda window: (window.is_exhausted, window.percentage or 0.0, window.reset_at or 0))
    limits = tuple(map(_limit, current))
    return Reading(tightest.percentage, tightest.reset_at, tightest.length, limits=limits)


def exhausted_until(windows: Sequence[UsageWindow], now: Instant) -> Instant | None:
    """Until when the agent cannot be used; None if it can."""
    resets = [
        window.reset_at
        for window in open_windows(windows, now)
        if window.is_exhausted and window.is_shared and window.reset_at
    ]
    return max(resets, default=None)


def still_open(reading: Reading, now: Instant) -> Reading | None:
    """A stored reading without the windows that have ended since; None if none is left."""
    windows = [window for limit in reading.limits if (window := _window(limit)) is not None]
    return reading_of(windows, now)


def _limit(window: UsageWindow) -> dict[str, Any]:
    """A window in the form of other providers' limits, for people and programs."""
    length = window.length
    number, unit = (None, None) if length is None else (length // HOUR, _HOURS)
    if length is not None and length % DAY == 0:
        number, unit = length // DAY, _DAYS
    known = {
        "type": "usage",
        "name": window.name,
        "number": number,
        "unit": unit,
        "percentage": window.percentage,
        "nextResetTime": window.reset_at,
        "exhausted": window.is_exhausted,
    }
    return {name: value for name, value in known.items() if value is not None}


def _window(limit: Any) -> UsageWindow | None:
    if not isinstance(limit, dict) or not isinstance(limit.get("name"), str):
        return None
    number, unit = limit.get("number"), {_HOURS: HOUR, _DAYS: DAY}.get(limit.get("unit", 0))
    length = number * unit if isinstance(number, int) and unit is not None else None
    return UsageWindow(
        limit["name"], limit.get("percentage"), limit.get("nextResetTime"), length, limit.get("exhausted") is True
    )
