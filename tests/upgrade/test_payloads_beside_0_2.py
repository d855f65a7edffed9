"""A payload is stored once for several consumers, but only when no node of 0.2 can read the store any more: it takes
the payload from each row. The rows are written here as 0.2.0 writes them; `test_mixed_nodes` runs that release."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import psycopg
import pytest

from conformance.workflows import a_message, a_workflow
from postgres.server import Server, schema_of, server, url
from wakeful.app import bootstrap
from wakeful.features.workflows.message_rows import Message, Messages
from wakeful.ports.releases import RELEASE, WITHOUT_0_2
from wakeful.ports.store import Store, Tx
from wakeful.ports.workflows import StoredWorkflows
from wakeful.stores.postgres import looking as looking_at_postgres
from wakeful.stores.sqlite import looking as looking_at_sqlite

__all__ = ["server", "url"]

MINUTE = 60_000
REGISTERS = """
INSERT INTO nodes (name, host, pid, started_at, lease_until, last_tick_at, lag, running, capacity)
VALUES ('elder', 'here', 1, 0, {lease_until}, 0, 0, 0, 4)
"""
RENEWS = "UPDATE nodes SET lease_until = {lease_until} WHERE name = 'elder' AND voided_at IS NULL"
READS = "SELECT payload FROM messages ORDER BY place"
PUBLISHES = "UPDATE messages SET payload = '\"from 0.2\"', seq = seq + 9 WHERE consumer = 'd' AND status = 'pending'"

Ask: TypeAlias = Callable[[str], list[tuple[Any, ...]]]


class Place(NamedTuple):
    """An address of a store, a connection to it as a node of 0.2 has one, and reading it without a daemon."""

    address: str
    ask: Ask
    look: Callable[[], list[Message]]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        path = tmp_path / "wakeful.db"

        def ask_sqlite(sql: str) -> list[tuple[Any, ...]]:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                return connection.execute(sql).fetchall()

        def look_sqlite() -> list[Message]:
            with looking_at_sqlite.looking(path) as tx:
                return letters(tx)

        yield Place(str(path), ask_sqlite, look_sqlite)
        return
    running: Server = request.getfixturevalue("server")
    address: str = request.getfixturevalue("url")

    def ask(sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(running.url, autocommit=True) as connection:
            connection.execute(f"SET search_path = {schema_of(address)}".encode())
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def look() -> list[Message]:
        with looking_at_postgres.looking(address) as (tx, _):
            return letters(tx)

    yield Place(address, ask, look)


def letters(tx: Tx) -> list[Message]:
    return tx[Messages].page(1, "letters", after_place=0, limit=9)


async def opened(place: Place) -> Store:
    return (await bootstrap.open_store(place.address)).store


async def beside_0_2(place: Place, *, lease_until: int) -> Store:
    """The store as it is when this release has joined a node of 0.2 that has a lease."""
    await (await opened(place)).close()
    if place.address.startswith("postgres"):
        place.ask("ALTER TABLE nodes DROP CONSTRAINT nodes_have_a_release")
        place.ask(f"DELETE FROM schema_version WHERE number >= {WITHOUT_0_2}")
    else:
        place.ask("DROP TRIGGER nodes_register_with_a_release")
        place.ask("DROP TRIGGER nodes_renew_with_a_release")
        place.ask(f"PRAGMA user_version = {WITHOUT_0_2 - 1}")
    place.ask(REGISTERS.format(lease_until=lease_until))
    return await opened(place)


def publish(message_id: str, first: int) -> Callable[[Tx], None]:
    rows = [
        a_message(1, "letters", message_id, first + n, consumer=name, payload=f'"{message_id}"')
        for n, name in enumerate("cd")
    ]
    return lambda tx: tx[Messages].put_many(rows)


def version(place: Place) -> int:
    is_postgres = place.address.startswith("postgres")
    ((found,),) = place.ask("SELECT max(number) FROM schema_version" if is_postgres else "PRAGMA user_version")
    return int(found)


def now() -> int:
    return int(time.time() * 1000)


async def test_a_node_of_0_2_finds_the_payload_in_each_row(place: Place) -> None:
    """While it has a lease nothing is shared, and the schema stays one that it opens."""
    store = await beside_0_2(place, lease_until=now() + MINUTE)
    await store.write(lambda tx: tx[StoredWorkflows].add_new(a_workflow("post")))
    await store.write(publish("m", 1))
    assert place.ask(READS) == [('"m"',), ('"m"',)]
    assert version(place) == WITHOUT_0_2 - 1
    assert [message.payload for message in place.look()] == ['"m"', '"m"']
    place.ask(RENEWS.format(lease_until=now() + 2 * MINUTE))
    await store.close()


@pytest.mark.parametrize("ended", ["it left", "it died"])
async def test_payloads_are_shared_once_the_last_node_of_0_2_is_gone(place: Place, ended: str) -> None:
    """From the next start on, also by processes that were open before. What was written until then stays as it is."""
    before = await beside_0_2(place, lease_until=now() + MINUTE)
    await before.write(publish("m", 1))
    gone = f"voided_at = {now()}" if ended == "it left" else f"lease_until = {now() - 1}"
    place.ask(f"UPDATE nodes SET {gone}")
    await (await opened(place)).close()
    assert version(place) == WITHOUT_0_2
    await before.write(publish("n", 3))
    assert place.ask(READS) == [('"m"',), ('"m"',), ("",), ("",)]
    assert place.ask("SELECT payload FROM payloads") == [('"n"',)]
    assert [row.payload for row in await before.read(letters)] == ['"m"', '"m"', '"n"', '"n"']
    await before.close()
    assert [message.payload for message in place.look()] == ['"m"', '"m"', '"n"', '"n"']


async def test_a_node_of_0_2_that_had_the_store_open_cannot_come_back(place: Place) -> None:
    """It may have slept while its lease ended: it can neither renew nor register."""
    await (await beside_0_2(place, lease_until=now() - 1)).close()
    assert version(place) == WITHOUT_0_2
    for statement in (RENEWS, REGISTERS):
        with pytest.raises((sqlite3.IntegrityError, psycopg.errors.CheckViolation)):
            place.ask(statement.format(lease_until=now() + MINUTE))
    place.ask(f"UPDATE nodes SET voided_at = {now()}")
    assert place.ask("SELECT count(*) FROM nodes WHERE voided_at IS NULL") == [(0,)]


async def test_what_a_process_of_0_2_publishes_into_a_shared_message_counts(place: Place) -> None:
    """One that has no lease had the store open before. The other consumer keeps the shared payload."""
    store = await opened(place)
    await store.write(publish("m", 1))
    place.ask(PUBLISHES)
    assert [row.payload for row in await store.read(letters)] == ['"m"', '"from 0.2"']
    await store.close()


def test_the_release_of_a_node_is_the_one_of_the_package() -> None:
    """The next release can tell its nodes from ours."""
    from importlib.metadata import version

    assert version("wakeful").startswith(f"{RELEASE}.")
