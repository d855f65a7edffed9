"""Passing rows: named tuples in column order are bound and read whole, sets of keys as one JSON string.

A set of keys is one parameter read by `json_each`: for two hundred keys as fast as a list of placeholders, and one
statement text for every size, so that it stays prepared.

Rows that a burst writes share statements (`ManyRows`). A statement for each row opens its cursors again
every time. It also releases the interpreter lock, and then waits for it while the event loop is busy.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from sqlite3 import Connection
from typing import Any, Final, NamedTuple

from wakeful.ports.database import fields_of

ROWS_TOGETHER: Final = 50


class ManyRows:
    """A statement that writes rows: `ROWS_TOGETHER` at a time, and the rest one by one, because a text for each number
    of rows would not stay prepared. `together` has `{rows}` in place of the rows, each with the placeholders of `row`.
    """

    __slots__ = ("_single", "_together")

    def __init__(self, *, single: str, together: str, row: str) -> None:
        self._single = single
        self._together = together.format(rows=", ".join([row] * ROWS_TOGETHER))

    def write(self, connection: Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write these rows. They are plain tuples, in the order of the placeholders."""
        rows = list(rows)
        whole = len(rows) - len(rows) % ROWS_TOGETHER
        for start in range(0, whole, ROWS_TOGETHER):
            connection.execute(self._together, list(chain.from_iterable(rows[start : start + ROWS_TOGETHER])))
        if whole < len(rows):
            connection.executemany(self._single, rows[whole:])


def insert_into(table: str, row: type[NamedTuple]) -> str:
    """Insert one row. The columns are named: a later release may add some with a default."""
    names = fields_of(row)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' for _ in names)})"


def update_of(table: str, row: type[NamedTuple], *, key: tuple[str, ...], fixed: tuple[str, ...] = ()) -> str:
    """Update one row by its key; the parameters are the row. `fixed` columns never change, and naming them would touch
    their indexes."""
    given = ", ".join(f"? AS {name}" for name in fields_of(row))
    changed = ", ".join(f"{name} = new.{name}" for name in fields_of(row) if name not in key + fixed)
    found = " AND ".join(f"{table}.{name} = new.{name}" for name in key)
    return f"UPDATE {table} SET {changed} FROM (SELECT {given}) AS new WHERE {found}"


def upsert_into(table: str, row: type[NamedTuple], *, key: tuple[str, ...], fixed: tuple[str, ...] = ()) -> str:
    """Insert or update one row by its key. `fixed` columns of an existing row stay."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in fields_of(row) if name not in key + fixed)
    return f"{insert_into(table, row)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"


def update(table: str, *, key: str, columns: Sequence[str], also: str = "") -> str:
    """Update columns of one row by its key; parameters are the columns, then the key."""
    changed = ", ".join(f"{name} = ?" for name in columns)
    return f"UPDATE {table} SET {changed}{also} WHERE {key} = ?"


def plain(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows as plain tuples: sqlite3 reads those directly, and named ones item by item at twice the cost."""
    return map(tuple, rows)


def ids(keys: Iterable[int]) -> str:
    """Integer keys as one parameter, ascending: rows are processed in key order."""
    return str(sorted(keys))


def texts(keys: Iterable[str]) -> str:
    """Text keys as one parameter, ascending."""
    return json.dumps(sorted(keys))
