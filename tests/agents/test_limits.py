"""When a limit resets, in the words of the programs."""

import asyncio
import sys
from pathlib import Path

import pytest

from agents.conftest import make_fire
from climbing import Eventually, RecordingLadder
from wakeful.core.time.instants import HOUR, SECOND, format_instant, parse_instant
from wakeful.integrations.agents.arrivals import MARKS_MAX, STEP, ArrivalMarks, Arrivals, Mark
from wakeful.integrations.agents.headless import Headless
from wakeful.integrations.agents.limits import printed_reset, reset_at
from wakeful.integrations.agents.presets.catalogue import PRESETS
from wakeful.integrations.agents.presets.preset import Launch, Printed, ReadMoment
from wakeful.ports.clock import Moment

NOW = parse_instant("2026-11-16T08:15:30Z")

TEXTS = [
    ("Claude AI usage limit reached|1794823200", "2026-11-16T10:00:00.000Z"),
    ("1794823200500", "2026-11-16T10:00:00.500Z"),
    ("resets at 2026-11-16T10:00:00+01:00", "2026-11-16T09:00:00.000Z"),
    ("You've hit your 5-hour limit · resets 8pm (Europe/Berlin)", "2026-11-16T19:00:00.000Z"),
    ("limit · resets 8am (UTC)", "2026-11-17T08:00:00.000Z"),
    ("resets 8:45am (UTC)", "2026-11-16T08:46:00.000Z"),
    ("try again at 9:19 AM.", "2026-11-16T09:20:00.000Z"),
    ("try again at Nov 17th, 2026 8:19 AM.", "2026-11-17T08:20:00.000Z"),
    ("weekly limit · resets Nov 20, 8pm (UTC)", "2026-11-20T20:00:00.000Z"),
    ("resets Dec 1 at 12am (UTC)", "2026-12-01T00:00:00.000Z"),
    ("resets at 23:30", "2026-11-16T23:31:00.000Z"),
    ("Please try again in 90s", "2026-11-16T08:17:01.000Z"),
    ("Please retry in 3584s.", "2026-11-16T09:15:15.000Z"),
    ("try again in 2 hours 5 minutes", "2026-11-16T10:20:30.000Z"),
    ("available again in 1h30m", "2026-11-16T09:45:30.000Z"),
    ("retry after 1.5 days", "2026-11-17T20:15:30.000Z"),
    ("Please try again in 1.5s", "2026-11-16T08:15:31.500Z"),
    ("Retry-After: 120", "2026-11-16T08:17:31.000Z"),
    ("120", "2026-11-16T08:17:31.000Z"),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_a_reset_is_read(text: str, expected: str) -> None:
    """A time of day with minutes means the end of that minute, and whole seconds the end of the last one."""
    found = reset_at(text, NOW, "UTC")
    assert found is not None and format_instant(found) == expected


def test_a_time_of_day_without_a_zone_is_the_machines() -> None:
    """As the program printed it."""
    found = reset_at("try again at 9:19 AM", NOW, "America/New_York")
    assert found is not None and format_instant(found) == "2026-11-16T14:20:00.000Z"


@pytest.mark.parametrize(
    "text", ["", "rate limited", "resets Feb 30, 8pm (UTC)", "9999999999", "in 400 days", "13pm", "1294823200"]
)
def test_what_names_no_time_that_can_be_believed(text: str) -> None:
    """Then it is an ordinary failure."""
    assert reset_at(text, NOW, "UTC") is None


ENDED = ReadMoment(NOW)
EARLIER = NOW - 8 * SECOND
AT_THE_END = Arrivals((Mark(1, NOW - 20 * SECOND), Mark(4, EARLIER), Mark(9, NOW)))
TOLD = "one\nthe limit is reached\ntry again in 90s.\nfour\n5\n6\n7\n8\n9\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_duration_counts_from_when_it_was_printed(stream: str) -> None:
    """The program may run on for seconds after that."""
    printed = Printed(*((TOLD, "") if stream == "stdout" else ("", TOLD)), 0)._replace(
        **{f"{stream}_arrived": AT_THE_END}
    )
    assert printed_reset("try again in 90s", printed, ENDED) == EARLIER + 91 * SECOND


def test_the_last_time_it_was_printed_counts() -> None:
    """A program that asks again prints the same words again, for a later reset."""
    printed = Printed("in 90s\n", "in 90s\n", 0, Arrivals((Mark(1, EARLIER),)), Arrivals((Mark(1, EARLIER + 5),)))
    assert printed_reset("in 90s", printed, ENDED) == EARLIER + 5 + 91 * SECOND


@pytest.mark.parametrize(
    "output",
    [
        "try again in\n 2 hours\n5 minutes",
        '{"text": "try again in\\n2 hours 5 minutes"}',
        "\x1b[31min 2 hours 5 minutes",
    ],
)
def test_words_are_found_however_they_were_wrapped(output: str) -> None:
    """Aider folds its lines, others print JSON or colours."""
    printed = Printed(output, "", 0, Arrivals((Mark(0, EARLIER),)))
    assert printed_reset("try again in 2 hours 5 minutes", printed, ENDED) == EARLIER + 125 * 60 * SECOND


def test_a_number_inside_another_is_not_the_same() -> None:
    """`30s` is not in `130s`."""
    printed = Printed("in 30s\nin 130s\n30smile\n", "", 0, Arrivals((Mark(1, EARLIER), Mark(3, NOW - 1))))
    assert printed_reset("in 30s", printed, ENDED) == EARLIER + 31 * SECOND


def test_a_time_of_day_that_came_before_the_program_ended_is_todays() -> None:
    """Printed at 07:59:58, read at 08:00:03: it is not tomorrow's."""
    at = parse_instant("2026-11-16T07:59:58Z")
    printed = Printed("resets 8am (UTC)\n", "", 1, Arrivals((Mark(1, at),)))
    found = printed_reset("resets 8am (UTC)", printed, ReadMoment(at + 5 * SECOND))
    assert found == at + 2 * SECOND


@pytest.mark.parametrize("arrived", [(), (Mark(3, NOW + 60 * SECOND),)])
def test_what_is_not_known_counts_from_the_end(arrived: tuple[Mark, ...]) -> None:
    """Nor does a clock that was set back meanwhile move a reset into the future."""
    printed = Printed("in 90s\n", "", 0, Arrivals(arrived))
    assert printed_reset("in 90s", printed, ENDED) == NOW + 91 * SECOND


class SetClock:
    """A clock that shows what it is set to."""

    def __init__(self) -> None:
        self.now = NOW
        self.reads = 0

    def read(self) -> Moment:
        self.reads += 1
        return Moment(self.now, self.now)

    async def sleep(self, duration: int) -> None:
        self.now += duration

    async def wait(self, bell: asyncio.Event, duration: int) -> bool:
        self.now += duration
        return bell.is_set()


def test_marks_are_few_and_never_too_early() -> None:
    """A day of output, a line in every 50 ms: each line has its time, or a later one."""
    clock = SetClock()
    marks, times, lines = ArrivalMarks(clock), [], 4 * MARKS_MAX
    for number in range(lines):
        clock.now += 50
        times.append(clock.now)
        marks.feed(f"{number}\n".encode())
    arrivals = marks.arrivals()
    assert len(arrivals.marks) <= MARKS_MAX
    text = "".join(f"{number}\n" for number in range(lines))
    for number in (0, 1, lines // 2, lines - 2, lines - 1):
        at = arrivals.of(text, text.index(f"{number}\n") if number < 2 else text.index(f"\n{number}\n") + 1)
        assert at is not None and times[number] <= at < times[number] + STEP


def test_the_oldest_marks_are_given_up_first() -> None:
    """Then a line has the time of the oldest mark that is left: too late, never too early."""
    clock = SetClock()
    marks = ArrivalMarks(clock)
    for _ in range(MARKS_MAX + 10):
        clock.now += STEP
        marks.feed(b"x\n")
    arrivals = marks.arrivals()
    text = "x\n" * (MARKS_MAX + 10)
    assert len(arrivals.marks) == MARKS_MAX
    assert arrivals.of(text, 0) == arrivals.marks[0].at == NOW + 11 * STEP
    assert arrivals.of(text, len(text) - 2) == clock.now


PRINTS_AND_GOES_ON = """
import os, pathlib, sys, time
os.write(sys.{stream}.fileno(), b"it begins\\nthe limit is reached, try again in 90s\\n")  # in one piece
while not pathlib.Path("go").exists():
    time.sleep(0.01)
print("good-bye", file=sys.{stream}, flush=True)
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_real_program_that_goes_on_after_it_printed_the_limit(
    stream: str, tmp_path: Path, eventually: Eventually
) -> None:
    """An hour passes between the line and the end of the program."""
    clock = SetClock()
    headless = Headless(clock)
    launch = Launch((sys.executable, "-c", PRINTS_AND_GOES_ON.format(stream=stream)))
    running = asyncio.ensure_future(headless.run(launch, str(tmp_path), {}, make_fire(), RecordingLadder()))
    await eventually(lambda: clock.reads == 1)
    clock.now += HOUR
    (tmp_path / "go").touch()
    printed = await running
    await headless.close()
    assert isinstance(printed, Printed)
    said = printed.stdout if stream == "stdout" else printed.stderr
    assert said.splitlines()[-1] == "good-bye"
    assert printed_reset("try again in 90s", printed, ReadMoment(clock.now)) == NOW + 91 * SECOND


AIDER = """Aider v0.86
Main model: openai/x

litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached for
requests. Please try again in 90s.
The API provider has rate limited you. Try again later or check your quotas.
https://aider.chat/docs/troubleshooting/aider-not-found.html
"""


def test_aider_goes_on_after_it_printed_the_limit() -> None:
    """It ends seconds after the line."""
    reading = PRESETS["aider"].read(Printed(AIDER, "", 0, Arrivals((Mark(6, EARLIER), Mark(7, NOW)))), ENDED)
    assert (reading.kind, reading.reset_at) == ("limited", EARLIER + 91 * SECOND)
