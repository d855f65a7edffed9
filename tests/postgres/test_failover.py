"""A failover to a copy that lagged, under a daemon that goes on running."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from delivery.running import Running, daemon
from patience import PATIENCE
from postgres.server import Server, schema_of

WRITE = 'echo "$WAKEFUL_IDEMPOTENCY_KEY" >> "$0"'
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
SEQUENCES = "SELECT sequence_name FROM information_schema.sequences WHERE sequence_schema = %s"


class Lagging:
    """What a schema held at one moment, and the way back to it."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._tables = [name for (name,) in connection.execute(TABLES, [schema])]
        names = [name for (name,) in connection.execute(SEQUENCES, [schema])]
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            for name in self._tables:
                connection.execute(f"CREATE TEMP TABLE held_{name} AS TABLE {schema}.{name}".encode())
            self._sequences = {
                name: connection.execute(f"SELECT last_value, is_called FROM {schema}.{name}".encode()).fetchone()
                for name in names
            }

    def put_back(self) -> None:
        """As a failover does: what came after is gone, and every connection breaks."""
        connection = self._connection
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")
            for name in self._tables:
                connection.execute(f"LOCK TABLE {self._schema}.{name} IN ACCESS EXCLUSIVE MODE".encode())
            for name in self._tables:
                connection.execute(f"DELETE FROM {self._schema}.{name}".encode())
                connection.execute(
                    f"INSERT INTO {self._schema}.{name} OVERRIDING SYSTEM VALUE TABLE held_{name}".encode()
                )
            for name, state in self._sequences.items():
                assert state is not None
                connection.execute("SELECT setval(%s::regclass, %s, %s)", [f"{self._schema}.{name}", *state])
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'wakeful'")


@pytest.mark.torture
async def test_what_ran_before_a_failover_is_not_run_again(url: str, server: Server, tmp_path: Path) -> None:
    """No key is used twice, the instants since the copy are missed, manual runs have keys of their own."""
    keys = tmp_path / "keys"
    keys.touch()
    argv = ["sh", "-c", WRITE, str(keys)]
    settings = f'[store]\nurl = "{url}"\n[limits]\nevery_min = "1s"\n'
    with server.connect() as connection:
        async with daemon(tmp_path / "home", settings) as running:
            each = {"schedule": {"type": "every", "every": "2s"}, "command": {"argv": argv}}
            await running.ask("PUT", "/api/schedule/often", each)
            await running.ask("PUT", "/api/schedule/asked", {"schedule": {"type": "manual"}, "command": {"argv": argv}})
            await _succeeded(running, "often", 2)
            lagging = Lagging(connection, schema_of(url))
            for _ in range(3):
                await running.ask("POST", "/api/schedule/asked/run?wait=true&timeout=60s")
            await _succeeded(running, "often", 6)
            lagging.put_back()
            await running.until(
                "/api/schedule/often/runs?limit=200",
                lambda page: [run for run in page["runs"] if (run["outcome"], run["reason"]) == ("missed", "restored")],
            )
            for _ in range(3):
                await _run_once(running, "asked")
            await _succeeded(running, "often", 4)
            log = (tmp_path / "home" / "server.log").read_text()
    assert "the store was rolled back" in log
    assert max(Counter(keys.read_text().splitlines()).values()) == 1


async def _succeeded(running: Running, slug: str, n: int) -> None:
    await running.until(
        f"/api/schedule/{slug}/runs?limit=500",
        lambda page: sum(run["outcome"] == "succeeded" for run in page["runs"]) >= n,
    )


async def _run_once(running: Running, slug: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await running.ask("POST", f"/api/schedule/{slug}/run?wait=true&timeout=60s"))["outcome"] != "succeeded":
            await asyncio.sleep(0.1)
