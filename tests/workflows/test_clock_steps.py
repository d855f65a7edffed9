"""Producers and a clock that goes back: nothing runs twice, nothing is silent, and the ledger still tiles."""

from typing import Any

import pytest

from features.kit import Bench, Bot, World, short, virtual
from wakeful import every
from wakeful.core.time.instants import DAY, MINUTE
from workflows.kit import Inbox


async def producer_rows(bench: Bench) -> list[str]:
    """The rows of the producer, oldest first; those of the consumer have the trigger `wake`."""
    rows = reversed(await bench.runs("workflow:inbox", limit=1000))
    return [f"{short(row.planned_at)} {row.outcome}" for row in rows if row.trigger != "wake"]


@pytest.mark.promise
@virtual
async def test_a_producer_does_not_repeat_what_ran_before_the_clock_went_back(world: World) -> None:
    """By 20 minutes: a producer with `every 5m` waits, like the schedule beside it, until time has caught up."""
    world.sleep_max = MINUTE
    inbox = Inbox(world, period="5m")
    bench = await inbox.open()
    bot = Bot(world)
    await bench.add("tick", every("5m", anchor="2026-01-01T00:00:00Z"), call=bot)
    await world.until("01-01 01:02:00")
    ran = inbox.poll.count
    beside = len(bot.fires)
    world.wall.step(-20 * MINUTE)
    await world.until("01-01 01:02:30")
    assert inbox.poll.count == ran
    assert len(bot.fires) == beside
    await world.until("01-01 01:12:00")
    assert inbox.poll.count == ran + 2
    assert len(bot.fires) == beside + 2
    planned = [row for row in await producer_rows(bench) if "succeeded" in row]
    assert len(planned) == len(set(planned)) == ran + 2


@virtual
async def test_what_was_only_skipped_by_a_clock_that_was_ahead_runs_when_its_time_comes(world: World) -> None:
    """A day ahead for ten minutes: the instants of that day are planned again, but for the two that ran then."""
    world.sleep_max = MINUTE
    inbox = Inbox(world, period="6h")
    bench = await inbox.open()
    await world.until("01-01 00:30:00")
    world.wall.step(DAY)
    await world.sleep("10m")  # 00:40 of the next day: one run for 00:00 of that day, the others are missed
    world.wall.step(-DAY)
    await world.sleep("2m")
    ahead = [short(item.due_at) for item in (await bench.schedules.upcoming(world.now + 2 * DAY)).instants]
    assert ahead[:4] == ["01-01 06:00:00", "01-01 12:00:00", "01-01 18:00:00", "01-02 06:00:00"]
    await world.until("01-02 07:00:00")
    rows = await producer_rows(bench)
    assert sorted(row for row in rows if row.endswith("succeeded")) == [
        "01-01 00:00:00 succeeded",
        "01-01 06:00:00 succeeded",
        "01-01 12:00:00 succeeded",
        "01-01 18:00:00 succeeded",
        "01-02 00:00:00 succeeded",
        "01-02 06:00:00 succeeded",
    ]
    assert not [row for row in rows if "missed" in row]


@virtual
async def test_a_single_late_time_of_a_producer_is_caught_up(world: World) -> None:
    """It was due during an outage: the trigger says so, as for several of them and as for a schedule."""
    inbox = Inbox(world, period="1h")
    bench = await inbox.open()
    await world.until("01-01 00:30:00")
    await bench.stop()
    await world.until("01-01 01:20:00")
    again = await inbox.open()
    await world.sleep("1m")
    newest: Any = (await again.runs("workflow:inbox", limit=1))[0]
    assert (short(newest.planned_at), newest.trigger, newest.outcome) == ("01-01 01:00:00", "catchUp", "succeeded")
    await world.until("01-01 02:01:00")
    newest = (await again.runs("workflow:inbox", limit=1))[0]
    assert (short(newest.planned_at), newest.trigger) == ("01-01 02:00:00", "schedule")


@virtual
async def test_a_gap_that_reaches_past_a_clock_that_went_back_ends_there(world: World) -> None:
    """A pause of a day, ended on a clock that was half a day ahead: of the four times it left out two have passed."""
    world.sleep_max = MINUTE
    inbox = Inbox(world, period="6h")
    bench = await inbox.open()
    await bench.add("tick", every("6h", anchor="2026-01-01T00:00:00Z"), call=Bot(world))
    await world.until("01-01 00:30:00")
    await bench.pause("tick")
    await bench.workflows.pause("inbox")
    world.wall.step(DAY)
    await world.sleep("10m")
    await bench.resume("tick")
    await bench.workflows.resume("inbox")
    await world.sleep("1m")
    assert await halts(bench, "tick") == await halts(bench, "workflow:inbox") == [("01-02 00:00:00", 4)]
    world.wall.step(-DAY // 2)
    await world.sleep("2m")
    assert await halts(bench, "tick") == await halts(bench, "workflow:inbox") == [("01-01 12:00:00", 2)]


async def halts(bench: Bench, slug: str) -> list[tuple[str, int]]:
    """Until when and how many times were left out by pauses."""
    return [(short(row.planned_until), row.count) for row in await bench.runs(slug) if row.reason == "paused"]
