"""Times of day as people type them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from wakeful.cli.day_words import upcoming_wall, wall_of_today

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 1, 30, 12, 0, tzinfo=UTC)  # a Friday, 13:00 in Berlin


@pytest.mark.parametrize(
    ("text", "wall"),
    [
        ("tomorrow 9:00", "2026-01-31T09:00:00"),
        ("Tomorrow at 09:00", "2026-01-31T09:00:00"),
        ("today 18:00", "2026-01-30T18:00:00"),
        ("today 9:00", "2026-01-30T09:00:00"),
        ("18:00", "2026-01-30T18:00:00"),
        ("9:00", "2026-01-31T09:00:00"),
        ("13:00", "2026-01-31T13:00:00"),
        ("9:00:30", "2026-01-31T09:00:30"),
        ("friday 18:00", "2026-01-30T18:00:00"),
        ("friday 9:00", "2026-02-06T09:00:00"),
        ("fri 9:00", "2026-02-06T09:00:00"),
        ("monday 9:00", "2026-02-02T09:00:00"),
        ("thursday 9:00", "2026-02-05T09:00:00"),
        ("25:00", None),
        ("9", None),
        ("someday 9:00", None),
        ("2026-01-30T09:00:00Z", None),
        ("", None),
    ],
)
def test_the_next_such_time(text: str, wall: str | None) -> None:
    """In the zone: at 13:00 in Berlin, 13:00 is tomorrow's and a Friday's 18:00 is today's."""
    assert upcoming_wall(text, NOW, BERLIN) == wall


@pytest.mark.parametrize(
    ("text", "wall"),
    [
        ("9:00", "2026-01-30T09:00:00"),
        ("18:00", "2026-01-30T18:00:00"),
        ("yesterday 9:00", "2026-01-29T09:00:00"),
        ("tomorrow 9:00", "2026-01-31T09:00:00"),
        ("monday 9:00", None),
        ("2h", None),
    ],
)
def test_a_question_is_about_this_day(text: str, wall: str | None) -> None:
    """Past or to come."""
    assert wall_of_today(text, NOW, BERLIN) == wall


def test_the_day_is_that_of_the_zone() -> None:
    """When it is still Friday in London, it is Saturday in Tokyo."""
    late = datetime(2026, 1, 30, 20, 0, tzinfo=UTC)
    assert wall_of_today("9:00", late, ZoneInfo("Asia/Tokyo")) == "2026-01-31T09:00:00"
