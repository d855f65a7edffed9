"""A run that did not do its work is reported: failed, too late, busy for days, never answered, unreadable."""

import pytest

from agents.puppet import Puppet, at
from agents.test_engine import Office
from delivery.kit import reachable
from features.kit import Bot, World, rfc, virtual
from wakeful import cron, every, once
from wakeful.core.run.results import Busy
from wakeful.core.time.instants import DAY
from wakeful.ports.agent import Finished


@pytest.mark.promise
@virtual
async def test_prompts_that_no_session_ever_takes_up_are_never_green_and_end_in_an_alarm(world: World) -> None:
    """8, CC#72195: accepted each time, taken up never. Elsewhere that looked healthy for days."""
    office = Office(world)
    office.puppet.sights = at((0, Finished("yes", {})))
    await office.open()
    await world.sleep("6h30m")
    worked_at = world.now
    office.puppet.sights = Puppet(world.clock).sights  # silence
    await world.sleep("3d")
    rows = await office.told()
    assert [outcome for _, outcome, _, _ in rows] == ["succeeded"] + ["unconfirmed"] * 5
    view = await office.app.get("standup")
    assert (view.status, view.last_result) == ("disabled", "error")
    ((succeeded_at,),) = world.query("SELECT last_success_at FROM cadences")
    assert succeeded_at <= worked_at
    assert [name.partition(":")[0] for name in world.reported()] == ["failing"]


@pytest.mark.promise
@virtual
async def test_a_one_shot_that_fails_is_told_of(world: World) -> None:
    """It has no second instant that could fail: without this the reminder would just be gone."""
    app, people = await reachable(world, "phone")
    bot = Bot(world, RuntimeError("no session"))
    await app.add("pills", once(rfc("01-01 08:00:00")), call=bot)
    await world.until("01-01 09:00:00")
    (told,) = people["phone"].got
    assert told.startswith("pills: it failed. The run of pills planned for 2026-01-01 08:00 (UTC) failed ")
    assert told.count("RuntimeError: no session") == 1
    assert (await app.get("pills")).status == "done"


@pytest.mark.promise
@virtual
async def test_a_one_shot_that_came_too_late_is_told_of(world: World) -> None:
    """12: not run hours later, as its owner said; and not forgotten in silence either."""
    app, people = await reachable(world, "phone")
    bot = Bot(world)
    await app.add("market", once(rfc("01-01 11:00:00")), call=bot, max_lateness="30m")
    await app.stop()
    await world.until("01-01 22:00:00")
    bench = world.bench()
    bench.register_channel("phone", None, people["phone"])
    await bench.start()
    await world.sleep("1h")
    assert bot.fires == []
    told = people["phone"].got[0]
    assert told.startswith("market: its last planned time, 2026-01-01T11:00:00.000Z, was missed: outage. ")


@pytest.mark.promise
@virtual
async def test_a_target_that_is_busy_for_days_is_told_of(world: World) -> None:
    """Being busy is no error, so no row of errors says it: when a whole day of waiting was in vain, somebody hears."""
    app, people = await reachable(world, "phone")
    bot = Bot(world, Busy("Session busy"))
    await app.add("standup", cron("0 9 * * *"), call=bot)
    await world.sleep(2 * DAY)
    (told,) = people["phone"].got
    assert told.startswith("standup: it failed")
    assert "Session busy" in told
    assert (await app.get("standup")).consecutive_errors == 0
    bot.usual = None
    await world.sleep(2 * DAY)
    assert [text.startswith("standup: recovered") for text in people["phone"].got] == [False, True]


@pytest.mark.promise
@virtual
async def test_a_definition_that_turns_unreadable_is_told_of(world: World) -> None:
    """50, OC#15359: kept, shown, left alone, and somebody knows that it does not run."""
    app, people = await reachable(world, "phone")
    bot = Bot(world)
    await app.add("bad", every("1h"), call=bot)
    await app.stop()
    world.tamper("UPDATE schedules SET definition = '{'")
    bench = world.bench()
    bench.register_channel("phone", None, people["phone"])
    await bench.start()
    await world.until("01-01 05:30:00")
    (told,) = people["phone"].got
    assert told.startswith("bad: its definition can no longer be read, so it does not run: ")
