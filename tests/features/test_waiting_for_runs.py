"""`wait_for` returns when a run has ended, wherever it ran."""

import asyncio

from features.kit import Bot, World, virtual
from wakeful import manual
from wakeful.app.runs import LOOK_ANYWAY, LOOK_AT_OTHERS, LOOK_EVERY
from wakeful.core.time.instants import HOUR, SECOND

POLLING = {"poll": SECOND}


@virtual
async def test_the_end_of_a_run_here_is_heard_at_once(world: World) -> None:
    """Without reading its row again and again: it ends between two of the times at which the row would be read."""
    app = await world.open(Bot(world, LOOK_ANYWAY // 2 + 1))
    await app.add("report", manual())
    began = world.now
    run = await app.run_now("report", wait=True)
    assert run.outcome == "succeeded"
    assert world.now - began == LOOK_ANYWAY // 2 + 1


@virtual
async def test_a_run_of_another_process_is_found(world: World) -> None:
    """It asks, the other one runs: there is no event here, so the row is read."""
    here = await world.open(Bot(world), name="here", is_shared=True, tick=False, limits=POLLING)
    await world.open(Bot(world, SECOND), name="there", is_shared=True, limits=POLLING)
    await here.add("report", manual())
    began = world.now
    run = await here.run_now("report", wait=True)
    assert run.outcome == "succeeded"
    assert world.now - began <= 2 * SECOND + LOOK_EVERY


@virtual
async def test_a_run_of_another_node_is_found_although_this_one_ticks(world: World) -> None:
    """Its row is read more often than where no other process can run it."""
    app = await world.open(Bot(world, HOUR), is_shared=True, limits=POLLING)
    await app.add("report", manual())
    waiting = asyncio.create_task(app.run_now("report", wait=True))
    await world.sleep(LOOK_ANYWAY)
    began = world.now
    world.tamper("UPDATE runs SET outcome = 'succeeded', ended_at = ?", began)  # as another node would
    assert (await waiting).outcome == "succeeded"
    assert world.now - began <= LOOK_AT_OTHERS


@virtual
async def test_an_app_without_waiters_listens_to_nothing(world: World) -> None:
    """Events are built only if someone listens."""
    app = await world.open(Bot(world))
    await app.add("report", manual())
    await app.run_now("report", wait=True)
    assert not app._bus.fan_out.is_heard
