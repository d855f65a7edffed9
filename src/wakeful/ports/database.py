"""What a table needs from a database: statements with named parameters, and batches of whole rows.

All tables but those that every fire writes (`stores.sqlite`, `stores.postgres`) are written once for both databases.
Their SQL is what both understand, with named parameters, and in addition:

- `IN :names` is a set of keys: `json_each` in SQLite, an array in PostgreSQL.
- `INDEXED BY` is for SQLite, whose planner guesses; PostgreSQL is restricted to index scans (`postgres.connection`).
- `FOR UPDATE` and `FOR SHARE`, with or without `SKIP LOCKED`, are for writes in PostgreSQL. In SQLite there is one
  writer, so reading a row is locking it. A read transaction locks nothing.
- `instr` is called `strpos` in PostgreSQL.

`stores.sqlite.database` and `stores.postgres.database` translate and run it. Where the databases need
different SQL, it is a `PerDatabase`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

Value: TypeAlias = str | int | None
Values: TypeAlias = Value | Iterable[int] | Iterable[str]
"""A value, or a set of keys for `IN :names`."""

Key = TypeVar("Key")
Row = TypeVar("Row")


# Larger than every id.
NO_ID: Final = 2**63 - 1


class PerDatabase(NamedTuple):
    """A statement that the databases cannot share."""

    sqlite: str
    postgres: str


Sql: TypeAlias = str | PerDatabase


class Table(NamedTuple):
    """A table whose rows are named tuples."""

    name: str
    row: type[NamedTuple]
    key: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    """Columns that never change."""

    @property
    def columns(self) -> str:
        """All columns, qualified, in the order of the row."""
        return columns_of(self.row, self.name)


class Database(Protocol):
    """One transaction. SQL is translated once for each database."""

    def rows(self, sql: Sql, **values: Values) -> list[tuple[Any, ...]]:
        """Run a query. Also for writes that other nodes need not be told of."""
        ...

    def change(self, sql: Sql, **values: Values) -> int:
        """Write; returns the number of rows."""
        ...

    def change_returning(self, sql: Sql, **values: Values) -> list[tuple[Any, ...]]:
        """Write; returns the rows of its `RETURNING`."""
        ...

    def insert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows."""
        ...

    def update(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Update rows that exist and are locked, except their fixed columns."""
        ...

    def upsert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, or update those with the same key, except their fixed columns."""
        ...

    def lock_name(self, name: str) -> None:
        """Lock a name that may have no row yet until the transaction ends."""
        ...

    def enter(self) -> None:
        """A node is about to register."""
        ...

    def may_renew(self) -> bool:
        """A node is about to renew its lease; False if it is uncertain what this process owns."""
        ...


def fields_of(row: type[NamedTuple]) -> tuple[str, ...]:
    """The column names of a row type, in order."""
    fields: Any = row._fields
    return tuple(fields)


def columns_of(row: type[NamedTuple], table: str) -> str:
    """The columns of a row type, qualified, in order."""
    return ", ".join(f"{table}.{name}" for name in fields_of(row))


def texts_of(row: type[NamedTuple]) -> frozenset[str]:
    """The columns of a row type that hold text; the others hold integers."""
    return frozenset(name for name, kind in get_type_hints(row).items() if _is_text(kind))


def insert_one(table: str, names: Iterable[str]) -> str:
    """Insert one row by the names of its columns."""
    names = list(names)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"


def grouped(pairs: Iterable[tuple[Key, Row]]) -> dict[Key, list[Row]]:
    """Rows by key, in their order."""
    found: dict[Key, list[Row]] = {}
    for key, row in pairs:
        found.setdefault(key, []).append(row)
    return found


def _is_text(kind: object) -> bool:
    if get_origin(kind) is Literal:
        return isinstance(get_args(kind)[0], str)
    return kind is str or any(map(_is_text, get_args(kind)))
