"""Statements on one connection, prepared when they are first used.

They are sent by libpq's own functions. psycopg's cursor takes about a tenth of a millisecond of processor time for a
small query, twice as much as this, and an operation has several.
"""

from typing import Any, Final

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

STATEMENTS_KEPT: Final = 500
_DONE: Final = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)


class Statements:
    """Used by the thread of its connection only. Parameters are strings: the server infers their types, and the size
    of a number must not lead to another prepared statement."""

    __slots__ = ("_connection", "_count", "_is_pooled", "_loader", "_names")

    def __init__(self, connection: "psycopg.Connection[Any]", *, is_pooled: bool) -> None:
        self._connection = connection
        self._is_pooled = is_pooled  # then nothing is prepared: the next transaction may be on another session
        self._loader = Transformer(connection)
        self._names: dict[str, bytes] = {}
        self._count = 0

    def rows(self, query: str, params: list[str | None]) -> list[tuple[Any, ...]]:
        """Run a statement, and fetch all rows."""
        result = self._run(query, params)
        self._loader.set_pgresult(result)
        return self._loader.load_rows(0, result.ntuples, tuple)

    def change(self, query: str, params: list[str | None]) -> int:
        """Run a statement; returns the number of affected rows."""
        return self._run(query, params).command_tuples or 0

    def _run(self, query: str, params: list[str | None]) -> PGresult:
        values = [None if value is None else value.encode() for value in params]
        pgconn = self._connection.pgconn
        if self._is_pooled:
            return _checked(pgconn.exec_params(query.encode(), values))
        name = self._names.get(query) or self._prepare(query)
        return _checked(pgconn.exec_prepared(name, values))  # type: ignore[arg-type]  # None is allowed, as in exec_params

    def _prepare(self, query: str) -> bytes:
        pgconn = self._connection.pgconn
        if len(self._names) >= STATEMENTS_KEPT:
            oldest = next(iter(self._names))
            _checked(pgconn.exec_(b"DEALLOCATE " + self._names.pop(oldest)))
        self._count += 1
        name = f"wakeful_{self._count}".encode()
        _checked(pgconn.prepare(name, query.encode()))
        self._names[query] = name
        return name


def _checked(result: PGresult) -> PGresult:
    if result.status not in _DONE:
        raise error_from_result(result)
    return result
