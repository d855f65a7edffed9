"""Where a drill runs: a scratch folder on the same disk as the user's home, and scratch schemas on PostgreSQL.

The folder is locked as long as its drill runs. The next drill removes folders and schemas of drills that were killed
together with everything that would have cleaned up after them.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

if TYPE_CHECKING:
    import psycopg

PREFIX: Final = ".wakeful-drill-"
SCHEMA_PREFIX: Final = "wakeful_drill_"
LOCK: Final = "lock"
FREE_MIN: Final = 200 * 1024 * 1024
REMOVALS_MAX: Final = 50
REMOVAL_PAUSE: Final = 0.1
DROP_WITHIN: Final = "SET statement_timeout = '20s'"


class CannotDrill(Exception):
    """The drill cannot run on this machine; `str()` says why, and `cure` what to do."""

    def __init__(self, message: str, cure: str) -> None:
        super().__init__(message)
        self.cure = cure


class Scratch(NamedTuple):
    """The places of one drill."""

    folder: Path
    server: str | None = None  # the address of a PostgreSQL server; None: SQLite files in the folder
    schemas: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        return {"folder": str(self.folder), "server": self.server, "schemas": list(self.schemas)}

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Scratch:
        return cls(Path(said["folder"]), said["server"], said["schemas"])

    def control(self, tag: str) -> Path:
        """The control file of a daemon (`drill.node`)."""
        return self.folder / f"{tag}.control"

    def store(self, name: str) -> str:
        """The address of the store `name`, one of `schemas` or a file."""
        if self.server is None:
            return f"sqlite:///{self.folder / name}.db"
        schema = next(schema for schema in self.schemas if schema.endswith(f"_{name}"))
        return with_parameters(self.server, schema=schema)

    def remove(self) -> None:
        """Remove everything; calling it twice is harmless."""
        if self.server is not None:
            with suppress(Exception), _connect(self.server) as connection:  # the server is gone: the next drill does it
                _drop(connection, self.schemas)
        for _ in range(REMOVALS_MAX):  # a command of a killed daemon may still write to the folder for a moment
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                return
            time.sleep(REMOVAL_PAUSE)


def place_for(home: Path) -> Path:
    """The folder next to the home if it is on the same disk, otherwise the home itself."""
    home = Path(os.path.realpath(home))
    there = home
    while not there.exists():
        there = there.parent
    parent = there if there != home else home.parent
    is_same_disk = parent.stat().st_dev == there.stat().st_dev
    return parent if is_same_disk and os.access(parent, os.W_OK | os.X_OK) else there


def make_folder(parent: Path) -> tuple[Path, int]:
    """Create and lock a scratch folder; returns it and the lock."""
    free = shutil.disk_usage(parent).free
    if free < FREE_MIN:
        raise CannotDrill(f"only {free // 1_000_000} MB are free in {parent}", "free some space: a drill needs 200 MB")
    _remove_leftovers(parent)
    folder = parent / f"{PREFIX}{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o700)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise CannotDrill(f"{parent} cannot be used ({error.strerror})", "choose another --home") from error
    return folder, lock


def _remove_leftovers(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


class Reserved(NamedTuple):
    """Schemas on a server, reserved by an open connection."""

    server: str  # with the password that was used, wherever it came from
    schemas: tuple[str, ...]
    connection: psycopg.Connection[Any]


def reserve_schemas(url: str, names: Iterable[str]) -> Reserved:
    """Connect, check the rights, drop what killed drills left, and reserve a schema for each name."""
    try:
        import psycopg
    except ImportError as error:
        cure = "install it with pip install 'wakeful[postgres]'"
        raise CannotDrill("PostgreSQL needs its driver", cure) from error
    from wakeful.stores.postgres.address import parse
    from wakeful.stores.postgres.migrate import DatabaseRefused

    token = secrets.token_hex(4)
    schemas = tuple(f"{SCHEMA_PREFIX}{token}_{name}" for name in names)
    try:
        conninfo = parse(url).conninfo
        connection = _connect(conninfo)
        ((may_create,),) = connection.execute("SELECT has_database_privilege(current_database(), 'CREATE')").fetchall()
        if not may_create:
            cure = "grant CREATE on the database, or name another one with --store"
            raise CannotDrill("this user cannot create a schema in the database", cure)
        _drop_leftovers(connection)
        for schema in schemas:
            connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [schema])
    except (psycopg.Error, DatabaseRefused) as error:
        raise CannotDrill(f"PostgreSQL cannot be used: {error}".strip(), "check --store or [store] url") from error
    return Reserved(_with_password(conninfo, connection.info.password), schemas, connection)


def with_parameters(url: str, **parameters: str) -> str:
    """The address with these parameters, replacing its own."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in parameters]
    changed = urlunsplit(parts._replace(query=urlencode([*kept, *parameters.items()])))
    if parts.netloc == "" and not changed.startswith(f"{parts.scheme}://"):  # urlunsplit drops an empty host
        changed = changed.replace(f"{parts.scheme}:", f"{parts.scheme}://", 1)
    return changed


def _with_password(conninfo: str, password: str) -> str:
    """A password file names the server's port, and the proxy has another: so the password goes into the address."""
    return with_parameters(conninfo, password=password) if password else conninfo


def _connect(conninfo: str) -> psycopg.Connection[Any]:
    import psycopg

    return psycopg.connect(conninfo, autocommit=True, connect_timeout=10)


def _drop_leftovers(connection: psycopg.Connection[Any]) -> None:
    named = "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s) AND pg_has_role(nspowner, 'USAGE')"
    for (schema,) in connection.execute(named, [SCHEMA_PREFIX]).fetchall():
        held = connection.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [schema]).fetchone()
        if held == (True,):
            _drop(connection, [schema])
            connection.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [schema])


def _drop(connection: psycopg.Connection[Any], schemas: Iterable[str]) -> None:
    from psycopg import sql

    connection.execute(DROP_WITHIN)
    connection.execute("SET client_min_messages = warning")
    for schema in schemas:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
