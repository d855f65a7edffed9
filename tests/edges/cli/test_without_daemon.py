"""Questions are answered from the store while no daemon runs, and nothing is written."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import Cli
from postgres.server import Server, server, url
from wakeful import Wakeful, every, manual
from wakeful.ports.releases import WITHOUT_0_2
from wakeful.stores.sqlite.migrate import migrations

__all__ = ["server", "url"]

SETTINGS = """
[slots.main]
provider = "command"
quota_argv = ["true"]
"""


async def recorded(store: str) -> None:
    """A store with a schedule that ran, one that is removed, and one that waits."""
    async with Wakeful(store, tick=True) as app:
        await app.add("good", manual(), command=["echo", "well done"])
        await app.add("gone", manual(), command=["true"])
        await app.add("later", every("1h"), command=["true"])
        for slug in ("good", "gone"):
            run = await app.run_now(slug)
            await app.wait_for(run.run_id, within="60s")
        await app.remove("gone")


def files_of(home: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in home.rglob("*") if path.is_file()}


QUESTIONS = [
    (("ls",), "good"),
    (("show", "good"), "echo 'well done'"),
    (("runs",), "succeeded"),
    (("runs", "gone"), "succeeded"),
    (("runs", "show", "1"), "well done"),
    (("log",), "good  succeeded"),
    (("stats", "good"), "1 succeeded"),
    (("why", "good"), "on request"),
    (("why", "later"), "later"),
    (("why", "heartbeat"), "disabled in the settings"),
]


def ask_everything(cli: Cli, remark: str) -> None:
    for words, expected in QUESTIONS:
        said = cli.ask(*words)
        assert said.code == 0, (words, said)
        assert expected in said.out, (words, said.out)
        assert remark in said.err
    listed = cli.ask("ls", "-o", "json")
    assert [one["slug"] for one in listed.json["schedules"]] == ["good", "later"]
    said = cli.ask("show", "nothing")
    assert (said.code, "there is no schedule 'nothing'" in said.err) == (1, True)


@pytest.fixture
async def filled(alone: Cli) -> Cli:
    """A home whose daemon is down."""
    alone.home.mkdir(mode=0o700)
    await recorded(str(alone.home / "wakeful.db"))
    return alone


def test_questions_are_answered_from_the_file(filled: Cli) -> None:
    """Each with a remark on stderr, exit code 0, and not a byte changed or a file left behind."""
    before = files_of(filled.home)
    ask_everything(filled, "no daemon is running, so nothing will fire")
    assert files_of(filled.home) == before


def test_what_a_killed_daemon_left_in_its_log_is_read(filled: Cli) -> None:
    """Rows that are only in the write-ahead log count, and the log stays as it is."""
    with sqlite3.connect(filled.home / "wakeful.db", isolation_level=None) as connection:
        connection.execute("UPDATE schedules SET slug = 'renamed' WHERE slug = 'later'")
        log = filled.home / "wakeful.db-wal"
        before = (filled.home / "wakeful.db").read_bytes(), log.read_bytes()
        assert before[1]
        assert "renamed" in filled.ask("ls").out
        assert ((filled.home / "wakeful.db").read_bytes(), log.read_bytes()) == before
    connection.close()


async def test_questions_are_answered_from_postgresql(alone: Cli, url: str) -> None:
    """The same, through the same port."""
    alone.home.mkdir(mode=0o700)
    (alone.home / "wakeful.toml").write_text(f"[store]\nurl = {json.dumps(url)}\n")
    await recorded(url)
    ask_everything(alone, "no daemon is running for this home; read from its PostgreSQL store")
    assert url not in alone.ask("ls").err


async def test_a_postgresql_store_that_cannot_be_read(alone: Cli, server: Server, url: str) -> None:
    """One that is empty, and one of another schema: a sentence each, and nothing is made or migrated."""
    alone.home.mkdir(mode=0o700)
    (alone.home / "wakeful.toml").write_text(f"[store]\nurl = {json.dumps(url)}\n")
    said = alone.ask("ls")
    assert (said.code, said.out, "contains no Wakeful store yet" in said.err) == (3, "", True)
    await recorded(url)
    schema = url.rpartition("schema=")[2]
    with server.connect() as connection:
        connection.execute(f"UPDATE {schema}.schema_version SET number = number + 90".encode())
        said = alone.ask("ls")
        assert (said.code, "install the release that wrote it" in said.err) == (3, True)
        connection.execute(f"DELETE FROM {schema}.schema_version WHERE number > 95".encode())
        connection.execute(f"UPDATE {schema}.schema_version SET number = number - 90".encode())
        said = alone.ask("ls")
    assert (said.code, "start the daemon once, which upgrades it" in said.err) == (3, True)


def test_a_postgresql_server_that_is_not_there(alone: Cli) -> None:
    """Why, without the password."""
    alone.home.mkdir(mode=0o700)
    (alone.home / "wakeful.toml").write_text('[store]\nurl = "postgresql://me:hidden@127.0.0.1:9/none"\n')
    said = alone.ask("ls")
    assert (said.code, said.out) == (3, "")
    assert "the store cannot be read" in said.err and "hidden" not in said.err


def test_slots_and_workflows_are_explained_too(filled: Cli) -> None:
    """A slot that the settings define and no daemon has seen yet is not there."""
    (filled.home / "wakeful.toml").write_text(SETTINGS)
    said = filled.ask("why", "slot:main")
    assert (said.code, "there is no slot 'main'" in said.err) == (1, True)
    said = filled.ask("why", "workflow:inbox")
    assert (said.code, "there is no workflow 'inbox'" in said.err) == (1, True)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (lambda _: WITHOUT_0_2 - 2, "start the daemon once, which upgrades it"),
        (lambda newest: newest + 2, "install the release that wrote it"),
    ],
)
def test_a_store_of_another_schema_is_not_read(filled: Cli, version: Callable[[int], int], words: str) -> None:
    """A sentence with the cure, exit code 3, and nothing migrated."""
    number = version(migrations()[-1].number)
    with sqlite3.connect(filled.home / "wakeful.db") as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    connection.close()
    before = files_of(filled.home)
    said = filled.ask("ls")
    assert (said.code, said.out) == (3, "")
    assert f"has schema {number}" in said.err and words in said.err
    assert files_of(filled.home) == before


@pytest.mark.parametrize("content", [b"", b"not a database"])
def test_a_store_that_cannot_be_read(alone: Cli, content: bytes) -> None:
    """Why, and exit code 3."""
    alone.home.mkdir(mode=0o700)
    (alone.home / "wakeful.db").write_bytes(content)
    said = alone.ask("runs")
    assert (said.code, said.out) == (3, "")
    assert "the store cannot be read" in said.err


def test_a_home_without_a_store(alone: Cli) -> None:
    """There is nothing to read: it is said how to begin."""
    for words in (("ls",), ("runs", "show", "1"), ("why", "x")):
        said = alone.ask(*words)
        assert (said.code, said.out) == (3, "")
        assert "no daemon is running" in said.err and "start one" in said.err


def test_following_and_commands_need_a_daemon(filled: Cli) -> None:
    """Only questions are answered from the store."""
    commands: list[Any] = [("log", "-f"), ("run", "good"), ("pause", "good"), ("rm", "good"), ("next",)]
    for words in commands:
        said = filled.ask(*words)
        assert (said.code, said.out) == (3, ""), words


async def test_a_lateness_that_was_stored_too_short_is_shown_as_what_it_counts(alone: Cli) -> None:
    """Earlier versions accepted less than a minute, which never had an effect."""
    alone.home.mkdir(mode=0o700)
    async with Wakeful(str(alone.home / "wakeful.db"), tick=False) as app:
        await app.add("strict", every("1h"), command=["true"], max_lateness="1m")
    assert re.search(r"^ *maxLateness: 1m$", alone.ask("show", "strict").out, re.MULTILINE)
    with closing(sqlite3.connect(alone.home / "wakeful.db")) as store, store:
        changed = store.execute("UPDATE schedules SET definition = replace(definition, '\"1m\"', '\"10s\"')")
        assert changed.rowcount == 1
    assert re.search(r"^ *maxLateness: 10s, which counts as 1m$", alone.ask("show", "strict").out, re.MULTILINE)
