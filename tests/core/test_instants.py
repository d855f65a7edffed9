"""Instants and durations: their text, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.time.instants import INSTANT_MAX, format_duration, format_instant, parse_duration, parse_instant
from wakeful.core.time.timing_builders import as_datetime


def test_an_instant_is_written_in_utc_with_milliseconds() -> None:
    """The one form every answer uses."""
    assert format_instant(1_769_763_600_000) == "2026-01-30T09:00:00.000Z"
    assert format_instant(0) == "1970-01-01T00:00:00.000Z"
    assert format_instant(INSTANT_MAX) == "9999-12-31T23:59:59.999Z"


@given(st.integers(0, INSTANT_MAX))
def test_every_instant_round_trips(t: int) -> None:
    """From 1970 to 9999, text and number name the same instant."""
    assert parse_instant(format_instant(t)) == t


@pytest.mark.parametrize(
    "text",
    [
        *("2026-01-30T09:00:00Z", "2026-01-30t09:00:00z", "2026-01-30 09:00:00Z", "2026-01-30T09:00Z"),
        *("2026-01-30T17:00:00+08:00", "2026-01-30T04:30:00-04:30", " 2026-01-30T09:00:00.000Z "),
    ],
)
def test_any_offset_names_the_same_instant(text: str) -> None:
    """Input may carry any offset."""
    assert parse_instant(text) == 1_769_763_600_000


def test_a_time_beyond_the_year_9999_is_shown_as_its_last_moment() -> None:
    """A stagger may lead there; a schedule that has one can still be read."""
    assert as_datetime(INSTANT_MAX + 1) == as_datetime(INSTANT_MAX)


def test_digits_beyond_the_millisecond_are_cut() -> None:
    """Rounding up would name an instant that has not come yet."""
    assert parse_instant("1970-01-01T00:00:00.1239999Z") == 123
    assert parse_instant("1970-01-01T00:00:00.5Z") == 500


def test_without_an_offset_it_is_refused_with_the_cure() -> None:
    """A wall time alone names no instant."""
    with pytest.raises(Invalid, match=r"at: '2026-01-30T09:00:00' has no offset.*add Z or an offset"):
        parse_instant("2026-01-30T09:00:00", field="at")


def test_a_zone_beside_it_makes_it_an_instant() -> None:
    """Without an offset it is the zone's wall clock: right after a gap, the first of two."""
    assert format_instant(parse_instant("2026-01-30T09:00:00", "Asia/Shanghai")) == "2026-01-30T01:00:00.000Z"
    assert format_instant(parse_instant("2026-03-29T02:30:00", "Europe/Berlin")) == "2026-03-29T01:00:00.000Z"
    assert format_instant(parse_instant("2026-10-25T02:30:00.250", "Europe/Berlin")) == "2026-10-25T00:30:00.250Z"
    assert format_instant(parse_instant("2026-01-30T09:00:00Z", "Asia/Shanghai")) == "2026-01-30T09:00:00.000Z"


@pytest.mark.parametrize(
    "text",
    [
        *("tomorrow", "", "2026-01-30", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:60Z"),
        *("2026-1-1T00:00:00Z", "2026-01-01T00:00:00+24:00", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59-00:01"),
        *("2026-01-01T00:00:00+0100", "٢٠٢٦-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
    ],
)
def test_what_is_no_instant_is_refused_by_field(text: str) -> None:
    """Never a guess: the message names the field, the value and what to write."""
    with pytest.raises(Invalid) as caught:
        parse_instant(text, field="at")
    assert caught.value.errors[0].field == "at"
    assert f"'{text}'" in str(caught.value)


@pytest.mark.parametrize("t", [-1, INSTANT_MAX + 1])
def test_outside_the_calendar_nothing_is_written(t: int) -> None:
    """A clock gone mad gives a clear refusal, not a strange date."""
    with pytest.raises(Invalid, match="1970 to 9999"):
        format_instant(t)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        *(("90s", 90_000), ("30m", 1_800_000), ("2h", 7_200_000), ("1d", 86_400_000), ("500ms", 500)),
        *(("1h30m", 5_400_000), ("0s", 0), ("2w", 1_209_600_000), ("1d12h", 129_600_000), ("1m500ms", 60_500)),
    ],
)
def test_a_duration_is_read(text: str, ms: int) -> None:
    """Units from weeks to milliseconds, largest first."""
    assert parse_duration(text) == ms


@given(st.integers(0, INSTANT_MAX))
def test_every_duration_round_trips(ms: int) -> None:
    """What is written is read back exactly."""
    assert parse_duration(format_duration(ms)) == ms


def test_a_duration_is_written_short() -> None:
    """The largest units first, nothing that is zero."""
    written = [format_duration(ms) for ms in (0, 500, 90_000, 5_400_000, 86_400_000, 1_209_600_000)]
    assert written == ["0s", "500ms", "1m30s", "1h30m", "1d", "14d"]


@pytest.mark.parametrize("text", ["", "5", "1.5h", "-1h", "30m1h", "1h 30m", "2H", "1y", "99999999w", "m"])
def test_what_is_no_duration_is_refused_with_the_cure(text: str) -> None:
    """No unit, no fraction, no sign, no other order."""
    with pytest.raises(Invalid, match="every: "):
        parse_duration(text, field="every")


def test_a_negative_duration_cannot_be_written() -> None:
    """A length is zero or more."""
    with pytest.raises(Invalid, match="negative"):
        format_duration(-1)


def test_invalid_says_all_faults_on_one_line() -> None:
    """One refusal lists everything to correct."""
    both = Invalid(FieldError("a", "is wrong"), FieldError("b.c", "is missing"))
    assert str(both) == "a: is wrong; b.c: is missing"
    assert [error.field for error in both.errors] == ["a", "b.c"]
