"""`wakeful verify`: beside a running daemon, on backups, and on what is no database."""

import sqlite3
from contextlib import closing
from pathlib import Path

from edges.cli.kit import Cli, daemon
from wakeful.cli.errors import FAILED


def test_a_database_in_use_and_its_backup_are_intact(tmp_path: Path) -> None:
    """By default it is the database of the home; a file needs no home."""
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    with daemon(home) as cli:
        cli.ask("add", "hello", "--every", "1h", "--command", "true")
        assert cli.ask("run", "hello", "--wait").code == 0
        said = cli.ask("verify")
        assert (said.code, said.err) == (0, "")
        assert "wakeful.db is intact: store" in said.out and "1 schedule, 1 row " in said.out
        made = cli.ask("backup", str(copy), "-o", "json")
        assert made.json["faults"] == []
        answer = cli.ask("verify", str(copy), "-o", "json").json
    assert answer["intact"] is True
    assert (answer["schedules"], answer["rows"]) == (1, 1)
    assert not any(path.name.startswith("copy.db-") for path in tmp_path.iterdir())
    assert Cli(tmp_path / "elsewhere").ask("verify", str(copy)).code == 0


def test_each_fault_is_a_line_with_its_check(tmp_path: Path) -> None:
    """A backup of such a database is made, and says so as well: it may be the only one."""
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    with daemon(home) as cli:
        cli.ask("add", "hello", "--every", "1h", "--command", "true")
    with closing(sqlite3.connect(home / "wakeful.db")) as connection, connection:
        connection.execute("DELETE FROM alarms WHERE kind = 'schedule'")
        connection.execute("INSERT INTO lanes VALUES ('x', 77)")
    said = cli.ask("verify")
    assert (said.code, said.out) == (FAILED, "")
    assert "references: schedule 1 is planned, and has no alarm" in said.err
    assert "references: run 77 holds a lane, and is not running" in said.err
    assert "is not intact (2 faults)" in said.err
    assert "wakeful restore FILE" in said.err
    made = cli.ask("backup", str(copy))
    assert made.code == 0 and "run 77 holds a lane" in made.err
    answer = cli.ask("verify", str(copy), "-o", "json")
    assert (answer.code, answer.json["intact"]) == (FAILED, False)
    assert {fault["check"] for fault in answer.json["faults"]} == {"references"}


def test_a_damaged_copy_gets_no_name(tmp_path: Path) -> None:
    """Pages of the database that are damaged are damaged in its copy."""
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    with daemon(home) as cli:
        for number in range(40):
            cli.ask("add", f"hello-{number}", "--every", "1h", "--command", "true")
    with closing(sqlite3.connect(home / "wakeful.db")) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'schedules_slug'").fetchone()
    with (home / "wakeful.db").open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    said = cli.ask("backup", str(copy))
    assert said.code == FAILED
    assert "the copy is damaged" in said.err and "wakeful verify" in said.err
    assert not copy.exists() and not list(tmp_path.glob(".copy*"))
    said = cli.ask("verify")
    assert said.code == FAILED and "integrity: " in said.err


def test_what_is_no_database_is_named(tmp_path: Path) -> None:
    """And a missing one is told from one that never was."""
    cli, text = Cli(tmp_path), tmp_path / "notes.txt"
    text.write_text("not a database at all, but text")
    said = cli.ask("verify", str(text))
    assert said.code == FAILED and "is not a database" in said.err
    said = cli.ask("verify")
    assert said.code == FAILED and "there is no database at" in said.err
    (tmp_path / "wakeful.db.id").write_text("{}")
    said = cli.ask("verify")
    assert said.code == FAILED and "is missing: it was there" in said.err
    (tmp_path / "wakeful.toml").write_text('[store]\nurl = "postgresql://db/wakeful"\n')
    said = cli.ask("verify")
    assert said.code == FAILED and "PostgreSQL" in said.err
