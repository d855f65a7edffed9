"""Everything that can be wrong with a database file and with what lies beside it; nothing is written.

At a start, only so much is checked as a start may take (`files.check`). Here the whole file is read, with its indexes.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.stores.sqlite.clock_hold import ClockHold
from wakeful.stores.sqlite.connection import is_damage, unavailable
from wakeful.stores.sqlite.files import inspect
from wakeful.stores.sqlite.identity import Identity, IdentityFile, identity_in, refuse_missing
from wakeful.stores.sqlite.log_check import has_lost_commits
from wakeful.stores.sqlite.looking import connect_to_look
from wakeful.stores.sqlite.migrate import DatabaseRefused

Check: TypeAlias = Literal["file", "log", "identity", "integrity", "references", "ledger"]

LISTED_MAX: Final = 20
"""A damaged page can be the cause of thousands of errors."""


class Fault(NamedTuple):
    """Something that is wrong, and the check that found it."""

    check: Check
    problem: str


class FileVerdict(NamedTuple):
    """What was found in a file."""

    identity: Identity | None
    faults: list[Fault]

    @property
    def is_readable(self) -> bool:
        """Whether its rows can be checked too."""
        return not any(fault.check in ("file", "integrity") for fault in self.faults)


def verify_file(path: Path) -> FileVerdict:
    """Check the file, its log, the identity beside it, and all pages and indexes. Raises `StoreUnavailable`, and
    `FileNotFoundError` if there is no database and never was."""
    beside = IdentityFile(path).read()  # before the database: a daemon may be writing both, the database first
    faults: list[Fault] = []
    try:
        if not path.exists():
            refuse_missing(path)
            raise FileNotFoundError(path)
        inspect(path)
        if ClockHold(path).holder() is None and has_lost_commits(path):
            faults.append(Fault("log", f"{path.name}-wal is damaged, and commits that it held are lost"))
        with closing(connect_to_look(path)) as connection:
            faults += (Fault("integrity", error) for error in _errors_in(connection))
            found = None if faults else identity_in(connection)
    except DatabaseRefused as refused:
        return FileVerdict(None, [*faults, Fault("file", str(refused))])
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.Error) and not is_damage(error):
            raise unavailable(error) from error
        return FileVerdict(None, [*faults, Fault("integrity", f"it cannot be read ({error})")])
    return FileVerdict(found, [*faults, *_other_than(beside, found, path)])


def _errors_in(connection: sqlite3.Connection) -> Iterator[str]:
    """What SQLite finds in pages, rows and indexes."""
    try:
        for (line,) in connection.execute(f"PRAGMA integrity_check({LISTED_MAX})"):
            if line != "ok":
                yield line.removeprefix("*** in database main ***\n")
    except UnicodeDecodeError:
        yield "its schema cannot be read"  # SQLite's own message quotes bytes that are not text


def _other_than(expected: Identity | None, found: Identity | None, path: Path) -> Iterator[Fault]:
    """Whether it is the store that was here, and as far as that had got."""
    if expected is None or found is None:
        return
    beside = IdentityFile(path).path.name
    if found.store_id != expected.store_id:
        yield Fault("identity", f"it is store {found.store_id}; by {beside}, store {expected.store_id} was here")
    elif found.mark < expected.mark:
        yield Fault("identity", f"it is older than {beside} says: commits that were acknowledged are missing")
