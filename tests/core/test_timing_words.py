"""Timings in plain English."""

from __future__ import annotations

import pytest

from wakeful.core.time.instants import INSTANT_MAX
from wakeful.core.time.timing import AfterReset, Cron, Every, Manual, Once, Times, Timing
from wakeful.core.time.timing_words import describe

HOUR = 3_600_000
NOW = 1_769_763_600_000


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 9 * * 1-5", "every weekday at 09:00"),
        ("0 9 * * MON,TUE,WED,THU,FRI", "every weekday at 09:00"),
        ("0 9 * * 6,0", "every Saturday and Sunday at 09:00"),
        ("0 0 1 * *", "on the 1st of every month at 00:00"),
        ("0 0 1,15 * *", "on the 1st and 15th of every month at 00:00"),
        ("30 8 22 12 *", "on the 22nd of December at 08:30"),
        ("0 9 * * 5L", "the last Friday of every month at 09:00"),
        ("0 9 * * MON#2", "the 2nd Monday of every month at 09:00"),
        ("0 9 L * *", "on the last day of every month at 09:00"),
        ("0 9 LW 1,7 *", "on the last weekday of January and July at 09:00"),
        ("0 9 * 6 *", "every day in June at 09:00"),
        ("0 9 1 * 1", "on the 1st of every month and also every Monday at 09:00"),
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0,30 * * * *", "every 30 minutes"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("* * * * * *", "every second"),
        ("0 * * * *", "every hour"),
        ("15 */2 * * *", "every 2 hours at minute 15"),
        ("*/15 9-17 * * 1-5", "every 15 minutes from 09:00 to 17:45, every weekday"),
        ("0 9-17 * * *", "every hour from 09:00 to 17:00"),
        ("*/20 2 * * *", "every day at 02:00, 02:20 and 02:40"),
        ("15 30 10 * * *", "every day at 10:30:15"),
        ("@weekly", "every Sunday at 00:00"),
    ],
)
def test_a_common_expression_has_its_phrase(expression: str, words: str) -> None:
    """Chosen by what the fields mean, with the zone behind it."""
    assert describe(Cron(expression, "Europe/Berlin")) == f"{words} (Europe/Berlin)"


@pytest.mark.parametrize(
    "expression", ["*/7 * * * *", "0 0 */2 * 1", "5-55/10 * * * *", "*/30 0 9 * * *", "*/9 1,5 * * *"]
)
def test_what_has_no_phrase_is_quoted(expression: str) -> None:
    """Never a wrong sentence: seven does not divide the hour, so it is not "every 7 minutes"."""
    assert describe(Cron(expression, "UTC")) == f"whenever the wall clock matches '{expression}' (UTC)"


@pytest.mark.parametrize(
    ("timing", "words"),
    [
        (Every(2 * HOUR, NOW), "every 2 hours, aligned to 2026-01-30T09:00:00.000Z"),
        (Every(HOUR), "every hour"),
        (Every(90_000), "every 90 seconds"),
        (Every(1500), "every 1s500ms"),
        (Times(("18:00", "09:00"), "Europe/Berlin"), "at 09:00 and 18:00 every day (Europe/Berlin)"),
        (Times(("09:00",)), "at 09:00 every day"),
        (Once(NOW), "once, at 2026-01-30T09:00:00.000Z"),
        (Once(NOW, "Asia/Shanghai"), "once, at 2026-01-30 17:00 (Asia/Shanghai)"),
        (Once(INSTANT_MAX, "Asia/Shanghai"), "once, at 9999-12-31T23:59:59.999Z"),
        (Once(0, "America/New_York"), "once, at 1970-01-01T00:00:00.000Z"),
        (AfterReset("main", 60_000), "1 minute after each reset of the quota slot 'main'"),
        (AfterReset("main"), "at each reset of the quota slot 'main'"),
        (Manual(), "only on request"),
    ],
)
def test_every_other_kind_has_its_sentence(timing: Timing, words: str) -> None:
    """Plain words, resolved or not."""
    assert describe(timing) == words
