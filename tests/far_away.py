"""Times that are far away from now, for schedules on the real clock that must not become due while a test runs."""

from datetime import UTC, datetime, tzinfo


def hour_away(zone: tzinfo = UTC, by: int = 12) -> int:
    """The hour of the day that is so many hours away."""
    return (datetime.now(zone).hour + by) % 24


def minute_away() -> int:
    """The minute of the hour that is half an hour away. Not for constants: tests run much later than their module."""
    return (datetime.now(UTC).minute + 30) % 60


def zone_at_noon() -> str:
    """A time zone in which it is about noon: no day ends while a test runs."""
    offset = 12 - datetime.now(UTC).hour
    return f"Etc/GMT{-offset:+}" if offset else "UTC"
