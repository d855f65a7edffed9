"""Group commit, step by step: gather, apply, commit, return results.

Operations that wait at the same time share one transaction and one sync of the disk. Each runs in its own savepoint, so
one that raises is rolled back alone. If the group itself cannot be committed (disk full, I/O error, the file locked by
another process), none of it was stored, and every caller gets the error. No caller gets a result before the commit
(L7).

Nothing here waits or uses threads: the writer thread drives the steps in production, and the simulation drives the same
steps on its own loop, choosing the size of each group and the point at which the process dies.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from wakeful.ports.store import Tx
from wakeful.stores.sqlite.connection import LOG_LOOKED_AT, Opened, is_unavailable, unavailable

GROUP_MAX: Final = 200

# How many times the write lock is tried before the group fails. SQLite polls more and more slowly, for a tenth of a
# second in total; a new try makes it fast again, so that a busy neighbour cannot lock us out by chance.
BEGINS_MAX: Final = 100

Operation: TypeAlias = Callable[[Tx], Any]
Fate: TypeAlias = tuple[Any, BaseException | None]
"""The result of an operation: its value, or its error."""


class Call(NamedTuple):
    """An operation, and the future of its caller."""

    operation: Operation
    future: asyncio.Future[Any]


class Crashed(BaseException):
    """Raised by a simulation's hook: the process dies here. Uncommitted work is lost, and no caller gets a result."""


class GroupCommit:
    """Runs several operations in one transaction; a broken connection is replaced before the next group."""

    __slots__ = ("_commits", "_fates", "_open", "_opened")

    def __init__(self, opened: Opened, reopen: Callable[[], Opened]) -> None:
        self._opened: Opened | None = opened
        self._open = reopen
        self._fates: list[Fate] = []
        self._commits = 0

    def apply(self, calls: Sequence[Call]) -> None:
        """Begin, and run each operation; one that raises is rolled back alone."""
        self._fates = []
        try:
            if self._opened is None:
                self._opened = self._open()
            elif not self._opened.is_in_place():
                self.close()
                raise sqlite3.OperationalError("the database file was removed or replaced; put it back")
            self._begin(self._opened.connection)
            if len(calls) == 1:
                self._apply_one(self._opened, calls[0])
            else:
                self._apply_each(self._opened, calls)
        except sqlite3.Error as error:
            self._fail(error, len(calls))

    def commit(self) -> list[Fate]:
        """Commit the group, or fail all of it; returns the results for the callers, in their order."""
        if self._opened is not None and self._opened.connection.in_transaction:
            try:
                self._opened.connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._fail(error, len(self._fates))
            else:
                self._commits += 1
                if self._commits % LOG_LOOKED_AT == 0:
                    self._opened.empty_log()
        fates, self._fates = self._fates, []
        return fates

    def close(self) -> None:
        """Close the connection; uncommitted work is rolled back."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _begin(self, connection: sqlite3.Connection) -> None:
        for begins_left in reversed(range(BEGINS_MAX)):
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or begins_left == 0:
                    raise

    def _apply_one(self, opened: Opened, call: Call) -> None:
        fate = _run(opened, call.operation)
        self._fates.append(fate)
        if fate[1] is not None:
            opened.connection.execute("ROLLBACK")

    def _apply_each(self, opened: Opened, calls: Sequence[Call]) -> None:
        execute = opened.connection.execute
        for operation, _ in calls:
            execute("SAVEPOINT operation")
            fate = _run(opened, operation)
            if fate[1] is not None:
                execute("ROLLBACK TO operation")
            execute("RELEASE operation")
            self._fates.append(fate)

    def _fail(self, error: sqlite3.Error, n: int) -> None:
        """Nothing of the group is stored, and the next one starts on a working connection."""
        self._fates = [(None, unavailable(error)) for _ in range(n)]
        try:
            if self._opened is not None and self._opened.connection.in_transaction:
                self._opened.connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()


def _run(opened: Opened, operation: Operation) -> Fate:
    opened.tx.changes.clear()
    try:
        fate: Fate = (operation(opened.tx), None)
    except Crashed:
        raise
    except StopIteration as error:
        fate = (None, RuntimeError(f"the operation raised StopIteration: {error}"))  # a future cannot carry it
    except BaseException as error:
        if is_unavailable(error):
            raise
        fate = (None, error)
    if not opened.connection.in_transaction:
        # On some errors SQLite ends the whole transaction by itself; an operation that caught one must not hide that.
        raise sqlite3.OperationalError("the transaction was ended during the operation")
    return fate


def answer(calls: Sequence[Call], fates: Sequence[Fate]) -> None:
    """Set the result for each caller, on its loop, unless it was cancelled in the meantime."""
    for (_, future), (value, error) in zip(calls, fates, strict=True):
        if future.done():
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
