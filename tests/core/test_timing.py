"""The four questions asked of every kind of timing."""

from __future__ import annotations

from cProfile import Profile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import examples
from wakeful.core.time.instants import INSTANT_MAX, parse_instant
from wakeful.core.time.timing import (
    AfterReset,
    Cron,
    Every,
    InstantCount,
    Manual,
    Once,
    Times,
    Timing,
    instants_after,
    is_past,
    latest_until,
    next_after,
    next_n,
    resolve,
    tally,
)

NOW = parse_instant("2026-01-30T09:00:00Z")
HOUR, DAY = 3_600_000, 86_400_000
DECADE = 3652 * DAY


def test_every_lies_on_the_grid_of_its_anchor() -> None:
    """The next time depends on the anchor alone, never on when somebody asked."""
    two_hourly = Every(2 * HOUR, NOW)
    assert next_after(two_hourly, NOW) == NOW + 2 * HOUR
    assert next_after(two_hourly, NOW + 2 * HOUR - 1) == NOW + 2 * HOUR
    assert next_after(two_hourly, NOW + 2 * HOUR) == NOW + 4 * HOUR
    assert latest_until(two_hourly, NOW + 5 * HOUR) == NOW + 4 * HOUR


def test_a_future_anchor_is_itself_the_first_instant() -> None:
    """Before the anchor there is nothing."""
    assert next_after(Every(HOUR, NOW), NOW - 10 * HOUR) == NOW
    assert latest_until(Every(HOUR, NOW), NOW - 1) is None


@given(st.integers(1, DAY), st.integers(0, 10 * DAY), st.integers(-DAY, 20 * DAY), st.integers(0, 3 * DAY))
def test_every_tallies_like_enumerating(every: int, anchor: int, after: int, span: int) -> None:
    """Count, first and last of the grid, by division."""
    timing, until = Every(every, anchor), after + span
    counted = tally(timing, after, until)
    first, last = next_after(timing, after), latest_until(timing, until, since=after)
    inside = first is not None and first <= until
    assert (counted.first, counted.last) == ((first, last) if inside else (None, None))
    assert counted.count == len(range(max(anchor, after + 1 + (anchor - after - 1) % every), until + 1, every))


def test_once_is_one_instant() -> None:
    """It is ahead, then it is behind."""
    once = Once(NOW)
    assert (next_after(once, NOW - 1), next_after(once, NOW)) == (NOW, None)
    assert (latest_until(once, NOW - 1), latest_until(once, NOW)) == (None, NOW)
    assert tally(once, NOW - 1, NOW) == InstantCount(1, NOW, NOW)
    assert tally(once, NOW, NOW + 1) == InstantCount(0, None, None)


def test_only_once_can_be_past() -> None:
    """Whether that is refused, the command decides."""
    assert is_past(Once(NOW), NOW)
    assert not is_past(Once(NOW + 1), NOW)
    assert not is_past(Every(1, 0), NOW)
    assert not is_past(Manual(), NOW)


def test_manual_has_no_instants() -> None:
    """Nothing ahead, nothing behind, nothing to count."""
    assert next_after(Manual(), NOW) is None
    assert latest_until(Manual(), NOW) is None
    assert tally(Manual(), 0, NOW).count == 0


def test_after_reset_waits_for_a_known_reset() -> None:
    """No due time until the slot reports one."""
    assert next_after(AfterReset("main", 60_000), NOW) is None
    known = AfterReset("main", 60_000, reset_at=NOW)
    assert next_after(known, NOW) == NOW + 60_000
    assert next_after(known, NOW + 60_000) is None
    assert latest_until(known, NOW + DAY) == NOW + 60_000


def test_times_run_at_each_time_of_day() -> None:
    """In order of the clock, however they were written."""
    twice = Times(("18:00", "09:00"), "Asia/Shanghai")
    assert next_n(twice, NOW, 3) == tuple(
        parse_instant(text) for text in ("2026-01-30T10:00:00Z", "2026-01-31T01:00:00Z", "2026-01-31T10:00:00Z")
    )


def test_next_n_is_shorter_when_the_times_run_out() -> None:
    """One instant is one, however many were asked for."""
    assert next_n(Once(NOW), 0, 5) == (NOW,)
    assert next_n(Every(DAY, INSTANT_MAX - DAY), NOW, 5) == (INSTANT_MAX - DAY, INSTANT_MAX)


def test_since_bounds_the_search_backwards() -> None:
    """The lower bound itself is excluded."""
    daily = Cron("0 9 * * *", "UTC")
    assert latest_until(daily, NOW + HOUR, since=NOW - 1) == NOW
    assert latest_until(daily, NOW + HOUR, since=NOW) is None
    assert latest_until(Every(HOUR, NOW), NOW + 30, since=NOW) is None
    assert latest_until(Cron("0 0 29 2 *", "UTC"), NOW) == parse_instant("2024-02-29T00:00:00Z")


def test_resolve_fills_in_what_was_left_open() -> None:
    """The zone by name, the anchor by the time of creation; what was said stays."""
    assert resolve(Cron("0 9 * * *"), now=NOW, default_zone="Europe/Berlin") == Cron("0 9 * * *", "Europe/Berlin")
    assert resolve(Times(("09:00",), "UTC"), now=NOW, default_zone="Europe/Berlin") == Times(("09:00",), "UTC")
    assert resolve(Every(HOUR), now=NOW, default_zone="UTC") == Every(HOUR, NOW)
    assert resolve(Every(HOUR, 0), now=NOW, default_zone="UTC") == Every(HOUR, 0)
    assert resolve(Manual(), now=NOW, default_zone="UTC") == Manual()


@pytest.mark.parametrize("timing", [Cron("0 9 * * *"), Times(("09:00",)), Every(HOUR)])
def test_an_unresolved_timing_cannot_be_asked(timing: Timing) -> None:
    """A programming mistake, said as one."""
    with pytest.raises(AssertionError, match="resolve"):
        next_after(timing, NOW)


def test_equality_is_about_when_not_about_spelling() -> None:
    """Two hours are 120 minutes, so writing it differently is no change of timing."""
    assert Every(2 * HOUR, NOW, written="2h") == Every(2 * HOUR, NOW, kind="interval")
    assert Once(NOW, written="2026-01-30T09:00:00Z") == Once(NOW, kind="at")


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(["*/20 * * * *", "0 9 * * 1-5", "30 2 1,L * *", "0 0 1 * 1", "*/20 2 * * *", "0 */6 * * 5L"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Africa/Cairo", "Australia/Lord_Howe"]),
    st.integers(0, 12 * 365),
    st.integers(0, 400 * DAY),
)
def test_a_tally_over_months_equals_enumerating(expression: str, zone: str, day: int, span: int) -> None:
    """Counting by months and by days is counting one by one."""
    timing, after = Cron(expression, zone), NOW + day * DAY
    listed = []
    for t in instants_after(timing, after):
        if t > after + span:
            break
        listed.append(t)
    ends = (listed[0], listed[-1]) if listed else (None, None)
    assert tally(timing, after, after + span) == InstantCount(len(listed), *ends)


def test_a_decade_of_seconds_is_counted_by_the_day() -> None:
    """A long outage of the busiest schedule costs no more than any other (L4): calls grow with days, not instants."""
    everything = Cron("* * * * * *", "Europe/Berlin")
    tally(everything, NOW, NOW + DECADE)
    calls = Profile()
    counted = calls.runcall(tally, everything, NOW, NOW + DECADE)
    assert counted == InstantCount(DECADE // 1000, NOW + 1000, NOW + DECADE)
    assert sum(entry.callcount for entry in calls.getstats()) < 20 * DECADE // DAY
