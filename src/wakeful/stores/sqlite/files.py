"""The database file: created completely or not at all, and checked before it is trusted.

A file that is empty, truncated, damaged or belongs to another application is refused and left unchanged. The store
never creates an empty file (a new database gets its name only when its schema is complete), so an empty one is always a
loss or a mistake.
"""

import errno
import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from wakeful.stores.sqlite.connection import is_damage
from wakeful.stores.sqlite.migrate import DatabaseRefused, Migration, migrate

APPLICATION_ID: Final = 0x57414B45
"""`WAKE`, at byte 68 of the file."""

RESTORE: Final = "Restore a backup: wakeful restore FILE; or start a new, empty store: wakeful adopt --new"
WAYS_ON: Final = (
    "Restore a backup: wakeful restore FILE; or go on with what can still be read: wakeful adopt; or start a new, "
    "empty store: wakeful adopt --new"
)
"""What to do about a damaged database."""

_MAGIC: Final = b"SQLite format 3\x00"
_HEADER_BYTES: Final = 100

# Up to this size the whole file is checked at every start (under 100 ms); above it, only the tables whose loss would be
# mistaken for an empty store. `SqliteStore.check` checks everything, at any size.
CHECKED_WHOLE_BYTES: Final = 8 * 1024 * 1024
_TABLES_CHECKED: Final = ("meta", "counters", "nodes", "lanes")


def place(path: str | os.PathLike[str]) -> Path:
    """The path of a database; in-memory databases are refused."""
    text = os.fspath(path)
    if text in ("", ":memory:") or text.startswith("file:"):
        raise DatabaseRefused(f"{text!r} is not a file path; the store needs a file on disk")
    return Path(text).absolute()


def create(path: Path, steps: list[Migration]) -> None:
    """Create a new database under a temporary name, then rename it, unless another process was first."""
    if not path.parent.is_dir():
        raise DatabaseRefused(f"the folder {path.parent} does not exist; create it first")
    unborn = path.with_name(f"{path.name}.new-{os.getpid()}-{os.urandom(4).hex()}")
    os.close(os.open(unborn, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        connection = sqlite3.connect(unborn, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = OFF")  # it is synced once, when it is complete
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            migrate(connection, unborn, steps)
            connection.execute("PRAGMA journal_mode = WAL")  # permanent: changing it later would need exclusive access
        finally:
            connection.close()
        _give_name(unborn, path)
    finally:
        unborn.unlink(missing_ok=True)


def inspect(path: Path) -> None:
    """Refuse a file that is not our database, by its first bytes, before SQLite touches it."""
    if not path.is_file():
        raise DatabaseRefused(f"{path} is not a file; give the path of the database file")
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header:
        raise DatabaseRefused(f"{path} is empty: it was truncated, or created by something else. {RESTORE}")
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise DatabaseRefused(f"{path} is not a database, or its start is damaged. {RESTORE}")
    if _is_cut_within_a_page(path, header):
        raise DatabaseRefused(f"{path} is damaged: its end is missing. {RESTORE}")
    if int.from_bytes(header[68:72]) != APPLICATION_ID:
        raise DatabaseRefused(f"{path} belongs to another application; use another file")


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a damaged database, as far as can be checked in the time a start may take."""
    is_small = path.stat().st_size <= CHECKED_WHOLE_BYTES
    faults = faults_in(connection) if is_small else faults_in(connection, _TABLES_CHECKED)
    if faults:
        raise DatabaseRefused(f"{path} is damaged ({faults[0]}). {RESTORE}")


def faults_in(connection: sqlite3.Connection, tables: Sequence[str] = ()) -> list[str]:
    """The errors SQLite finds in these tables, or in all; empty if there are none."""
    checks = [f"PRAGMA quick_check({table})" for table in tables] or ["PRAGMA quick_check"]
    try:
        found = [line for check in checks for (line,) in connection.execute(check)]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return [str(error)]  # too damaged to be checked
    except UnicodeDecodeError:
        return ["its schema cannot be read"]  # SQLite's own message quotes bytes that are not text
    return [line for line in found if line != "ok"]


def _is_cut_within_a_page(path: Path, header: bytes) -> bool:
    """Whether the last page is incomplete. SQLite pads it with zeros; with a log, the rest may still be in the log."""
    page_bytes = int.from_bytes(header[16:18])
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    log = path.with_name(path.name + "-wal")
    has_log = log.exists() and log.stat().st_size > 0
    return not has_log and (page_bytes == 0 or path.stat().st_size % page_bytes != 0)


def _give_name(unborn: Path, path: Path) -> None:
    _sync(unborn)
    try:
        with suppress(FileExistsError):
            path.hardlink_to(unborn)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        if not path.exists():  # a file system without links
            unborn.rename(path)
    _sync(path.parent)  # make the name as durable as the file


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
