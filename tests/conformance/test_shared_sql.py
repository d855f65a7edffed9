"""SQL for both databases: each statement is one that SQLite accepts; PostgreSQL's side is in tests/postgres."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import wakeful
from wakeful.ports.database import PerDatabase, Sql
from wakeful.ports.table import Rows
from wakeful.stores.postgres import database as postgres
from wakeful.stores.sqlite import database as sqlite
from wakeful.stores.sqlite.connection import connect
from wakeful.stores.sqlite.files import create
from wakeful.stores.sqlite.migrate import migrations

SOURCES = Path(wakeful.__file__).parent


def shared_statements() -> dict[str, Sql]:
    """Every statement that both databases run, by module and name."""
    found: dict[str, Sql] = {}
    for module in tables():
        for name, value in vars(module).items():
            for key, sql in value.items() if isinstance(value, dict) and name.isupper() else [("", value)]:
                if is_sql(sql) and name.isupper() and not name.startswith("_"):
                    found[f"{module.__name__}.{name} {key}".strip()] = sql
    for table in Rows.__subclasses__():
        made = {name: value for name, value in vars(table).items() if name != "__doc__" and is_sql(value)}
        found |= {f"{table.__name__}.{name}": sql for name, sql in made.items()}
    return found


def tables() -> list[ModuleType]:
    """The modules that describe a table, or run statements on any database."""
    shared = re.compile(r"^class \w+\(Rows\[|\bdb: Database\b", re.MULTILINE)
    files = [file for file in SOURCES.rglob("*.py") if shared.search(file.read_text())]
    names = [".".join(file.relative_to(SOURCES.parent).with_suffix("").parts) for file in files]
    return list(map(importlib.import_module, names))


def is_sql(value: object) -> bool:
    """Whether this is a statement."""
    return isinstance(value, PerDatabase) or (isinstance(value, str) and bool(re.match(r"\s*[A-Z]+ ", value)))


def test_sqlite_understands_every_shared_statement(tmp_path: Path) -> None:
    """With all of its parameters, and without what only PostgreSQL has."""
    create(tmp_path / "wakeful.db", migrations())
    connection = connect(tmp_path / "wakeful.db")
    statements = shared_statements()
    assert len(statements) > 100
    for name, sql in statements.items():
        text = sqlite.translated(sql).text
        assert "FOR UPDATE" not in text, name
        names = re.findall(r":(\w+)", text)
        connection.execute(f"EXPLAIN {text}", dict.fromkeys(names, "[1]")).fetchall()
    connection.close()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1 WHERE a = :a AND b = :b AND c = :a", "SELECT 1 WHERE a = $1 AND b = $2 AND c = $1"),
        ("SELECT 1 FROM t INDEXED BY i WHERE a IN :ids", "SELECT 1 FROM t WHERE a = ANY($1)"),
        ("SELECT ':a', x::text, CAST(:a AS text)", "SELECT ':a', x::text, CAST($1 AS text)"),
        ("SELECT 1 FROM t FOR UPDATE OF t SKIP LOCKED", "SELECT 1 FROM t FOR UPDATE OF t SKIP LOCKED"),
        (PerDatabase("SELECT rowid", "SELECT ctid"), "SELECT ctid"),
    ],
)
def test_a_statement_is_translated_for_postgres(sql: Sql, expected: str) -> None:
    """Parameters become numbers, sets become arrays, and casts and texts stay as they are."""
    assert postgres.translated(sql).text == expected


def test_a_reader_locks_nothing() -> None:
    """A read transaction must not take row locks; PostgreSQL refuses them there."""
    for lock in ("FOR UPDATE", "FOR SHARE", "FOR UPDATE SKIP LOCKED", "FOR UPDATE OF t SKIP LOCKED"):
        assert postgres.translated(f"SELECT 1 FROM t {lock}", is_reading=True).text == "SELECT 1 FROM t"
        assert sqlite.translated(f"SELECT 1 FROM t {lock}").text == "SELECT 1 FROM t"


def test_the_sets_of_a_statement_are_known() -> None:
    """They are bound as one parameter each, ascending."""
    assert sqlite.translated("SELECT 1 FROM t WHERE a IN :ids AND b IN (1, 2) AND c = :c").sets == ("ids",)
    assert postgres.translated("SELECT 1 FROM t WHERE a IN :ids AND c = :c").names == ("ids", "c")
