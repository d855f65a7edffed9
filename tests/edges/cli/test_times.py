"""Times as people read them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from wakeful.cli import times

NOON = datetime(2026, 1, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "now"),
        (0.5, "now"),
        (5, "in 5s"),
        (59.2, "in 1min"),
        (300, "in 5min"),
        (299.4, "in 5min"),
        (7500, "in 2h 5min"),
        (7200, "in 2h"),
        (3605, "in 1h"),
        (90_000, "in 1d 1h"),
        (13 * 86_400, "in 13d"),
        (400 * 86_400 + 3600, "in 400d"),
        (-5, "5s ago"),
        (-185, "3min 5s ago"),
        (-3 * 86_400, "3d ago"),
    ],
)
def test_relative_times_have_two_units(seconds: float, words: str) -> None:
    """Ahead is rounded up and behind is rounded down, so that what was asked for is what is shown."""
    assert times.relative(NOON + timedelta(seconds=seconds), NOON) == words


def test_a_time_is_shown_with_day_and_zone() -> None:
    """As `systemctl list-timers` does; seconds only where they count."""
    berlin = ZoneInfo("Europe/Berlin")
    assert times.wall(NOON, berlin) == "Fri 2026-01-30 13:00 CET"
    assert times.wall(NOON + timedelta(seconds=7), berlin) == "Fri 2026-01-30 13:00:07 CET"


def test_the_repeated_hour_is_told_apart() -> None:
    """When clocks go back, two instants have the same wall time; the zone's name tells which."""
    berlin = ZoneInfo("Europe/Berlin")
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert times.wall(first, berlin) == "Sun 2026-10-25 02:30 CEST"
    assert times.wall(first + timedelta(hours=1), berlin) == "Sun 2026-10-25 02:30 CET"


def test_the_end_of_the_calendar_can_be_shown() -> None:
    """The last instant there is has no local date in some zones; it is shown in UTC."""
    assert times.wall(datetime.max.replace(tzinfo=UTC), ZoneInfo("Asia/Tokyo")).endswith("23:59:59 UTC")


@pytest.mark.parametrize("text", [None, "", "soon", "2026-13-40T00:00:00Z"])
def test_what_is_no_time_is_none(text: str | None) -> None:
    """A field that is empty or broken is shown as nothing, and never ends the command."""
    assert times.parse(text) is None
    assert times.wall(times.parse(text)) == "-"


@pytest.mark.parametrize(
    ("amount", "words"), [(None, "-"), (0, "0.0s"), (420, "0.4s"), (12_300, "12s"), (125_000, "2min 5s")]
)
def test_lengths_of_runs(amount: float | None, words: str) -> None:
    """Short ones in tenths, long ones in units."""
    assert times.milliseconds(amount) == words
