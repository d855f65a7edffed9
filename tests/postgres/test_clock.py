"""The clock of a node: the database's time, reckoned from our own steady one."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from conformance.rows import a_node
from postgres.cluster import SHORT, Node, cluster, until
from postgres.server import Server
from wakeful.core.time.instants import SECOND
from wakeful.stores.postgres import PostgresClock, PostgresStore, clock


class Steady:
    """A steady clock a test can move."""

    def __init__(self) -> None:
        self.ns = 1_000_000_000

    def __call__(self) -> int:
        return self.ns


class Answering:
    """A session whose server is at some time, and some way off."""

    def __init__(self, steady: Steady, server_us: int, there_ns: int, back_ns: int) -> None:
        self.steady, self.server_us, self.there_ns, self.back_ns = steady, server_us, there_ns, back_ns

    def rows(self, query: str) -> list[tuple[int]]:
        self.steady.ns += self.there_ns + self.back_ns
        return [(self.server_us,)]


def _set(clock: PostgresClock, session: Any) -> None:
    clock.set_by(session)


def test_the_time_is_that_of_the_middle_of_the_round_trip() -> None:
    """The server answered somewhere between question and answer; the middle is the best guess."""
    steady = Steady()
    clock = PostgresClock(steady_ns=steady)
    _set(clock, Answering(steady, 5_000_000_000, 4_000_000, 4_000_000))
    assert clock.read().now == 5_000_004
    steady.ns += 1_500_000_000
    assert clock.read().now == 5_001_504


def test_a_stepped_server_is_seen_at_the_next_renewal() -> None:
    """As a jump of the wall against the monotonic side, which the engine knows what to do about."""
    steady = Steady()
    clock = PostgresClock(steady_ns=steady)
    _set(clock, Answering(steady, 5_000_000_000, 0, 0))
    before = clock.read()
    _set(clock, Answering(steady, 9_000_000_000, 0, 0))
    assert clock.read().now - before.now == 4_000 * SECOND


async def test_it_agrees_with_the_server_and_ignores_the_machine(
    url: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever this machine believes the time to be, from its opening on the node goes by the database's."""
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 86_400 * 10**9)
    store = await PostgresStore.open(url)
    try:
        with server.connect() as connection:
            asked = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").fetchone()
        assert asked is not None
        assert abs(store.clock.read().now - asked[0]) < 2_000
    finally:
        await store.close()


async def test_renewing_the_lease_sets_the_clock(url: str) -> None:
    """A clock that drifted is put right with every renewal."""
    store = await PostgresStore.open(url)
    try:
        node_id = await store.write(a_node)
        right = store.clock.read().now
        store.clock._offset_us -= 3_600 * 1_000_000
        assert store.clock.read().now < right - 3_000_000
        await store.write(
            lambda tx: tx.nodes.renew(node_id, now=right, lease_until=right, lag=0, running=0, capacity=5)
        )
        assert right - 1_000 < store.clock.read().now < right + 60_000
    finally:
        await store.close()


@pytest.mark.waits
@pytest.mark.parametrize("step", [3_600, -3_600], ids=["forward", "back"])
async def test_a_step_of_the_servers_clock_takes_no_lease(url: str, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """L6: the nodes notice it one after another; until all have renewed by the new time, none takes another's lease."""
    offset = 0
    async with cluster(url, "abc") as nodes:
        ids = [node.engine.node_id for node in nodes]
        for _ in range(3):
            offset += step
            query = f"SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + {offset * 1_000_000}"
            monkeypatch.setattr(clock, "SERVER_TIME", query)
            target = time.time_ns() // 1_000_000 + offset * 1_000
            await until(partial(_have_renewed, nodes, target, SHORT.lease))
        assert [node.engine.node_id for node in nodes] == ids


async def _have_renewed(nodes: Sequence[Node], at: int, for_long: int) -> bool:
    """Whether all nodes have renewed by a clock that shows about `at`, for longer than a lease."""
    rows = await nodes[0].store.read(lambda tx: tx.nodes.all())
    return all(for_long < row.last_tick_at - at < 1_000_000 for row in rows)
