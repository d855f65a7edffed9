"""Instants on excluded days: left out, found and counted without visiting them."""

from __future__ import annotations

from datetime import date, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import examples
from wakeful.core.time.excluded_days import ExcludedDays, day_number, is_excluded, ranges
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from wakeful.core.time.timing import (
    Cron,
    Every,
    Once,
    Times,
    Timing,
    instants_after,
    latest_until,
    next_after,
    tally,
    without_days,
)

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "America/St_Johns", "America/Sao_Paulo")
# Changes of the clock, one of them across midnight (St. John's in 2011), and a day that Apia left out.
STARTS = [
    parse_instant(text)
    for text in (
        "2011-11-06T02:31:00Z",
        "2011-12-30T10:00:00Z",
        "2018-02-18T01:30:00Z",
        "2026-03-29T00:30:00Z",
        "2026-10-25T00:30:00Z",
        "2026-12-24T08:00:00Z",
    )
]


def on_day(zone: str, t: int) -> int:
    return day_number(datetime.fromtimestamp(t / 1000, ZoneInfo(zone)).date())


def days(zone: str, *dates: str) -> ExcludedDays:
    return ExcludedDays(zone, tuple(sorted(day_number(date.fromisoformat(text)) for text in dates)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Timing, ExcludedDays, int]:
    """A timing, days around a change of the clock, and a time near it."""
    start, zone = draw(st.sampled_from(STARTS)), draw(st.sampled_from(ZONES))
    numbers = draw(st.sets(st.integers(start // DAY - 3, start // DAY + 3), min_size=1))
    timing: Timing = draw(
        st.one_of(
            st.builds(Every, st.sampled_from([17 * MINUTE, HOUR, 5 * HOUR, 26 * HOUR]), st.just(start - 4 * DAY)),
            st.builds(Cron, st.sampled_from(["*/20 * * * *", "30 0,2,23 * * *", "0 9 * * 1-5"]), st.just(zone)),
            st.builds(Times, st.just(("00:00", "23:59")), st.just(zone)),
            st.builds(Once, st.integers(start - DAY, start + DAY)),
        )
    )
    return timing, ExcludedDays(zone, tuple(sorted(numbers))), start + draw(st.integers(-4 * DAY, 4 * DAY))


def visited(timing: Timing, after: int, until: int) -> list[int]:
    found = []
    for at in instants_after(timing, after):
        if at > until:
            break
        found.append(at)
    return found


@settings(max_examples=examples(300), deadline=None)
@given(case=cases(), length=st.integers(0, 6 * DAY))
def test_every_query_agrees_with_visiting_each_instant(case: tuple[Timing, ExcludedDays, int], length: int) -> None:
    """The next one, the latest one and the count, in every zone and across changes of the clock."""
    timing, excluded, after = case
    until = after + length
    wanted = [at for at in visited(timing, after, until) if on_day(excluded.zone, at) not in excluded.days]
    left = without_days(timing, excluded)
    assert visited(left, after, until) == wanted
    assert latest_until(left, until, after) == (wanted[-1] if wanted else None)
    counted = tally(left, after, until)
    assert (counted.count, counted.first, counted.last) == (
        len(wanted),
        wanted[0] if wanted else None,
        wanted[-1] if wanted else None,
    )


@settings(max_examples=examples(200), deadline=None)
@given(case=cases(), length=st.integers(0, 6 * DAY))
def test_ranges_are_the_excluded_days_and_nothing_else(case: tuple[Timing, ExcludedDays, int], length: int) -> None:
    """In order, apart from one another, and complete."""
    _, excluded, after = case
    found = list(ranges(excluded, after, after + length))
    assert all(first <= last for first, last in found)
    assert all(last + 1 < following for (_, last), (following, _) in pairwise(found))
    for at in range(after + 1, after + length + 1, 7 * MINUTE + SECOND):
        inside = any(first <= at <= last for first, last in found)
        assert inside == is_excluded(excluded, at) == (on_day(excluded.zone, at) in excluded.days)


def test_a_day_is_that_of_the_zone() -> None:
    """New Year's Eve begins in Apia a day before it does in New York."""
    nightly = Every(HOUR, parse_instant("2026-12-30T00:00:00Z"))
    at = parse_instant("2026-12-30T12:00:00Z")
    assert next_after(without_days(nightly, days("Pacific/Apia", "2026-12-31")), at) == at + 23 * HOUR
    assert next_after(without_days(nightly, days("America/New_York", "2026-12-31")), at) == at + HOUR


def test_an_excluded_age_is_counted_by_days_not_by_instants() -> None:
    """Twenty years of weekends and a schedule every ten seconds: half a million ranges would be too slow to visit."""
    start = parse_instant("2026-01-01T00:00:00Z")
    weekends = tuple(day for day in range(start // DAY, start // DAY + 7300) if (day + 3) % 7 >= 5)
    timing = without_days(Every(10 * SECOND, start), ExcludedDays("UTC", weekends))
    counted = tally(timing, start - 1, start + 7300 * DAY - 1)
    assert counted.count == (7300 - len(weekends)) * 8640


@pytest.mark.parametrize("zone", ["America/St_Johns", "America/Sao_Paulo"])
def test_a_clock_set_back_across_midnight_shows_the_day_twice(zone: str) -> None:
    """Each pass is excluded, and the search ends."""
    start = (
        parse_instant("2011-11-06T02:31:00Z") if zone == "America/St_Johns" else parse_instant("2018-02-18T01:30:00Z")
    )
    for number in (start // DAY - 1, start // DAY):
        excluded = ExcludedDays(zone, (number,))
        left = without_days(Every(MINUTE, start - DAY), excluded)
        for at in visited(left, start - 3 * HOUR, start + 3 * HOUR):
            assert on_day(zone, at) != number
