"""`every` with an anchor: aligned to a grid, never in the past, one catch-up after silence."""

import itertools
import logging

import pytest

from features.kit import Bot, World, as_ms, instant, ledger, short, virtual
from wakeful import every
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND


@virtual
async def test_runs_lie_on_the_grid_of_creation_not_of_endings(world: World) -> None:
    """L3, OC#14761: runs that take seven minutes do not push the next ones back."""
    bot = Bot(world, usual=7 * MINUTE)
    app = await world.open(bot)
    await world.sleep("3m")
    await app.add("tick", every("10m"))
    await world.until("01-01 00:44:00")
    assert bot.planned == ["01-01 00:13:00", "01-01 00:23:00", "01-01 00:33:00", "01-01 00:43:00"]
    assert bot.began == bot.planned


@virtual
async def test_the_grid_is_the_anchors(world: World) -> None:
    """A past anchor fixes the phase; the first instant is the next one on its grid."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h", anchor="2020-02-29T00:20:00Z"))
    await world.until("01-01 03:00:00")
    assert bot.planned == ["01-01 00:20:00", "01-01 01:20:00", "01-01 02:20:00"]


@virtual
async def test_a_future_anchor_is_itself_the_first_run(world: World) -> None:
    """Before it nothing happens, whatever the interval."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h", anchor="2026-01-03T10:30:00Z"))
    assert short((await app.get("tick")).next_run) == "01-03 10:30:00"
    await world.until("01-03 12:00:00")
    assert bot.planned == ["01-03 10:30:00", "01-03 11:30:00"]


@virtual
async def test_an_interval_below_ten_seconds_is_clamped_with_a_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The minimum is ten seconds; less is refused."""
    bot = Bot(world)
    app = await world.open(bot)
    with caplog.at_level(logging.WARNING, "wakeful"):
        await app.add("fast", every("1s"))
    assert "10s is used" in caplog.text
    await world.until("01-01 00:00:35")
    assert bot.planned == ["01-01 00:00:10", "01-01 00:00:20", "01-01 00:00:30"]


@virtual
async def test_an_offline_period_is_caught_up_once(world: World) -> None:
    """Eight hours down cost one run of the latest instant; the others are one counted row."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    app = await world.reopen(app, bot, off="8h")
    await world.until("01-01 10:30:00")
    assert bot.planned == ["01-01 01:00:00", "01-01 09:00:00", "01-01 10:00:00"]
    assert await ledger(app, "tick") == [
        "01-01 01:00:00 succeeded",
        "01-01 02:00:00 missed (outage) x7",
        "01-01 09:00:00 succeeded",
        "01-01 10:00:00 succeeded",
    ]


@virtual
async def test_the_next_time_is_never_in_the_past(world: World) -> None:
    """L3: at every moment, after every start, the next run lies strictly ahead."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("7m", anchor="2026-01-01T00:01:00Z"))
    for off in ("1s", "6m59s", "7m", "41m", "3d"):
        app = await world.reopen(app, bot, off=off)
        await world.settle()
        next_run = (await app.get("tick")).next_run
        assert next_run is not None
        assert as_ms(next_run) > world.now
        assert (as_ms(next_run) - instant("01-01 00:01:00")) % (7 * MINUTE) == 0


@virtual
async def test_a_clock_that_goes_back_repeats_nothing_and_falls_silent_never(world: World) -> None:
    """L3: three hours back, and the same three hours come again without a second run of any instant."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await world.until("01-01 05:30:00")
    world.clock.step(-3 * HOUR)
    await world.until("01-01 07:30:00")
    assert bot.planned == [f"01-01 0{hour}:00:00" for hour in range(1, 8)]
    assert len(set(bot.keys)) == len(bot.keys)


@virtual
async def test_a_clock_that_went_ahead_and_came_back_costs_one_catch_up(world: World) -> None:
    """A year ahead by mistake, corrected after a minute: the false year is void, the grid goes on from now."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    world.clock.step(365 * DAY)
    await world.sleep("2m")
    world.clock.step(-365 * DAY)
    await world.until("01-01 04:30:00")
    assert [planned for planned in bot.planned if planned != "01-01 01:00:00"][-3:] == [
        "01-01 02:00:00",
        "01-01 03:00:00",
        "01-01 04:00:00",
    ]
    assert len(bot.fires) == 5  # 01:00, the false year's one catch-up, 02:00, 03:00, 04:00
    assert not [row for row in await ledger(app, "tick") if "missed" in row]


@virtual
async def test_what_ran_on_a_clock_ahead_divides_the_stretch_that_a_run_blocks(world: World) -> None:
    """L1: the instants that ran then have rows of their own, so those blocked before and after them are two rows, even
    if one look after a suspend decides about all of them."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1m"))
    await world.until("01-01 00:02:30")
    world.clock.step(10 * MINUTE)
    await world.until("01-01 00:14:30")
    world.clock.step(-10 * MINUTE)
    bot.usual = HOUR
    await world.until("01-01 00:12:55")
    app.machine.freeze()
    await world.until("01-01 00:15:10")
    app.clock.suspend(135 * SECOND)
    app.machine.thaw()
    await world.until("01-01 00:17:30")
    assert sorted(await ledger(app, "tick"))[-5:] == [
        "01-01 00:06:00 running",
        "01-01 00:07:00 skipped (blocked) x6",
        "01-01 00:13:00 succeeded",
        "01-01 00:14:00 succeeded",
        "01-01 00:15:00 skipped (blocked) x3",
    ]


@virtual
async def test_a_restart_keeps_the_grid(world: World) -> None:
    """OC#59977: restarts more frequent than the interval do not keep it from running."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    for _ in range(12):
        app = await world.reopen(app, bot, off="30s")
        await app.add("tick", every("1h"))  # as a program does at each start
        await world.sleep("14m30s")
    assert bot.planned == ["01-01 01:00:00", "01-01 02:00:00", "01-01 03:00:00"]


@virtual
async def test_stagger_moves_the_due_time_and_not_the_grid(world: World) -> None:
    """§4: planned on the grid, due a fixed offset later, smaller than the interval."""
    bot = Bot(world)
    app = await world.open(bot)
    for name in ("a", "b", "c"):
        await app.add(name, every("1h"), stagger="10m")
    await world.until("01-01 02:30:00")
    assert bot.planned == ["01-01 01:00:00"] * 3 + ["01-01 02:00:00"] * 3
    first, second = bot.fires[:3], bot.fires[3:]
    offsets = {fire.slug: fire.due_at - fire.planned_at for fire in first}
    assert len(set(offsets.values())) == 3
    assert offsets == {fire.slug: fire.due_at - fire.planned_at for fire in second}
    assert all(offset.total_seconds() < 600 for offset in offsets.values())
    assert bot.began[:3] == [short(fire.due_at) for fire in first]


@pytest.mark.promise
@virtual
async def test_a_beat_goes_on_for_days_without_dying_or_bursting(world: World) -> None:
    """7, OC#45772: three days every half hour with a restart a day: 144 runs, never two within a minute."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("beat", every("30m"))
    for _ in range(3):
        await world.sleep("23h59m50s")
        app = await world.reopen(app, bot, off="20s")
    await world.until("01-04 00:10:00")
    assert len(bot.fires) == 144
    began = [instant(text) for text in bot.began]
    assert min(later - earlier for earlier, later in itertools.pairwise(began)) > 29 * MINUTE
