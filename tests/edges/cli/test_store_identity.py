"""A store has an identity: a database that is missing, damaged, older or another one is noticed, at the start and while
it is in use. Real daemons, real files."""

import json
import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import forking
from access import write_token
from edges.cli.kit import PROGRAM, WITHIN, Cli, daemon
from edges.http.test_access import over_socket
from wakeful.cli.service_files import Service, systemd_unit

REFUSED = 4
DAILY: dict[str, Any] = {"schedule": "0 9 * * *", "command": {"argv": ["true"]}}


@contextmanager
def killed(home: Path) -> Iterator[Cli]:
    """A daemon that is killed at the end, so that its log stays behind."""
    write_token(home)
    cli = Cli(home)
    child = forking.start(PROGRAM, "up", "--port", "0", "-o", "json", environment=cli.environment)
    try:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())["running"] is True
        yield cli
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=WITHIN)


def put(home: Path, slug: str, definition: Any = None) -> int:
    return over_socket(home / "wakeful.sock", "PUT", f"/api/schedule/{slug}", definition or DAILY)[0]


def slugs(cli: Cli) -> set[str]:
    return {one["slug"] for one in cli.ask("ls", "-o", "json").json["schedules"]}


def refused(cli: Cli) -> str:
    """What a start that is refused says. It has its own exit code, after which service managers do not restart it."""
    said = cli.run("up", "--port", "0")
    assert said.code == REFUSED, said
    return said.err


def store_id(home: Path) -> str:
    with closing(sqlite3.connect(home / "wakeful.db")) as connection:
        (found,) = connection.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()
    return str(found)


def test_the_unit_does_not_restart_after_a_refusal(tmp_path: Path) -> None:
    """Nor does the one for a whole machine."""
    unit = systemd_unit(Service("wakeful", tmp_path, ("wakeful",), "/bin", 60))
    machine = (Path(__file__).parents[3] / "deploy" / "wakeful.service").read_text()
    for text in (unit, machine):
        line = next(line for line in text.splitlines() if line.startswith("RestartPreventExitStatus="))
        assert str(REFUSED) in line.partition("=")[2].split()


def test_a_missing_database_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    """The three ways on work: put it back, restore a copy, start with a new one."""
    home, aside, copy = tmp_path / "home", tmp_path / "aside.db", tmp_path / "copy.db"
    with daemon(home) as cli:
        put(home, "kept")
        assert cli.ask("backup", str(copy)).code == 0
    (home / "wakeful.db").rename(aside)
    said = refused(cli)
    assert "wakeful.db is missing" in said
    assert all(way in said for way in ("Put it back", "wakeful restore FILE", "wakeful adopt --new")), said
    assert not (home / "wakeful.db").exists()
    shutil.copyfile(aside, home / "wakeful.db")
    with daemon(home) as cli:
        assert slugs(cli) == {"kept"}
    (home / "wakeful.db").unlink()
    assert cli.ask("restore", str(copy)).code == 0
    with daemon(home) as cli:
        assert slugs(cli) == {"kept"}
    (home / "wakeful.db").unlink()
    assert cli.ask("adopt", "--new").code == 0
    with daemon(home) as cli:
        assert slugs(cli) == set()


def test_a_home_of_an_earlier_release_gets_an_identity_without_a_word(tmp_path: Path) -> None:
    """It has no file beside its database; but a database that is missing there is missed too, by its lock."""
    home = tmp_path / "home"
    with daemon(home) as cli:
        put(home, "kept")
    (home / "wakeful.db.id").unlink()
    with closing(sqlite3.connect(home / "wakeful.db")) as connection, connection:
        connection.execute("DELETE FROM meta WHERE name = 'store_mark'")
    known = store_id(home)
    with daemon(home) as cli:
        assert slugs(cli) == {"kept"}
        assert cli.ask("alerts", "-o", "json").json["alerts"] == []
    assert known in (home / "wakeful.db.id").read_text() and store_id(home) == known
    (home / "wakeful.db.id").unlink()
    (home / "wakeful.db").unlink()
    assert "wakeful.db is missing" in refused(cli)


def test_the_database_of_another_store_is_refused_until_it_is_adopted(tmp_path: Path) -> None:
    """Then it is a store of its own: new identity, new keys."""
    home, other = tmp_path / "home", tmp_path / "other"
    with daemon(other):
        put(other, "theirs")
    with daemon(home) as cli:
        put(home, "ours")
    shutil.copyfile(other / "wakeful.db", home / "wakeful.db")
    said = refused(cli)
    assert "is the database of another store" in said and store_id(other) in said
    assert all(way in said for way in ("wakeful restore FILE", "wakeful adopt;", "wakeful adopt --new")), said
    assert cli.ask("adopt").code == 0
    with daemon(home) as cli:
        assert slugs(cli) == {"theirs"}
    assert store_id(home) != store_id(other)


def test_a_copied_home_is_adopted_with_new_keys(tmp_path: Path) -> None:
    """A file cannot tell which of two equal homes is the copy; `adopt` makes them different."""
    home, copy = tmp_path / "home", tmp_path / "copy"
    with daemon(home) as cli:
        put(home, "ours")
        assert over_socket(home / "wakeful.sock", "POST", "/api/calendar/key")[0] == 201
    shutil.copytree(home, copy)
    copied = Cli(copy)
    assert copied.ask("adopt").code == 0
    assert not (copy / "token").exists()  # the next start draws another one
    with daemon(copy) as copied:
        assert slugs(copied) == {"ours"}
    keys = [keys_of(folder) for folder in (home, copy)]
    assert store_id(home) != store_id(copy)
    assert keys[0] and {name for name in keys[0] if keys[0][name] == keys[1].get(name)} == set()
    with daemon(home) as cli:  # the original is as it was
        assert slugs(cli) == {"ours"}


def keys_of(home: Path) -> dict[str, str]:
    with closing(sqlite3.connect(home / "wakeful.db")) as connection:
        rows = connection.execute("SELECT name, value FROM meta WHERE name IN ('receipt_secret', 'calendar_key')")
        return dict(rows.fetchall())


def test_a_database_that_was_put_back_by_hand_is_treated_as_restored(tmp_path: Path) -> None:
    """Nothing is repeated, people are told once, and the next start says nothing."""
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    with daemon(home) as cli:
        put(home, "kept")
    shutil.copyfile(home / "wakeful.db", copy)  # not by wakeful backup, which marks it
    for _ in range(2):
        with daemon(home) as cli:
            put(home, "later")
    shutil.copyfile(copy, home / "wakeful.db")
    with daemon(home) as cli:
        assert slugs(cli) == {"kept"}
        cli.until(lambda: "is older than the one that was here" in (home / "server.log").read_text())
        log = (home / "server.log").read_text()
        assert "this store was restored from a backup" in log
    before = (home / "server.log").read_text().count("is older than the one that was here")
    with daemon(home) as cli:
        assert slugs(cli) == {"kept"}
    assert (home / "server.log").read_text().count("is older than the one that was here") == before


def test_random_bytes_in_the_log_are_refused(tmp_path: Path) -> None:
    """SQLite would drop everything after them without a word."""
    home = tmp_path / "home"
    with killed(home) as cli:
        for number in range(40):
            assert put(home, f"one-{number}") == 201
    log = home / "wakeful.db-wal"
    content = log.read_bytes()
    assert len(content) > 40_000
    for at in (len(content) // 3, 4):  # in the middle, and in the header
        damaged = bytearray(content)
        damaged[at : at + 512] = random.Random(at).randbytes(512)
        log.write_bytes(damaged)
        said = refused(cli)
        assert "wakeful.db-wal is damaged: commits that it held are lost" in said
        assert "wakeful restore FILE" in said and "wakeful adopt" in said
        assert log.read_bytes() == damaged  # nothing was changed
    log.write_bytes(random.Random(1).randbytes(len(content)))
    assert "wakeful.db-wal is damaged" in refused(cli)
    log.write_bytes(content)
    with daemon(home) as cli:
        assert len(slugs(cli)) == 40


@pytest.mark.parametrize("how", ["missing", "zeros"])
def test_a_log_that_is_gone_is_noticed(tmp_path: Path, how: str) -> None:
    """What it held is lost: the database is older than the file beside it says, also if it is younger than a lease."""
    home = tmp_path / "home"
    with killed(home):
        for number in range(40):
            assert put(home, f"one-{number}") == 201
    log = home / "wakeful.db-wal"
    if how == "missing":
        log.unlink()
    else:
        log.write_bytes(bytes(log.stat().st_size))
    with daemon(home) as cli:
        assert slugs(cli) == set()
        cli.until(lambda: "lacks what was written after its creation" in (home / "server.log").read_text())


def test_a_log_that_a_crash_left_incomplete_is_used(tmp_path: Path) -> None:
    """Its last transaction was never completed: that is no damage."""
    home = tmp_path / "home"
    with killed(home):
        for number in range(5):
            assert put(home, f"one-{number}") == 201
    log = home / "wakeful.db-wal"
    os.truncate(log, log.stat().st_size - 2_000)
    with log.open("ab") as file:
        file.write(random.Random(0).randbytes(1_000))
    with daemon(home) as cli:
        assert {f"one-{number}" for number in range(4)} <= slugs(cli)


def test_a_lost_log_can_be_adopted(tmp_path: Path) -> None:
    """With what can still be read, treated as restored."""
    home = tmp_path / "home"
    with killed(home) as cli:
        for number in range(40):
            assert put(home, f"one-{number}") == 201
    log = home / "wakeful.db-wal"
    content = bytearray(log.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 512] = random.Random(1).randbytes(512)
    log.write_bytes(content)
    assert "is damaged" in refused(cli)
    assert cli.ask("adopt").code == 0
    with daemon(home) as cli:
        assert 0 < len(slugs(cli)) < 40


@pytest.mark.parametrize("how", ["replaced", "overwritten"])
def test_a_database_swapped_while_it_is_in_use_is_noticed(tmp_path: Path, how: str) -> None:
    """Reads and writes are refused, and the daemon is unhealthy. If it was replaced, putting it back heals it."""
    home, other = tmp_path / "home", tmp_path / "other"
    with daemon(other):
        put(other, "theirs")
    database, aside = home / "wakeful.db", home / "aside.db"
    with killed(home) as cli:
        put(home, "ours")
        if how == "replaced":
            database.rename(aside)
            shutil.copyfile(other / "wakeful.db", database)
        else:
            database.write_bytes((other / "wakeful.db").read_bytes())
        cli.until(lambda: put(home, "late") == 503)
        status, answer = over_socket(home / "wakeful.sock", "GET", "/api/schedule")
        assert status == 503 and "another store" in str(answer), answer
        cli.until(lambda: over_socket(home / "wakeful.sock", "GET", "/healthz")[0] == 503)
        if how == "replaced":
            aside.replace(database)
            cli.until(lambda: put(home, "late") in (200, 201))
            assert slugs(cli) == {"ours", "late"}


def test_an_older_copy_that_is_written_over_the_database_is_noticed(tmp_path: Path) -> None:
    """Its log belongs to another state of the file."""
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    with daemon(home) as cli:
        put(home, "first")
    shutil.copyfile(home / "wakeful.db", copy)
    with daemon(home):
        put(home, "second")
    with killed(home) as cli:
        (home / "wakeful.db").write_bytes(copy.read_bytes())
        cli.until(lambda: put(home, "late") == 503)
        _, answer = over_socket(home / "wakeful.sock", "GET", "/api/schedule")
        assert "was overwritten with an older copy of it" in str(answer), answer


def test_a_missing_database_is_noticed_while_it_is_in_use(tmp_path: Path) -> None:
    """Reads too, which would otherwise go on with the removed file."""
    home = tmp_path / "home"
    with killed(home) as cli:
        put(home, "ours")
        (home / "wakeful.db").rename(home / "aside.db")
        cli.until(lambda: put(home, "late") == 503)
        cli.until(lambda: over_socket(home / "wakeful.sock", "GET", "/api/schedule")[0] == 503)
        (home / "aside.db").rename(home / "wakeful.db")
        cli.until(lambda: put(home, "late") in (200, 201))
        assert slugs(cli) == {"ours", "late"}


def test_adopt_and_restore_need_a_stopped_daemon(tmp_path: Path) -> None:
    """The store of a running one is not exchanged."""
    with daemon(tmp_path / "home") as cli:
        for words in (["adopt"], ["adopt", "--new"]):
            said = cli.ask(*words)
            assert said.code == 1 and "wakeful down" in said.err
