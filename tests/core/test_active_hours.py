"""Active hours: the window of each local day in which something may happen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import examples
from wakeful.core.errors import Invalid
from wakeful.core.fields import Fields
from wakeful.core.time.active_hours import (
    ACTIVE_HOURS,
    ActiveHours,
    is_active,
    last_active,
    next_active,
    next_closing,
)
from wakeful.core.time.instants import INSTANT_MAX, format_instant, parse_instant

MINUTE, DAY = 60_000, 86_400_000


def at(text: str, zone: str = "Asia/Shanghai") -> int:
    return parse_instant(text, zone)


def read(data: Any, default_zone: str) -> ActiveHours | None:
    fields = Fields({"activeHours": data}, zone=default_zone)
    hours: ActiveHours | None = ACTIVE_HOURS.read(fields, "activeHours")
    fields.finish()
    return hours


def test_the_start_is_inside_and_the_end_is_not() -> None:
    """09:00 is active, 22:00 no more."""
    hours = ActiveHours("09:00", "22:00", "Asia/Shanghai")
    inside = [is_active(hours, at(f"2026-01-30T{t}")) for t in ("08:59:59", "09:00", "21:59:59.999", "22:00")]
    assert inside == [False, True, True, False]


def test_a_window_may_cross_midnight() -> None:
    """From the evening into the morning."""
    hours = ActiveHours("22:00", "06:00", "Asia/Shanghai")
    inside = [is_active(hours, at(f"2026-01-30T{t}")) for t in ("21:59", "22:00", "23:59", "00:00", "05:59", "06:00")]
    assert inside == [False, True, True, True, True, False]


def test_a_window_may_end_at_24_00() -> None:
    """The whole evening, and nothing of the next day."""
    hours = ActiveHours("18:00", "24:00", "Asia/Shanghai")
    assert is_active(hours, at("2026-01-30T23:59:59.999"))
    assert not is_active(hours, at("2026-01-31T00:00"))


def test_start_equal_to_end_means_always() -> None:
    """An empty window would never let anything happen, so it means the opposite."""
    assert all(is_active(ActiveHours("09:00", "09:00", "UTC"), t) for t in range(0, DAY, MINUTE))
    assert all(is_active(ActiveHours("00:00", "24:00", "UTC"), t) for t in range(0, DAY, MINUTE))


def test_inside_the_next_active_instant_is_now() -> None:
    """To the millisecond."""
    now = at("2026-01-30T10:00:00.123")
    assert next_active(ActiveHours("09:00", "22:00", "Asia/Shanghai"), now) == now


def test_outside_it_is_the_start_of_the_next_window() -> None:
    """This morning or tomorrow's."""
    hours = ActiveHours("09:00", "22:00", "Asia/Shanghai")
    assert next_active(hours, at("2026-01-30T03:00")) == at("2026-01-30T09:00")
    assert next_active(hours, at("2026-01-30T22:00")) == at("2026-01-31T09:00")


def test_a_start_in_the_gap_opens_right_after_it() -> None:
    """Berlin has no 02:30 on that day: the window opens at 03:00."""
    hours = ActiveHours("02:30", "05:00", "Europe/Berlin")
    opens = next_active(hours, at("2026-03-29T00:00", "Europe/Berlin"))
    assert format_instant(opens) == "2026-03-29T01:00:00.000Z"


def test_a_window_that_a_gap_swallows_waits_for_the_next_day() -> None:
    """A window from 02:15 to 02:45 does not exist on that day."""
    hours = ActiveHours("02:15", "02:45", "Europe/Berlin")
    assert next_active(hours, at("2026-03-29T00:00", "Europe/Berlin")) == at("2026-03-30T02:15", "Europe/Berlin")


def test_a_repeated_hour_is_inside_both_times() -> None:
    """The clock that falls back into the window makes it active again."""
    hours = ActiveHours("01:00", "02:30", "Europe/Berlin")
    between_the_passes = parse_instant("2026-10-25T00:45:00Z")
    assert not is_active(hours, between_the_passes)
    assert format_instant(next_active(hours, between_the_passes)) == "2026-10-25T01:00:00.000Z"


def test_the_end_of_the_calendar_is_no_error() -> None:
    """Where no window follows, the answer is the last instant there is."""
    assert next_active(ActiveHours("00:00", "00:01", "UTC"), INSTANT_MAX) == INSTANT_MAX


@settings(max_examples=examples(100), deadline=None)
@given(
    st.tuples(st.integers(0, 95), st.integers(0, 96)),
    st.sampled_from(["Europe/Berlin", "Africa/Cairo", "Australia/Lord_Howe", "America/New_York"]),
    st.sampled_from(["2026-03-08", "2026-03-29", "2026-04-05", "2026-04-24", "2026-10-04", "2026-10-25", "2026-10-29"]),
    st.integers(0, 1440),
)
def test_nothing_before_the_next_active_instant_is_active(
    window: tuple[int, int], zone: str, day: str, minute: int
) -> None:
    """It is the first active minute at or after the moment, on days of change too."""
    start, end = (f"{quarter // 4:02}:{quarter % 4 * 15:02}" for quarter in window)
    hours, t = ActiveHours(start, end, zone), parse_instant(f"{day}T00:00:00Z") + minute * MINUTE
    found = next_active(hours, t)
    assert is_active(hours, found)
    assert not any(is_active(hours, earlier) for earlier in range(t, found, MINUTE))
    last = last_active(hours, t)
    assert last <= t
    assert is_active(hours, last)
    assert not any(is_active(hours, later) for later in range(last + 1, t, MINUTE))
    if start != end and (start, end) != ("00:00", "24:00"):
        closing = next_closing(hours, found)
        assert not is_active(hours, closing)
        assert all(is_active(hours, inside) for inside in range(found, closing, MINUTE))


def test_json_round_trips_with_the_zone_filled_in() -> None:
    """Left out, the zone is the default one, by name."""
    hours = read({"start": "09:00", "end": "24:00"}, "Europe/Berlin")
    assert hours == ActiveHours("09:00", "24:00", "Europe/Berlin")
    assert read(ACTIVE_HOURS.write(hours), "UTC") == hours


def test_all_faults_of_a_window_are_named_at_once() -> None:
    """Field by field, with the cure."""
    with pytest.raises(Invalid) as caught:
        read({"start": "24:00", "timezone": "Europe/Berln", "until": 1}, "UTC")
    assert [error.field for error in caught.value.errors] == [
        *("activeHours.until", "activeHours.start", "activeHours.end", "activeHours.timezone")
    ]
    assert "did you mean 'Europe/Berlin'?" in str(caught.value)
    for wrong in ("09:00-17:00", {"start": 9, "end": "17:00"}):
        with pytest.raises(Invalid):
            read(wrong, "UTC")
