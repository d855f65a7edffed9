"""What 0.2 charged for runs of unknown cost is given back when the schema is upgraded, on both stores."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
import pytest
from psycopg import RawCursor

from postgres.server import Server, schema_of, server, url
from wakeful.stores.postgres import migrate as of_postgres
from wakeful.stores.sqlite import migrate as of_sqlite

__all__ = ["server", "url"]

Step: TypeAlias = Callable[[int], None]
Ask: TypeAlias = Callable[[str], list[tuple[Any, ...]]]
STEP = 12

# A day of 5 dollars: one known run of `coder`, one whose report was lost, and a run of `talker`, which has no price.
WRITTEN = """
INSERT INTO charges (run_id, attempt, owner_id, agent, at, settled_at, cost, priced, held_cost, held_tokens) VALUES
  (1, 1, 7, 'coder', 100, 110, 10, 'reported', 20, 0),
  (2, 1, 7, 'coder', 120, 130, NULL, 'unknown', 20, 0),
  (3, 1, 8, 'talker', 140, 150, NULL, 'unknown', 4970, 0);
INSERT INTO budgets (scope, unit, period, starts_at, ends_at, zone, spent, reserved) VALUES
  ('all', 'usd', 'day', 0, 1000, 'UTC', 5000, 3),
  ('agent:talker', 'usd', 'month', 0, 9000, 'UTC', 4970, 0),
  ('schedule:7', 'usd', 'day', 0, 1000, 'UTC', 30, 0),
  ('schedule:7', 'tokens', 'day', 0, 1000, 'UTC', 40, 0);
INSERT INTO spending VALUES (7, 0, 1000, 30, 0, 9000, 30, 2, NULL), (8, 0, 1000, 4970, 0, 9000, 4970, 3, NULL);
INSERT INTO budget_limits VALUES ('all', 'usd', 'day', 5000, 0)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Step, Ask]]:
    """Takes steps of the schema, and asks the database."""
    if request.param == "sqlite":
        path = tmp_path / "wakeful.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            steps = of_sqlite.migrations()
            yield (
                lambda last: of_sqlite.migrate(file, path, [step for step in steps if step.number <= last]),
                lambda sql: [row for part in sql.split(";\n") for row in file.execute(part).fetchall()],
            )
        return
    running: Server = request.getfixturevalue("server")
    schema = schema_of(request.getfixturevalue("url"))
    with psycopg.connect(running.url, autocommit=True, cursor_factory=RawCursor) as connection:
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'.encode())
        connection.execute(f'SET search_path TO "{schema}"'.encode())

        def ask(sql: str) -> list[tuple[Any, ...]]:
            cursor = connection.execute(sql.encode(), prepare=False)
            return cursor.fetchall() if cursor.description else []

        yield (
            lambda last: of_postgres.migrate(
                connection, schema, [step for step in of_postgres.migrations() if step.number <= last]
            ),
            ask,
        )


def test_a_budget_is_given_back_what_an_unpriced_agent_used_up(store: tuple[Step, Ask]) -> None:
    """`talker` never reported a cost, so 0.2 charged it the rest of the day. `coder` reports costs: the estimate for
    the report that was lost stays. Lists show what is known; the limit of 0.2 is allowed."""
    take, ask = store
    take(STEP - 1)
    ask(WRITTEN)
    take(STEP)
    assert ask("SELECT run_id, cost, held_cost, basis FROM charges ORDER BY run_id") == [
        (1, 10, 20, "estimate"), (2, None, 20, "estimate"), (3, None, 0, "estimate")
    ]  # fmt: skip
    assert ask("SELECT scope, unit, spent, reserved FROM budgets ORDER BY budget_id") == [
        ("all", "usd", 30, 3), ("agent:talker", "usd", 0, 0), ("schedule:7", "usd", 30, 0),
        ("schedule:7", "tokens", 40, 0),
    ]  # fmt: skip
    assert ask("SELECT owner_id, day_cost, month_cost FROM spending ORDER BY owner_id") == [(7, 10, 10), (8, 0, 0)]
    assert ask("SELECT amount, unpriced FROM budget_limits") == [(5000, "")]
