"""The daemon's life from the command line, and what works without one."""

import json
import os
import pty
import re
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from edges.cli.kit import WITHIN, Cli, daemon

CLIENTS = [
    ("status",),
    ("down",),
    ("add", "x", "--every", "1h", "--command", "true"),
    ("edit", "x", "--every", "1h"),
    ("ls",),
    ("show", "x"),
    ("rm", "x"),
    ("pause", "x"),
    ("resume", "x"),
    ("run", "x"),
    ("next",),
    ("runs",),
    ("log",),
    ("log", "-f"),
    ("stats", "x"),
    ("why", "x"),
]


@pytest.mark.parametrize("line", CLIENTS, ids=lambda line: " ".join(line[:2]))
def test_without_a_daemon_the_exit_code_is_3(alone: Cli, line: tuple[str, ...]) -> None:
    """Who asks nobody is told so, and how to start one; stdout stays empty."""
    for form in ((), ("-o", "json")):
        said = alone.ask(*line, *form)
        assert (said.code, said.out) == (3, "")
        assert f"no daemon is running for {alone.home}" in said.err
        assert f"start one: wakeful --home {alone.home} up" in said.err


def test_add_without_a_daemon_says_what_that_means(alone: Cli) -> None:
    """A reminder that nothing would ring is not accepted."""
    said = alone.run("add", "tea", "--in", "5m", "--command", "true")
    assert (said.code, said.out) == (3, "")
    assert said.err.splitlines() == [
        f"wakeful: no daemon is running for {alone.home}, so the schedule would never fire",
        f"  start one: wakeful --home {alone.home} up",
    ]


def test_status(cli: Cli) -> None:
    """Where it is, that its clock is alive, and what fires next."""
    cli.ask("add", "soon", "--every", "1h", "--command", "true")
    said = cli.run("status")
    assert (said.code, said.err) == (0, "")
    text = " ".join(said.out.split())
    assert "daemon: running as process" in text
    assert "clock: alive" in text
    assert "last tick: " in text
    assert "next: soon, " in text
    answer = cli.ask("status", "-o", "json").json
    assert (answer["running"], answer["next"]["slug"]) == (True, "soon")
    assert answer["health"]["status"] in ("ok", "degraded")  # as a busy machine is


def test_a_second_daemon_says_who_holds_the_home(cli: Cli) -> None:
    """It exits with 1 and leaves the first one alone."""
    said = cli.run("up", "--port", "0")
    assert (said.code, said.out) == (1, "")
    assert "is in use by process" in said.err
    assert cli.ask("status").code == 0


def test_up_with_broken_settings(alone: Cli) -> None:
    """Every fault with its line; nothing is started."""
    alone.home.mkdir()
    (alone.home / "wakeful.toml").write_text('[server]\nport = "many"\nhots = "x"\n')
    said = alone.run("up", "--port", "0")
    assert (said.code, said.out) == (1, "")
    assert "line 3: server.hots" in said.err
    assert alone.ask("up", "--port", "99999").code == 2


def test_down_ends_it(alone: Cli) -> None:
    """The home is free when the command has ended; a second time there is no daemon. The home is its owner's alone."""
    child = alone.start("up", "--port", "0", "-o", "json")
    try:
        assert child.stdout is not None
        told = json.loads(child.stdout.readline())
        said = alone.run("down")
        assert (said.code, said.out) == (0, f"the daemon (process {told['pid']}) has stopped\n")
        assert alone.ask("down").code == 3
        assert child.wait(WITHIN) == 0
    finally:
        child.kill()
        child.communicate()
    assert stat.S_IMODE(alone.home.stat().st_mode) == 0o700


def test_its_terminal_shows_what_is_ours(alone: Cli) -> None:
    """Where it listens, how it ends; nothing of the libraries that are at work unless something is wrong."""
    child = alone.start("up", "--port", "0")
    try:
        assert child.stdout is not None
        assert re.fullmatch(r"Wakeful is listening on http://127\.0\.0\.1:\d+\n", child.stdout.readline())
        assert child.stdout.readline() == "Open the page: wakeful open\n"  # this is no terminal, so it prints no code
        assert child.stdout.readline() == "Stop it with Ctrl-C.\n"
        said = alone.run("add", "standup", "--every", "2h", "--prompt", "Anything new?")
        assert said.code == 0, said.err
        give_up_at = time.monotonic() + WITHIN
        while not (alone.home / "schedule" / "standup" / "last-run.json").exists():  # files are written and watched
            assert time.monotonic() < give_up_at
            time.sleep(0.02)
        assert alone.run("down").code == 0
        out, err = child.communicate(timeout=WITHIN)
    finally:
        child.kill()
        child.wait()
    assert out == ""
    *told, stopping, stopped = err.splitlines()
    assert [line.split(maxsplit=4)[:4] for line in told] == [
        ["No", "agent", "is", "configured,"],
        ["Add", "one:", "`wakeful", "init`"],
    ]
    assert stopping.split(maxsplit=3)[3] == "wakeful.server.daemon stopping: runs in progress may finish"
    assert stopped.split(maxsplit=3)[3] == "wakeful.server.daemon stopped"


def test_only_a_terminal_gets_a_link_that_logs_in(alone: Cli) -> None:
    """Whoever reads a file later, or the log of a service manager, must not get a code."""
    ours, theirs = pty.openpty()
    child = alone.start("up", "--port", "0", stdout=theirs)
    os.close(theirs)
    try:
        said = b""
        give_up_at = time.monotonic() + WITHIN
        while b"Ctrl-C" not in said:
            assert time.monotonic() < give_up_at
            said += os.read(ours, 1_000)
        assert re.search(rb"Open the page: http://127\.0\.0\.1:\d+/#code=[\w-]+\r?\n", said)
        assert b"The link works once; for another: wakeful open" in said
        assert alone.run("down").code == 0
    finally:
        child.kill()
        child.communicate()
        os.close(ours)


def test_init_writes_once(alone: Cli) -> None:
    """Every setting is in it, it is valid as it is and with every default spelt out, and it is never overwritten."""
    said = alone.run("init", PATH="/nowhere")
    file = alone.home / "wakeful.toml"
    assert said.code == 0, said.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert alone.ask("check", str(file)).code == 0
    text = file.read_text()
    for name in ("port = 8377", 'agent_interval_min = "60m"', "[agents.default]", "[heartbeat]", "modules = []"):
        assert name in text
    spelt = alone.home / "spelt.toml"
    spelt.write_text(_spelt_out(text))
    said = alone.ask("check", str(spelt))
    assert said.code == 0, said.err
    file.write_text("# mine\n")
    said = alone.ask("init", "-o", "json", PATH="/nowhere")
    assert (said.code, said.out, file.read_text()) == (1, "", "# mine\n")


def _spelt_out(text: str) -> str:
    """The file with its defaults written out; blocks that are examples stay as they are."""
    blocks = text.split("\n\n")
    defaults = [re.sub(r"^# (?!.*for example)(\w+ = )", r"\1", block, flags=re.M) for block in blocks]
    return "\n\n".join(new if block.startswith("[") else block for block, new in zip(blocks, defaults, strict=True))


def test_backup_of_a_database_in_use(cli: Cli, tmp_path: Path) -> None:
    """A whole, private copy in one file; an existing file is not replaced by accident."""
    cli.ask("add", "saved", "--every", "1h", "--command", "true")
    copy = tmp_path / "copy.db"
    said = cli.run("backup", str(copy))
    assert (said.code, said.err) == (0, "")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("SELECT count(*) FROM schedules WHERE slug = 'saved'").fetchone() == (1,)
    assert cli.ask("backup", str(copy)).code == 1
    assert cli.ask("backup", str(copy), "--force", "-o", "json").json["file"] == str(copy)
    assert [file.name for file in tmp_path.iterdir()] == ["copy.db"]
    said = cli.ask("backup", str(tmp_path / "no" / "where.db"))
    assert said.code == 1
    assert "could not be written" in said.err


def test_a_backup_restores_everything(cli: Cli, tmp_path: Path) -> None:
    """Put in the place of the database and started again, all is there; then copied once more without a daemon."""
    cli.ask("add", "kept", "--every", "1h", "--command", "true")
    home = tmp_path / "two"
    home.mkdir()
    assert cli.ask("backup", str(home / "wakeful.db")).code == 0
    with daemon(home) as restored:
        assert restored.ask("show", "kept").code == 0
    again = tmp_path / "again.db"
    assert Cli(home).ask("backup", str(again)).code == 0
    with closing(sqlite3.connect(again)) as database:
        assert database.execute("SELECT count(*) FROM schedules WHERE slug = 'kept'").fetchone() == (1,)


def test_a_copy_is_put_back_with_restore(tmp_path: Path) -> None:
    """Not under a running daemon; what was there is kept; what is no copy of ours is refused."""
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    with daemon(home) as cli:
        cli.ask("add", "kept", "--every", "1h", "--command", "true")
        assert cli.ask("backup", str(copy)).code == 0
        cli.ask("add", "later", "--every", "1h", "--command", "true")
        refused = cli.ask("restore", str(copy))
        assert refused.code == 1
        assert "wakeful down" in refused.err
    stopped = Cli(home)
    (tmp_path / "text").write_text("not a database")
    assert "not a database" in stopped.ask("restore", str(tmp_path / "text")).err
    said = stopped.run("restore", str(copy))
    assert (said.code, said.err) == (0, "")
    kept = [file for file in home.iterdir() if file.name.startswith("wakeful.db.before-restore-")]
    with closing(sqlite3.connect(next(file for file in kept if not file.name.endswith(("-wal", "-shm"))))) as database:
        assert database.execute("SELECT count(*) FROM schedules").fetchone() == (2,)
    with daemon(home) as cli:
        assert [row["slug"] for row in cli.ask("ls", "-o", "json").json["schedules"]] == ["kept"]
        cli.until(lambda: "was restored from a backup of" in (home / "server.log").read_text())


def test_a_backup_of_nothing(alone: Cli, tmp_path: Path) -> None:
    """Without a database there is nothing to copy; one on a server is copied by its own tool."""
    said = alone.ask("backup", str(tmp_path / "copy.db"))
    assert said.code == 1
    assert "no database at" in said.err
    alone.home.mkdir()
    (alone.home / "wakeful.toml").write_text('[store]\nurl = "postgresql://somebody@somewhere/wakeful"\n')
    said = alone.ask("backup", str(tmp_path / "copy.db"))
    assert said.code == 1
    assert "pg_dump" in said.err


def test_doctor_of_a_healthy_home(cli: Cli) -> None:
    """All is as it should be: exit code 0."""
    said = cli.run("doctor")
    assert said.code == 0
    assert "ok      clock: alive" in said.out
    assert "0 wrong" in said.err
    answer = cli.ask("doctor", "-o", "json").json
    assert answer["ok"] is True
    whats = {finding["what"] for finding in answer["findings"]}
    assert whats >= {"home", "disk", "settings", "database", "zone", "daemon", "clock", "nodes", "schedules"}
    assert re.search(r"^ok      nodes: 1 ticking: process \d+ on \S+$", said.out, re.M)


def test_doctor_without_a_daemon_warns(alone: Cli) -> None:
    """Nothing rings, and that is said with the cure; a home that is not there yet is no failure."""
    said = alone.ask("doctor")
    assert said.code == 0
    assert "not running: no schedule fires" in said.out
    assert f"start one: wakeful --home {alone.home} up" in " ".join(said.out.split())


def test_doctor_finds_what_is_wrong(alone: Cli) -> None:
    """A faulty settings file and a damaged database, each with its cure; exit code 1."""
    alone.home.mkdir(mode=0o755)
    (alone.home / "wakeful.toml").write_text("[server]\nport = true\n")
    said = alone.ask("doctor", "-o", "json")
    assert said.code == 1
    states = {finding["what"]: finding["state"] for finding in said.json["findings"]}
    assert (states["home"], states["settings"]) == ("warning", "wrong")
    (alone.home / "wakeful.toml").unlink()
    (alone.home / "wakeful.db").write_bytes(b"not a database at all" * 100)
    said = alone.ask("doctor")
    assert said.code == 1
    assert "wrong   database:" in said.out
    assert "wakeful backup" in said.out


def _until(is_so: Callable[[], object]) -> None:
    """Wait for it."""
    ends = time.monotonic() + WITHIN
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_doctor_names_schedules_in_trouble(cli: Cli) -> None:
    """One that fails is pointed out with its error, and `alerts ack` ends that for a one-shot."""
    cli.ask("add", "broken", "--in", "3s", "--command", "false")
    _until(lambda: cli.ask("show", "broken", "-o", "json").json["health"] == "failing")
    findings = cli.ask("doctor", "-o", "json").json["findings"]
    assert any(finding["words"].startswith("broken failed: ") for finding in findings)
    _until(lambda: cli.ask("alerts", "--open", "-o", "json").json["alerts"])
    (alert,) = cli.ask("alerts", "-o", "json").json["alerts"]
    assert (alert["slug"], alert["endedAt"]) == ("broken", None)
    assert "broken" in cli.ask("alerts").out
    today = cli.ask("today").out
    assert "✗ broken (failing): Its only run failed: exited with 1" in today
    assert "wakeful run broken, or wakeful alerts ack broken" in today
    assert cli.ask("today", "-o", "json").json["counts"]["failing"] == 1
    cli.ask("alerts", "ack", "broken")
    assert cli.ask("show", "broken", "-o", "json").json["health"] == "off"
    assert cli.ask("alerts", "--open", "-o", "json").json["alerts"] == []
    cli.ask("rm", "broken")


def test_doctor_compares_the_zones(cli: Cli) -> None:
    """A user in another zone than the daemon is warned before a time is read on the wrong clock."""
    findings = cli.ask("doctor", "-o", "json", TZ="Asia/Tokyo").json["findings"]
    words = "schedules without a zone use Europe/Berlin, and yours is Asia/Tokyo"
    assert [finding["state"] for finding in findings if finding["words"] == words] == ["warning"]


def test_the_home_may_be_named_anywhere(alone: Cli, tmp_path: Path) -> None:
    """Before the command or after it; what is typed counts more than the variable, the last one most."""
    said = alone.ask("--home", str(tmp_path / "a"), "ls")
    assert f"for {tmp_path / 'a'}" in said.err
    said = alone.ask("--home", str(tmp_path / "a"), "ls", "--home", str(tmp_path / "b"))
    assert f"for {tmp_path / 'b'}" in said.err
    assert f"for {alone.home}" in alone.ask("ls").err
