"""The two commands that only definition files need: a run forced through `nextRun`, and a session taken over."""

from typing import Any

import pytest

from features.kit import Bench, Bot, World, ledger, short, virtual
from wakeful import Conflict, every
from wakeful.core.run.results import Busy
from wakeful.features.schedules import commands


async def force(world: World, app: Bench, slug: str) -> int:
    now = world.now
    run_id: int = await app.store.write(lambda tx: commands.force_once(tx, slug, now=now))
    app.engine.ring_bell()
    await world.settle()
    return run_id


@virtual
async def test_a_forced_run_happens_once_and_the_cadence_stays(world: World) -> None:
    """L3: the next instant is where it was, and the errors in a row too."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("2h"))
    await world.until("01-01 00:30:00")
    await force(world, app, "tick")
    assert bot.began == ["01-01 00:30:00"]
    assert short((await app.get("tick")).next_run) == "01-01 02:00:00"
    await world.until("01-01 02:30:00")
    assert await ledger(app, "tick") == ["01-01 00:30:00 succeeded", "01-01 02:00:00 succeeded"]


@virtual
async def test_a_run_that_waits_is_brought_forward(world: World) -> None:
    """Its next attempt is what nextRun named: it comes now, in the same run, and no second run beside it."""
    bot = Bot(world)
    bot.script = [Busy("Session busy")]
    app = await world.open(bot)
    await app.add("tick", every("4h"))
    await world.until("01-01 04:10:00")
    assert short((await app.get("tick")).next_run) == "01-01 05:00:00"
    await force(world, app, "tick")
    assert bot.began == ["01-01 04:00:00", "01-01 04:10:00"]
    await world.until("01-01 07:00:00")
    assert await ledger(app, "tick") == ["01-01 04:00:00 succeeded"]


@virtual
async def test_a_run_under_way_is_not_joined_by_a_forced_one(world: World) -> None:
    """One open run per schedule."""
    bot = Bot(world, usual=600_000)
    app = await world.open(bot)
    await app.add("tick", every("2h"))
    await world.until("01-01 02:05:00")
    with pytest.raises(Conflict, match="already has an open run"):
        await force(world, app, "tick")


@pytest.mark.parametrize("halt", ["paused", "disabled"])
@virtual
async def test_a_halted_schedule_is_not_forced(world: World, halt: str) -> None:
    """L2: a disabled schedule never fires, whatever a file says of its next run."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("2h"))
    await (app.pause("tick") if halt == "paused" else app.update("tick", enabled=False))
    with pytest.raises(Conflict, match=f"tick is {halt}; enable it first, or run it by hand"):
        await force(world, app, "tick")
    assert bot.fires == []


@virtual
async def test_a_session_is_adopted_and_given_up(world: World) -> None:
    """The next run goes on with it; nothing else of the schedule moves."""
    app = await world.open(Bot(world))
    await app.add("tick", every("2h"))
    before = await app.get("tick")
    for session_id in ("abc-123", None):
        adopt: Any = lambda tx, session_id=session_id: commands.adopt_session(tx, "tick", session_id)  # noqa: E731
        await app.store.write(adopt)
        after = await app.get("tick")
        assert after.session_id == session_id
        assert (after.version, after.next_run, after.updated_at) == (1, before.next_run, before.updated_at)
