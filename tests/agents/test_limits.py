"""When a limit resets, in the words of the programs."""

import pytest

from wakeful.core.time.instants import format_instant, parse_instant
from wakeful.integrations.agents.limits import reset_at

NOW = parse_instant("2026-11-16T08:15:30Z")

TEXTS = [
    ("Claude AI usage limit reached|1794823200", "2026-11-16T10:00:00.000Z"),
    ("1794823200500", "2026-11-16T10:00:00.500Z"),
    ("resets at 2026-11-16T10:00:00+01:00", "2026-11-16T09:00:00.000Z"),
    ("You've hit your 5-hour limit · resets 8pm (Europe/Berlin)", "2026-11-16T19:00:00.000Z"),
    ("limit · resets 8am (UTC)", "2026-11-17T08:00:00.000Z"),
    ("resets 8:45am (UTC)", "2026-11-16T08:46:00.000Z"),
    ("try again at 9:19 AM.", "2026-11-16T09:20:00.000Z"),
    ("try again at Nov 17th, 2026 8:19 AM.", "2026-11-17T08:20:00.000Z"),
    ("weekly limit · resets Nov 20, 8pm (UTC)", "2026-11-20T20:00:00.000Z"),
    ("resets Dec 1 at 12am (UTC)", "2026-12-01T00:00:00.000Z"),
    ("resets at 23:30", "2026-11-16T23:31:00.000Z"),
    ("Please try again in 90s", "2026-11-16T08:17:00.000Z"),
    ("Please retry in 3584s.", "2026-11-16T09:15:14.000Z"),
    ("try again in 2 hours 5 minutes", "2026-11-16T10:20:30.000Z"),
    ("available again in 1h30m", "2026-11-16T09:45:30.000Z"),
    ("retry after 1.5 days", "2026-11-17T20:15:30.000Z"),
    ("Retry-After: 120", "2026-11-16T08:17:30.000Z"),
    ("120", "2026-11-16T08:17:30.000Z"),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_a_reset_is_read(text: str, expected: str) -> None:
    """A time of day with minutes was cut to the minute, so the end of that minute is meant."""
    found = reset_at(text, NOW, "UTC")
    assert found is not None and format_instant(found) == expected


def test_a_time_of_day_without_a_zone_is_the_machines() -> None:
    """As the program printed it."""
    found = reset_at("try again at 9:19 AM", NOW, "America/New_York")
    assert found is not None and format_instant(found) == "2026-11-16T14:20:00.000Z"


@pytest.mark.parametrize(
    "text", ["", "rate limited", "resets Feb 30, 8pm (UTC)", "9999999999", "in 400 days", "13pm", "1294823200"]
)
def test_what_names_no_time_that_can_be_believed(text: str) -> None:
    """Then it is an ordinary failure."""
    assert reset_at(text, NOW, "UTC") is None
