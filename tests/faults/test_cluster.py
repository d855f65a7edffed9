"""Several nodes on one PostgreSQL, killed, frozen and cut off; the ledger checker looks at each (L1, L2, L5, L6)."""

import random
import signal
import time

import pytest

from faults.kit import Field, now, overdue, steady
from postgres.server import Server

LANES = 4


@pytest.mark.parametrize(
    ("instants", "deaths"), [(200, 2), pytest.param(10_000, 20, marks=pytest.mark.torture)], ids=["short", "long"]
)
def test_nodes_killed_and_restarted_at_random_drain_everything(cluster: Field, instants: int, deaths: int) -> None:
    """Three nodes and thousands of instants at once: as many runs, none lost, none tried a third time."""
    dice = random.Random(9)
    cluster.put(overdue(instants, at=now() + 5_000))
    nodes = {name: cluster.start(name, takes=0.4) for name in "abc"}
    for death in range(deaths):
        cluster.until_closed(instants * (death + 1) // (deaths + 2))
        name = dice.choice("abc")
        cluster.kill(nodes[name])
        nodes[name] = cluster.start(name, takes=0.4)
    cluster.until_closed(instants, within=200)
    for node in nodes.values():
        cluster.stop(node)
    verdict = cluster.audit()
    assert verdict.is_clean, verdict.in_words()
    assert verdict.runs == verdict.instants == instants
    rows = cluster.look(lambda tx: tx.runs.page(limit=100_000))
    assert max(row.attempt for row in rows) <= 2
    assert {row.outcome for row in rows} <= {"succeeded", "unknown"}
    assert all(row.attempt == 2 for row in rows if row.outcome == "unknown"), "only a second crash is given up"
    assert sum(row.outcome == "succeeded" for row in rows) >= instants * 9 // 10


def test_a_node_frozen_past_its_lease_is_fenced_off(cluster: Field) -> None:
    """Another takes over; what the frozen one says when it wakes counts for nothing, and lanes were never shared."""
    cluster.put(steady(12, every=500, lanes=LANES))
    frozen = cluster.start("a", takes=0.3)
    cluster.until_closed(12)
    other = cluster.start("b", takes=0.05)
    frozen.send_signal(signal.SIGSTOP)
    asleep = now()
    try:
        before = cluster.closed()
        cluster.until(lambda: cluster.look(lambda tx: sum(node.voided_at is not None for node in tx.nodes.all())) >= 1)
        cluster.until_closed(before + 24)
    finally:
        awake = now()
        frozen.send_signal(signal.SIGCONT)
    cluster.until(lambda: "lost its lease" in cluster.errors() or "was taken from this node" in cluster.errors())
    cluster.until_closed(cluster.closed() + 12)
    cluster.stop(frozen)
    cluster.stop(other)
    verdict = cluster.audit(frozen=(asleep, awake))
    assert verdict.is_clean, verdict.in_words()


def test_sessions_terminated_again_and_again(cluster: Field, server: Server) -> None:
    """An administrator, a proxy or a failover ends our connections: late at worst."""
    cluster.put(steady(8, every=500))
    node = cluster.start("a")
    cluster.until_closed(8)
    for _ in range(6):
        with server.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND backend_type = 'client backend'"
            )
        before = cluster.closed()
        cluster.until(lambda before=before: cluster.closed() > before)  # type: ignore[misc]
    cluster.until_closed(cluster.closed() + 16)
    assert node.poll() is None
    cluster.stop(node)
    verdict = cluster.audit()
    assert verdict.is_clean, verdict.in_words()


@pytest.mark.parametrize("restarts", [2, pytest.param(12, marks=pytest.mark.torture)], ids=["short", "long"])
def test_a_server_restarted_every_few_seconds(cluster: Field, server: Server, restarts: int) -> None:
    """Two nodes go on as soon as it is back; nothing is lost, nothing is done twice."""
    if server.folder is None:
        pytest.skip("the server was given to us: it is not ours to restart")
    cluster.put(steady(8, every=500, lanes=2))
    nodes = [cluster.start("a"), cluster.start("b")]
    cluster.until_closed(8)
    for _ in range(restarts):
        server.restart()
        came_back = time.monotonic()
        before = cluster.closed()
        cluster.until_closed(before + 8)
        cluster.until(lambda came_back=came_back: time.monotonic() > came_back + 2)  # type: ignore[misc]
    for node in nodes:
        assert node.poll() is None
        cluster.stop(node)
    verdict = cluster.audit()
    assert verdict.is_clean, verdict.in_words()
