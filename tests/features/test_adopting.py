"""Beginning with a copy: nothing is done again that may have been done since it was made (L2)."""

import sqlite3
from contextlib import closing

import pytest

from features.kit import Bot, World, ledger, virtual
from features.voice import Voice, beating
from wakeful import every
from wakeful.core.time.instants import MINUTE
from wakeful.drill.ledger import audit
from wakeful.features.schedules.restored_store import COPIED_AT


def copy(world: World) -> None:
    """Copy the database as `wakeful backup` does."""
    with closing(sqlite3.connect(world.path)) as source, closing(sqlite3.connect(f"{world.path}.copy")) as target:
        source.backup(target)
        with target:
            target.execute("INSERT INTO meta VALUES (?, ?)", (COPIED_AT, str(world.now)))


@pytest.mark.parametrize("catch_up", ["once", "all"])
@virtual
async def test_a_copy_that_is_put_back_repeats_nothing(world: World, catch_up: str) -> None:
    """One run is under way and one waits for its retry when the copy is made; both end, and five hours go by."""
    slow, app_bot = Bot(world, usual=50 * MINUTE), Bot(world)
    app = await world.open(slow)
    await app.add("slow", every("1h"), catch_up=catch_up)
    await app.add("halted", every("1h"))
    await app.pause("halted")
    await world.sleep("3h30m")
    copy(world)
    began = len(slow.fires)
    await world.sleep("5h10m")
    await app.stop()
    world.path = world.path.with_name(world.path.name + ".copy")
    app = await world.open(app_bot)
    await world.sleep("1m")
    assert app_bot.fires == []
    rows = await ledger(app, "slow")
    assert len(rows) == began + 1
    assert rows[-2:] == ["01-01 03:00:00 unknown (restored)", "01-01 04:00:00 missed (restored) x5"]
    assert "restored" in (await app.why("slow", at="2026-01-01T05:00:00Z")).sentence
    assert (await app.get("halted")).status == "paused"
    await world.sleep("1h")
    assert app_bot.planned == ["01-01 09:00:00"]
    assert (await app.store.read(audit)).is_clean


@virtual
async def test_a_store_is_adopted_once(world: World) -> None:
    """The mark is taken away: the next start catches up as its policy says."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("hourly", every("1h"))
    copy(world)
    await world.sleep("2h30m")
    await app.stop()
    world.path = world.path.with_name(world.path.name + ".copy")
    again = Bot(world)
    app = await world.open(again)
    await world.sleep(MINUTE)
    await world.reopen(app, again, off="3h")
    await world.sleep(MINUTE)
    assert again.planned == ["01-01 05:00:00"]


@virtual
async def test_a_heartbeat_in_a_copy_repeats_nothing(world: World) -> None:
    """Beats since are missed, wakes and events that waited may have been served: nothing is told or turned again."""
    voice = Voice(world, 10 * MINUTE)
    app = await beating(world, voice)
    await world.sleep("31m")
    await app.request_wake("hook", "the door", "door")
    copy(world)
    await world.sleep("2h")
    await app.stop()
    world.path = world.path.with_name(world.path.name + ".copy")
    heard = Voice(world)
    app = await beating(world, heard)
    await world.sleep("1m")
    assert heard.heard == []
    assert (await app.turns.system_events()).events == []
    rows = await ledger(app, "heartbeat")
    assert rows[0] == "01-01 00:30:00 unknown (restored)"
    assert "01-01 01:00:00 missed (restored) x4" in rows
    assert "01-01 00:31:00 skipped (restored)" in rows
    await world.sleep("30m")
    assert len(heard.heard) == 1
    assert "the door" not in heard.heard[0]
