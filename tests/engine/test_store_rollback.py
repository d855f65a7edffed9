"""A store that goes back under running nodes, as after a failover to a copy that lagged."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from features.kit import Bench, Bot, World, ledger, virtual
from wakeful import every, manual
from wakeful.core.time.instants import SECOND
from wakeful.testing.virtual_clock import VirtualClock

LEASED = {"lease": 30 * SECOND, "renew_every": 10 * SECOND, "poll": 5 * SECOND}


def copied(source: Path, target: Path) -> Path:
    """Let the target hold what the source holds, under whoever has it open."""
    with closing(sqlite3.connect(source)) as giving, closing(sqlite3.connect(target)) as taking:
        giving.backup(taking)
    return target


def snapshot(world: World) -> Path:
    return copied(world.path, world.path.with_name("held.db"))


async def two(world: World, one: Any, other: Any) -> tuple[Bench, Bench]:
    a = await world.open(one, name="a", is_shared=True, limits=LEASED)
    clock = VirtualClock(world.loop, wall=world.wall)
    return a, await world.open(other, name="b", is_shared=True, limits=LEASED, clock=clock)


@virtual
async def test_what_ran_is_not_run_again_and_no_key_is_given_twice(world: World) -> None:
    """Instants since the copy are missed(restored), a manual run under an old id has a new key, a person is told."""
    bot = Bot(world)
    app = await world.open(bot, is_shared=True, limits=LEASED)
    await app.add("job", every("10m"))
    await app.add("asked", manual())
    await world.until("01-01 00:25:00")
    held = snapshot(world)
    await app.run_now("asked")
    await world.sleep("1s")
    first = await app.run_now("asked")
    await world.until("01-01 00:55:00")
    copied(held, world.path)
    await world.until("01-01 00:56:00")
    second = await app.run_now("asked")
    await world.until("01-01 01:15:00")
    assert second.run_id == first.run_id  # ids begin again where the copy had them
    assert len(set(bot.keys)) == len(bot.keys)
    assert bot.planned.count("01-01 00:30:00") == 1
    assert await ledger(app, "job") == [
        "01-01 00:10:00 succeeded",
        "01-01 00:20:00 succeeded",
        "01-01 00:30:00 missed (restored) x3",
        "01-01 01:00:00 succeeded",
        "01-01 01:10:00 succeeded",
    ]
    assert [alert.incident for alert in app.alerted] == ["store"]
    assert "00:2" in app.alerted[0].text


@virtual
async def test_two_nodes_adopt_a_loss_once(world: World) -> None:
    """Both see it, one reports it, and what is begun afterwards is nobody's loss."""
    one, other = Bot(world, usual=90 * SECOND), Bot(world, usual=90 * SECOND)
    a, b = await two(world, one, other)
    for number in range(6):
        await a.add(f"job-{number}", every("2m"))
    await world.until("01-01 00:10:30")
    held = snapshot(world)
    await world.until("01-01 00:20:30")
    copied(held, world.path)
    await world.until("01-01 00:40:00")
    keys = one.keys + other.keys
    assert len(set(keys)) == len(keys)
    assert len(a.alerted + b.alerted) == 1
    unknown = world.query("SELECT count(*), min(planned_at), max(planned_at) FROM runs WHERE outcome = 'unknown'")
    assert unknown[0][0] == 6  # those that were open in the copy
    assert unknown[0][1] == unknown[0][2]
    assert world.query("SELECT count(*) FROM runs WHERE outcome = 'succeeded' AND planned_at > ?", world.now - 600_000)


@virtual
async def test_a_lost_lease_is_no_loss_of_the_store(world: World) -> None:
    """Taken by another node: it begins anew, and nothing is adopted."""
    bot = Bot(world)
    app = await world.open(bot, is_shared=True, limits=LEASED)
    await app.add("job", every("10m"))
    await world.until("01-01 00:15:00")
    world.tamper("UPDATE nodes SET voided_at = ?", world.now)
    await world.until("01-01 00:35:00")
    assert app.alerted == []
    assert [line.split()[2] for line in await ledger(app, "job")] == ["succeeded"] * 3
