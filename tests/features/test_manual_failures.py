"""A manual run that failed: its schedule is failing, and on Today, until the next success or an acknowledgement. It
opens no incident and counts for nothing else."""

import pytest

from delivery.kit import reachable
from features.kit import Bench, Bot, World, rfc, virtual
from wakeful import every, manual, once
from wakeful.core.run.results import Failed


async def _rows(app: Bench, slug: str) -> list[tuple[str, str]]:
    """What Today says about a schedule."""
    return [(item.kind, item.sentence) for item in (await app.people.today()).attention if item.slug == slug]


BROKEN = [("failing", "Its last manual run failed: ValueError: no")]


@pytest.mark.promise
@virtual
async def test_a_failed_manual_run_is_shown_and_no_incident(world: World) -> None:
    """Only health and Today change; the next planned success ends it."""
    app, people = await reachable(world, "phone")
    bot = Bot(world)
    bot.script = [None, ValueError("no")]
    await app.add("job", every("1h"), call=bot)
    await world.until("01-01 01:30:00")
    assert ((await app.get("job")).health, await _rows(app, "job")) == ("ok", [])
    await app.run_now("job")
    await world.sleep("1m")
    view = await app.get("job")
    assert (view.status, view.health, view.last_outcome, view.consecutive_errors) == ("idle", "failing", "failed", 0)
    assert await _rows(app, "job") == BROKEN
    await world.until("01-01 02:30:00")
    assert ((await app.get("job")).health, await _rows(app, "job")) == ("ok", [])
    assert people["phone"].got == [] and world.query("SELECT count(*) FROM incidents") == [(0,)]


@virtual
async def test_the_next_success_of_a_manual_run_ends_it(world: World) -> None:
    """Here nothing is planned at all."""
    bot = Bot(world)
    bot.script = [ValueError("no"), Failed("no again"), None]
    app = await world.open()
    await app.add("job", manual(), call=bot)
    for health in ("failing", "failing", "ok"):
        await app.run_now("job")
        await world.sleep("1m")
        assert (await app.get("job")).health == health


@virtual
async def test_an_acknowledgement_ends_it(world: World) -> None:
    """And the next manual run that fails shows it again."""
    app = await world.open()
    await app.add("job", manual(), call=Bot(world, ValueError("no")))
    for _ in range(2):
        await app.run_now("job")
        await world.sleep("1m")
        assert await _rows(app, "job") == BROKEN
        await app.schedules.acknowledge("job")
        assert ((await app.get("job")).health, await _rows(app, "job")) == ("ok", [])


@pytest.mark.parametrize("halt", ["pause", "disable"])
@virtual
async def test_a_halted_schedule_stays_off_and_has_the_row(world: World, halt: str) -> None:
    """Somebody tries it out while it is paused or disabled."""
    app = await world.open()
    await app.add("job", every("1h"), call=Bot(world, ValueError("no")))
    if halt == "pause":
        await app.pause("job")
    else:
        await app.update("job", enabled=False)
    await app.run_now("job")
    await world.sleep("1m")
    assert (await app.get("job")).health == "off"
    kinds = dict(await _rows(app, "job"))
    assert kinds["failing"] == BROKEN[0][1]
    assert "paused" in kinds
    await app.schedules.acknowledge("job")
    assert "failing" not in dict(await _rows(app, "job"))


@virtual
async def test_trouble_of_the_plan_is_kept_apart(world: World) -> None:
    """A manual run that fails while the schedule recovers takes nothing away from the incident, and adds nothing."""
    app, people = await reachable(world, "phone")
    bot = Bot(world)
    bot.script = [ValueError("a"), ValueError("b"), None, ValueError("by hand"), None]
    await app.add("job", every("1h"), call=bot, retry={"times": 0})
    await world.until("01-01 03:30:00")
    assert len(people["phone"].got) == 1
    await app.run_now("job")
    await world.sleep("1m")
    assert (await app.get("job")).health == "failing"
    assert len(people["phone"].got) == 1
    await world.until("01-01 04:30:00")
    assert (await app.get("job")).health == "ok"
    assert [text.startswith("job: recovered after 3h") for text in people["phone"].got] == [False, True]


@virtual
async def test_a_one_shot_that_succeeded_and_fails_by_hand(world: World) -> None:
    """It is done, and failing until the next success."""
    bot = Bot(world)
    bot.script = [None, ValueError("no"), None]
    app = await world.open()
    await app.add("job", once(rfc("01-01 01:00:00")), call=bot)
    await world.until("01-01 02:00:00")
    for health in ("failing", "off"):
        await app.run_now("job")
        await world.sleep("1m")
        assert ((await app.get("job")).status, (await app.get("job")).health) == ("done", health)
