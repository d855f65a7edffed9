"""The databases that earlier releases wrote (`upgrade.make`), put where this release finds them."""

import gzip
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from postgres.server import Server, schema_of
from upgrade.make import AGENT, FIXTURE, HOME, LETTERS, SCHEMA

Rows = Mapping[str, list[dict[str, Any]]]
"""All rows of all tables, by table."""

SETTINGS = """\
[schedules]
timezone = "UTC"

[agents.default]
adapter = "command"
argv = ["python3", "{home}/agent.py"]
reply_key = "reply"

[agents.silent]
adapter = "echo"

[agents.priced]
adapter = "command"
argv = ["python3", "{home}/agent.py"]
reply_key = "reply"
usage_key = "usage"
model = "m-1"

[prices.m-1]
input = 3.0
output = 15.0

[channels.hook]
type = "console"

[channels.gone]
type = "console"

[heartbeat]
enabled = true
every = "12h"

[limits]
ledger_days = 36_500  # the fixture grows old
"""


def prepare(home: Path) -> None:
    """The home folder beside the database, with an agent that has an answer to everything."""
    home.mkdir(mode=0o700)
    (home / "agent.py").write_text(AGENT.replace("storm", "no such word"))
    (home / "letters.py").write_text(LETTERS)
    (home / "wakeful.toml").write_text(SETTINGS.format(home=home))


def listing(release: str, kind: str, home: Path) -> dict[str, Any]:
    """What the release said of it over REST."""
    told: dict[str, Any] = json.loads(_text(release, f"{kind}.json", home))
    return told


def load_sqlite(release: str, path: Path, home: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_text(release, "sqlite.sql", home))


def load_postgres(release: str, server: Server, url: str, home: Path) -> None:
    text = _text(release, "postgres.sql", home).replace(SCHEMA, schema_of(url))
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(text.encode(), prepare=False)


def rows_of_sqlite(path: Path) -> Rows:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: [dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')] for name in names}


def rows_of_postgres(server: Server, url: str) -> Rows:
    schema = schema_of(url)
    with psycopg.connect(server.url, autocommit=True, row_factory=psycopg.rows.dict_row) as connection:
        asked = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
        names = [row["table_name"] for row in connection.execute(asked, [schema])]
        return {name: list(connection.execute(f'SELECT * FROM "{schema}"."{name}"'.encode())) for name in names}


def _text(release: str, name: str, home: Path) -> str:
    with gzip.open(FIXTURE / release / f"{name}.gz", "rt") as file:
        return file.read().replace(HOME, str(home))
