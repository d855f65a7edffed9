"""The schema: numbered SQL files; the missing ones are applied in one transaction.

PostgreSQL changes its schema inside transactions, so unlike SQLite no copy is made first: a step that fails changes
nothing. An advisory lock lets one process migrate while the others wait. The number of the last step is a row of
`schema_version`. A release runs on its own schema and on the next one, so that nodes can be upgraded one by one.

Nodes of the earlier release may be running meanwhile. Steps change many tables in their own order, so they could
deadlock with such a node: all tables are locked first, and released if one cannot be locked soon.
"""

from importlib import resources
from typing import Any, Final, NamedTuple

from psycopg import Connection, errors

from wakeful.ports.releases import WITHOUT_0_2
from wakeful.ports.store import DatabaseRefused

__all__ = ["DatabaseRefused", "Migration", "migrate", "migrations", "version_of"]

# One lock for all schemas of a database: migrations are rare and fast.
_MIGRATING: Final = 0x57414B45

# Whether the table with the version exists.
HAS_VERSION = "SELECT to_regclass($1 || '.schema_version') IS NOT NULL"

# The last step applied to this schema.
VERSION = "SELECT coalesce(max(number), 0) FROM {schema}.schema_version"

# Record a step.
SET_VERSION = "INSERT INTO schema_version (number) VALUES ($1)"

# All tables in the schema.
TABLES = "SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') FROM pg_tables WHERE schemaname = $1"

# How long to wait for each table: less than the second after which the server looks for deadlocks.
LOCK_SOON = "SET LOCAL lock_timeout = '300ms'"

# A pause between two tries.
PAUSE = "SELECT pg_sleep(0.2)"
TRIES_MAX: Final = 300

# The nodes that use a store with workflows: on schema 11, 0.1 cannot read their messages.
WORKFLOWS_OF_OTHERS = """
SELECT coalesce(string_agg(DISTINCT name, ', '), '') FROM nodes
WHERE voided_at IS NULL AND lease_until > (extract(epoch FROM clock_timestamp()) * 1000)::bigint
  AND EXISTS (SELECT 1 FROM workflows)
"""
_OF_0_1: Final = 10
"""The schema of 0.1; the next step gives a message a row for each of its consumers."""

# The nodes of 0.2 that hold a lease; the step after which they could not continue waits for them.
OF_0_2 = """
SELECT count(*) FROM {schema}.nodes WHERE release IS NULL AND voided_at IS NULL
  AND lease_until > (extract(epoch FROM clock_timestamp()) * 1000)::bigint
"""

# The encoding of the database.
ENCODING = "SHOW server_encoding"


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    sql: str


def migrations() -> list[Migration]:
    """All steps, in order."""
    folder = resources.files("wakeful.stores.postgres").joinpath("migrations")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [Migration(int(file.name[:4]), file.read_text(encoding="utf-8")) for file in files]


def version_of(connection: Connection[Any], schema: str) -> int:
    """The last step applied to this schema; 0 if there is none."""
    if not _one(connection, HAS_VERSION, [schema]):
        return 0
    return int(_one(connection, VERSION.format(schema=schema)))


def migrate(connection: Connection[Any], schema: str, steps: list[Migration]) -> None:
    """Apply the missing steps; refuse a database that is too new. The connection is in autocommit mode."""
    if (encoding := _one(connection, ENCODING)) != "UTF8":
        raise DatabaseRefused(f"the database uses the encoding {encoding}; create one with ENCODING 'UTF8'")
    try:
        with connection.transaction():
            pass
    except errors.ProtocolViolation as error:  # pgbouncer in statement mode
        raise DatabaseRefused(
            f"the server or the pooler in front of it does not support transactions ({error}); set the pooler to "
            "transaction mode or session mode"
        ) from error
    newest = steps[-1].number
    version = version_of(connection, schema)
    if version > newest + 1:
        raise DatabaseRefused(
            f"schema {schema} is at {version}, and this release knows {newest} and can run on {newest + 1}; "
            "install the release that wrote it, or a newer one"
        )
    if version < newest and not _must_wait(connection, schema, version + 1):
        _take(connection, schema, steps)


def _take(connection: Connection[Any], schema: str, steps: list[Migration]) -> None:
    """Apply what is missing once it is our turn."""
    tries = 0
    while True:
        try:
            if _is_taken(connection, schema, steps):
                return
        except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
            tries += 1
            if tries == TRIES_MAX:
                message = f"schema {schema} cannot be changed while its tables are in use; stop the nodes that use it"
                raise DatabaseRefused(message) from error
            _one(connection, PAUSE)
            continue
        # Another process migrates. A transaction that waited still treats tables as missing that did not exist when it
        # started, so we wait in a separate transaction. Session locks would work too, but not behind a pooler.
        with connection.transaction():
            connection.execute(b"SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0", prepare=False)
            connection.execute(f"SELECT pg_advisory_xact_lock({_MIGRATING})".encode(), prepare=False)


def _is_taken(connection: Connection[Any], schema: str, steps: list[Migration]) -> bool:
    """Apply the steps, unless another process is about to; returns whether it is done."""
    with connection.transaction():
        connection.execute(f"SET LOCAL statement_timeout = 0; SET LOCAL search_path = {schema}".encode(), prepare=False)
        if not _one(connection, f"SELECT pg_try_advisory_xact_lock({_MIGRATING})"):
            return False
        version = version_of(connection, schema)
        if version == 0:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode(), prepare=False)
            connection.execute(b"CREATE TABLE IF NOT EXISTS schema_version (number bigint PRIMARY KEY)", prepare=False)
        else:
            _make_way(connection, schema, version)
        for step in steps:
            if step.number > version:
                if _must_wait(connection, schema, step.number):
                    break
                connection.execute(step.sql.encode(), prepare=False)
                connection.execute(SET_VERSION, [str(step.number)], prepare=False)
    return True


def _make_way(connection: Connection[Any], schema: str, version: int) -> None:
    """Lock every table; refuse if nodes are running that could not continue afterwards."""
    connection.execute(LOCK_SOON.encode(), prepare=False)
    tables = _one(connection, TABLES, [schema])
    connection.execute(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE".encode(), prepare=False)
    others = _one(connection, WORKFLOWS_OF_OTHERS) if version == _OF_0_1 else ""
    if others:
        raise DatabaseRefused(
            f"nodes of an earlier release are running on it ({others}) and it has workflows, which they cannot read "
            "after the upgrade; stop them first (one that crashed counts until its lease has ended)"
        )


def _must_wait(connection: Connection[Any], schema: str, number: int) -> bool:
    """Whether nodes of 0.2 are running, which could not continue after this step."""
    return number == WITHOUT_0_2 and bool(_one(connection, OF_0_2.format(schema=schema)))


def _one(connection: Connection[Any], query: str, params: list[str] | None = None) -> Any:
    found = connection.execute(query.encode(), params, prepare=False).fetchone()
    assert found is not None  # noqa: S101 - each of these queries answers one row
    return found[0]
