"""Cron expressions: what is understood, what is refused, and that the matching agrees with cronsim."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import examples
from wakeful.core.errors import Invalid
from wakeful.core.time.cron import cron_pattern, parse_cron
from wakeful.core.time.instants import INSTANT_MAX, format_instant, parse_instant
from wakeful.core.time.timing import Cron, latest_until, next_after, next_n, tally

START = parse_instant("2026-01-30T09:00:00Z")


def following(expression: str, n: int = 3) -> list[str]:
    return [format_instant(t)[:19] for t in next_n(Cron(expression, "UTC"), START, n)]


def test_five_fields_have_no_seconds() -> None:
    """Weekdays at nine: the next three after a Friday nine o'clock."""
    assert following("0 9 * * 1-5") == ["2026-02-02T09:00:00", "2026-02-03T09:00:00", "2026-02-04T09:00:00"]


def test_six_fields_begin_with_the_second() -> None:
    """Two runs in one minute."""
    assert following("15,45 0 12 * * *", 2) == ["2026-01-30T12:00:15", "2026-01-30T12:00:45"]


@pytest.mark.parametrize(
    ("name", "same_as"),
    [
        *(("@hourly", "0 * * * *"), ("@daily", "0 0 * * *"), ("@midnight", "0 0 * * *"), ("@weekly", "0 0 * * 0")),
        *(("@monthly", "0 0 1 * *"), ("@yearly", "0 0 1 1 *"), ("@annually", "0 0 1 1 *"), ("@Daily", "0 0 * * *")),
        *(("0 0 ? * 1", "0 0 * * 1"), ("0 0 * jan mon", "0 0 * 1 1"), ("0 0 * * 7", "0 0 * * 0")),
        *(
            ("  0   9 * * *  ", "0 9 * * *"),
            ("0/20 * * * *", "0,20,40 * * * *"),
            ("0 10-16/3 * * *", "0 10,13,16 * * *"),
        ),
    ],
)
def test_other_spellings_mean_the_same(name: str, same_as: str) -> None:
    """Names, question marks, steps and blanks are only spelling."""
    assert following(name, 20) == following(same_as, 20)


@pytest.mark.parametrize(
    ("expression", "same_as"),
    [
        ("0 7-7/1 * * *", "0 7 * * *"),
        ("5-5/3 * * * *", "5 * * * *"),
        ("0-0/2 * * * *", "0 * * * *"),
        ("5-5/3 0 9 * * *", "5 0 9 * * *"),
        ("0 0-0/2 * * *", "0 0 * * *"),
        ("0 0 7-7/1 * *", "0 0 7 * *"),
        ("0 0 1 5-5/3 *", "0 0 1 5 *"),
        ("0 0 1 JAN-JAN/2 *", "0 0 1 1 *"),
        ("0 0 1 jan-1/2 *", "0 0 1 1 *"),
        ("0 0 * * 0-0/2", "0 0 * * 0"),
        ("0 0 * * 5-5/1", "0 0 * * 5"),
        ("0 0 * * 7-7/1", "0 0 * * 7"),
        ("0 0 * * MON-MON/2", "0 0 * * 1"),
        ("0 07-7/1 * * *", "0 7 * * *"),
        ("0 7-7/1,20-20/3 * * *", "0 7,20 * * *"),
        ("0 7-7 * * *", "0 7 * * *"),
        ("0 7-9/1 * * *", "0 7,8,9 * * *"),
        ("0 7/8 * * *", "0 7,15,23 * * *"),  # a value with a step, without an end, goes on to the end of the field
        ("0 0 * * 6-7/1", "0 0 * * 6,0"),
    ],
)
def test_a_range_of_one_value_with_a_step_is_this_value(expression: str, same_as: str) -> None:
    """In every field, as in cron: the step starts at the first value and goes no further than the last."""
    assert following(expression, 30) == following(same_as, 30)


@pytest.mark.parametrize("expression", ["0 7-7/0 * * *", "0 7-7/ * * *", "0 7-7/x * * *", "0 24-24/1 * * *"])
def test_such_a_range_must_be_valid(expression: str) -> None:
    with pytest.raises(Invalid, match=r"hour '.*' is not valid"):
        parse_cron(expression)


def test_both_day_fields_restricted_match_by_either() -> None:
    """The first of the month, or a Monday."""
    assert following("0 0 1 * 1") == ["2026-02-01T00:00:00", "2026-02-02T00:00:00", "2026-02-09T00:00:00"]


def test_a_day_field_that_begins_with_a_star_narrows_the_other() -> None:
    """`*/2` is no restriction of its own, as in Debian's cron: odd days that are Mondays."""
    assert following("0 0 */2 * 1") == ["2026-02-09T00:00:00", "2026-02-23T00:00:00", "2026-03-09T00:00:00"]


@pytest.mark.parametrize(
    ("expression", "days"),
    [
        ("0 0 L * *", ["01-31", "02-28", "03-31"]),
        ("0 0 LW * *", ["02-27", "03-31", "04-30"]),
        ("0 0 * * 5L", ["02-27", "03-27", "04-24"]),
        ("0 0 * * MON#2", ["02-09", "03-09", "04-13"]),
        ("0 0 * * 1#5", ["03-30", "06-29", "08-31"]),
        ("0 0 15,L * *", ["01-31", "02-15", "02-28"]),
    ],
)
def test_days_counted_from_either_end_of_the_month(expression: str, days: list[str]) -> None:
    """Last day, last weekday, last Friday, second Monday, fifth Monday where there is one."""
    assert [text[5:10] for text in following(expression)] == days


def test_a_leap_day_waits_for_its_year() -> None:
    """29 February comes every four years, but not in 2100."""
    in_2096 = parse_instant("2096-03-01T00:00:00Z")
    assert following("0 0 29 2 *", 2) == ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]
    assert next_after(Cron("0 0 29 2 *", "UTC"), in_2096) == parse_instant("2104-02-29T00:00:00Z")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("61 * * * *", "minute '61' is not valid.*write 0-59"),
        ("* 24 * * *", "hour '24' is not valid.*write 0-23"),
        ("0 0 32 * *", "day-of-month '32' is not valid"),
        ("0 0 * 13 *", "month '13' is not valid.*JAN-DEC"),
        ("0 0 * * 8", "day-of-week '8' is not valid.*0 and 7 are Sunday"),
        ("60 0 0 * * *", "second '60' is not valid"),
        ("*/0 * * * *", "minute '\\*/0' is not valid"),
        ("* * * *", "has 4 fields; write five"),
        ("0 0 1 1 * 2026 *", "has 7 fields; write five"),
        ("", "has 0 fields"),
        ("@reboot", "'@reboot' is not a known name; write @hourly"),
        ("0 0 30 2 *", "never matches: none of its months has day 30"),
        ("0 0 31 4,6,9,11 *", "never matches: none of its months has day 31"),
        ("0 0 15W * *", "nearest weekday \\(W\\) is not supported"),
        ("0 0 L/2 * *", "L takes no step"),
        ("? * * * *", "'\\?' must be alone"),
        ("0 0 * * FRI-MON", "runs backwards; write FRI-SAT,SUN-MON"),
        ("0 22-2 * * *", "runs backwards; write 22-23,0-2"),
        ("0 0 * NOV-FEB *", "runs backwards; write NOV-DEC,JAN-FEB"),
        ("0 0 25-5 * *", "runs backwards; write 25-31,1-5"),
        ("0 0 * * 1#6", "day-of-week '1#6' is not valid"),
        ("0 0 * * FRIL", "5L \\(last Friday\\)"),
        ("a b c d e", "minute 'A' is not valid"),
    ],
)
def test_a_bad_expression_is_refused_with_field_and_cure(expression: str, message: str) -> None:
    """The message says which part is wrong and what to write instead."""
    with pytest.raises(Invalid, match=f"expression: .*{message}"):
        parse_cron(expression)


@pytest.mark.parametrize("expression", ["* * * * * *", "0 9 * * *", "0 0 31 12 *", "*/20 1 31 10 *", "30 2 * * *"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Pacific/Kiritimati"])
def test_the_end_of_the_calendar_is_none_not_an_error(expression: str, zone: str) -> None:
    """Near the end of 9999 the times run out, and asking on gives None."""
    timing = Cron(expression, zone)
    last = latest_until(timing, INSTANT_MAX)
    assert last is not None
    assert last <= INSTANT_MAX
    assert next_after(timing, last) is None
    assert next_after(timing, INSTANT_MAX) is None
    assert next_after(timing, last - 1) == last
    assert tally(timing, last - 1, INSTANT_MAX).count == 1


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_the_beginning_of_the_calendar_is_none_not_an_error(zone: str) -> None:
    """Before the first match since 1970 there is nothing to find backwards."""
    timing = Cron("0 9 1 6 *", zone)
    first = next_after(timing, -1)
    assert first is not None
    assert latest_until(timing, first) == first
    assert latest_until(timing, first - 1) is None
    assert latest_until(timing, -5) is None


def test_minutes_by_hours_make_one_sorted_row() -> None:
    """The pattern holds every minute of the day that matches, in order."""
    assert list(cron_pattern("0,30 9,18 * * *").minutes) == [540, 570, 1080, 1110]


FIELD = st.sampled_from
EXPRESSIONS = st.builds(
    " ".join,
    st.tuples(
        FIELD(["0", "*", "*/5", "7,37", "10-50/20", "59", "3/11"]),
        FIELD(["*", "0", "23", "*/6", "9-17", "1,2,3", "5/7"]),
        FIELD(["*", "1", "31", "L", "LW", "1,15", "*/10", "29-31", "15,L"]),
        FIELD(["*", "2", "JAN", "1,7", "*/3", "6-8", "4"]),
        FIELD(["*", "1-5", "0", "7", "SUN,SAT", "5L", "MON#2", "3#5", "*/2", "1#1,4"]),
    ),
)


@settings(max_examples=examples(150), deadline=None)
@given(EXPRESSIONS, st.sampled_from(["", "0 ", "*/15 ", "5,50 "]), st.integers(0, 2**31))
def test_matching_agrees_with_cronsim(five: str, second: str, start: int) -> None:
    """In UTC, forwards and backwards, our matcher and cronsim's iterator find the same times."""
    expression, timing = second + five, Cron(second + five, "UTC")
    try:
        wanted = [int(t.timestamp() * 1000) for t in islice(CronSim(expression, datetime.fromtimestamp(start, UTC)), 3)]
    except CronSimError:
        wanted = []
    if not wanted:
        with pytest.raises(Invalid, match="never matches"):
            parse_cron(expression)
        return
    assert list(next_n(timing, start * 1000, 3)) == wanted
    assert latest_until(timing, wanted[-1] - 1) == wanted[-2]
    assert tally(timing, start * 1000, wanted[-1]).count == 3
