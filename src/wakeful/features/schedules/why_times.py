"""Formats times, durations and errors for people."""

from typing import Final

from wakeful.core.time.instants import (
    DAY,
    INSTANT_MAX,
    INSTANT_MIN,
    MINUTE,
    SECOND,
    Duration,
    Instant,
    format_duration,
    format_instant,
)
from wakeful.core.time.zones import segment_at

TEXT_MAX: Final = 300


class TimeFormat:
    """Formats times in one zone, without the date where it is clear."""

    def __init__(self, zone: str, day_of: Instant) -> None:
        self._zone = zone
        self._day = self._wall(day_of)[0]

    def full(self, at: Instant) -> str:
        """The time with day and zone."""
        day, time = self._wall(at)
        return f"{day} {time} ({self._zone})"

    def day(self, at: Instant) -> str:
        """Only the day."""
        return self._wall(at)[0]

    def brief(self, at: Instant) -> str:
        """The time of day, with the date if it differs."""
        day, time = self._wall(at)
        return time if day == self._day else f"{day} {time}"

    def _wall(self, at: Instant) -> tuple[str, str]:
        offset = segment_at(self._zone, at // SECOND).offset * SECOND
        text = format_instant(min(max(at + offset, INSTANT_MIN), INSTANT_MAX))
        return text[:10], text[11:23].removesuffix(".000").removesuffix(":00")


def length(duration: Duration) -> str:
    """A duration without insignificant digits."""
    for unit, above in ((MINUTE, DAY), (SECOND, 10 * SECOND)):
        if duration >= above:
            duration -= duration % unit
    return format_duration(max(duration, 0))


def shorten(text: str | None) -> str:
    """The text on one line, truncated."""
    words = " ".join((text or "no reason was given").split())
    return words if len(words) <= TEXT_MAX else f"{words[:TEXT_MAX]}…"
