"""Whether a run may start now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.active_hours import ActiveHours, is_active
from wakeful.core.gates import ADMIT, Admit, Skip, by_active_hours, by_spacing
from wakeful.core.instants import parse_instant

HOUR = 3_600_000
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


@given(st.integers(0, 10**13), st.integers(0, 48 * HOUR), st.integers(0, 24 * HOUR))
def test_an_instant_too_close_to_the_one_before_is_skipped(previous: int, distance: int, spacing: int) -> None:
    """Exactly the minimum apart is far enough."""
    decision = by_spacing(previous, previous + distance, spacing)
    assert isinstance(decision, Admit if distance >= spacing else Skip)


def test_the_first_instant_has_nothing_to_be_too_close_to() -> None:
    """However large the minimum."""
    assert by_spacing(None, 0, 10**12) == ADMIT


def test_the_reason_names_the_minimum() -> None:
    """So that whoever raised the limit finds it in the ledger."""
    decision = by_spacing(0, 1, HOUR)
    assert isinstance(decision, Skip)
    assert "minimum interval is" in decision.reason.lower()
