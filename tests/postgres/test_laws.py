"""The simulator's laws, asked of a real cluster: real connections and threads, and one node cut off in the middle."""

import asyncio
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from postgres.cluster import cluster, is_idle, until
from postgres.server import Server
from sampling import sampled
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.definition import Definition, rules_of
from wakeful.core.schedule.definition_json import decode_definition
from wakeful.core.schedule.policies import Retry
from wakeful.core.time.timing import Every
from wakeful.features.schedules import commands
from wakeful.ports.store import Tx
from worlds import laws

SCHEDULES = 16
LOOKS = 28


def _definition(number: int, now: int) -> Definition:
    """Intervals of 150 to 850 ms, every third in one of two lanes, every fourth with a retry."""
    timing = Every(150 + 30 * number, now + 7 * number)
    lane = f"lane-{number % 2}" if number % 3 == 0 else None
    retry = Retry(1, 100) if number % 4 == 0 else None
    return Definition(f"s{number}", timing, Call("f", {}), lane=lane, retry=retry, errors_max=0)


def _violations(tx: Tx, born: dict[str, int]) -> Iterator[str]:
    """Every law that one consistent look at the store can tell."""
    rows = tx.runs.page(limit=100_000)
    attempts = tx.runs.attempts([row.run_id for row in rows])
    schedules = tx.schedules.page(after=None, limit=1_000)
    cadences = tx.cadences.lock([schedule.schedule_id for schedule in schedules])
    busy = [row for row in rows if row.outcome == "running" or row.stuck]
    yield from laws.one_per_lane(busy, tx.lanes.holders())
    for schedule in schedules:
        own = [row for row in rows if row.schedule_id == schedule.schedule_id]
        cadence = cadences[schedule.schedule_id]
        rules = rules_of(decode_definition(schedule.definition), schedule.schedule_id)
        eras = [laws.Era(born[schedule.slug], rules.timing)]
        yield from laws.tiles(schedule.slug, eras, own, after=born[schedule.slug], through=cadence.planned_through)
        yield from laws.one_row_per_instant(schedule.slug, own)
        yield from laws.is_forward(schedule.slug, cadence, rules.timing)
        yield from laws.open_runs_are_few(schedule.slug, cadence, own, rules)
        for row in own:
            yield from laws.attempts_are_bounded(schedule.slug, row, attempts.get(row.run_id, []), [])


@pytest.mark.parametrize("names", sampled(["ab", "abc"], every=2, offset=1))
async def test_the_laws_hold_on_a_cluster_with_a_node_cut_off(url: str, server: Server, names: str) -> None:
    """L1 to L5 at every look while nodes share the work, one loses its lease and comes back, and handlers fail."""
    since = server.log_size()
    dice = random.Random(7)

    async def work(_name: str, _fire: Any) -> None:
        await asyncio.sleep(dice.uniform(0, 0.08))
        if dice.random() < 0.1:
            raise RuntimeError("now and then it fails")

    async with cluster(url, names, work) as nodes:
        definitions = [_definition(number, nodes[0].now) for number in range(SCHEDULES)]
        await nodes[0].put(definitions)
        found = await nodes[0].store.read(lambda tx: tx.schedules.page(after=None, limit=1_000))
        born = {schedule.slug: schedule.created_at for schedule in found}
        for look in range(LOOKS):
            if look == LOOKS // 4:
                nodes[-1].tap.is_cut = True
            if look == LOOKS // 2:
                nodes[-1].tap.is_cut = False
            broken = await nodes[0].store.read(lambda tx: list(_violations(tx, born)))
            assert broken == []
            await asyncio.sleep(0.1)
        for schedule in found:
            now, hooks = nodes[0].now, nodes[0].parts.hooks
            await nodes[0].command(partial(commands.pause, slug=schedule.slug, hooks=hooks, now=now))
        await until(lambda: is_idle(nodes[0].store))
        assert await nodes[0].store.read(lambda tx: list(_violations(tx, born))) == []
        rows = await nodes[0].store.read(lambda tx: tx.runs.page(limit=100_000))
        assert sum(row.outcome == "succeeded" for row in rows) > 50
        assert sum(row.outcome == "failed" for row in rows) > 0
        assert all(node.fires for node in nodes)
    assert "deadlock" not in server.logged(since)
