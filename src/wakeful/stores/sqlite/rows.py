"""How rows travel: named tuples in column order are bound and read whole, sets of keys as one JSON text.

A set of keys is one parameter read by `json_each`: for two hundred keys as fast as a list of placeholders, and one
statement text for every size, so that it stays prepared.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


def insert_into(table: str, row: type[NamedTuple]) -> str:
    """Write one row, its columns in the tuple's order."""
    return f"INSERT INTO {table} VALUES ({', '.join('?' for _ in _fields(row))})"


def update_of(table: str, row: type[NamedTuple], *, key: tuple[str, ...], fixed: tuple[str, ...] = ()) -> str:
    """Write one row back by its key. `fixed` columns never change, and naming them would touch their indexes."""
    places = {name: f"?{place}" for place, name in enumerate(_fields(row), start=1)}
    changed = ", ".join(f"{name} = {place}" for name, place in places.items() if name not in key + fixed)
    return f"UPDATE {table} SET {changed} WHERE {' AND '.join(f'{name} = {places[name]}' for name in key)}"


def upsert_into(table: str, row: type[NamedTuple], *, key: tuple[str, ...]) -> str:
    """Write one row, new or known by its key."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in _fields(row) if name not in key)
    return f"{insert_into(table, row)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"


def update_some(table: str, *, key: str, columns: tuple[str, ...], also: str = "") -> str:
    """Write some columns of one row back by its key; parameters are the key, then the columns."""
    changed = ", ".join(f"{name} = ?{place}" for place, name in enumerate(columns, start=2))
    return f"UPDATE {table} SET {changed}{also} WHERE {key} = ?1"


def columns_of(row: type[NamedTuple], table: str) -> str:
    """The columns of a row type, qualified, in order."""
    return ", ".join(f"{table}.{name}" for name in _fields(row))


def plain(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows as bare tuples: sqlite3 reads those directly, and named ones item by item at twice the cost."""
    return map(tuple, rows)


def ids(keys: Iterable[int]) -> str:
    """Integer keys as one parameter, ascending: rows are taken in key order."""
    return str(sorted(keys))


def texts(keys: Iterable[str]) -> str:
    """Text keys as one parameter, ascending."""
    return json.dumps(sorted(keys))


def _fields(row: type[NamedTuple]) -> tuple[str, ...]:
    fields: Any = row._fields
    return tuple(fields)
