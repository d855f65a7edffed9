"""The schema: made by whoever comes first, refused when it is from too far ahead, and sought in, never scanned."""

import asyncio
import re
from typing import Any

import psycopg
import pytest

from conformance.test_shared_sql import shared_statements
from postgres.server import Server, schema_of
from sampling import sampled
from wakeful.engine import run_totals
from wakeful.ports import nodes, outbox, schedules
from wakeful.ports import runs as ledger
from wakeful.ports.meta import Meta
from wakeful.ports.outbox import Addressees
from wakeful.stores.postgres import (
    DatabaseRefused,
    PostgresStore,
    alarms,
    cadences,
    lanes,
    runs,
)
from wakeful.stores.postgres.address import parse
from wakeful.stores.postgres.connection import Timeouts, connect
from wakeful.stores.postgres.database import translated
from wakeful.stores.postgres.migrate import migrations, version_of


async def test_many_openers_make_the_schema_once(new_url: str, server: Server) -> None:
    """They wait for each other, and all of them find it ready."""
    stores = await asyncio.gather(*(PostgresStore.open(new_url) for _ in range(6)))
    await asyncio.gather(*(store.write(lambda tx, n=n: tx[Meta].set(f"k{n}", "v")) for n, store in enumerate(stores)))
    for store in stores:
        await store.close()
    with server.connect() as connection:
        taken = connection.execute(
            f"SELECT number FROM {schema_of(new_url)}.schema_version ORDER BY 1".encode()
        ).fetchall()
    assert taken == [(step.number,) for step in migrations()]


@pytest.mark.parametrize("ahead", [1, 2])
async def test_one_release_ahead_is_fine_and_two_are_not(url: str, server: Server, ahead: int) -> None:
    """So that nodes can be brought up to date one by one; what is refused is left as it is."""
    await (await PostgresStore.open(url)).close()
    newest = migrations()[-1].number
    with server.connect() as connection:
        connection.execute(f"INSERT INTO {schema_of(url)}.schema_version VALUES (%s)".encode(), [newest + ahead])
    if ahead == 1:
        await (await PostgresStore.open(url)).close()
    else:
        with pytest.raises(DatabaseRefused, match=f"is at {newest + 2}, and this release knows {newest}"):
            await PostgresStore.open(url)
    with connect(parse(url), Timeouts()) as connection:
        assert version_of(connection, schema_of(url)) == newest + ahead


async def test_two_schemas_of_one_database_are_two_stores(server: Server) -> None:
    """Nothing of one is seen in the other, not even a hint."""
    with server.schema() as here, server.schema() as there:
        one, two = await PostgresStore.open(here), await PostgresStore.open(there)
        try:
            await one.write(lambda tx: tx[Meta].set("x", "here"))
            assert await two.read(lambda tx: tx[Meta].value("x")) is None
            assert not await two.changed()
        finally:
            await one.close()
            await two.close()


@pytest.mark.parametrize(
    "address",
    ["sqlite:///x", "mysql://h/d", "postgresql:///d?schema=Big", "postgresql:///d?schema=pg_x", "postgresql:///d?x=y"],
)
async def test_an_address_that_makes_no_sense_is_refused(address: str) -> None:
    """Before anything is connected to."""
    with pytest.raises(DatabaseRefused):
        await PostgresStore.open(address)


def test_an_address_in_words_tells_no_secret() -> None:
    """Messages and logs show where the store is, and not how to get in."""
    address = parse("postgresql://me:secret@example.org:5433/tasks?schema=mine&sslmode=require")
    assert address.in_words == repr(address) == "schema mine of tasks on example.org"
    assert "sslmode=require" in address.conninfo
    assert "schema" not in address.conninfo
    assert parse("postgresql:///tasks").schema == "wakeful"


HOT = {
    "cadences.DUE": cadences.DUE,
    "cadences.LOCK": cadences.LOCK,
    "cadences.SAVE_PLANNED": cadences.SAVE_PLANNED,
    "cadences.SAVE_SETTLED": cadences.SAVE_SETTLED,
    "runs.DUE": runs.DUE,
    "runs.HELD": runs.HELD,
    "runs.CLOSE": runs.CLOSE,
    "runs.MARK": runs.MARK,
    "runs.SAVE": runs.SAVE,
    "runs.OF_NODES": runs.OF_NODES,
    "ledger.TAKEN": translated(ledger.TAKEN).text,
    "ledger.PAGE": translated(ledger.PAGE).text,
    "ledger.PAGE_OF_SCHEDULE": translated(ledger.PAGE_OF_SCHEDULE).text,
    "ledger.PAGE_OF_AMISS": translated(ledger.PAGE_OF_AMISS).text,
    "ledger.PAGE_OF_RUNNING": translated(ledger.PAGE_OF_RUNNING).text,
    "ledger.PAGE_OF_WAITING": translated(ledger.PAGE_OF_WAITING).text,
    "run_totals.ENDINGS": translated(run_totals.ENDINGS).text,
    "alarms.NEXT_DUE_AT": alarms.NEXT_DUE_AT,
    "alarms.MOVE": alarms.MOVE,
    "alarms.REMOVE": alarms.REMOVE,
    "lanes.SEE": lanes.SEE,
    "lanes.TAKE": lanes.TAKE,
    "lanes.UNPARK_HEADS": lanes.UNPARK_HEADS,
    "schedules.BY_SLUGS": translated(schedules.BY_SLUGS).text,
    "schedules.BY_IDS": translated(schedules.BY_IDS).text,
    "schedules.PAGE": translated(schedules.PAGE).text,
    "Addressees.due": translated(Addressees._due).text,
    "outbox.FIND": translated(outbox.FIND).text,
    "outbox.HEAD": translated(outbox.HEAD).text,
    "outbox.PAGE_OF_STATUS": translated(outbox.PAGE_OF_STATUS).text,
    "nodes.WITH_LEFTOVERS": translated(nodes.WITH_LEFTOVERS).text,
}
# `nodes` has a row for each incarnation of the last weeks; `walk` and the like are the query's own.
SMALL = {"nodes"}


@pytest.mark.parametrize(
    "known", sampled(["empty", "empty, analyzed", "tiny, analyzed", "filled", "filled, analyzed"], every=4)
)
async def test_what_is_asked_often_is_sought_and_never_scanned(new_url: str, server: Server, known: str) -> None:
    """Whatever the planner knows or does not know of the tables: an index leads to every row that is touched, and a
    batch is gone through once and not once for each row of a table."""
    store = await PostgresStore.open(new_url)
    await store.close()
    with server.connect() as filling:
        filling.execute(f"SET search_path = {schema_of(new_url)}".encode())
        _fill(filling, {"empty": 0, "tiny": 3, "filled": 3_000}[known.partition(",")[0]])
        if known.endswith("analyzed"):
            filling.execute("ANALYZE")
    with connect(parse(new_url), Timeouts()) as connection:
        for name, query in HOT.items():
            plan = _plan(connection, query)
            scanned = {node["Relation Name"] for node in _nodes(plan) if node["Node Type"] == "Seq Scan"} - SMALL
            assert not scanned, f"{name} scans {scanned}"
            inner = {node["Plans"][1]["Node Type"] for node in _nodes(plan) if node["Node Type"] == "Nested Loop"}
            if name != "runs.MARK":  # it is bounded by its ids, whichever way it goes
                assert not inner & {"Function Scan", "CTE Scan", "Subquery Scan"}, f"{name} repeats its batch"


async def test_postgres_understands_every_shared_statement(url: str) -> None:
    """Written once for both databases, and prepared here as the store does, for writing and for reading."""
    await (await PostgresStore.open(url)).close()
    with connect(parse(url), Timeouts()) as connection:
        for name, sql in shared_statements().items():
            for is_reading in (False, True):
                text = translated(sql, is_reading=is_reading).text
                try:
                    connection.execute(f"PREPARE shared AS {text}".encode(), prepare=False)
                except psycopg.Error as error:
                    pytest.fail(f"{name}: {error}")
                connection.execute(b"DEALLOCATE shared", prepare=False)


def _fill(connection: psycopg.Connection[Any], n: int) -> None:
    """As many rows as told in every table that grows."""
    rows = f"FROM generate_series(1, {n}) AS n"
    for table, columns, values in (
        ("schedules", "slug, definition, version, is_zoned, created_at, updated_at", "'s' || n, '{}', 1, 0, n, n"),
        (
            "cadences",
            "schedule_id, version, state, state_at, planned_through, ran_through, consecutive_errors",
            "n, 1, 'active', 0, 0, 0, 0",
        ),
        ("alarms", "kind, ref, due_at, priority, lane, parked", "'schedule', n, n, 1, NULL, 0"),
        ("lanes", "lane", "n::text"),
        (
            "runs",
            "run_id, kind, schedule_id, occurrence, planned_at, instants, due_at, trigger, outcome, attempt, crashes,"
            " waits, priority, fence, version, stuck",
            "n, 'schedule', n, n, n, 1, n, 'schedule', 'succeeded', 1, 0, 0, 1, 1, 1, 0",
        ),
    ):
        connection.execute(f"INSERT INTO {table} ({columns}) SELECT {values} {rows}".encode())


def _plan(connection: Any, query: str) -> Any:
    """The generic plan, as the store's own connections make it."""
    params = max(int(number) for number in re.findall(r"\$(\d+)", query)) if "$" in query else 0
    connection.execute(f"PREPARE hot AS {query}".encode(), prepare=False)
    try:
        given = f"({', '.join(['NULL'] * params)})" if params else ""
        found = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE hot{given}".encode(), prepare=False).fetchone()
        return found[0][0]["Plan"]
    finally:
        connection.execute(b"DEALLOCATE hot", prepare=False)


def _nodes(plan: Any) -> Any:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)
