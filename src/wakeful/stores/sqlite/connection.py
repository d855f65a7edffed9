"""Connections: opening them, and interpreting their errors."""

import os
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.stores.sqlite.file_guard import FileGuard
from wakeful.stores.sqlite.tx import tx_on

Synchronous: TypeAlias = Literal["FULL", "OFF"]

BUSY_TIMEOUT_MS: Final = 5_000
WRITER_BUSY_TIMEOUT_MS: Final = 100  # short, because group commit retries by itself
STATEMENTS_CACHED: Final = 256
CACHE_KIB: Final = 16_384
# A checkpoint writes each changed page once, however many times it changed: 4,000 pages are 16 MB of log.
CHECKPOINT_PAGES: Final = 4_000
LOG_KEPT_BYTES: Final = 64 * 1024 * 1024
# A commit writes whole pages: a single fire costs 8 to 16 of them in its commits, 200 fires together 1 or 2 each. So a
# log that cannot be truncated, because a reader holds an old snapshot, grows by up to 64 KB per fire.
LOG_LARGE_BYTES: Final = 2 * LOG_KEPT_BYTES
# SQLite restarts the log when no reader uses it. Readers that overlap without a pause prevent that, so a large log is
# truncated explicitly; this is how often its size is checked, in commits.
LOG_LOOKED_AT: Final = 256
# A reader holds its snapshot as long as its query takes. One that takes longer is ended, so that the log can be
# truncated.
READ_WITHIN_S: Final = 20.0
READ_STEPS: Final = 1_000  # of the virtual machine, between two checks of the time

# Errors of the file or the disk, and not of the operation.
_OF_THE_PLACE: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)

_CURES: Final = {
    sqlite3.SQLITE_BUSY: "another process keeps the database locked; end it or try again",
    sqlite3.SQLITE_INTERRUPT: f"a read took longer than {READ_WITHIN_S:g} s and was ended; request less at a time",
    sqlite3.SQLITE_FULL: "the disk is full; free some space, nothing was stored",
    sqlite3.SQLITE_IOERR: "the disk failed; check it, nothing was stored",
    sqlite3.SQLITE_READONLY: "the database is not writable; check the file's permissions",
    sqlite3.SQLITE_CANTOPEN: "the database cannot be opened; check that its folder exists and is writable",
    sqlite3.SQLITE_CORRUPT: "the database is damaged; restore a backup",
    sqlite3.SQLITE_NOTADB: "the database is damaged; restore a backup",
}


class Opened(NamedTuple):
    """A connection and its transaction object."""

    connection: sqlite3.Connection
    tx: Tx
    path: Path
    file_id: tuple[int, int]
    guard: FileGuard

    def is_in_place(self) -> bool:
        """Whether the file is still the one at its path; writes to a deleted file would be lost. Raises
        `sqlite3.OperationalError` if another database was written over it."""
        try:
            return self.guard.look() == self.file_id
        except OSError:
            return False

    def close(self) -> None:
        """Close the connection. The log does not belong to a database that was written over the file."""
        if self.guard.is_overwritten and sys.version_info >= (3, 12):
            self.connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
        self.connection.close()

    def empty_log(self) -> None:
        """Truncate a large log, waiting a moment for readers of it."""
        log = f"{self.path}-wal"
        with suppress(OSError, sqlite3.Error):  # it keeps growing, and the next check tries again
            if os.stat(log).st_size > LOG_KEPT_BYTES:  # noqa: PTH116 - as above
                self.connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()


def connect(path: Path) -> sqlite3.Connection:
    """A connection to an existing file; connecting never creates one."""
    adapt_none()
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        isolation_level=None,  # transactions are started and ended explicitly
        check_same_thread=False,  # opened on one thread, then used on one other
        cached_statements=STATEMENTS_CACHED,
        timeout=BUSY_TIMEOUT_MS / 1_000,
    )
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def adapt_none() -> None:
    """sqlite3 looks up in three places how to adapt each None it binds. With an adapter for None it looks in one, and a
    ledger row is written in half the time. The adapter is global to the module, and changes nothing for other users."""
    sqlite3.register_adapter(type(None), _as_it_is)


def set_up_writer(
    connection: sqlite3.Connection, path: Path, synchronous: Synchronous, guard: FileGuard | None = None
) -> Opened:
    """Configure it as the writing connection."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreUnavailable(f"the file system does not support a write-ahead log (only {mode}); use a local disk")
    connection.execute(f"PRAGMA busy_timeout = {WRITER_BUSY_TIMEOUT_MS}")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {LOG_KEPT_BYTES}")
    if sys.platform == "darwin":  # there, an ordinary fsync leaves the data in the drive's cache
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
    return _opened(connection, path, guard)


def open_reader(path: Path, guard: FileGuard | None = None) -> Opened:
    """A read-only connection."""
    connection = connect(path)
    connection.execute("PRAGMA query_only = ON")
    return _opened(connection, path, guard)


def _opened(connection: sqlite3.Connection, path: Path, guard: FileGuard | None) -> Opened:
    guard = guard or FileGuard(path)
    return Opened(connection, tx_on(connection), path, guard.look(), guard)


def is_unavailable(error: BaseException) -> bool:
    """Whether the error concerns the file or the disk, so that the transaction cannot be trusted."""
    return isinstance(error, sqlite3.Error) and _code(error) in _OF_THE_PLACE


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the error means that the file is damaged."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def unavailable(error: sqlite3.Error) -> StoreUnavailable:
    """The error as an exception of the port."""
    cure = _CURES.get(_code(error))
    failure = StoreUnavailable(f"{cure} ({error})" if cure else str(error))
    failure.__cause__ = error
    return failure


def _as_it_is(_: None) -> None:
    return None


def _code(error: sqlite3.Error) -> int:
    """The primary result code; errors of the Python module itself have none."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF
