"""Passing rows: a batch is sent as one array per column, in PostgreSQL's text format.

One statement processes the whole batch (`unnest` turns the arrays back into rows), so the cost depends on the rows and
not on round trips. The arrays are written here, as text: the driver checks the type of every single value, which costs
ten times as much. Statements have the same text for every size, so they stay prepared.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from wakeful.ports.database import fields_of

_NULL: Final = "NULL"


def unnest_of(names: Sequence[str], texts: frozenset[str], *, first: int = 1) -> str:
    """The parameters from the first on, one array per column, as rows."""
    arrays = (f"${n}::{'text' if name in texts else 'bigint'}[]" for n, name in enumerate(names, start=first))
    return f"unnest({', '.join(arrays)})"


def insert_into(table: str, row: type[NamedTuple], texts: frozenset[str]) -> str:
    """Insert rows, in the given order."""
    names = fields_of(row)
    return f"INSERT INTO {table} ({', '.join(names)}) SELECT * FROM {unnest_of(names, texts)}"


def upsert_into(
    table: str, row: type[NamedTuple], texts: frozenset[str], *, key: tuple[str, ...], fixed: tuple[str, ...] = ()
) -> str:
    """Insert or update rows by their key; no key twice in one batch. `fixed` columns of existing rows stay."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in fields_of(row) if name not in key + fixed)
    return f"{insert_into(table, row, texts)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"


def update_of(table: str, row: type[NamedTuple], texts: frozenset[str], *, key: str, fixed: Sequence[str] = ()) -> str:
    """Update rows by their key; `fixed` columns never change and are left out. The caller holds the locks."""
    return update_some(table, texts, key=key, columns=[n for n in fields_of(row) if n != key and n not in fixed])


def update_some(table: str, texts: frozenset[str], *, key: str, columns: Sequence[str], also: str = "") -> str:
    """Update some columns by key; parameters are the key array, then the column arrays. The caller holds the locks.

    Each row of the batch is looked up by its key, and then written at its location. Joining table and batch would be
    shorter, but leaves the join order to the planner: as long as it assumes the table to be nearly empty (as it does
    for a table that has just grown) it would scan the whole table and compare each row with the whole batch. The two
    conditions that are always true make it expect a single row, so that no estimate can make another plan look better.
    """
    names = (key, *columns)
    changed = ", ".join(f"{name} = new.{name}" for name in columns)
    kind = "text" if key in texts else "int8"
    return f"""
UPDATE {table} SET {changed}{also}
FROM (
  SELECT new.*, found.place FROM {unnest_of(names, texts)} AS new ({", ".join(names)})
  CROSS JOIN LATERAL (SELECT ctid AS place FROM {table} WHERE {table}.{key} = new.{key} OFFSET 0) AS found
  WHERE {kind}eq(new.{key}, new.{key}) AND {kind}{"_ge" if kind == "text" else "ge"}(new.{key}, new.{key})
  OFFSET 0
) AS new
WHERE {table}.ctid = new.place
"""


def arrays_of(rows: Sequence[tuple[Any, ...]], names: Sequence[str], texts: frozenset[str]) -> list[str]:
    """The named columns, each as one parameter; the rows contain exactly these."""
    named = zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True)
    return [text_array(values) if name in texts else int_array(values) for name, values in named]


def arrays(
    rows: Sequence[tuple[Any, ...]], row: type[NamedTuple], texts: frozenset[str], *, fixed: Sequence[str] = ()
) -> list[str]:
    """The columns of a batch, each as one parameter."""
    named = zip(fields_of(row), zip(*rows, strict=True), strict=True)
    return [text_array(values) if name in texts else int_array(values) for name, values in named if name not in fixed]


def int_array(values: Iterable[int | None]) -> str:
    """Integers as one parameter. The repr of a list is what PostgreSQL reads, except for its brackets and None."""
    printed = str(list(values))[1:-1]
    return "{" + (printed.replace("None", _NULL) if "N" in printed else printed) + "}"


def text_array(values: Sequence[str | None]) -> str:
    """Strings as one parameter. Most columns of a batch have only one distinct value."""
    first = values[0] if values else None
    if values.count(first) == len(values):
        quoted = [_quoted(first)] * len(values)
    else:
        known: dict[str | None, str] = {}
        quoted = [known.get(value) or known.setdefault(value, _quoted(value)) for value in values]
    return "{" + ",".join(quoted) + "}"


def ids(keys: Iterable[int]) -> str:
    """Integer keys as one parameter, ascending: rows are locked in key order."""
    return int_array(sorted(keys))


def texts(keys: Iterable[str]) -> str:
    """Text keys as one parameter, ascending."""
    return text_array(sorted(keys))


def storable(text: str) -> str:
    """The text as the database can store it. It supports neither NUL nor lone surrogates; the output of a program may
    contain both, and must not keep a whole batch out of the ledger, so they become the replacement character."""
    if "\x00" in text:
        text = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _quoted(value: str | None) -> str:
    if value is None:
        return _NULL
    return '"' + storable(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
