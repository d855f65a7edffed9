"""A schema step while nodes of the earlier release are at work."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from postgres.server import Server, schema_of
from wakeful.ports.releases import WITHOUT_0_2
from wakeful.stores.postgres import DatabaseRefused, PostgresStore, migrate
from wakeful.stores.postgres.address import parse
from wakeful.stores.postgres.connection import Timeouts, connect

OLD = 10
NODE = """
INSERT INTO nodes (name, host, pid, started_at, lease_until, last_tick_at, lag, running, capacity)
VALUES ('elder', 'here', 1, 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + {lease}, 0, 0, 0, 1)
"""
FLOW = """
INSERT INTO workflows (name, owner_id, definition, version, origin, status, created_at, updated_at)
VALUES ('one', -1, '{}', 3, 'rest', 'active', 0, 0)
"""


@contextmanager
def old_schema(server: Server, url: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A store as 0.1 left it, and a connection to it as a node of 0.1 has one."""
    schema = schema_of(url)
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
        connection.execute(f"SET search_path = {schema}".encode())
        with connect(parse(url), Timeouts()) as own:
            migrate.migrate(own, schema, [step for step in migrate.migrations() if step.number <= OLD])
        yield connection


async def test_a_node_at_work_does_not_end_the_upgrade_in_a_deadlock(new_url: str, server: Server) -> None:
    """It holds one table while it waits for another, as a node of 0.1 does in the middle of a claim."""
    with old_schema(server, new_url) as node:
        node.execute(NODE.format(lease=60_000).encode())
        held, go_on, ended = threading.Event(), threading.Event(), threading.Event()

        def work() -> None:
            with node.transaction():
                node.execute(b"LOCK TABLE cadences IN ROW EXCLUSIVE MODE")
                held.set()
                go_on.wait(60)
                node.execute(b"LOCK TABLE slots IN ROW EXCLUSIVE MODE")
                node.execute(b"SELECT pg_sleep(1.5)")  # longer than the server takes to look for deadlocks
            ended.set()

        thread = threading.Thread(target=work)
        thread.start()
        assert held.wait(60)
        threading.Timer(1, go_on.set).start()
        store = await PostgresStore.open(new_url)
        await store.close()
        thread.join(60)
        assert ended.is_set()
    with connect(parse(new_url), Timeouts()) as own:
        assert migrate.version_of(own, schema_of(new_url)) == WITHOUT_0_2 - 1  # the node has a lease


@pytest.mark.parametrize("lease", [60_000, -1])
async def test_workflows_are_not_taken_from_a_node_that_could_not_read_them(
    new_url: str, server: Server, lease: int
) -> None:
    """The upgrade is refused with the node's name; once its lease has ended it goes through."""
    with old_schema(server, new_url) as node:
        node.execute(NODE.format(lease=lease).encode())
        node.execute(FLOW.encode())
    if lease > 0:
        with pytest.raises(DatabaseRefused, match=r"earlier release .*\(elder\).* workflows.* stop them first"):
            await PostgresStore.open(new_url)
        with connect(parse(new_url), Timeouts()) as own:
            assert migrate.version_of(own, schema_of(new_url)) == OLD
        return
    await (await PostgresStore.open(new_url)).close()
