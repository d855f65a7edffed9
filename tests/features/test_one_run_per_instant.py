"""One run per instant (L2): the store refuses a second row, and waking the loop often does not start a second run."""

import sqlite3

import pytest

from features.kit import Bot, World, virtual
from wakeful import every


@pytest.mark.promise
@virtual
async def test_the_store_itself_refuses_a_second_row_for_an_instant(world: World) -> None:
    """21, OC#1100, L2: the claim is unique in the database, whoever writes."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    columns = [row[1] for row in world.query("PRAGMA table_info(runs)")]
    copied = ", ".join("999" if name == "run_id" else name for name in columns)
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        world.tamper(f"INSERT INTO runs SELECT {copied} FROM runs")


@pytest.mark.promise
@virtual
async def test_waking_the_loop_often_does_not_run_an_instant_twice(world: World) -> None:
    """21: commands, wake-ups and ticks at the very moment an instant is due."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await world.until("01-01 00:59:59")
    for _ in range(40):
        app.engine.ring_bell()
        await app.update("tick", timeout="9m")
        await app.update("tick", timeout="8m")
        await world.sleep(50)
    assert bot.planned == ["01-01 01:00:00"]
