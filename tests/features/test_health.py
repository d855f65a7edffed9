"""Health: whether the clock is alive and what is stuck, each with its cure."""

from features.kit import Bench, Bot, World, instant, virtual
from wakeful import cron, every
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from wakeful.features.schedules.health import Finding, Health, health, is_writable
from wakeful.features.schedules.health_view import HEALTH, view_of

CLOSE = {"renew_every": 10 * SECOND, "lease": 30 * SECOND}


async def looked(app: Bench) -> Health:
    now = app.clock.read().now
    return await app.store.read(lambda tx: health(tx, now=now))


def of(found: Health, name: str) -> Finding:
    return next(finding for finding in found.findings if finding.name == name)


@virtual
async def test_all_is_well(world: World) -> None:
    """Nothing but good news, and the figures."""
    app = await world.open(Bot(world, usual=5 * MINUTE), limits=CLOSE)
    await app.add("tick", every("10m"))
    await world.until("01-01 00:12:00")
    found = await looked(app)
    assert {finding.level for finding in found.findings} == {"ok"}
    assert (found.level, found.is_alive, found.running, found.waiting, found.stuck) == ("ok", True, 1, 0, 0)
    written = HEALTH.write(view_of(found, [], Finding("store", "ok", "it can be written")))
    assert (written["isTicking"], written["lagMs"], written["overdueMs"]) == (True, 0, 0)
    assert written["lastTickAgeMs"] <= 10 * SECOND


@virtual
async def test_nothing_ticks(world: World) -> None:
    """The worst of all, with what to do; what should have rung is overdue."""
    app = await world.open(Bot(world), limits=CLOSE)
    await app.add("tick", every("10m"))
    await app.stop()
    await world.sleep("1h")
    app = await world.open(Bot(world), tick=False)
    found = await looked(app)
    assert (found.level, found.is_alive) == ("bad", False)
    assert of(found, "clock").sentence.startswith("no process is ticking; last seen at 2026-01-01T00:0")
    assert of(found, "clock").cure == "start one: wakeful up"
    assert of(found, "overdue").sentence == "an alarm was due 50m ago"


@virtual
async def test_a_clock_that_hangs_is_noticed_before_its_lease_ends(world: World) -> None:
    """It holds the clock and says nothing any more."""
    app = await world.open(Bot(world))
    world.tamper("UPDATE nodes SET last_tick_at = last_tick_at - 600000")
    assert of(await looked(app), "clock").level == "warn"


@virtual
async def test_a_run_of_a_node_that_is_gone(world: World) -> None:
    """Killed under way, and nobody took over yet."""
    app = await world.open(Bot(world, usual=HOUR))
    await app.add("tick", every("10m"))
    await world.until("01-01 00:10:30")
    await app.kill()
    await world.sleep("7h")
    app = await world.open(Bot(world), tick=False)
    found = of(await looked(app), "orphans")
    assert (found.level, found.cure) == ("warn", "start a process that ticks: wakeful up")


@virtual
async def test_what_is_stuck_is_named(world: World) -> None:
    """Which run of which schedule."""

    async def never_ends() -> None:
        while True:
            try:
                await world.clock.sleep(24 * HOUR)
            except BaseException:
                if world.now > instant("01-02 00:00:00"):
                    raise

    app = await world.open(Bot(world, usual=never_ends), limits={"ending_grace": SECOND})
    await app.add("tick", every("6h"), timeout="10m")
    await world.until("01-01 06:30:00")
    found = await looked(app)
    assert (of(found, "stuck").level, of(found, "stuck").slugs, found.stuck) == ("bad", ["tick"], 1)
    await world.until("01-02 00:00:01")


@virtual
async def test_no_room_is_told_apart_from_a_clock_that_hangs(world: World) -> None:
    """Overdue because everything is taken: another cure."""
    app = await world.open(Bot(world, usual=HOUR), concurrency_max=1, limits=CLOSE)
    await app.add("first", every("10m"))
    await app.add("second", every("10m"), overlap="queue")
    await world.until("01-01 00:12:00")
    found = await looked(app)
    assert of(found, "overdue").sentence == "an alarm was due 2m ago, and the concurrency limit is reached"
    assert "limits.concurrency_max" in (of(found, "overdue").cure or "")


@virtual
async def test_no_room_for_manual_runs_is_no_clock_that_hangs(world: World) -> None:
    """Half of the capacity is kept for schedules, and a second manual run waits."""
    app = await world.open(Bot(world, usual=HOUR), concurrency_max=2, limits=CLOSE)
    for slug in ("first", "second"):
        await app.add(slug, every("99h"))
        await app.run_now(slug)
    await world.until("01-01 00:02:00")
    overdue = of(await looked(app), "overdue")
    assert overdue.level == "warn"
    assert overdue.sentence == "an alarm was due 2m ago, and the concurrency limit for manual runs is reached"


@virtual
async def test_a_run_parked_for_a_lane_nobody_holds(world: World) -> None:
    """It would wait for ever: this must never be, and is looked for all the same."""
    app = await world.open(Bot(world, usual=HOUR))
    await app.add("first", every("10m"), lane="car")
    await app.add("second", every("10m"), lane="car")
    await world.until("01-01 00:12:00")
    assert of(await looked(app), "lanes").level == "ok"
    world.tamper("DELETE FROM lanes")
    found = of(await looked(app), "lanes")
    assert (found.level, found.slugs) == ("bad", ["second"])
    assert "'car'" in found.sentence


@virtual
async def test_schedules_that_cannot_run_are_named(world: World) -> None:
    """Invalid and disabled by errors; one that a person switched off is nobody's trouble."""
    bot = Bot(world, usual=RuntimeError("no"))
    app = await world.open(bot)
    await app.add("failing", every("10m"), max_consecutive_errors=1)
    await app.add("off", every("10m"), enabled=False)
    await app.add("zoned", cron("0 4 * * *", tz="Europe/Berlin"))
    await world.until("01-01 00:12:00")
    await app.stop()
    world.tamper("UPDATE schedules SET definition = replace(definition, 'Europe/Berlin', 'Europe/Nowhere')")
    app = await world.reopen(app, bot)
    await world.until("01-01 03:00:01")
    found = await looked(app)
    assert of(found, "invalid").slugs == ["zoned"]
    assert of(found, "disabled").slugs == ["failing"]
    assert of(found, "disabled").cure == "fix the cause, then: wakeful resume failing"
    assert found.level == "warn"


@virtual
async def test_whether_the_store_can_be_written(world: World) -> None:
    """A commit that goes through, one that is refused, and one that is never answered."""
    app = await world.open(Bot(world))
    assert (await is_writable(app.store, world.clock)).level == "ok"
    app.store.is_down = True
    refused = await is_writable(app.store, world.clock)
    assert (refused.level, refused.sentence) == ("bad", "cannot write to the store: the disk is full")
    app.store.is_down = False

    async def hang(operation: object, *, is_urgent: bool = False) -> None:
        await world.clock.sleep(HOUR)

    app.store.write = hang  # type: ignore[method-assign,assignment]
    silent = await is_writable(app.store, world.clock)
    assert silent.sentence == "a write did not complete within 5s"
    del app.store.write
