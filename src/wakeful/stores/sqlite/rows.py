"""Passing rows: named tuples in column order are bound and read whole, sets of keys as one JSON text.

A set of keys is one parameter read by `json_each`: for two hundred keys as fast as a list of placeholders, and one
statement text for every size, so that it stays prepared.

The rows of one batch are mostly alike: they became due together, started together, ended together and well. Rows with
the same values in all columns to be written are written by one statement that gets the values once and the keys as a
set (`alike`), which costs a third of binding and stepping row by row.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from wakeful.stores.shared.database import fields_of

Row = TypeVar("Row")
Values: TypeAlias = tuple[Any, ...]

# From this many on, equal rows are worth a separate statement.
ALIKE_MIN: Final = 4
# If no two of this many are equal, the others are not checked.
PROBED: Final = 16


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


def upsert_into(table: str, row: type[NamedTuple], *, key: tuple[str, ...]) -> str:
    """Insert or update one row by its key."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in fields_of(row) if name not in key)
    return f"{insert_into(table, row)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"


def update(table: str, *, key: str, columns: Sequence[str], also: str = "") -> str:
    """Update columns of one row by its key; parameters are the columns, then the key."""
    return f"UPDATE {table} SET {_places(columns)}{also} WHERE {key} = ?"


def update_alike(table: str, *, key: str, columns: Sequence[str], also: str = "") -> str:
    """Write the same values to several rows; parameters are the columns, then the keys."""
    return f"UPDATE {table} SET {_places(columns)}{also} WHERE {key} IN (SELECT value FROM json_each(?))"


def alike(rows: Sequence[Row], values: Callable[[Row], Values]) -> tuple[list[tuple[Values, list[Row]]], Sequence[Row]]:
    """Groups of rows with equal values, each with these values; and the rows of groups that are too small."""
    if len(rows) < ALIKE_MIN or len(set(map(values, rows[:PROBED]))) == min(len(rows), PROBED):
        return [], rows
    groups: dict[Values, list[Row]] = {}
    for row in rows:
        groups.setdefault(values(row), []).append(row)
    few = [row for group in groups.values() if len(group) < ALIKE_MIN for row in group]
    return [(shared, group) for shared, group in groups.items() if len(group) >= ALIKE_MIN], few


def plain(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows as plain tuples: sqlite3 reads those directly, and named ones item by item at twice the cost."""
    return map(tuple, rows)


def ids(keys: Iterable[int]) -> str:
    """Integer keys as one parameter, ascending: rows are processed in key order."""
    return str(sorted(keys))


def pairs(keys: Iterable[tuple[int, int]]) -> str:
    """Pairs of integer keys as one parameter: `json_each` returns the first as key, the second as value."""
    return "{" + ",".join([f'"{first}":{second}' for first, second in keys]) + "}"


def texts(keys: Iterable[str]) -> str:
    """Text keys as one parameter, ascending."""
    return json.dumps(sorted(keys))


def _places(columns: Sequence[str]) -> str:
    return ", ".join(f"{name} = ?" for name in columns)
