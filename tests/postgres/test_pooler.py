"""Behind a real pgbouncer in transaction mode: every transaction may be served by another session of the server."""

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from delivery.running import daemon
from faults.kit import Field, now
from patience import PATIENCE
from postgres.server import Server, schema_of
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import DAY, Instant
from wakeful.core.time.timing import Every, Once
from wakeful.ports.meta import Meta
from wakeful.stores.postgres import PostgresStore
from wakeful.stores.postgres.migrate import DatabaseRefused

PROGRAM = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed: apt-get install pgbouncer")

INSTANTS = 150

SETTINGS = """
[databases]
* = {upstream}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 3
max_client_conn = 200
logfile = {folder}/log
pidfile = {folder}/pid
"""


@contextmanager
def pooler(server: Server, folder: Path, mode: str) -> Iterator[Callable[[str], str]]:
    """A pgbouncer before the server; gives addresses through it."""
    known = conninfo_to_dict(server.url)
    upstream = " ".join(f"{name}={known[name]}" for name in ("host", "port", "user") if known.get(name))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir()
    settings = folder / "settings.ini"
    settings.write_text(SETTINGS.format(upstream=upstream, port=port, mode=mode, folder=folder))
    assert PROGRAM is not None
    command = [PROGRAM, str(settings)]
    user: dict[str, Any] = {}
    if os.geteuid() == 0:  # it refuses to run as root
        user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}
        for parent in (folder, *folder.parents):
            if parent.owner() == "root" and parent != Path("/"):
                parent.chmod(parent.stat().st_mode | 0o011)
        folder.chmod(0o777)
        Path(str(known["host"])).chmod(0o755)
    log = folder / "stderr"  # a file: once nobody reads a full pipe, pgbouncer stands still
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stderr=stderr, **user)
    try:
        _wait_for(port, process, log)
        base = f"postgresql://{known.get('user') or 'postgres'}@127.0.0.1:{port}/{known.get('dbname') or 'postgres'}"
        yield lambda url: f"{base}?schema={schema_of(url)}"
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
            return
        except ConnectionRefusedError:
            process_wait(process)
    raise AssertionError("pgbouncer does not listen")


def process_wait(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(0.1)
    except subprocess.TimeoutExpired:
        return


async def _put(store: PostgresStore, n: int) -> None:
    await store.write(lambda tx: tx[Meta].set(f"n{n}", str(n)))


async def test_many_transactions_on_few_sessions(url: str, server: Server, tmp_path: Path) -> None:
    """Two stores share three sessions: what each transaction is told holds in it, and nothing of it in others."""
    with pooler(server, tmp_path / "pooler", "transaction") as through:
        one, other = await PostgresStore.open(through(url)), await PostgresStore.open(through(url))
        try:
            writes = [
                store.write(lambda tx, n=n: tx[Meta].set(f"n{n}", str(n))) for n in range(100) for store in (one, other)
            ]
            await asyncio.gather(*writes)
            found = await other.read(lambda tx: [tx[Meta].value(f"n{n}") for n in range(100)])
            assert found == [str(n) for n in range(100)]
            assert await one.changed()  # it cannot be told, so it is to look
        finally:
            await one.close()
            await other.close()
        with psycopg.connect(through(url).partition("?")[0]) as foreign:
            assert foreign.execute("SHOW search_path").fetchone() == ('"$user", public',)


async def test_a_daemon_behind_a_pooler(url: str, server: Server, tmp_path: Path) -> None:
    """It starts on an empty schema, runs what it is asked for, and says what is different."""
    with pooler(server, tmp_path / "pooler", "transaction") as through:
        settings = f'[store]\nurl = "{through(url)}"\n'
        async with daemon(tmp_path / "home", settings) as running:
            job = {"schedule": {"type": "manual"}, "command": {"argv": [sys.executable, "-c", "print('hello')"]}}
            await running.ask("PUT", "/api/schedule/job", job)
            for _ in range(5):
                run = await running.ask("POST", "/api/schedule/job/run?wait=true&timeout=60s")
                assert (run["outcome"], run["output"]) == ("succeeded", "hello\n")
            await running.until("/healthz", lambda health: health["status"] == "ok")
    assert "pooler" in (tmp_path / "home" / "server.log").read_text()


@pytest.mark.torture
def test_two_nodes_behind_a_pooler(url: str, server: Server, tmp_path: Path) -> None:
    """They share what is due, also the runs of one lane, and one is killed: as many runs as instants, each tried at
    most twice."""
    with pooler(server, tmp_path / "pooler", "transaction") as through:
        field = Field(through(url), tmp_path)
        try:
            at = now() + 15_000  # still ahead when a slow machine has written all of them
            field.put([_in_lanes(n, at) for n in range(INSTANTS)])
            nodes = [field.start(name, takes=0.05) for name in "ab"]
            field.until_closed(INSTANTS // 3)
            field.kill(nodes.pop())
            nodes.append(field.start("b", takes=0.05))
            field.until_closed(INSTANTS)
            for node in nodes:
                field.stop(node)
            verdict = field.audit()
            assert verdict.is_clean, verdict.in_words()
            assert verdict.runs == verdict.instants == INSTANTS
            rows = field.look(lambda tx: tx.runs.page(limit=2 * INSTANTS))
            assert max(row.attempt for row in rows) <= 2
            assert field.look(lambda tx: tx.lanes.holders()) == {}
        finally:
            field.close()


def _in_lanes(n: int, at: Instant) -> Definition:
    """Every third in one of two lanes, the others daily or once."""
    lane = f"lane{n % 2}" if n % 3 == 0 else None
    timing = Every(DAY, at) if n % 3 == 1 else Once(at)
    slug = f"s{n}" if lane is None else f"{lane}-{n}"
    return Definition(slug, timing, Call("target", {}), lane=lane, errors_max=0)


async def test_a_pooler_without_transactions_is_refused(url: str, server: Server, tmp_path: Path) -> None:
    """In statement mode there is nothing to build on: a sentence says so."""
    with (
        pooler(server, tmp_path / "pooler", "statement") as through,
        pytest.raises(DatabaseRefused, match="transaction mode"),
    ):
        await PostgresStore.open(through(url))
