"""A store that goes back under running nodes, as after a failover to a copy that lagged."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from features.kit import Bench, Bot, World, ledger, virtual
from wakeful import every, manual
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from wakeful.ports.store import StoreUnavailable
from wakeful.testing.virtual_clock import VirtualClock

LEASED = {"lease": 30 * SECOND, "renew_every": 10 * SECOND, "poll": 5 * SECOND}


def copied(source: Path, target: Path) -> Path:
    """Let the target hold what the source holds, under whoever has it open."""
    with closing(sqlite3.connect(source)) as giving, closing(sqlite3.connect(target)) as taking:
        giving.backup(taking)
    return target


def snapshot(world: World) -> Path:
    return copied(world.path, world.path.with_name("held.db"))


async def two(world: World, one: Any, other: Any, **settings: Any) -> tuple[Bench, Bench]:
    settings = {"is_shared": True, "limits": LEASED, **settings}
    a = await world.open(one, name="a", **settings)
    clock = VirtualClock(world.loop, wall=world.wall)
    return a, await world.open(other, name="b", clock=clock, **settings)


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


@virtual
async def test_a_node_that_stood_still_for_longer_than_rows_are_kept_is_no_loss(world: World) -> None:
    """The others took its lease and forgot it: it begins anew, and nothing is adopted."""
    limits = {"lease": HOUR, "renew_every": 20 * MINUTE, "prune_every": HOUR}
    a, b = await two(world, Bot(world), Bot(world), limits=limits, ledger_days=1)
    await a.add("job", every("6h"))
    await world.until("01-01 07:00:00")
    b.machine.freeze()
    await world.until("01-03 13:00:00")
    assert world.query("SELECT name FROM nodes") == [("a",)]
    b.machine.thaw()
    await world.until("01-03 19:00:00")
    assert a.alerted + b.alerted == []
    assert b._is_ticking
    assert {line.split()[2] for line in await ledger(a, "job")} == {"succeeded"}


@virtual
async def test_a_node_whose_lease_was_taken_in_1970_is_no_loss(world: World) -> None:
    """Voided long before the ledger begins, by the clock of that moment; its row stays until it has seen that."""
    limits = {"lease": HOUR, "renew_every": 20 * MINUTE, "prune_every": MINUTE}
    a, b = await two(world, Bot(world), Bot(world), limits=limits)
    await a.add("job", every("6h"))
    await world.until("01-01 07:05:00")
    b.machine.freeze()
    world.tamper("UPDATE nodes SET voided_at = 90000 WHERE name = 'b'")
    await world.until("01-01 07:20:00")
    b.machine.thaw()
    await world.until("01-01 13:00:00")
    assert a.alerted + b.alerted == []
    assert b._is_ticking
    assert {line.split()[2] for line in await ledger(a, "job")} == {"succeeded"}


@virtual
async def test_a_renewal_without_an_answer_after_the_clock_went_back_is_no_loss(world: World) -> None:
    """The store has the earlier lease that the node wrote by the new time, and the node does not know it."""
    bot = Bot(world)
    app = await world.open(bot, is_shared=True, limits=LEASED)
    await app.add("job", every("10m"))
    await world.until("01-01 00:15:00")
    before = world.query("SELECT lease_until FROM nodes")
    world.clock.step(-5 * MINUTE)
    app.store.loses_answer = True
    app.engine.ring_bell()
    await world.settle()
    assert world.query("SELECT lease_until FROM nodes") < before
    assert not app.store.loses_answer
    await world.until("01-01 00:35:00")
    assert app.alerted == []
    assert world.query("SELECT count(*) FROM nodes") == [(1,)]
    assert [line.split()[2] for line in await ledger(app, "job")] == ["succeeded"] * 3


@virtual
async def test_a_loss_is_found_after_the_clock_went_back_and_a_renewal_failed(world: World) -> None:
    """A lease that the node wrote before is none of those whose answer it waits for."""
    app = await world.open(Bot(world), is_shared=True, limits=LEASED)
    await app.add("job", every("10m"))
    await world.until("01-01 00:12:00")
    held = snapshot(world)
    await world.until("01-01 00:25:00")
    world.clock.step(-20 * MINUTE)
    app.store.fails_next = StoreUnavailable("the server is gone")
    app.engine.ring_bell()
    await world.settle()
    copied(held, world.path)
    await world.until("01-01 00:08:00")
    assert [alert.incident for alert in app.alerted] == ["store"]
