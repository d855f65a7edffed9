"""Several nodes on one database: what each law means when there is more than one of us."""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from patience import PATIENCE
from postgres.cluster import Node, cluster, is_idle, once, until
from postgres.server import Server, schema_of
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.timing import Every, Once
from wakeful.features.schedules import commands
from wakeful.features.schedules import remote_callables as elsewhere
from wakeful.ports.store import Store
from wakeful.stores.postgres import Timeouts, fate, writer


async def _ledger(store: Store) -> Any:
    return await store.read(lambda tx: tx.runs.page(limit=100_000))


async def test_an_instant_runs_once_however_many_nodes_tick(url: str, server: Server) -> None:
    """Three nodes share six hundred due instants: each runs once, all of them help, nobody waits in a circle (L2)."""
    since = server.log_size()

    async def take_a_moment(name: str, fire: Any) -> None:
        await asyncio.sleep(0.01)

    async with cluster(url, "abc", take_a_moment) as nodes:
        at = nodes[0].now + 1_500
        await nodes[0].put([once(f"s{n}", at) for n in range(600)])
        await until(lambda: _has(nodes, 600))
        await until(lambda: is_idle(nodes[0].store))
        fires = sum((node.fires for node in nodes), Counter())
        assert set(fires.values()) == {1}
        assert all(node.fires for node in nodes)
        ledger = await _ledger(nodes[0].store)
        assert Counter(row.outcome for row in ledger) == {"succeeded": 600}
    assert "deadlock" not in server.logged(since)


async def test_a_lane_is_held_by_one_on_all_nodes_together(url: str, server: Server) -> None:
    """Three nodes, four lanes, eighty runs: in each lane one at a time, and none is forgotten in the queue (L5)."""
    since = server.log_size()
    inside: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def occupy(name: str, fire: Any) -> None:
        lane = fire.slug.split("-")[0]
        inside[lane] += 1
        most[lane] = max(most[lane], inside[lane])
        await asyncio.sleep(random.uniform(0, 0.01))
        inside[lane] -= 1

    async with cluster(url, "abc", occupy) as nodes:
        at = nodes[0].now + 1_000
        await nodes[0].put([once(f"l{n % 4}-{n}", at, lane=f"l{n % 4}") for n in range(80)])
        await until(lambda: _has(nodes, 80))
        await until(lambda: is_idle(nodes[0].store))
        assert most == {f"l{n}": 1 for n in range(4)}
        assert await nodes[0].store.read(lambda tx: tx.lanes.holders()) == {}
    assert "deadlock" not in server.logged(since)


async def test_a_command_on_one_node_is_heard_by_another(url: str) -> None:
    """A schedule written through a node that does not tick is rung by one that does, long before its next look."""
    async with cluster(url, "ab") as (ticking, silent):
        await silent.engine.stop()
        await silent.put([once("tea", silent.now + 300)])
        await until(lambda: _has([ticking], 1))


async def test_runs_of_a_node_that_lost_its_lease_are_tried_once_more(url: str) -> None:
    """The other node voids it and tries again under a new fence; what the first one says late changes nothing (L6)."""
    may_end = asyncio.Event()

    async def hang_on_the_first(name: str, fire: Any) -> None:
        if fire.attempt == 1:
            await may_end.wait()

    async with cluster(url, "a", hang_on_the_first) as (first,):
        await first.put([once("tea", first.now + 200)])
        await until(lambda: _has([first], 1))
        async with cluster(url, "b", hang_on_the_first) as (second,):
            first.tap.is_cut = True
            await until(lambda: _has([second], 1))
            await until(lambda: is_idle(second.store))
            may_end.set()
            first.tap.is_cut = False
            await until(lambda: _is_anew(first))
            (row,) = await _ledger(second.store)
            assert (row.outcome, row.attempt, row.crashes, row.fence) == ("succeeded", 2, 1, 2)
            assert (first.fires["tea"], second.fires["tea"]) == (1, 1)


async def test_a_claim_of_which_nobody_knows_is_found_again(
    url: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit was kept, its answer lost, the server gone for long: the run is ours and nobody performs it, until the
    node gives up its lease, begins anew, and rescues what it owned before."""
    async with cluster(url, "a", patience=Timeouts(doubt=200)) as (node,):
        is_answered = writer._is_answered
        claims: list[bytes] = []

        def lose_a_claim(session: Any, commit: bytes) -> bool:
            known = is_answered(session, commit)
            with server.connect() as connection:
                running = connection.execute(
                    f"SELECT 1 FROM {schema_of(url)}.runs WHERE outcome = 'running'".encode()
                ).fetchall()
            if running and not claims:
                claims.append(commit)
                return False
            return known

        monkeypatch.setattr(writer, "_is_answered", lose_a_claim)
        monkeypatch.setattr(fate, "_ask", lambda doubt, door: None)
        await node.put([once("tea", node.now + 200)])
        await until(lambda: _has([node], 1))
        await until(lambda: is_idle(node.store))
        (row,) = await _ledger(node.store)
        assert (row.outcome, row.attempt, row.crashes) == ("succeeded", 2, 1)
        assert claims


async def test_a_lane_of_a_dead_node_is_free_again(url: str) -> None:
    """Rescue lets the lane go, and the next in line gets it."""
    hangs = asyncio.Event()

    async def hang_on_a(name: str, fire: Any) -> None:
        if name == "a":
            await hangs.wait()

    async with cluster(url, "a", hang_on_a) as (first,):
        await first.put([once(f"s{n}", first.now + 200, lane="only") for n in range(5)])
        await until(lambda: _has([first], 1))
        first.tap.is_cut = True
        async with cluster(url, "b", hang_on_a) as (second,):
            await until(lambda: _has([second], 5))
            await until(lambda: is_idle(second.store))
            assert await second.store.read(lambda tx: tx.lanes.holders()) == {}
            hangs.set()


async def test_a_storm_of_commands_leaves_nothing_behind(url: str, server: Server) -> None:
    """Nodes tick while people edit, pause, resume, start and remove the same schedules: no deadlock, and in the end
    every lane is free, nobody is parked behind a free lane, and nothing is open."""
    since = server.log_size()

    async def take_a_moment(name: str, fire: Any) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))

    async with cluster(url, "abc", take_a_moment) as nodes:
        await nodes[0].put([_pulse(n, 200) for n in range(12)])

        async def meddle(node: Node, seed: int) -> None:
            dice = random.Random(seed)
            for _ in range(20):
                with suppress(Conflict, NotFound):
                    await _change_something(node, dice)
                await asyncio.sleep(dice.uniform(0, 0.03))

        await asyncio.gather(*(meddle(node, seed) for seed, node in enumerate(nodes * 2)))
        for n in range(12):
            change = partial(commands.remove, slug=f"s{n}", hooks=nodes[0].parts.hooks, now=nodes[0].now)
            await nodes[0].command(change)
        await until(lambda: is_idle(nodes[0].store))
        assert await nodes[0].store.read(lambda tx: tx.lanes.holders()) == {}
        with server.connect() as connection:
            schema = schema_of(url)
            left = connection.execute(f"SELECT * FROM {schema}.alarms WHERE kind = 'run'".encode()).fetchall()
        assert left == []
    assert "deadlock" not in server.logged(since)
    assert "ERROR" not in server.logged(since)


def _pulse(n: int, every: int) -> Definition:
    return Definition(f"s{n}", Every(every, 0), Call("f", {}), lane=f"l{n % 3}", overlap="queue")


async def _change_something(node: Node, dice: random.Random) -> None:
    n = dice.randrange(12)
    slug, now, hooks = f"s{n}", node.now, node.parts.hooks
    match dice.randrange(5):
        case 0:
            await node.command(lambda tx: commands.pause(tx, slug, hooks=hooks, now=now))
        case 1:
            await node.command(lambda tx: commands.resume_schedule(tx, slug, now=now))
        case 2:
            await node.command(lambda tx: commands.run_now(tx, slug, now=now))
        case 3:
            await node.put([_pulse(n, dice.choice((150, 200, 300)))])
        case _:
            await node.command(lambda tx: commands.remove(tx, slug, hooks=hooks, now=now))
            await node.put([_pulse(n, 200)])


async def _has(nodes: list[Node], n: int) -> bool:
    return sum(node.fires.total() for node in nodes) >= n


async def _is_anew(node: Node) -> bool:
    known = await node.store.read(lambda tx: tx.nodes.all())
    return any(one.node_id == node.engine.node_id and one.voided_at is None for one in known if one.name == "a")


async def test_a_lease_is_not_taken_in_the_middle_of_a_claim(url: str) -> None:
    """Whoever finds it expired passes over it then, and whoever takes it after the commit finds what was claimed."""
    async with cluster(url, "a", _nothing) as (node,):
        store = node.store
        node_id = await store.write(
            lambda tx: tx.nodes.register(name="z", host="h", pid=1, now=1, lease_until=2, capacity=1)
        )
        taken: list[int] = []

        def claim(tx: Any) -> bool:
            is_held: bool = tx.nodes.hold(node_id)
            other = asyncio.run_coroutine_threadsafe(store.write(take), loop)
            other.result(timeout=PATIENCE)
            return is_held

        def take(tx: Any) -> None:
            taken.extend(one.node_id for one in tx.nodes.expired(now=10) if one.node_id == node_id)

        loop = asyncio.get_running_loop()
        assert await store.write(claim)
        assert taken == []
        await store.write(take)
        assert taken == [node_id]


async def _nothing(name: str, fire: Any) -> None:
    """A target that has nothing to do."""


async def test_a_callable_is_left_to_the_node_that_has_it(url: str) -> None:
    """Two nodes, each with a callable of its own: all runs succeed, each where its callable is."""
    async with cluster(url, "ab") as nodes:
        heard: list[tuple[str, str]] = []
        for node, name in zip(nodes, "ab", strict=True):
            node.registry.register(f"only-{name}", partial(_hear, heard, name))
        at = nodes[0].now + 500
        only = [Definition(f"{name}{n}", Once(at), Call(f"only-{name}", {})) for name in "ab" for n in range(10)]
        await nodes[0].put(only)
        await until(lambda: _all_closed(nodes[0].store, 20))
        ledger = await _ledger(nodes[0].store)
    assert {row.outcome for row in ledger} == {"succeeded"}
    assert sorted(heard) == sorted((name, name) for name in "ab" for _ in range(10))


async def test_a_callable_nobody_has_fails_and_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while that another node would have had to take it."""
    monkeypatch.setattr(elsewhere, "LEFT_FOR", 2_500)
    async with cluster(url, "ab") as nodes:
        await nodes[0].put([Definition("gone", Once(nodes[0].now + 300), Call("nobodys", {}))])
        await until(lambda: _all_closed(nodes[0].store, 1))
        (row,) = await _ledger(nodes[0].store)
    assert row.outcome == "failed"
    assert "nobodys" in (row.error or "")
    assert row.started_at - row.due_at >= 2_000


async def _all_closed(store: Store, number: int) -> bool:
    return sum(not row.is_open for row in await _ledger(store)) == number


async def _hear(heard: list[tuple[str, str]], name: str, fire: Any) -> None:
    heard.append((name, fire.slug[0]))
