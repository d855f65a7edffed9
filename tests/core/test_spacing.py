"""The shortest distance between two runs, over a whole cycle."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import examples
from wakeful.core.time.instants import parse_duration, parse_instant
from wakeful.core.time.spacing import shortest_gap
from wakeful.core.time.timing import AfterReset, Cron, Every, Manual, Once, Times, next_n


@pytest.mark.parametrize(
    ("expression", "gap"),
    [
        *(("0 * * * *", "1h"), ("0,30 9 * * *", "30m"), ("*/5 * * * *", "5m"), ("*/7 * * * *", "4m")),
        *(("30 2 * * *", "1d"), ("0 9 * * 1-5", "1d"), ("0 9 * * 1,3", "2d"), ("59 23 * * *", "1d")),
        *(("0 0 1 * *", "28d"), ("0 0 1,31 * *", "1d"), ("0 0,23 * * *", "1h"), ("0 0 L * *", "28d")),
        *(("* * * * * *", "1s"), ("0,50 * * * * *", "10s"), ("30 0 * * * *", "1h"), ("0 0 29 2 *", "1461d")),
        *(("0,59 0 0 * * 1", "59s"), ("0 0,23 * * 1", "23h"), ("0 0,23 * * 1,2", "1h"), ("0 0 1 1 *", "365d")),
    ],
)
def test_the_whole_cycle_is_looked_at(expression: str, gap: str) -> None:
    """Not just the next two runs, and without regard to daylight saving."""
    assert shortest_gap(Cron(expression, "America/New_York")) == parse_duration(gap)


def test_a_gap_in_the_clock_is_no_violation() -> None:
    """Hourly is an hour apart and daily a day, in a zone with daylight saving too; no zone is even needed."""
    for zone in ("Europe/Berlin", "Australia/Lord_Howe", None):
        assert shortest_gap(Cron("0 * * * *", zone)) == 3_600_000
        assert shortest_gap(Times(("02:30",), zone)) == 86_400_000


def test_times_are_measured_around_midnight_too() -> None:
    """From the last of a day to the first of the next."""
    assert shortest_gap(Times(("23:45", "00:15", "12:00"), "UTC")) == 1_800_000


def test_every_is_its_own_distance() -> None:
    """The grid is even."""
    assert shortest_gap(Every(90_000, 0)) == 90_000


@pytest.mark.parametrize("timing", [Once(0), Manual(), AfterReset("main", 60_000)])
def test_without_two_runs_there_is_no_distance(timing: Once | Manual | AfterReset) -> None:
    """A single instant can come too often only if somebody asks for it."""
    assert shortest_gap(timing) is None


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from(["0", "*/7", "5,50", "*"]),
    st.sampled_from(["*", "*/5", "9", "1,22"]),
    st.sampled_from(["*", "1", "1,31", "*/9"]),
    st.sampled_from(["*", "1-5", "0", "5L", "1#1"]),
)
def test_no_two_runs_are_closer_and_some_are_as_close(minute: str, hour: str, day: str, weekday: str) -> None:
    """Against the real sequence in UTC, where nothing shifts."""
    timing = Cron(f"{minute} {hour} {day} * {weekday}", "UTC")
    runs = next_n(timing, parse_instant("2024-01-01T00:00:00Z"), 1600)
    seen = min(b - a for a, b in pairwise(runs))
    gap = shortest_gap(timing)
    assert gap is not None
    assert gap <= seen
    assert gap == seen or runs[-1] - runs[0] < 10 * 365 * 86_400_000
