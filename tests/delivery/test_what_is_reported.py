"""What is reported and when: each kind of schedule against each kind of trouble, row by row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from delivery.kit import Person, reachable
from features.kit import Bench, Bot, World, virtual
from wakeful import cron, every, manual, once
from wakeful.core.gates import ADMIT, Defer
from wakeful.core.instants import HOUR, MINUTE
from wakeful.core.timing import Timing

BOOM = RuntimeError("boom")

MINUTELY, HOURLY, DAILY = every("1m"), every("1h"), cron("0 9 * * *", "UTC")
ONCE, MANUAL = once("2026-01-01T09:00Z"), manual()


def fails_once(n: int) -> Any:
    return BOOM if n == 0 else None


def fails_from_now_on(_: int) -> Any:
    return BOOM


def flaps_two_of_five(n: int) -> Any:
    return BOOM if n % 5 < 2 else None


def times_out(_: int) -> Any:
    return 30 * MINUTE


def runs_90_minutes(_: int) -> Any:
    return 90 * MINUTE


def is_well(_: int) -> Any:
    return None


@dataclass
class Case:
    """One row: what happens, for how long, and what people hear."""

    timing: Timing
    trouble: Callable[[int], Any]
    lasts: str
    heard: list[tuple[str, str]]  # when, and how it begins
    options: dict[str, Any]
    is_gated: bool = False
    is_paused: bool = False


def row(
    timing: Timing, trouble: Callable[[int], Any], lasts: str, *heard: tuple[str, str], gated: bool = False,
    paused: bool = False, **options: Any,
) -> Case:  # fmt: skip
    return Case(timing, trouble, lasts, list(heard), options, gated, paused)


FAILED, TWICE, WELL = "x: it failed", "x: it failed 2 times in a row. ", "x: works again"

ROWS = {
    "minutely fails once": row(MINUTELY, fails_once, "3h"),
    "minutely fails from now on": row(MINUTELY, fails_from_now_on, "12h", ("01-01 00:02:00", TWICE)),
    "minutely flaps": row(
        MINUTELY, flaps_two_of_five, "50m", ("01-01 00:02:00", TWICE), ("01-01 00:04:00", WELL)
    ),
    "minutely times out": row(MINUTELY, times_out, "2h", ("01-01 00:02:20", TWICE), timeout="20s"),
    "minutely runs 90 minutes": row(MINUTELY, runs_90_minutes, "6h"),
    "minutely waits for quota": row(MINUTELY, is_well, "12h", gated=True),
    "minutely is paused": row(MINUTELY, fails_from_now_on, "12h", paused=True),
    "hourly fails once": row(HOURLY, fails_once, "12h"),
    "hourly fails from now on": row(HOURLY, fails_from_now_on, "2d", ("01-01 02:00:00", TWICE)),
    "hourly flaps": row(
        HOURLY, flaps_two_of_five, "10h",
        ("01-01 02:00:00", TWICE), ("01-01 04:00:00", WELL), ("01-01 07:00:00", TWICE), ("01-01 09:00:00", WELL),
    ),
    "hourly times out": row(HOURLY, times_out, "1d", ("01-01 02:01:00", FAILED), timeout="20m"),
    "hourly runs 90 minutes": row(HOURLY, runs_90_minutes, "1d"),
    "hourly waits for quota": row(HOURLY, is_well, "1d", gated=True),
    "hourly is paused": row(HOURLY, fails_from_now_on, "1d", paused=True),
    "daily fails once": row(DAILY, fails_once, "3d", ("01-01 10:01:00", FAILED), ("01-02 09:00:00", WELL)),
    "daily fails from now on": row(DAILY, fails_from_now_on, "9d", ("01-01 10:01:00", FAILED)),
    "daily flaps": row(
        DAILY, flaps_two_of_five, "5d", ("01-01 10:01:00", FAILED), ("01-03 09:00:00", WELL)
    ),
    "daily times out": row(DAILY, times_out, "3d", ("01-01 10:01:00", FAILED), timeout="20m"),
    "daily runs 90 minutes": row(DAILY, runs_90_minutes, "3d"),
    "daily waits for quota": row(DAILY, is_well, "3d", gated=True),
    "daily is paused": row(DAILY, fails_from_now_on, "3d", paused=True),
    "once fails": row(ONCE, fails_from_now_on, "3d", ("01-01 09:00:00", FAILED)),
    "once fails and is tried again": row(
        ONCE, fails_once, "3d", retry={"times": 3, "delay": "30m"}
    ),
    "once keeps failing with retries": row(
        ONCE, fails_from_now_on, "3d", ("01-01 10:01:00", FAILED), retry={"times": 3, "delay": "30m"}
    ),
    "once times out": row(ONCE, times_out, "3d", ("01-01 09:20:00", FAILED), timeout="20m"),
    "once runs 90 minutes": row(ONCE, runs_90_minutes, "3d"),
    "once waits for quota": row(ONCE, is_well, "3d", gated=True),
    "once is paused": row(ONCE, fails_from_now_on, "3d", paused=True),
    "manual fails": row(MANUAL, fails_from_now_on, "3d"),
    "manual runs 90 minutes": row(MANUAL, runs_90_minutes, "3d"),
}  # fmt: skip


def scripted(bot: Bot, trouble: Callable[[int], Any]) -> None:
    """The bot acts by how often it was asked."""
    asked = iter(range(1_000_000))

    def act() -> Any:
        what = trouble(next(asked))
        if isinstance(what, BaseException):
            raise what
        return bot._world.clock.sleep(what) if isinstance(what, int) else what

    bot.usual = act


def heard(person: Person) -> list[tuple[str, str]]:
    return list(zip(person.at, person.got, strict=True))


def agree(said: list[tuple[str, str]], expected: list[tuple[str, str]]) -> None:
    """The same times, and texts that begin as they should."""
    assert [when for when, _ in said] == [when for when, _ in expected], said
    for (_, text), (_, begins) in zip(said, expected, strict=True):
        assert text.startswith(begins), text


@pytest.mark.parametrize("name", ROWS)
@virtual
async def test_each_kind_of_schedule_against_each_kind_of_trouble(world: World, name: str) -> None:
    """Nothing is reported twice, and nothing that stays bad is silent for longer than `within` and five minutes."""
    case = ROWS[name]
    free_at = world.now + 5 * HOUR
    gates = [lambda tx, run, now: Defer(free_at, "quota") if now < free_at else ADMIT] if case.is_gated else []
    app, people = await reachable(world, "phone", gates=gates)
    bot = Bot(world)
    scripted(bot, case.trouble)
    await app.add("x", case.timing, call=bot, **case.options)
    if case.is_paused:
        await app.pause("x")
    if case.timing == MANUAL:
        await app.run_now("x")
    await world.sleep(case.lasts)
    agree(heard(people["phone"]), case.heard)


async def failing_for(world: World, app: Bench, duration: str, timing: Timing = HOURLY, **options: Any) -> Bot:
    bot = Bot(world, BOOM)
    await app.add("x", timing, call=bot, **options)
    await world.sleep(duration)
    return bot


@virtual
async def test_a_report_has_the_cause_the_cure_and_how_to_resume(world: World) -> None:
    """The sentence of `why` is in it; a schedule that is disabled says how it is enabled again."""
    app, people = await reachable(world, "phone")
    await failing_for(world, app, "2h", max_consecutive_errors=2)
    (text,) = people["phone"].got
    assert text.startswith("x: it failed 2 times in a row. ")
    assert (await app.why("x")).sentence in text
    assert text.count("RuntimeError: boom") == 1
    assert "`wakeful resume x`" in text


@virtual
async def test_what_comes_back_soon_after_its_end_is_counted_and_not_reported(world: World) -> None:
    """A schedule that flaps for hours is reported once; if it stays bad for an hour, it is reported again."""
    app, people = await reachable(world, "phone")
    bot = Bot(world)
    scripted(bot, flaps_two_of_five)
    await app.add("x", MINUTELY, call=bot)
    await world.sleep("6h")
    assert len(people["phone"].got) == 2
    ((reopened,),) = world.query("SELECT max(reopened) FROM incidents")
    assert reopened > 10
    bot.usual = BOOM
    await app.update("x", max_consecutive_errors=0)
    await world.sleep("2h")
    assert len(people["phone"].got) == 3
    assert "failed" in people["phone"].got[2]


@virtual
async def test_a_schedule_can_choose_its_own_rule_or_none(world: World) -> None:
    """`alert` of a schedule counts more than the settings."""
    app, people = await reachable(world, "phone", "mail")
    await app.touch("phone")
    await app.add("quiet", HOURLY, call=Bot(world, BOOM), alert=False)
    await app.add("late", HOURLY, call=Bot(world, BOOM), alert={"errors": 4, "within": "30h", "channel": "mail"})
    await world.sleep("1d")
    assert people["phone"].got == []
    agree(heard(people["mail"]), [("01-01 04:00:00", "late: it failed 4 times in a row")])


@virtual
async def test_a_schedule_that_was_resumed_and_fails_again_is_news(world: World) -> None:
    """And its recovery is reported once, from the incident that is open."""
    app, people = await reachable(world, "phone")
    bot = await failing_for(world, app, "6h")
    assert len(people["phone"].got) == 1
    await app.resume("x")
    await world.sleep("3h")
    assert len(people["phone"].got) == 2
    bot.usual = None
    await world.sleep("5h")
    assert [text.partition(",")[0] for text in people["phone"].got[2:]] == ["x: works again"]
