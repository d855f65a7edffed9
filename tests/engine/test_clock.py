"""Clocks that are wrong (L3, L10): ahead, behind, in 1970, in 2036, asleep, and rules of time that change."""

from datetime import UTC, datetime

import pytest

from features.kit import Bot, World, as_ms, instant, ledger, short, virtual
from wakeful import cron, every, once
from wakeful.app import bootstrap
from wakeful.core.time.instants import DAY, HOUR, MINUTE
from wakeful.testing.virtual_clock import EPOCH


@virtual
async def test_a_jump_forward_is_one_catch_up_with_the_clock_as_its_reason(world: World) -> None:
    """A day ahead in one step: the latest instant runs, the rest are missed because of the clock."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    world.clock.step(DAY)
    await world.sleep("90m")
    assert bot.planned == ["01-01 01:00:00", "01-02 01:00:00", "01-02 02:00:00", "01-02 03:00:00"]
    assert (await ledger(app, "tick"))[1] == "01-01 02:00:00 missed (clock) x23"


@virtual
async def test_a_jump_is_noticed_within_a_minute(world: World) -> None:
    """OC PR#1808: the wall is looked at again at least once a minute, whatever the timers say."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("daily", cron("0 9 * * *"))
    await world.until("01-01 01:00:00")
    world.clock.set(instant("01-01 09:00:00"))
    await world.sleep("61s")
    assert bot.planned == ["01-01 09:00:00"]
    assert app._is_ticking


@virtual
async def test_a_small_step_back_is_put_up_with(world: World) -> None:
    """Half a minute of correction: nothing is planned anew, nothing repeats, nothing is lost."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("10m"))
    for _ in range(6):
        await world.sleep("10m5s")
        world.clock.step(-30_000)
    await world.sleep("10m")
    assert len(bot.keys) == len(set(bot.keys))
    assert [row.split()[2] for row in await ledger(app, "tick")] == ["succeeded"] * len(bot.keys)
    assert len(bot.keys) >= 6


@virtual
async def test_a_run_under_way_while_the_clock_goes_back_ends_and_is_not_repeated(world: World) -> None:
    """Its deadline is a duration, not a time of the wall."""
    world.sleep_max = MINUTE
    bot = Bot(world, usual=30 * MINUTE)
    app = await world.open(bot)
    await app.add("job", every("2h"), timeout="40m")
    await world.until("01-01 02:10:00")
    world.clock.step(-5 * HOUR)
    await world.sleep("25m")
    assert bot.running == 0
    assert (await app.runs("job"))[-1].outcome == "succeeded"
    await world.until("01-01 03:00:00")
    assert bot.planned == ["01-01 02:00:00", *bot.planned[1:]]
    assert bot.planned.count("01-01 02:00:00") == 1


@virtual
async def test_a_retry_reckoned_on_a_clock_that_was_ahead_comes_nearer(world: World) -> None:
    """A year ahead, an error, and the clock is set right: the retry is in ten minutes, not in a year."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    bot.script = [RuntimeError("no")]
    app = await world.open(bot)
    world.clock.step(365 * DAY)
    await app.add("job", every("1h"), retry={"times": 1, "delay": "10m"})
    await world.sleep("61m")
    assert len(bot.fires) == 1
    world.clock.step(-365 * DAY)
    await world.sleep("15m")
    assert [fire.attempt for fire in bot.fires][:2] == [1, 2]


@virtual
async def test_a_clock_set_back_while_the_process_was_down_is_noticed_at_the_start(world: World) -> None:
    """The store remembers how far the clock had got: nothing repeats, nothing falls silent."""
    bot = Bot(world)
    app = await world.open(bot, limits={"lease": 10 * MINUTE, "renew_every": 5 * MINUTE})
    await app.add("tick", every("1h"))
    await world.until("01-01 05:30:00")
    await app.stop()
    world.clock.step(-3 * HOUR)
    await app.start()
    await world.until("01-01 07:30:00")
    assert bot.planned == [f"01-01 0{hour}:00:00" for hour in range(1, 8)]


@virtual
async def test_a_boot_in_1970_plans_nothing_until_the_clock_is_set(world: World) -> None:
    """A board without a battery: nothing runs on a clock from before the store began, and one catch-up follows."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    await app.stop()
    world.clock.set(0)
    await app.start()
    await world.sleep("10m")
    assert bot.planned == ["01-01 01:00:00"]
    world.clock.set(EPOCH + 5 * HOUR + 10 * MINUTE)
    await world.sleep("1h")
    assert bot.planned == ["01-01 01:00:00", "01-01 05:00:00", "01-01 06:00:00"]
    assert (await ledger(app, "tick"))[1].startswith("01-01 02:00:00 missed")


@virtual
async def test_a_boot_in_2036_and_back_costs_one_catch_up_and_no_silence(world: World) -> None:
    """Ten years ahead at boot, set right a minute later."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await app.add("shot", once("2026-01-01T04:15:00Z"))
    await world.until("01-01 01:30:00")
    await app.stop()
    world.clock.set(instant("2036-02-07T06:28:16Z"))
    await app.start()
    await world.sleep("1m")
    ahead = len(bot.fires)
    world.clock.set(EPOCH + 2 * HOUR)
    await world.sleep("3h1m")
    assert ahead <= 3
    ticks = [fire for fire in bot.fires if fire.slug == "tick"]
    assert [short(fire.planned_at) for fire in ticks][-3:] == ["01-01 03:00:00", "01-01 04:00:00", "01-01 05:00:00"]
    assert [fire.slug for fire in bot.fires].count("shot") == 1
    assert len(set(bot.keys)) == len(bot.keys)


@virtual
async def test_a_suspend_is_an_outage_with_the_same_policy(world: World) -> None:
    """A laptop closed for eight hours: timers stood still, the wall went on; one catch-up on waking."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await app.add("fresh", every("1h"), catch_up="skip")
    await world.until("01-01 00:30:00")
    app.machine.freeze()
    await world.sleep("8h")
    app.clock.suspend(8 * HOUR)
    app.machine.thaw()
    await world.sleep("1m")
    assert [(fire.slug, short(fire.planned_at)) for fire in bot.fires] == [("tick", "01-01 08:00:00")]
    await world.until("01-01 09:10:00")
    assert bot.planned == ["01-01 08:00:00", "01-01 09:00:00", "01-01 09:00:00"]


@pytest.mark.parametrize("step", [DAY, -DAY, 400 * DAY, -HOUR])
@virtual
async def test_no_step_of_the_clock_leaves_silence_or_a_storm(world: World, step: int) -> None:
    """L3: after any step there is at most one catch-up, and then the grid goes on."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await app.add("daily", cron("30 * * * *"))
    await world.until("01-01 03:40:00")
    before = len(bot.fires)
    world.clock.step(step)
    await world.sleep("3h")
    assert before + 3 <= len(bot.fires) <= before + 8
    assert len(set(bot.keys)) == len(bot.keys)
    next_run = (await app.get("tick")).next_run
    assert next_run is not None
    assert as_ms(next_run) > world.now


@virtual
async def test_new_rules_of_time_zones_replan_what_has_a_zone(world: World) -> None:
    """§5.1: the alarm is where old rules put it; at a start under new rules it is moved, and only zoned ones are."""
    app = await world.open(Bot(world))
    await app.add("zoned", cron("0 9 * * *", tz="Europe/Berlin"))
    await app.add("plain", every("1h"))
    old = instant("01-01 07:00:00")
    world.tamper("UPDATE cadences SET next_at = ?", old)
    world.tamper("UPDATE alarms SET due_at = ?", old)
    assert not await bootstrap.replan_if_zones_changed(app.parts, bootstrap.zone_rules())
    assert short((await app.get("zoned")).next_run) == "01-01 07:00:00"
    assert await bootstrap.replan_if_zones_changed(app.parts, "system 2031a")
    assert short((await app.get("zoned")).next_run) == "01-01 08:00:00"
    assert short((await app.get("plain")).next_run) == "01-01 07:00:00"
    assert not await bootstrap.replan_if_zones_changed(app.parts, "system 2031a")


@virtual
async def test_a_first_start_replans_nothing(world: World) -> None:
    """A store that has never seen rules takes those of its first start as its own."""
    app = await world.open(Bot(world))
    assert world.query("SELECT value FROM meta WHERE name = 'zone_rules'") == [(bootstrap.zone_rules(),)]
    assert app._is_ticking


@virtual
async def test_a_schedule_written_while_the_clock_was_ahead_is_not_silent_when_it_comes_back(world: World) -> None:
    """Its grid was to begin a year ahead: it goes on from now, on the same grid, and repeats nothing."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    app = await world.open(bot)
    world.clock.step(365 * DAY)
    await app.add("hourly", every("1h"))
    await app.add("later", every("1h", anchor="2027-06-01T00:00:00Z"))
    await world.sleep("2h30m")
    assert len(bot.fires) == 2
    world.clock.step(-365 * DAY)
    await world.sleep("3h")
    assert len(bot.fires) == 5
    assert len(set(bot.keys)) == 5
    assert {fire.slug for fire in bot.fires} == {"hourly"}
    assert {as_ms(fire.planned_at) % HOUR for fire in bot.fires} == {as_ms(bot.fires[0].planned_at) % HOUR}
    assert (await app.get("later")).next_run == datetime(2027, 6, 1, tzinfo=UTC)
    await app.add("hourly", every("1h"))
    await world.sleep("1h")
    assert len(bot.fires) == 6, "writing it again keeps the grid"
