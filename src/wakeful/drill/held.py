"""Commits held back: something is done when a transaction is complete and its COMMIT is about to be executed.

This is the one moment that no operation sees: the store has run all of it, and nothing is durable. Only a drill needs
it, so the store has no hook for it; it is found at the connection, which is the last place that every commit passes.
"""

from __future__ import annotations

from collections.abc import Callable
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.ports.store import Tx


def before_commit(tx: Tx, act: Callable[[], None]) -> None:
    """Call `act`, on the thread of the connection, before this transaction is committed; not if it is rolled back."""
    database: Any = tx.db
    if hasattr(database, "session"):
        connection = database.session.connection
        connection.pgconn = _Watched(connection, act)
    else:
        connection = database.connection
        assert isinstance(connection, Connection)  # noqa: S101 - there are two stores
        connection.set_trace_callback(_Traced(act))


class _Traced:
    """Sees the statements of a SQLite connection before they are executed, and acts on one COMMIT."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act: Callable[[], None] | None = act

    def __call__(self, statement: str) -> None:
        if statement == "ROLLBACK":
            self._act = None
        elif statement == "COMMIT" and self._act is not None:
            act, self._act = self._act, None
            act()


class _Watched:
    """The connection of libpq until the transaction ends: psycopg itself needs the real one for its statements, but the
    store sends COMMIT and ROLLBACK directly."""

    def __init__(self, connection: Any, act: Callable[[], None]) -> None:
        self._connection = connection
        self._inner = connection.pgconn
        self._act = act

    def exec_(self, command: bytes) -> Any:
        self._connection.pgconn = self._inner
        if command.startswith(b"COMMIT"):
            self._act()
        return self._inner.exec_(command)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
