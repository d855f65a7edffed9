"""The schema: numbered SQL files, each applied in its own transaction.

The number of the last one is the database's `user_version`, written in the same transaction. Before a database with
data is changed, a copy is made next to it. A release runs on its own schema and on the next one, so that machines and
processes can be upgraded one by one.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from wakeful.ports.releases import WITHOUT_0_2
from wakeful.ports.store import DatabaseRefused

__all__ = ["DatabaseRefused", "Migration", "migrate", "migrations", "version_of"]

# The nodes of 0.2 that hold a lease.
OF_0_2 = """
SELECT count(*) FROM nodes WHERE release IS NULL AND voided_at IS NULL
  AND lease_until > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
"""


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    sql: str


def migrations() -> list[Migration]:
    """All steps, in order."""
    folder = resources.files("wakeful.stores.sqlite").joinpath("migrations")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [Migration(int(file.name[:4]), file.read_text(encoding="utf-8")) for file in files]


def version_of(connection: sqlite3.Connection) -> int:
    """The last step applied to this database."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def migrate(connection: sqlite3.Connection, path: Path, steps: list[Migration]) -> None:
    """Apply the missing steps; refuse a database that is too new."""
    newest = steps[-1].number
    version = version_of(connection)
    if version > newest + 1:
        raise DatabaseRefused(
            f"{path} has schema {version}, and this release knows {newest} and can run on {newest + 1}; "
            "install the release that wrote it, or a newer one"
        )
    copy_to: Path | None = path.with_name(f"{path.name}.before-{version + 1}")
    if version == 0:
        copy_to = None  # a new database
    for step in steps:
        if step.number > version:
            if _must_wait(connection, step):
                break
            _take(connection, step, path, copy_to)
            copy_to = None


def _take(connection: sqlite3.Connection, step: Migration, path: Path, copy_to: Path | None) -> None:
    """Apply one step, unless another process has done so in the meantime."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version_of(connection) < step.number and not _must_wait(connection, step):
            if copy_to is not None:
                _copy(path, copy_to)  # under the lock: the copy is exactly the state before the change
            for statement in _statements(step.sql):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {step.number}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _must_wait(connection: sqlite3.Connection, step: Migration) -> bool:
    """Whether a node of 0.2 is at work, which could not continue after this step."""
    return step.number == WITHOUT_0_2 and connection.execute(OF_0_2).fetchone() != (0,)


def _copy(path: Path, copy_to: Path) -> None:
    """Copy the database, then rename the copy: an incomplete copy never has the final name."""
    unfinished = copy_to.with_name(copy_to.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    # Through another connection: SQLite does not copy from one that is about to write.
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # a single file
    unfinished.replace(copy_to)


def _statements(sql: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would end our transaction."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
