"""Whether a run may start now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.active_hours import ActiveHours, is_active
from wakeful.core.gates import ADMIT, Admit, Skip, by_active_hours
from wakeful.core.instants import parse_instant

HOURS = ActiveHours("09:00", "17:00", "Europe/Berlin")


@pytest.mark.parametrize(
    ("at", "is_admitted"),
    [
        ("2026-01-30T07:59:59.999Z", False),
        ("2026-01-30T08:00:00Z", True),
        ("2026-01-30T15:59:59.999Z", True),
        ("2026-01-30T16:00:00Z", False),
        ("2026-07-30T07:00:00Z", True),
    ],
)
def test_an_instant_outside_the_active_hours_is_skipped_with_that_reason(at: str, is_admitted: bool) -> None:
    """Start included, end excluded, on the wall clock of the window's zone."""
    expected = ADMIT if is_admitted else Skip("outside active hours")
    assert by_active_hours(HOURS, parse_instant(at)) == expected


@given(st.integers(0, 4_000_000_000_000))
def test_the_gate_says_what_the_window_says(at: int) -> None:
    """It judges the planned time, whatever the time is now."""
    assert isinstance(by_active_hours(HOURS, at), Admit) == is_active(HOURS, at)
