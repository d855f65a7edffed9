"""`when` as one text: what it means, and what is refused because it could mean two things."""

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.errors import Invalid
from wakeful.core.time.instants import DAY, HOUR, MINUTE, parse_instant
from wakeful.core.time.timing import Cron, Every, Once, Times, next_after, resolve
from wakeful.core.time.timing_json import read_timing, timing_to_json
from wakeful.core.time.timing_words import describe
from wakeful.core.time.when import read_when

NOW = parse_instant("2026-11-16T17:45:00Z")  # a Monday, 18:45 in Berlin
BERLIN = "Europe/Berlin"


def read(text: str, **more: object) -> object:
    return read_when(text, now=NOW, default_zone=BERLIN, **more)  # type: ignore[arg-type]


def at(text: str) -> Once:
    return Once(parse_instant(text))


@pytest.mark.parametrize(
    ("text", "timing"),
    [
        ("every 2h", Every(2 * HOUR)),
        ("every 2 hours", Every(2 * HOUR)),
        ("Every Hour", Every(HOUR)),
        ("hourly", Every(HOUR)),
        ("every 1h30m", Every(90 * MINUTE)),
        ("0 9 * * 1-5", Cron("0 9 * * 1-5", BERLIN)),
        ("cron 0 9 * * MON-FRI", Cron("0 9 * * MON-FRI", BERLIN)),
        ("@daily", Cron("@daily", BERLIN)),
        ("weekdays at 9:00", Cron("0 9 * * 1-5", BERLIN)),
        ("every weekday at 9am", Cron("0 9 * * 1-5", BERLIN)),
        ("9:00 on weekdays", Cron("0 9 * * 1-5", BERLIN)),
        ("mon-fri at 9:00 and 17:00", Cron("0 9,17 * * 1-5", BERLIN)),
        ("weekends at 10:30", Cron("30 10 * * 0,6", BERLIN)),
        ("mondays at 9:00", Cron("0 9 * * 1", BERLIN)),
        ("every monday and thursday at 9:00", Cron("0 9 * * 1,4", BERLIN)),
        ("fri-mon at 9:00", Cron("0 9 * * 0,1,5,6", BERLIN)),
        ("every month on the 1st at 9:00", Cron("0 9 1 * *", BERLIN)),
        ("the last day of every month at 18:00", Cron("0 18 L * *", BERLIN)),
        ("first monday of every month at 9:00", Cron("0 9 * * 1#1", BERLIN)),
        ("daily at 9:00", Times(("09:00",), BERLIN)),
        ("every day at noon", Times(("12:00",), BERLIN)),
        ("9:00 and 17:30", Times(("09:00", "17:30"), BERLIN)),
        ("09:00,18:00", Times(("09:00", "18:00"), BERLIN)),
        ("in 20m", Once(NOW + 20 * MINUTE)),
        ("in 20 minutes", Once(NOW + 20 * MINUTE)),
        ("in an hour and 30 minutes", Once(NOW + 90 * MINUTE)),
        ("20 minutes from now", Once(NOW + 20 * MINUTE)),
        ("in 2 days", Once(NOW + 2 * DAY)),
        ("at 2026-12-01T09:00+01:00", at("2026-12-01T08:00Z")),
        ("2026-12-01T09:00Z", at("2026-12-01T09:00Z")),
        ("2026-12-01 09:00", at("2026-12-01T08:00Z")),
        ("2026-12-01 at 9am", at("2026-12-01T08:00Z")),
        ("tomorrow at 9:00", at("2026-11-17T08:00Z")),
        ("9:00 tomorrow", at("2026-11-17T08:00Z")),
        ("today at 21:00", at("2026-11-16T20:00Z")),
        ("1 december at 9:00", at("2026-12-01T08:00Z")),
        ("Dec 1st, 2026 at 9pm", at("2026-12-01T20:00Z")),
        ("2 january at 9:00", at("2027-01-02T08:00Z")),
        ("13/4/2027 at 9:00", at("2027-04-13T07:00Z")),
        ("weekdays at 9:00 in Asia/Shanghai", Cron("0 9 * * 1-5", "Asia/Shanghai")),
        ("tomorrow at 9:00 UTC", at("2026-11-17T09:00Z")),
    ],
)
def test_what_a_text_means(text: str, timing: object) -> None:
    assert read(text) == timing


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("20m", "every 20m", "in 20m"),
        ("9:00", "every day at 09:00", "tomorrow at 09:00"),
        ("at 21:00", "every day at 21:00", "today at 21:00"),
        ("weekdays at 9", "weekdays at 09:00", "weekdays at 21:00"),
        ("at 9 on 9 december", "at 09:00 on 9 december", "at 21:00 on 9 december"),
        ("every day", "every 24h", "every day at 18:45"),
        ("every week", "every 7d", "every monday at 18:45"),
        ("monday at 9:00", "every monday at 09:00", "2026-11-23 at 09:00"),
        ("on monday at 21:00", "every monday at 21:00", "2026-11-16 at 21:00"),
        ("next friday at 9:00", "2026-11-20 at 09:00", "2026-11-27 at 09:00"),
        ("3/4/2027 at 9:00", "2027-04-03 at 9:00", "2027-03-04 at 9:00"),
        ("tomorrow at midnight", "2026-11-17 at 00:00", "2026-11-18 at 00:00"),
    ],
)
def test_a_text_with_two_meanings_is_refused_with_both(text: str, first: str, second: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(text)
    assert str(refused.value) == f"when: '{text}' has two meanings; write '{first}' or '{second}'"
    assert read(first) != read(second)


@pytest.mark.parametrize(
    "text",
    [
        *("", "   ", "soon", "tonight", "in 5", "every", "in", "every 0m", "in 0m", "every month", "2026-12-01"),
        *("tuesday", "weekdays at 25:00", "weekdays at 9:00 and 17:30", "30 february 2027 at 9:00", "0 9 31 2 *"),
        *("every 2 days at 9:00", "every 99999999999999999999 hours", "in 20m\nput_schedule", "every 2h\0", "x" * 300),
        *("weekdays at 9:00 in Mars/Olympus", "2026-13-01 at 9:00"),
    ],
)
def test_what_is_not_understood_is_refused_with_a_cure(text: str) -> None:
    with pytest.raises(Invalid, match=r"when: .*(write|use)"):
        read(text)


def test_a_zone_beside_the_text_counts_and_two_zones_are_refused() -> None:
    assert read("weekdays at 9:00", timezone="Asia/Tokyo") == Cron("0 9 * * 1-5", "Asia/Tokyo")
    with pytest.raises(Invalid, match="leave one of them out"):
        read("weekdays at 9:00 Europe/Berlin", timezone="Asia/Tokyo")


_TIMES = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
TEXTS = st.one_of(
    st.builds("every {}{}".format, st.integers(1, 999), st.sampled_from("smhd")),
    st.builds("in {} {}".format, st.integers(1, 999), st.sampled_from(["seconds", "minutes", "hours", "days"])),
    st.builds("{} at {}".format, st.sampled_from(["weekdays", "daily", "mondays", "every sunday"]), _TIMES),
    st.builds("{} at {}".format, st.dates(min_value=date(2027, 1, 1)), _TIMES),
    st.builds("{0} {1} {2} * {3}".format, *[st.integers(*ends) for ends in ((0, 59), (0, 23), (1, 28), (0, 6))]),
)


@given(TEXTS, st.sampled_from(["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe"]))
def test_a_timing_that_was_read_has_a_next_time_and_survives_storing(text: str, zone: str) -> None:
    timing = resolve(read_when(text, now=NOW, default_zone=zone), now=NOW, default_zone=zone)
    following = next_after(timing, NOW)
    assert following is None or following > NOW
    assert read_timing(timing_to_json(timing)) in (timing, Every(getattr(timing, "every", 0)))
    assert describe(timing)


@given(st.text(max_size=60))
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        timing = read(text)
    except Invalid as invalid:
        assert re.search("write|use|leave|did you mean|give|remove", str(invalid))
    else:
        assert describe(resolve(timing, now=NOW, default_zone="UTC"))  # type: ignore[arg-type]


_VOCABULARY = """every in at on next monday weekdays 9 9:00 9am , and 20m 2 hours day december 1st 2026-12-01 today last
of month the tomorrow midnight 3/4/2027 * 0 1-5 UTC"""
_WORDS = st.lists(st.sampled_from(_VOCABULARY.split()), min_size=1, max_size=7).map(" ".join)


@given(_WORDS)
def test_readings_of_an_ambiguous_text_differ(text: str) -> None:
    try:
        read(text)
    except Invalid as invalid:
        both = re.fullmatch(r"when: '.*' has two meanings; write '(.*)' or '(.*)'", str(invalid))
        if both is not None:
            assert both[1] != both[2]
