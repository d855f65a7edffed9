"""The schema: numbered SQL files; the missing ones are applied in one transaction.

PostgreSQL changes its schema inside transactions, so unlike SQLite no copy is made first: a step that fails changes
nothing. An advisory lock lets one process migrate while the others wait. The number of the last step is a row of
`schema_version`. A release runs on its own schema and on the next one, so that nodes can be upgraded one by one.
"""

from importlib import resources
from typing import Any, Final, NamedTuple

from psycopg import Connection, errors

# One lock for all schemas of a database: migrations are rare and fast.
_MIGRATING: Final = 0x57414B45

# Whether the table with the version exists.
HAS_VERSION = "SELECT to_regclass($1 || '.schema_version') IS NOT NULL"

# The last step applied to this schema.
VERSION = "SELECT coalesce(max(number), 0) FROM {schema}.schema_version"

# Record a step.
SET_VERSION = "INSERT INTO schema_version (number) VALUES ($1)"

# The encoding of the database.
ENCODING = "SHOW server_encoding"


class DatabaseRefused(Exception):
    """The database cannot be used as the store. Nothing in it was changed."""


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
    if version < newest:
        _take(connection, schema, steps)


def _take(connection: Connection[Any], schema: str, steps: list[Migration]) -> None:
    """Apply what is missing once it is our turn."""
    while not _is_taken(connection, schema, steps):
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
        for step in steps:
            if step.number > version:
                connection.execute(step.sql.encode(), prepare=False)
                connection.execute(SET_VERSION, [str(step.number)], prepare=False)
    return True


def _one(connection: Connection[Any], query: str, params: list[str] | None = None) -> Any:
    found = connection.execute(query.encode(), params, prepare=False).fetchone()
    assert found is not None  # noqa: S101 - each of these queries answers one row
    return found[0]
