"""Connections that die between login and BEGIN, or at COMMIT: an outage that passes, and nothing else."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import pytest

from access import HEADERS
from delivery.running import Running, daemon
from patience import PATIENCE
from postgres.proxy import breaking
from postgres.server import Server, schema_of
from sampling import sampled
from wakeful.ports.meta import Meta
from wakeful.ports.store import StoreUnavailable
from wakeful.stores.postgres import PostgresStore, Timeouts
from wakeful.stores.postgres.connection import is_unavailable

SCHEDULES, RUNS_EACH = 8, 10


def test_an_error_without_a_code_is_of_the_place() -> None:
    """What libpq says when a connection dies has no SQLSTATE, and psycopg makes a bare DatabaseError of it."""
    assert is_unavailable(psycopg.DatabaseError("server closed the connection unexpectedly"))
    assert is_unavailable(psycopg.OperationalError("no route"))
    assert not is_unavailable(psycopg.DataError("PostgreSQL text fields cannot contain NUL"))
    assert not is_unavailable(ValueError("no"))


@pytest.mark.parametrize("seed", sampled([1, 2, 3], every=3))
async def test_what_is_answered_is_so_and_nothing_else_is_raised(url: str, server: Server, seed: int) -> None:
    """A quarter of all transactions break: each write is kept if it was answered, and refused as an outage if not."""
    with breaking(url, seed=seed) as proxy:
        patience = Timeouts(reconnect_first=10, reconnect_max=50)
        store = await PostgresStore.open(proxy.url(url), timeouts=patience)
        proxy.share = 0.25
        kept: list[int] = []
        refused = 0

        async def put(n: int) -> None:
            nonlocal refused
            try:
                await store.write(lambda tx: tx[Meta].set(f"n{n}", str(n)))
                kept.append(n)
            except StoreUnavailable:
                refused += 1

        await asyncio.gather(*(put(n) for n in range(200)))
        for _ in range(50):
            await store.read(lambda tx: tx[Meta].value("n1"))
        trouble = store.trouble()
        proxy.share = 0.0
        found = await store.read(lambda tx: {n for n in range(200) if tx[Meta].value(f"n{n}") is not None})
        await store.close()
    assert found == set(kept)
    assert len(kept) + refused == 200
    assert len(kept) > 100
    assert proxy.broken > 20
    assert trouble is not None and "failed" in trouble


@pytest.mark.torture
async def test_a_daemon_behind_a_line_that_breaks(url: str, server: Server, tmp_path: Path) -> None:
    """A fifth of all transactions break: no 500, no run recorded as failed, every run ends, /healthz tells."""
    mark = tmp_path / "marks"
    mark.touch()
    with breaking(url) as proxy:
        settings = f'[store]\nurl = "{proxy.url(url)}"\n'
        async with daemon(tmp_path / "home", settings) as running:
            argv = [sys.executable, "-c", f"open({str(mark)!r}, 'a').write('x\\n')"]
            for n in range(SCHEDULES):
                definition = {"schedule": {"type": "manual"}, "command": {"argv": argv}}
                await running.ask("PUT", f"/api/schedule/job-{n}", definition)
            proxy.share = 0.2
            statuses: set[int] = set()
            await asyncio.gather(*(_run_again_and_again(running, n, statuses) for n in range(SCHEDULES)))
            health = await _settled(running, "/healthz", lambda body: "failed" in str(body.get("findings")))
            proxy.share = 0.0
            await running.until("/api/runs?outcome=running", lambda page: not page["runs"])
            await running.until("/api/runs?outcome=waiting", lambda page: not page["runs"])
    assert statuses <= {200, 202, 409, 503}
    assert proxy.broken > 20
    assert health["level"] in ("warn", "bad")
    with server.connect() as connection:
        connection.execute(f"SET search_path = {schema_of(url)}".encode())
        outcomes = connection.execute("SELECT outcome, error, count(*) FROM runs GROUP BY 1, 2").fetchall()
        ((rows,),) = connection.execute("SELECT count(*) FROM runs WHERE outcome = 'succeeded'").fetchall()
    assert {outcome for outcome, *_ in outcomes} == {"succeeded"}, outcomes
    assert rows >= SCHEDULES * RUNS_EACH
    assert mark.read_text().count("x") >= rows


async def _run_again_and_again(running: Running, n: int, statuses: set[int]) -> None:
    done = 0
    async with asyncio.timeout(2 * PATIENCE):
        while done < RUNS_EACH:
            status = await _status(running, f"/api/schedule/job-{n}/run?wait=true&timeout=60s")
            statuses.add(status)
            done += status == 200
            if status != 200:
                await asyncio.sleep(0.05)


async def _status(running: Running, path: str) -> int:
    async with aiohttp.ClientSession(headers=HEADERS) as session, session.post(running.address + path) as response:
        await response.read()
        return response.status


async def _settled(running: Running, path: str, condition: Any) -> Any:
    """What it answers once the condition holds, whatever the status."""
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(headers=HEADERS) as session:
        while True:
            async with session.get(running.address + path) as response:
                body = await response.json()
            if condition(body):
                return body
            await asyncio.sleep(0.1)
