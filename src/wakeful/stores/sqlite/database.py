"""`ports.database` on a SQLite connection."""

import json
import re
from collections.abc import Sequence
from functools import cache
from sqlite3 import Connection
from typing import Any, Final, NamedTuple

from wakeful.ports.database import Sql, Table, Values
from wakeful.stores.sqlite.rows import insert_into, plain, update_of, upsert_into

_LOCK: Final = re.compile(r" FOR (UPDATE|SHARE)( OF \w+)?( SKIP LOCKED)?\b")
_SET: Final = re.compile(r"\bIN :(\w+)")


class Translated(NamedTuple):
    """A statement for SQLite, and its parameters that are sets of keys."""

    text: str
    sets: tuple[str, ...]


@cache
def translated(sql: Sql) -> Translated:
    """The statement for SQLite: without locks, and with sets of keys as JSON."""
    text = sql if isinstance(sql, str) else sql.sqlite
    unlocked = _LOCK.sub("", text)
    sets = tuple(dict.fromkeys(_SET.findall(unlocked)))  # a statement may use one twice
    return Translated(_SET.sub(r"IN (SELECT value FROM json_each(:\1))", unlocked), sets)


@cache
def _insert(table: Table) -> str:
    return insert_into(table.name, table.row)


@cache
def _update(table: Table) -> str:
    return update_of(table.name, table.row, key=table.key, fixed=table.fixed)


@cache
def _upsert(table: Table) -> str:
    return upsert_into(table.name, table.row, key=table.key, fixed=table.fixed)


class SqliteDatabase:
    """See `ports.database.Database`."""

    __slots__ = ("connection",)

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def rows(self, sql: Sql, **values: Values) -> list[tuple[Any, ...]]:
        text, sets = translated(sql)
        return self.connection.execute(text, _bound(values, sets)).fetchall()

    def change(self, sql: Sql, **values: Values) -> int:
        text, sets = translated(sql)
        return self.connection.execute(text, _bound(values, sets)).rowcount

    def change_returning(self, sql: Sql, **values: Values) -> list[tuple[Any, ...]]:
        return self.rows(sql, **values)

    def insert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        self.connection.executemany(_insert(table), plain(rows))

    def update(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        self.connection.executemany(_update(table), plain(rows))

    def upsert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        self.connection.executemany(_upsert(table), plain(rows))

    def lock_name(self, name: str) -> None:
        """There is one writer."""

    def enter(self) -> None:
        """Nothing to prepare."""

    def may_renew(self) -> bool:
        return True


def _bound(values: dict[str, Any], sets: tuple[str, ...]) -> dict[str, Any]:
    for name in sets:
        values[name] = json.dumps(sorted(values[name]))
    return values
