"""Reading a database that no daemon has open: without migrating it, without a lock, and without leaving files behind.

SQLite leaves `-wal` and `-shm` files behind when a database with a write-ahead log is opened read-only. If there is no
log to read, the file is opened as immutable instead, which needs neither. A daemon that starts in the meantime writes
to a new log first, so the file does not change during a read.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from wakeful.ports.releases import WITHOUT_0_2
from wakeful.ports.store import Tx
from wakeful.stores.sqlite.connection import is_damage, unavailable
from wakeful.stores.sqlite.files import inspect
from wakeful.stores.sqlite.migrate import DatabaseRefused, migrations, version_of
from wakeful.stores.sqlite.tx import tx_on


@contextmanager
def looking(path: Path) -> Iterator[Tx]:
    """One consistent snapshot of the database at this path. Raises `DatabaseRefused` or `StoreUnavailable`."""
    try:
        inspect(path)
        with closing(connect_to_look(path)) as connection:
            _check_version(version_of(connection), path)
            connection.execute("BEGIN")
            yield tx_on(connection)
    except sqlite3.Error as error:
        if is_damage(error):
            raise DatabaseRefused(f"{path} is damaged ({error}); restore a backup") from error
        raise unavailable(error) from error


def connect_to_look(path: Path) -> sqlite3.Connection:
    """A connection that can only read."""
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    mode = "mode=ro" if has_log else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)


def _check_version(version: int, path: Path) -> None:
    newest = migrations()[-1].number
    if version < WITHOUT_0_2 - 1:
        raise DatabaseRefused(
            f"{path} has schema {version}, and this release reads {newest}; start the daemon once, which upgrades it "
            "and keeps a copy"
        )
    if version > newest + 1:
        raise DatabaseRefused(
            f"{path} has schema {version}, and this release reads {newest} and {newest + 1}; install the release that "
            "wrote it, or a newer one"
        )
