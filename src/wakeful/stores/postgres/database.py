"""`ports.database` on a PostgreSQL connection."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from wakeful.ports.database import Sql, Table, Values, texts_of
from wakeful.stores.postgres.connection import Param, Session
from wakeful.stores.postgres.rows import arrays, insert_into, int_array, text_array, update_of, upsert_into

# Lock a name until the transaction ends. In a separate statement, because a statement sees the state at its start and
# not when its lock was granted.
LOCK_NAME = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.' || $1, 0))"

_LOCK: Final = re.compile(r" FOR (UPDATE|SHARE)( OF \w+)?( SKIP LOCKED)?\b")
_SQLITE_INDEX: Final = re.compile(r" INDEXED BY \w+")
_SET: Final = re.compile(r"\bIN :(\w+)")
_PARAMETER: Final = re.compile(r"(?<![:\w'\"]):([a-z]\w*)")


class Translated(NamedTuple):
    """A statement for PostgreSQL, its parameters in order, and those that are sets of keys."""

    text: str
    names: tuple[str, ...]
    sets: frozenset[str]


@cache
def translated(sql: Sql, *, is_reading: bool = False) -> Translated:
    """The statement for PostgreSQL: with `$n`, with sets of keys as arrays; without locks if it only reads."""
    text = sql if isinstance(sql, str) else sql.postgres
    text = _SQLITE_INDEX.sub("", _LOCK.sub("", text) if is_reading else text).replace("instr(", "strpos(")
    sets = frozenset(_SET.findall(text))
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    places = {name: f"${place}" for place, name in enumerate(names, start=1)}
    text = _SET.sub(r"= ANY(:\1)", text)
    return Translated(_PARAMETER.sub(lambda found: places[found[1]], text), names, sets)


@cache
def _texts(table: Table) -> frozenset[str]:
    return texts_of(table.row)


@cache
def _insert(table: Table) -> str:
    return insert_into(table.name, table.row, _texts(table))


@cache
def _update(table: Table) -> str:
    (key,) = table.key
    return update_of(table.name, table.row, _texts(table), key=key, fixed=table.fixed)


@cache
def _upsert(table: Table) -> str:
    return upsert_into(table.name, table.row, _texts(table), key=table.key, fixed=table.fixed)


class PostgresDatabase:
    """See `ports.database.Database`."""

    __slots__ = ("session",)

    def __init__(self, session: Session) -> None:
        self.session = session

    def rows(self, sql: Sql, **values: Values) -> list[tuple[Any, ...]]:
        text, params = self._bound(sql, values)
        return self.session.rows(text, *params)

    def change(self, sql: Sql, **values: Values) -> int:
        text, params = self._bound(sql, values)
        return self.session.change(text, *params)

    def change_returning(self, sql: Sql, **values: Values) -> list[tuple[Any, ...]]:
        text, params = self._bound(sql, values)
        return self.session.change_returning(text, *params)

    def insert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self.session.change(_insert(table), *arrays(rows, table.row, _texts(table)))

    def update(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            params = arrays(rows, table.row, _texts(table), fixed=table.fixed)
            self.session.save(_update(table), len(rows), *params)

    def upsert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self.session.change(_upsert(table), *arrays(rows, table.row, _texts(table)))

    def lock_name(self, name: str) -> None:
        if not self.session.is_reading:
            self.session.rows(LOCK_NAME, name)

    def enter(self) -> None:
        """Set our clock by the server's. The new incarnation owns nothing yet."""
        self.session.on_time(self.session)
        self.session.uncertain.is_any = False

    def may_renew(self) -> bool:
        """Sets our clock by the server's."""
        self.session.on_time(self.session)
        return not self.session.uncertain.is_any

    def _bound(self, sql: Sql, values: dict[str, Any]) -> tuple[str, list[Param]]:
        text, names, sets = translated(sql, is_reading=self.session.is_reading)
        return text, [_array(values[name]) if name in sets else values[name] for name in names]


def _array(keys: Iterable[Any]) -> str:
    """Keys as one parameter, ascending: rows are locked in key order."""
    ordered = sorted(keys)
    return text_array(ordered) if ordered and isinstance(ordered[0], str) else int_array(ordered)
