"""The identity of a store, kept in the database and in a file beside it (`wakeful.db.id`).

The file says which store was here, and how far it had got. So a database that is missing, belongs to another store, or
lost what was committed is not mistaken for this one. Databases of 0.2 have no such file: they get one when they are
opened. What the file cannot tell: whether the whole folder was copied, and both copies run.
"""

import os
import re
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, NamedTuple

from wakeful.ports.store import STORE_ID, STORE_MARK
from wakeful.stores.sqlite.migrate import DatabaseRefused

# See `engine.store_rollback`.
COPIED_AT: Final = "copied_at"
FOUND_OLDER: Final = "found_older"

_WRITTEN: Final = re.compile(rb'\{"store": "([0-9a-f]{1,64})", "mark": "([0-9]{12})"\}\n')

# Values by name.
GET = "SELECT value FROM meta WHERE name = ?"

# Insert a value, unless there is one.
ADD = "INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)"

# Treat the database like one that was restored from a copy (`features.schedules.restored_store`): it had got this far.
# A new one, whose log was lost, had got nowhere.
MARK_AS_COPY = """
INSERT OR REPLACE INTO meta (name, value)
VALUES (?, coalesce((SELECT value FROM meta WHERE name = 'clock_high'), '0'))
"""


class Identity(NamedTuple):
    """Which store it is, and a number that grows while it is used."""

    store_id: str
    mark: int

    @property
    def text(self) -> bytes:
        """The content of the file, always equally long, so that it is overwritten in one piece."""
        return f'{{"store": "{self.store_id}", "mark": "{self.mark:012}"}}\n'.encode()


class IdentityFile:
    """The file beside a database."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".id")

    def read(self) -> Identity | None:
        """What it says; None if there is none, or it cannot be read, as after a power failure."""
        with suppress(OSError):
            match = _WRITTEN.fullmatch(self.path.read_bytes()[:1_000])
            return None if match is None else Identity(match[1].decode(), int(match[2]))
        return None

    def write(self, identity: Identity) -> None:
        """Write it. A crash must not leave an empty file, so a new one is complete before it gets its name."""
        known = self.read()
        if known is not None and len(known.text) == len(identity.text):
            file = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.pwrite(file, identity.text, 0)
            finally:
                os.close(file)
            return
        unborn = self.path.with_name(f"{self.path.name}.new-{os.getpid()}-{os.urandom(4).hex()}")
        file = os.open(unborn, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, identity.text)
            os.fsync(file)
            unborn.replace(self.path)
        finally:
            os.close(file)
            unborn.unlink(missing_ok=True)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def refuse_missing(database: Path) -> None:
    """Refuse to create a database where one was: it would start empty, and look healthy."""
    left = [
        path.name
        for suffix in (".id", ".clock", "-wal")
        if (path := database.with_name(database.name + suffix)).exists()
    ]
    if left:
        beside = " and ".join(left)
        raise DatabaseRefused(
            f"{database} is missing: it was there, or {beside} would not be. Put it back, or restore a backup: "
            f"wakeful restore FILE; or start a new, empty store: wakeful adopt --new (or remove {beside})"
        )


def refuse_other(database: Path, found: str, expected: str) -> None:
    """Refuse the database of another store."""
    if found != expected:
        raise DatabaseRefused(
            f"{database} is the database of another store ({found}; {expected} was here). Put the right one back, or "
            "restore a backup: wakeful restore FILE; or use this one from now on, as a store of its own: wakeful "
            "adopt; or start a new, empty store: wakeful adopt --new"
        )


def check_main_file(database: Path, expected: str | None) -> None:
    """Refuse another store's database before SQLite applies a log that does not belong to it."""
    found = in_main_file(database)
    if found is not None and expected is not None:
        refuse_other(database, found.store_id, expected)


def in_main_file(database: Path) -> Identity | None:
    """The identity in the database file as it is on disk, without its log; None if it cannot be read there."""
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            return identity_in(connection)
    except (sqlite3.Error, UnicodeDecodeError):  # a checkpoint is writing it, or it is damaged: that is found elsewhere
        return None


def identity_in(connection: sqlite3.Connection) -> Identity | None:
    """The identity that the database carries."""
    values = [connection.execute(GET, (name,)).fetchone() for name in (STORE_ID, STORE_MARK)]
    store_id, mark = (None if value is None else str(value[0]) for value in values)
    return None if store_id is None else Identity(store_id, int(mark or 0))


def settle_identity(connection: sqlite3.Connection, database: Path) -> str:
    """Give a new database its identity, and compare a known one with the file; returns the id of the store. A database
    that is older than the file says is treated like a restored copy."""
    file = IdentityFile(database)
    expected, found = file.read(), identity_in(connection)
    if found is None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(ADD, (STORE_ID, secrets.token_hex(6)))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()  # `file_guard` looks for it in the file
        found = identity_in(connection)
        assert found is not None  # noqa: S101 - it was just written
    if expected is None:
        file.write(found)
        return found.store_id
    refuse_other(database, found.store_id, expected.store_id)
    if found.mark < expected.mark:  # it is written to the file after its commit, so the file is never ahead
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(MARK_AS_COPY, (COPIED_AT,))
        connection.execute(MARK_AS_COPY, (FOUND_OLDER,))
        connection.execute("COMMIT")
        file.write(found)
    return found.store_id
