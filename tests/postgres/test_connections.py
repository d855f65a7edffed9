"""Connections that break, commits that are not answered, transactions that collide."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from conformance.rows import NOW, a_cadence, a_node, a_run, put_cadences, put_runs, run_alarm
from patience import PATIENCE
from postgres.server import Server, schema_of
from wakeful.ports.meta import Meta
from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.stores.postgres import CommitUnknown, PostgresStore, Timeouts, fate, writer
from wakeful.stores.postgres.address import parse
from wakeful.stores.postgres.connection import Connector

IMPATIENT = Timeouts(lock=2_000, doubt=300, reconnect_first=50, reconnect_max=200)


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    """A store that loses its patience soon."""
    opened = await PostgresStore.open(url, timeouts=IMPATIENT)
    yield opened
    await opened.close()


def _backend(tx: Any) -> int:
    """The server's process behind a transaction."""
    return int(tx.db.session.connection.pgconn.backend_pid)


def _kill(server: Server, pid: int) -> None:
    with server.connect() as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


async def _value(store: PostgresStore, name: str) -> str | None:
    return await store.read(lambda tx: tx[Meta].value(name))


async def test_a_connection_lost_in_the_middle_keeps_nothing(store: PostgresStore, server: Server) -> None:
    """The caller is told, and the next operation works."""

    def operation(tx: Tx) -> None:
        tx[Meta].set("x", "lost")
        _kill(server, _backend(tx))
        tx[Meta].set("y", "lost")

    with pytest.raises(StoreUnavailable):
        await store.write(operation)
    assert (await _value(store, "x"), await _value(store, "y")) == (None, None)
    await store.write(lambda tx: tx[Meta].set("x", "kept"))
    assert await _value(store, "x") == "kept"


async def test_an_idle_connection_that_died_is_replaced_without_a_word(store: PostgresStore, server: Server) -> None:
    """A restarted server or a forgetful firewall is nobody's error."""
    writing, reading = await store.write(_backend), await store.read(_backend)
    _kill(server, writing)
    _kill(server, reading)
    await store.write(lambda tx: tx[Meta].set("x", "kept"))
    assert await _value(store, "x") == "kept"


async def test_losing_the_listening_connection_counts_as_a_hint(store: PostgresStore, server: Server) -> None:
    """What was said meanwhile was not heard, so the answer is to look; afterwards it is quiet again."""
    assert not await store.changed()
    with server.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'wakeful'"
        )
    assert await store.changed()
    while await store.changed():
        await asyncio.sleep(0.01)


async def test_our_own_writes_are_no_news(store: PostgresStore, url: str) -> None:
    """Only what others write is; what only looks, or changes nothing, never is."""
    other = await PostgresStore.open(url)
    try:
        await store.write(lambda tx: tx[Meta].set("x", "1"))
        assert not await store.changed()
        assert await other.changed()
        assert not await other.changed()
        await store.write(lambda tx: tx.runs.due(now=NOW, limit=5))
        await store.read(lambda tx: tx[Meta].value("x"))
        assert not await other.changed()
    finally:
        await other.close()


async def test_a_commit_that_was_kept_and_not_answered_is_a_success(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is asked what became of the transaction, and the caller gets its result."""
    is_answered = writer._is_answered

    def lose_the_answer(session: Any, commit: bytes) -> bool:
        assert is_answered(session, commit)
        return False

    monkeypatch.setattr(writer, "_is_answered", lose_the_answer)

    def operation(tx: Tx) -> str:
        tx[Meta].set("x", "kept")
        return "done"

    assert await store.write(operation) == "done"
    assert await _value(store, "x") == "kept"


async def test_a_commit_that_never_arrived_is_a_failure(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the server still believes in the transaction: it is ended, and the caller told."""
    frozen: list[Any] = []

    def freeze(session: Any, commit: bytes) -> bool:
        frozen.append(session.connection)
        session.connection = psycopg.connect(session.connection.info.dsn)  # the old one stays open, in its transaction
        return False

    monkeypatch.setattr(writer, "_is_answered", freeze)
    with pytest.raises(StoreUnavailable, match="nothing was stored"):
        await store.write(lambda tx: tx[Meta].set("x", "lost"))
    monkeypatch.undo()
    assert await _value(store, "x") is None
    await store.write(lambda tx: tx[Meta].set("x", "kept"))
    frozen[0].close()


async def test_a_commit_nobody_can_speak_for_is_unknown(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a `StoreUnavailable` that says so: success is never claimed."""
    monkeypatch.setattr(writer, "_is_answered", lambda session, commit: False)
    monkeypatch.setattr(fate, "_ask", lambda doubt, door: None)
    with pytest.raises(CommitUnknown):
        await store.write(lambda tx: tx[Meta].set("x", "perhaps"))


async def test_a_node_that_does_not_know_what_it_owns_begins_anew(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After such a doubt its next renewal gives the lease up, so that whatever a lost claim took is rescued."""
    node_id = await store.write(a_node)
    monkeypatch.setattr(writer, "_is_answered", lambda session, commit: False)
    monkeypatch.setattr(fate, "_ask", lambda doubt, door: None)
    with pytest.raises(CommitUnknown):
        await store.write(lambda tx: tx[Meta].set("x", "perhaps"))
    monkeypatch.undo()

    def renew(tx: Tx, node: int) -> bool:
        return tx.nodes.renew(node, now=NOW, lease_until=NOW + 9, lag=0, running=0, capacity=5)

    assert not await store.write(lambda tx: renew(tx, node_id))
    assert not await store.write(lambda tx: renew(tx, node_id))
    anew = await store.write(a_node)
    assert await store.write(lambda tx: renew(tx, anew))
    known = await store.read(lambda tx: {node.node_id: node.voided_at for node in tx.nodes.all()})
    assert known == {node_id: NOW, anew: None}


async def test_transactions_that_collide_are_run_again(store: PostgresStore) -> None:
    """Two that lock the same rows in opposite orders: the database ends one, it starts anew, both succeed."""
    await store.write(lambda tx: put_cadences(tx, a_cadence(1), a_cadence(2)))
    both_hold_one = threading.Barrier(2, timeout=PATIENCE)
    runs: list[int] = []

    def operation(tx: Tx, first: int, second: int) -> int:
        runs.append(first)
        tx.cadences.lock([first])
        if runs.count(first) == 1:
            both_hold_one.wait()
        tx.cadences.lock([second])
        return first

    done = await asyncio.gather(
        store.write(lambda tx: operation(tx, 1, 2)), store.write(lambda tx: operation(tx, 2, 1))
    )
    assert done == [1, 2]
    assert sorted(set(runs)) == [1, 2]
    assert len(runs) == 3


async def test_an_error_the_operation_hides_is_not_hidden(store: PostgresStore) -> None:
    """After it the server would turn COMMIT into ROLLBACK, and success would be a lie."""
    await store.write(lambda tx: put_runs(tx, a_run(1)))

    def operation(tx: Tx) -> str:
        tx[Meta].set("x", "lost")
        try:
            tx.runs.add_many([a_run(1)])
        except psycopg.Error:
            return "all is well"
        return ""

    with pytest.raises(psycopg.errors.UniqueViolation):
        await store.write(operation)
    assert await _value(store, "x") is None


async def test_a_lock_that_is_not_to_be_had_is_given_up(store: PostgresStore, server: Server, url: str) -> None:
    """A frozen neighbour costs patience, not the thread."""
    await store.write(lambda tx: put_cadences(tx, a_cadence(1)))
    schema = schema_of(url)
    with server.connect() as connection, connection.transaction():
        connection.execute(f"SELECT * FROM {schema}.cadences FOR UPDATE".encode())
        with pytest.raises(StoreUnavailable, match="another transaction holds a lock that this one needs"):
            await store.write(lambda tx: tx.cadences.lock([1]))
        assert await store.write(lambda tx: tx.cadences.due(now=NOW, limit=5)) == []
    assert list(await store.write(lambda tx: tx.cadences.lock([1]))) == [1]


async def test_a_server_that_is_gone_is_said_to_be_gone() -> None:
    """With the cause; asking again at once is refused at once, and after a while it is tried again."""
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
        await PostgresStore.open("postgresql://nobody@127.0.0.1:1/nothing")
    seconds = [100.0]
    door = Connector(parse("postgresql://nobody@127.0.0.1:1/nothing"), IMPATIENT, monotonic=lambda: seconds[0])
    for said in (r"127\.0\.0\.1", "the next attempt is in"):
        with pytest.raises(StoreUnavailable, match=said):
            door.open()
    seconds[0] += IMPATIENT.reconnect_first / 1_000
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
        door.open()
    assert "failed 2 times in the last minute" in (door.trouble() or "")
    seconds[0] += 61
    assert door.trouble() is None


async def test_nobody_is_parked_behind_a_lane_that_was_not_seen(store: PostgresStore) -> None:
    """While another transaction works on the lane, nothing is known of it: a run that wants it goes on ringing.

    Parked, it would sleep for ever if the lane is just being freed: whoever frees it has looked for it before."""
    await store.write(lambda tx: tx.lanes.take_many([("a", 1)]))
    freeing, may_commit = threading.Event(), threading.Event()

    def free(tx: Tx) -> None:
        tx.lanes.free_many([("a", 1)])
        freeing.set()
        assert may_commit.wait(PATIENCE)

    def claim(tx: Tx) -> set[int]:
        put_runs(tx, a_run(2, lane="a"))
        taken = tx.lanes.take_many([("a", 2)])
        tx.alarms.set_many([run_alarm(2, lane="a", parked=1)])
        return taken

    async def claim_meanwhile() -> set[int]:
        await asyncio.to_thread(freeing.wait, 10)
        try:
            return await store.write(claim)
        finally:
            may_commit.set()

    _, taken = await asyncio.gather(store.write(free), claim_meanwhile())
    assert taken == set()
    assert [row.run_id for row in await store.write(lambda tx: tx.runs.due(now=NOW, limit=5))] == [2]


async def test_what_is_parked_meanwhile_is_found_by_whoever_frees_the_lane(store: PostgresStore) -> None:
    """A lane seen held is locked until the commit, and freeing it waits for that."""
    await store.write(lambda tx: tx.lanes.take_many([("a", 1)]))
    seen, may_commit = threading.Event(), threading.Event()

    def claim(tx: Tx) -> None:
        put_runs(tx, a_run(2, lane="a"))
        assert tx.lanes.take_many([("a", 2)]) == set()
        tx.alarms.set_many([run_alarm(2, lane="a", parked=1)])
        seen.set()
        assert may_commit.wait(PATIENCE)

    async def free_meanwhile() -> None:
        await asyncio.to_thread(seen.wait, 10)
        freed = asyncio.create_task(store.write(lambda tx: tx.lanes.free_many([("a", 1)])))
        await asyncio.sleep(0.1)
        assert not freed.done()
        may_commit.set()
        await freed

    await asyncio.gather(store.write(claim), free_meanwhile())
    assert [row.run_id for row in await store.write(lambda tx: tx.runs.due(now=NOW, limit=5))] == [2]


async def test_what_a_program_printed_never_keeps_a_batch_out(store: PostgresStore) -> None:
    """Characters PostgreSQL cannot hold are replaced; everything else comes back as it was."""
    kept = 'quotes " and \\ backslash, {braces}, a, comma, NULL\nnew\tline \N{ALARM CLOCK}'
    rows = [a_run(1, error=kept), a_run(2, error="nul \x00 inside"), a_run(3, error="half \ud83d"), a_run(4, error="")]
    await store.write(lambda tx: put_runs(tx, *rows))
    found = await store.read(lambda tx: tx.runs.lock([1, 2, 3, 4]))
    assert [found[n].error for n in (1, 2, 3, 4)] == [kept, "nul \ufffd inside", "half \ufffd", ""]
