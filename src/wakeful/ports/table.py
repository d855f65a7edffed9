"""A table, described beside the rules that use it, and generic access to its rows.

`tx[Logins]` is the access to a described table in one transaction. What only one table needs is a method of its own
access class, in the same file as its row; its statements are named there. `ports.database` says what SQL may contain.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from wakeful.core.time.instants import Instant
from wakeful.ports.database import Database, Table, Value, insert_one
from wakeful.ports.queries import due_of, old_of

Row = TypeVar("Row", bound=tuple[Any, ...])


class Rows(Generic[Row]):
    """The rows of a table in one transaction. A subclass names its table, its row and its key."""

    row: ClassVar[type[Any]]
    table: ClassVar[str]
    key: ClassVar[str]  # the column, or several separated by commas; empty if it has none
    columns: ClassVar[str]
    fixed: ClassVar[tuple[str, ...]] = ()  # columns that never change
    is_numbered: ClassVar[bool] = False  # the database assigns the key; the subclass has its own method to insert
    alarm: ClassVar[str] = ""  # the kind of alarm that refers to a row
    time: ClassVar[str] = ""  # by which old rows are pruned
    time_index: ClassVar[str] = ""  # an index of that column, for a table that may be large

    __slots__ = ("_db",)

    def __init_subclass__(cls) -> None:
        described = Table(cls.table, cls.row, key=tuple(filter(None, cls.key.split(", "))), fixed=cls.fixed)
        cls._described = described
        cls.columns = described.columns
        by_key = f"{cls.table} WHERE {cls.key}"
        if not cls.is_numbered:
            cls._add = insert_one(cls.table, cls.row._fields)
        if cls.key and not cls.is_numbered:
            cls._add_first = f"{cls._add} ON CONFLICT ({cls.key}) DO NOTHING"
        if len(described.key) == 1:
            cls._get = f"SELECT {cls.columns} FROM {by_key} = :key"
            cls._among = f"SELECT {cls.columns} FROM {by_key} IN :keys ORDER BY {cls.key}"
            cls._lock = f"{cls._among} FOR UPDATE"
            cls._remove = f"DELETE FROM {by_key} IN :keys"
        if cls.alarm:
            cls._due = due_of(cls.alarm, described)
        if cls.time_index:
            cls._old = old_of(cls.table, key=cls.key, dated=cls.time, index=cls.time_index)
        elif cls.time:
            cls._old = (
                f"SELECT {cls.key} FROM {cls.table} WHERE {cls.time} < :before AND {cls.time} >= :since "
                f"ORDER BY {cls.key} LIMIT :limit"
            )

    _described: ClassVar[Table]
    _add: ClassVar[str]
    _add_first: ClassVar[str]
    _get: ClassVar[str]
    _among: ClassVar[str]
    _lock: ClassVar[str]
    _remove: ClassVar[str]
    _due: ClassVar[str]
    _old: ClassVar[str]

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, row: Row) -> None:
        """Insert a row."""
        self._db.change(self._add, **row._asdict())  # type: ignore[attr-defined]

    def add_first(self, row: Row) -> bool:
        """Insert a row, unless there is one with its key; returns whether it did."""
        return self._db.change(self._add_first, **row._asdict()) > 0  # type: ignore[attr-defined]

    def add_many(self, rows: Sequence[Row]) -> None:
        """Insert rows."""
        self._db.insert(self._described, rows)

    def put(self, row: Row) -> None:
        """Insert a row, or update the one with its key, except the columns that never change."""
        self.put_many([row])

    def put_many(self, rows: Sequence[Row]) -> None:
        """Insert rows, or update those with the same keys, except the columns that never change."""
        self._db.upsert(self._described, rows)

    def save(self, row: Row) -> None:
        """Write a changed row, except the columns that never change. The caller holds its lock."""
        self.save_many([row])

    def save_many(self, rows: Sequence[Row]) -> None:
        """Write changed rows, except the columns that never change. The caller holds their locks."""
        self._db.update(self._described, rows)

    def get(self, key: Value) -> Row | None:
        """The row with this key."""
        return next(iter(self._made(self._db.rows(self._get, key=key))), None)

    def among(self, keys: Iterable[Any]) -> dict[Any, Row]:
        """The rows with these keys, by key."""
        return self._by_key(self._db.rows(self._among, keys=keys))

    def lock(self, keys: Iterable[Any]) -> dict[Any, Row]:
        """The rows with these keys, by key; locked until the transaction ends. A read transaction only reads."""
        return self._by_key(self._db.rows(self._lock, keys=keys))

    def due(self, *, now: Instant, limit: int) -> list[Row]:
        """Rows whose alarm is due, oldest first, locked; those another node has locked are left out."""
        return self._made(self._db.rows(self._due, now=now, limit=limit))

    def remove(self, key: Value) -> bool:
        """Delete the row with this key; False if there is none."""
        return self.remove_many([key]) > 0

    def remove_many(self, keys: Iterable[Any]) -> int:
        """Delete the rows with these keys; returns how many there were."""
        return self._db.change(self._remove, keys=keys)

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` rows from before `before`; returns how many. Times before `since` come from a clock that
        was not set, and say nothing about a row's age."""
        old = [key for (key,) in self._db.rows(self._old, before=before, since=since, limit=limit)]
        return self.remove_many(old) if old else 0

    def _made(self, rows: Iterable[tuple[Any, ...]]) -> list[Row]:
        return list(map(self.row._make, rows))

    def _by_key(self, rows: Iterable[tuple[Any, ...]]) -> dict[Any, Row]:
        return {getattr(row, self.key): row for row in self._made(rows)}
