"""The outage notice: once for each stretch without a tick in which an instant fell, and seldom for what is expected."""

import pytest

from delivery.kit import Person, reachable, statuses
from features.kit import Bench, Bot, World, virtual
from wakeful import every
from wakeful.core.time.instants import DAY, HOUR, MINUTE

QUICK = {"lease": 30_000, "renew_every": 10_000}


async def again(world: World, bench: Bench, person: Person, bot: Bot) -> Bench:
    """The same home, started again."""
    started = world.bench(limits=QUICK)
    started.register_channel("phone", None, person)
    started.on_due(bot)
    await started.start()
    return started


async def begun(world: World, interval: str) -> tuple[Bench, Person, Bot]:
    app, people = await reachable(world, "phone", limits=QUICK)
    bot = Bot(world)
    app.on_due(bot)
    await app.add("x", every(interval))
    return app, people["phone"], bot


@virtual
async def test_an_outage_is_reported_once_with_what_was_missed_and_caught_up(world: World) -> None:
    """Killed for more than twenty minutes: of four instants the latest is caught up, the others were missed."""
    app, person, bot = await begun(world, "5m")
    await world.until("01-01 00:11:00")
    await app.kill()
    await world.sleep("22m")
    app = await again(world, app, person, bot)
    await world.sleep("1h")
    (text,) = person.got
    assert text.startswith("Wakeful was not running from 2026-01-01T00:1")
    assert "3 runs were missed, 1 run was caught up: x." in text
    (alert,) = (await app.people.alerts()).alerts
    assert alert.incident.startswith("outage:outage:")
    assert alert.ended_at is not None
    assert next(one for one in (await app.system.health()).findings if one.name == "alerts").level == "ok"


@virtual
async def test_a_gap_in_which_nothing_was_due_is_not_reported(world: World) -> None:
    """Nor is one that was shorter than `alerts.outage`."""
    app, person, bot = await begun(world, "6h")
    await app.kill()
    await world.sleep("2h")
    app = await again(world, app, person, bot)
    await app.update("x", schedule={"type": "every", "every": "1m"})
    await world.sleep("10m")
    await app.kill()
    await world.sleep("8m")
    await again(world, app, person, bot)
    await world.sleep("1h")
    assert person.got == []
    assert world.query("SELECT count(*) FROM incidents") == [(0,)]


@virtual
async def test_an_orderly_stop_is_named_as_such_and_reported_once_a_day(world: World) -> None:
    """Three stops in one day: one report; the others are listed and not reported."""
    app, person, bot = await begun(world, "10m")
    for _ in range(3):
        await world.sleep("1h")
        await app.stop()
        await world.sleep("1h")
        app = await again(world, app, person, bot)
    await world.sleep("1h")
    (text,) = person.got
    assert text.startswith("Wakeful was stopped (wakeful down) from ")
    assert len((await app.people.alerts()).alerts) == 3


@pytest.mark.parametrize("nights", [pytest.param(nights, marks=pytest.mark.torture) for nights in (3, 30)])
@virtual
async def test_a_laptop_suspended_every_night_reports_once_a_day_and_only_if_something_was_missed(
    world: World, nights: int
) -> None:
    """A few nights, or a month: what runs in the daytime only is never missed."""
    world.sleep_max = MINUTE
    app, person, _ = await begun(world, "1h")
    await world.until("01-01 22:00:30")
    for _ in range(nights):
        app.machine.freeze()
        await world.sleep("8h")
        app.clock.suspend(8 * HOUR)
        app.machine.thaw()
        await world.sleep("16h")
    assert all(text.startswith("The machine was suspended from ") for text in person.got)
    days = [at[:5] for at in person.at]
    assert nights - 2 <= len(days) == len(set(days))
    await app.remove("x")
    told = len(person.got)
    for _ in range(nights // 2):
        app.machine.freeze()
        await world.sleep("8h")
        app.clock.suspend(8 * HOUR)
        app.machine.thaw()
        await world.sleep("16h")
    assert len(person.got) == told


@virtual
async def test_a_clock_that_is_set_forward_is_no_outage(world: World) -> None:
    """The node went on ticking."""
    world.sleep_max = MINUTE
    app, person, _ = await begun(world, "5m")
    await world.sleep("12m")
    app.clock.step(HOUR)
    await world.sleep("1h")
    assert person.got == []


@pytest.mark.promise
@virtual
async def test_a_week_off_replays_nothing_however_often_it_starts(world: World) -> None:
    """36, OC#29106: what arrived is not sent again, what is a week old is a dead letter with its text, refused ones are
    not tried again; and the one alert says which channel it was about."""
    app, people = await reachable(world, "phone", "mail")
    await app.people.send("arrived", channel="mail")
    people["phone"].usual = RuntimeError("down")
    await app.people.send("last week's news", channel="phone")
    await world.sleep("1m")
    await app.kill()
    await world.sleep(8 * DAY)
    for _ in range(4):
        app, people = await reachable(world, "phone", "mail")
        await world.sleep("20m")
        assert [
            text for text in people["phone"].got + people["mail"].got if "last week" in text or text == "arrived"
        ] == []
        await app.kill()
    assert statuses(world)[:2] == [("arrived", "delivered", 1), ("last week's news", "dead", 3)]
