"""The tick: looks when something is due and rests otherwise, never takes more than there is room for."""

from typing import Any

from features.kit import Bench, Bot, World, ledger, short, virtual
from wakeful import New, every, manual
from wakeful.app.action_forms import ON_DUE
from wakeful.core.run.results import Busy
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from wakeful.engine.engine import Engine
from wakeful.ports.clock import Moment

# As a program has them, but for the poll that looks for other processes.
USUAL = {"lease": 30 * SECOND, "renew_every": 10 * SECOND}
RENEWALS_PER_HOUR = 360


class Ticks:
    """Counts the ticks of an app from now on, and the writes they make."""

    def __init__(self, app: Bench) -> None:
        self.count = 0
        self._app = app
        self._writes_before = app.store.writes
        engine: Any = app.engine
        tick = Engine.tick

        async def counted(moment: Moment) -> int:
            self.count += 1
            return await tick(engine, moment)

        engine.tick = counted

    @property
    def writes(self) -> int:
        return self._app.store.writes - self._writes_before


@virtual
async def test_an_idle_engine_rests(world: World) -> None:
    """With nothing due it looks only to renew its lease: no spinning, two writes each time."""
    app = await world.open(Bot(world), limits=USUAL)
    await app.add("far", every("30d"))
    ticks = Ticks(app)
    await world.sleep("1h")
    assert ticks.count <= RENEWALS_PER_HOUR + 5
    assert ticks.writes <= 2 * RENEWALS_PER_HOUR + 10


@virtual
async def test_a_new_schedule_brings_the_next_tick_forward_but_no_tick_of_its_own(world: World) -> None:
    """What is due before the next tick runs on time, and nothing else is done before; an edit may matter now."""
    bot = Bot(world)
    app = await world.open(bot)
    await world.until("01-01 01:00:00")  # it has ticked, and would next tick at 02:00
    ticks = Ticks(app)
    await app.add_many([New(f"far-{number}", every("3h"), call=ON_DUE) for number in range(5)])
    await app.add("also-far", every("3h"))
    soon = {"call": {"target": ON_DUE}, "schedule": {"type": "every", "every": "20m"}}
    await app.schedules.put("off", soon | {"enabled": False})
    await app.schedules.put("soon", soon)
    await app.add("sooner", every("15m"))
    await world.until("01-01 01:14:59")
    assert ticks.count == 0
    await world.until("01-01 01:20:00")
    assert bot.planned == ["01-01 01:15:00", "01-01 01:20:00"] == bot.began
    before = ticks.count
    await app.add("also-far", every("4h"))
    await world.settle()
    assert ticks.count == before + 1


@virtual
async def test_it_sleeps_a_minute_at_most(world: World) -> None:
    """Clocks jump and hints get lost: with nothing at all to do it still looks sixty times an hour."""
    world.sleep_max = MINUTE
    app = await world.open(Bot(world))
    ticks = Ticks(app)
    await world.sleep("1h")
    assert 60 <= ticks.count <= 66


@virtual
async def test_it_does_not_spin_while_the_capacity_is_exhausted(world: World) -> None:
    """Ten minutes of one run in the only place, ten others due: about a look a second, no more."""
    bot = Bot(world, usual=2 * HOUR)
    app = await world.open(bot, concurrency_max=1, limits=USUAL)
    for number in range(11):
        await app.add(f"job-{number:02}", every("15m"))
    await world.until("01-01 00:15:10")
    ticks = Ticks(app)
    await world.sleep("10m")
    assert bot.running == 1
    assert ticks.count <= 600 + RENEWALS_PER_HOUR // 6
    assert ticks.writes <= 600 + 2 * RENEWALS_PER_HOUR // 6


@virtual
async def test_it_does_not_spin_while_lanes_are_held(world: World) -> None:
    """Runs parked behind a lane are not due: they cost nothing until it is freed."""
    bot = Bot(world, usual=90 * MINUTE)
    app = await world.open(bot, limits=USUAL)
    for number in range(10):
        await app.add(f"job-{number}", every("2h", anchor="2026-01-01T00:10:00Z"), lane="one")
    await world.until("01-01 00:10:10")
    ticks = Ticks(app)
    await world.sleep("1h")
    assert bot.running == 1
    assert ticks.count <= RENEWALS_PER_HOUR + 5


@virtual
async def test_it_does_not_spin_while_runs_wait(world: World) -> None:
    """A busy target and a retry wait as alarms."""
    bot = Bot(world, usual=Busy("Session busy"))
    app = await world.open(bot, limits=USUAL)
    await app.add("busy", every("2h", anchor="2026-01-01T00:10:00Z"))
    await world.until("01-01 00:10:10")
    ticks = Ticks(app)
    await world.sleep("59m")
    assert len(bot.fires) == 1
    assert ticks.count <= RENEWALS_PER_HOUR + 5


@virtual
async def test_more_than_the_capacity_never_runs_at_once(world: World) -> None:
    """A hundred due together under a cap of seven: all run, each once, seven at a time."""
    bot = Bot(world, usual=MINUTE)
    app = await world.open(bot, concurrency_max=7)
    await app.add_many([New(f"job-{number:03}", every("1d")) for number in range(100)])
    await world.until("01-02 00:20:00")
    assert bot.running_max == 7
    assert len(bot.fires) == len(set(bot.keys)) == 100
    assert bot.began[-1] == "01-02 00:14:00"


@virtual
async def test_waiting_for_our_own_queue_is_not_being_late(world: World) -> None:
    """Jobs that may not be caught up still run when the capacity kept them: they were claimed as on time."""
    bot = Bot(world, usual=2 * MINUTE)
    app = await world.open(bot, concurrency_max=1)
    for number in range(10):
        await app.add(f"job-{number}", every("1d"), catch_up="skip")
    await world.until("01-02 00:21:00")
    assert len(bot.fires) == 10
    assert {fire.trigger for fire in bot.fires} == {"schedule"}


@virtual
async def test_a_person_is_served_before_what_is_planned(world: World) -> None:
    """Two levels of priority: the manual run takes the next free place, before ten that were due earlier."""
    bot = Bot(world, usual=5 * MINUTE)
    app = await world.open(bot, concurrency_max=1)
    for number in range(10):
        await app.add(f"job-{number}", every("1d"))
    await app.add("asked", manual())
    await world.until("01-02 00:02:00")
    run = await app.run_now("asked")
    await world.until("01-02 00:06:00")
    assert bot.fires[1].slug == "asked"
    assert (await app.ledger.get(run.run_id)).outcome == "running"


@virtual
async def test_a_lane_is_one_at_a_time_across_schedules(world: World) -> None:
    """L5: three schedules of one agent, due together, run after one another; another lane is not held up."""
    serial, free = Bot(world, usual=10 * MINUTE), Bot(world, usual=10 * MINUTE)
    app = await world.open(serial)
    for name in ("a", "b", "c"):
        await app.add(name, every("1h"), lane="agent:x")
    await app.add("d", every("1h"), lane="agent:y", call=free.__call__)
    await world.until("01-01 01:59:00")
    assert serial.running_max == 1
    assert serial.began == ["01-01 01:00:00", "01-01 01:10:00", "01-01 01:20:00"]
    assert free.began == ["01-01 01:00:00"]
    assert world.query("SELECT * FROM lanes") == []


@virtual
async def test_a_waiting_run_holds_no_lane(world: World) -> None:
    """Between two attempts the lane is free for others."""
    bot = Bot(world)
    bot.script = [RuntimeError("no")]
    app = await world.open(bot)
    await app.add("first", every("1h"), lane="one", retry={"times": 1, "delay": "10m"})
    await app.add("second", every("1h"), lane="one")
    await world.until("01-01 01:05:00")
    assert (await app.get("first")).status == "waiting"
    assert await ledger(app, "second") == ["01-01 01:00:00 succeeded"]


@virtual
async def test_removing_what_is_parked_lets_those_behind_it_go_on(world: World) -> None:
    """A lane must not be lost with a schedule that waited for it."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot)
    for name in ("a", "b", "c"):
        await app.add(name, every("1h"), lane="one")
    await world.until("01-01 01:05:00")
    await app.remove("b")
    await app.pause("c")
    await app.add("d", every("1h", anchor="2026-01-01T01:06:00Z"), lane="one")
    await world.until("01-01 01:55:00")
    assert [fire.slug for fire in bot.fires] == ["a", "d"]


@virtual
async def test_a_thousand_due_at_once_share_their_transactions(world: World) -> None:
    """Group commit of like with like: far fewer writes than runs."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add_many([New(f"job-{number:04}", every("1d")) for number in range(1000)])
    await world.until("01-01 23:59:59")
    ticks = Ticks(app)
    await world.sleep("10s")
    assert len(set(bot.keys)) == 1000
    assert ticks.writes < 100


@virtual
async def test_the_engine_wakes_at_the_due_time_and_not_at_the_next_minute(world: World) -> None:
    """Exact alarms: to the millisecond, also for what was added a moment before."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("a", every("1h", anchor="2026-01-01T00:00:07.123Z"))
    await world.sleep("5s")
    await app.add("b", every("1h", anchor="2026-01-01T00:00:05.001Z"))
    await world.sleep("1m")
    assert [(fire.slug, began) for fire, began in zip(bot.fires, bot.began, strict=True)] == [
        ("b", "01-01 00:00:05.001"),
        ("a", "01-01 00:00:07.123"),
    ]


@virtual
async def test_another_process_that_writes_is_noticed_within_the_poll(world: World) -> None:
    """A process that does not tick adds something due soon: the ticker sees it although no bell rang there."""
    bot = Bot(world)
    await world.open(bot, limits={"poll": 500})
    other = await world.open(bot, tick=False, name="web")
    await world.sleep("3s")
    await other.add("soon", every("1h", anchor="2026-01-01T00:00:04Z"))
    run = await other.run_now("soon")
    await world.until("01-01 00:00:06")
    assert short((await other.ledger.get(run.run_id)).started_at) <= "01-01 00:00:03.500"
    assert bot.began[1:] == ["01-01 00:00:04"]
