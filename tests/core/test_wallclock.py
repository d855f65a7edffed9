"""Daylight saving: what fixed times and rhythms do when a zone puts its clock forward and back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import examples, sampled
from wakeful.core.time.instants import format_instant, parse_instant
from wakeful.core.time.timing import Cron, Times, Timing, instants_after, latest_until, next_after, tally

ZONES = ("America/New_York", "Europe/Berlin", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia")
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def ms(text: str) -> int:
    return parse_instant(text)


def local(zone: str, t: int) -> str:
    return datetime.fromtimestamp(t / 1000, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S %z")


def between(timing: Timing, after: int, until: int) -> list[int]:
    found = []
    for t in instants_after(timing, after):
        if t > until:
            break
        found.append(t)
    return found


def local_day(timing: Cron | Times, day: str) -> list[str]:
    """The runs of one local day, as the wall clock shows them."""
    assert timing.timezone is not None
    noon = ms(f"{day}T12:00:00Z")
    shown = [local(timing.timezone, t) for t in between(timing, noon - 2 * DAY, noon + 2 * DAY)]
    return [text[11:] for text in shown if text.startswith(day)]


@lru_cache
def offset_changes(zone: str, first_year: int, last_year: int) -> tuple[int, ...]:
    """The instants (to the minute) at which the zone's offset changes, found without the code under test."""
    info, changes = ZoneInfo(zone), []
    t, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year + 1, 1, 1, tzinfo=UTC)
    while t < end:
        following = t + timedelta(hours=6)
        if t.astimezone(info).utcoffset() != following.astimezone(info).utcoffset():
            inside = (t + timedelta(minutes=n) for n in range(1, 361))
            change = next(x for x in inside if x.astimezone(info).utcoffset() != t.astimezone(info).utcoffset())
            changes.append(int(change.timestamp() * 1000))
        t = following
    return tuple(changes)


def expected_fixed(zone: str, minutes: list[int], first: date, last: date) -> list[int]:
    """What fixed times of day mean, written down a second time: by zoneinfo, day by day."""
    info, found = ZoneInfo(zone), set()
    for n in range((last - first).days + 1):
        midnight = datetime.combine(first + timedelta(days=n), datetime.min.time())
        for minute in minutes:
            wall = (midnight + timedelta(minutes=minute)).replace(tzinfo=info, fold=0)
            while (back := wall.astimezone(UTC)).astimezone(info).replace(tzinfo=None) != wall.replace(tzinfo=None):
                wall = (wall.replace(tzinfo=None) + timedelta(minutes=1)).replace(tzinfo=info, fold=0)
            found.add(int(back.timestamp() * 1000))
    return sorted(found)


def test_a_fixed_time_in_the_gap_runs_once_right_after_it() -> None:
    """02:30 does not exist on 8 March 2026 in New York: it runs at 03:00 daylight time."""
    assert local_day(Cron("30 2 * * *", "America/New_York"), "2026-03-08") == ["03:00:00 -0400"]


def test_several_fixed_times_in_one_gap_collapse_into_one_run() -> None:
    """Four quarter hours of a missing hour are one run, not four at the same moment."""
    assert local_day(Cron("0,15,30,45 2 * * *", "America/New_York"), "2026-03-08") == ["03:00:00 -0400"]


def test_the_moment_after_the_gap_that_matches_itself_is_still_one_run() -> None:
    """02:30 made up at 03:00 and the regular 03:00 are the same instant."""
    assert local_day(Cron("0,30 2,3 * * *", "America/New_York"), "2026-03-08") == ["03:00:00 -0400", "03:30:00 -0400"]


def test_a_fixed_time_in_a_repeated_hour_runs_the_first_time_only() -> None:
    """01:30 is shown twice on 1 November 2026 in New York: it runs in daylight time."""
    assert local_day(Cron("30 1 * * *", "America/New_York"), "2026-11-01") == ["01:30:00 -0400"]


def test_a_rhythm_runs_in_both_passes_of_a_repeated_hour() -> None:
    """Every 30 minutes means 30 real minutes, 50 times on a day of 25 hours."""
    half_hourly = local_day(Cron("*/30 * * * *", "America/New_York"), "2026-11-01")
    assert len(half_hourly) == 50
    assert [text for text in half_hourly if text.startswith("01:30")] == ["01:30:00 -0400", "01:30:00 -0500"]


def test_a_rhythm_has_no_times_in_a_gap() -> None:
    """Every hour on a day of 23 hours is 23 runs, none of them made up."""
    hourly = local_day(Cron("30 * * * *", "Europe/Berlin"), "2026-03-29")
    assert len(hourly) == 23
    assert hourly[1:3] == ["01:30:00 +0100", "03:30:00 +0200"]


def test_a_rhythm_within_a_missing_hour_does_not_vanish() -> None:
    """`*/20 2 * * *` names the hour 2: on the day without it, it runs once right after the gap."""
    assert local_day(Cron("*/20 2 * * *", "Europe/Berlin"), "2026-03-29") == ["03:00:00 +0200"]


def test_a_rhythm_within_a_repeated_hour_follows_real_time() -> None:
    """`*/20 2 * * *` runs in both passes of the hour 2, as a rhythm does."""
    assert local_day(Cron("*/20 2 * * *", "Europe/Berlin"), "2026-10-25") == [
        *("02:00:00 +0200", "02:20:00 +0200", "02:40:00 +0200"),
        *("02:00:00 +0100", "02:20:00 +0100", "02:40:00 +0100"),
    ]


def test_all_24_hours_written_out_are_a_rhythm() -> None:
    """`0 0-23 * * *` is hourly, however it is written: 25 runs on a day of 25 hours."""
    assert len(local_day(Cron("0 0-23 * * *", "Europe/Berlin"), "2026-10-25")) == 25


def test_six_fields_follow_the_same_rules() -> None:
    """Seconds change nothing about gap and repeat."""
    assert local_day(Cron("15 30 2 * * *", "Europe/Berlin"), "2026-03-29") == ["03:00:00 +0200"]
    assert local_day(Cron("15 30 2 * * *", "Europe/Berlin"), "2026-10-25") == ["02:30:15 +0200"]
    assert len(local_day(Cron("*/30 * * * * *", "Europe/Berlin"), "2026-10-25")) == 25 * 120


def test_a_gap_at_midnight_pushes_to_one_o_clock() -> None:
    """Cairo's clock leaves out midnight itself."""
    assert local_day(Cron("0 0 * * *", "Africa/Cairo"), "2026-04-24") == ["01:00:00 +0300"]
    assert local_day(Times(("00:30",), "Africa/Cairo"), "2026-04-24") == ["01:00:00 +0300"]


def test_a_half_hour_shift_is_exact() -> None:
    """Lord Howe moves by 30 minutes: 02:15 is pushed to 02:30, and 01:45 runs once of two."""
    assert local_day(Cron("15 2 * * *", "Australia/Lord_Howe"), "2026-10-04") == ["02:30:00 +1100"]
    assert local_day(Cron("45 1 * * *", "Australia/Lord_Howe"), "2026-04-05") == ["01:45:00 +1100"]


def test_a_day_that_never_was_is_not_made_up() -> None:
    """Apia had no 30 December 2011: the 29th and the 31st have their one run each, nothing runs for the 30th."""
    for daily in (
        Cron("0 9 * * *", "Pacific/Apia"),
        Cron("0 0 9 * * *", "Pacific/Apia"),
        Times(("09:00",), "Pacific/Apia"),
    ):
        runs = between(daily, ms("2011-12-28T12:00:00Z"), ms("2012-01-01T12:00:00Z"))
        assert [local("Pacific/Apia", t)[:16] for t in runs] == [
            *("2011-12-28 09:00", "2011-12-29 09:00", "2011-12-31 09:00", "2012-01-01 09:00")
        ]
        assert tally(daily, ms("2011-12-28T12:00:00Z"), ms("2012-01-01T12:00:00Z")).count == 4


@pytest.mark.parametrize("zone", sampled(ZONES, every=3))
@pytest.mark.parametrize("six", [False, True], ids=["five fields", "six fields"])
def test_a_fixed_time_fires_exactly_once_per_local_day(zone: str, six: bool) -> None:
    """Around every change of 2020..2035, each quarter hour of the day runs once on each local day."""
    for minute in range(0, 1440, 15):
        daily = Cron(f"{'0 ' * six}{minute % 60} {minute // 60} * * *", zone)
        for change in offset_changes(zone, 2020, 2035):
            runs = between(daily, change - 3 * DAY, change + 3 * DAY)
            days = [local(zone, t)[:10] for t in runs]
            whole = {local(zone, change + n * DAY)[:10] for n in (-2, -1, 0, 1, 2)}
            assert all(days.count(day) == 1 for day in whole), (daily, format_instant(change))
            assert all(a < b for a, b in pairwise(runs))


@pytest.mark.parametrize("zone", sampled(ZONES, every=4, offset=3))
def test_fixed_times_agree_with_zoneinfo_over_sixteen_years(zone: str) -> None:
    """Every run from 2020 to 2035 is where the rule, written down independently, puts it."""
    minutes = [30, 90, 95, 120, 135, 150, 185, 1410]
    times = Times(tuple(f"{m // 60:02}:{m % 60:02}" for m in minutes), zone)
    wanted = expected_fixed(zone, minutes, date(2020, 1, 1), date(2035, 12, 31))
    assert between(times, wanted[0] - 1, wanted[-1]) == wanted
    assert tally(times, wanted[0] - 1, wanted[-1]).count == len(wanted)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", ["*/20 * * * *", "10,50 */2 * * *", "7 * * * 1,6"])
def test_a_rhythm_is_every_matching_minute_of_real_time(zone: str, expression: str) -> None:
    """Two days around each change, minute by minute: it runs exactly when the wall clock shows a match."""
    minute, hour, *_, weekday = expression.split()
    minutes = {"*/20": {0, 20, 40}, "10,50": {10, 50}, "7": {7}}[minute]
    hours = set(range(0, 24, 2)) if hour == "*/2" else set(range(24))
    weekdays = {0, 5} if weekday == "1,6" else set(range(7))
    for change in offset_changes(zone, 2020, 2024):
        start = change - DAY
        walls = ((t, datetime.fromtimestamp(t / 1000, ZoneInfo(zone))) for t in range(start, change + DAY, MINUTE))
        wanted = [t for t, w in walls if w.minute in minutes and w.hour in hours and w.weekday() in weekdays]
        assert between(Cron(expression, zone), start - 1, change + DAY - 1) == wanted


EXPRESSIONS = st.one_of(
    st.sampled_from(
        ["*/20 2 * * *", "*/7 1-3 * * *", "0 */2 * * *", "*/5 * * * *", "30 0,1,2,3,23 * * *", "0 0 * * *"]
    ),
    st.sampled_from(
        ["*/15 59 1 * * *", "0,30 */20 * * * *", "0 30 2 * * SUN", "15 2 L * *", "30 1 1 * 7", "0 0-23 * * *"]
    ),
    st.builds("{} {} * * *".format, st.integers(0, 59), st.integers(0, 4)),
    st.builds("{} {},{} * * {}-6".format, st.integers(0, 59), st.integers(0, 23), st.integers(0, 3), st.integers(0, 6)),
)


@settings(max_examples=examples(400), deadline=None)
@given(data=st.data(), expression=EXPRESSIONS, zone=st.sampled_from(ZONES))
def test_the_sequence_is_the_same_from_any_starting_point(data: st.DataObject, expression: str, zone: str) -> None:
    """next_after(t) is the first element after t of one global sequence, also inside a repeated hour; latest_until
    and tally describe that same sequence."""
    timing = Cron(expression, zone)
    changes = offset_changes(zone, 2010, 2035)
    change = data.draw(st.sampled_from(changes))
    start, end = change - DAY, change + DAY
    sequence = between(timing, start, end)
    assert all(a < b for a, b in pairwise(sequence))
    points = st.one_of(st.integers(start, end), st.integers(change - 2 * HOUR, change + 2 * HOUR))
    for point in data.draw(st.lists(points, min_size=4, max_size=8)):
        ahead = [t for t in sequence if t > point]
        behind = [t for t in sequence if t <= point]
        assert next_after(timing, point) == (ahead[0] if ahead else next_after(timing, end))
        assert latest_until(timing, point, since=start) == (behind[-1] if behind else None)
        counted = tally(timing, point, end)
        assert counted.count == len(ahead)
        assert (counted.first, counted.last) == ((ahead[0], ahead[-1]) if ahead else (None, None))


@pytest.mark.parametrize(
    "zone",
    sampled([*ZONES, "America/Scoresbysund", "Asia/Beirut", "Africa/Casablanca", "Antarctica/Troll"], every=4),
)
@pytest.mark.parametrize("expression", ["30 2 * * *", "*/20 2 * * *", "*/20 * * * *", "0 0 * * *", "*/20 23 * * *"])
def test_walking_back_visits_the_same_instants(zone: str, expression: str) -> None:
    """latest_until retraces next_after, step by step, across a spring and an autumn."""
    timing, start = Cron(expression, zone), ms("2024-02-20T00:00:00Z")
    forward = between(timing, start, ms("2024-11-20T00:00:00Z"))
    backward, t = [], ms("2024-11-20T00:00:00Z")
    while (found := latest_until(timing, t, since=start)) is not None:
        backward.append(found)
        t = found - 1
    assert backward[::-1] == forward
