"""The handover with real processes: a daemon, a program `crontab`, and kill -9 while it runs."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import forking
from access import write_token
from edges.cli.kit import PROGRAM, WITHIN, Cli
from wakeful.integrations.imports.switches import MARK

pytestmark = pytest.mark.torture

CRONTAB = """#!{python}
import os, pathlib, signal, sys
table, kill = pathlib.Path({table!r}), pathlib.Path({kill!r})
def die(step):
    if kill.exists() and kill.read_text() == step:
        kill.unlink()
        os.kill(os.getppid(), signal.SIGKILL)
if sys.argv[1] == "-l":
    sys.stdout.write(table.read_text())
else:
    text = sys.stdin.read()
    die("before")
    part = table.with_name("part")
    part.write_text(text)
    part.replace(table)
    die("after")
"""


class Cron(threading.Thread):
    """Cron: reads the table at each full minute and runs its lines."""

    def __init__(self, table: Path, record: Path) -> None:
        super().__init__(daemon=True)
        self._table, self._record = table, record
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(60 - time.time() % 60):
            minute = int(time.time() // 60)
            for line in self._table.read_text().splitlines():
                if line.startswith("* * * * *"):
                    with self._record.open("a") as file:
                        file.write(f"{minute} cron\n")


@contextmanager
def running(cli: Cli, path: str) -> Iterator[forking.Process]:
    child = forking.start(PROGRAM, "up", "--port", "0", "-o", "json", environment={**cli.environment, "PATH": path})
    try:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())["running"] is True
        yield child
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        child.communicate(timeout=WITHIN)


def own_slug(cli: Cli, path: str) -> str:
    """The slug of the test's job: the machine may have jobs of its own, which must stay as they are."""
    plan = cli.ask("-o", "json", "import", "crontab", PATH=path).json
    (entry,) = [entry for entry in plan["entries"] if entry["place"] == "crontab -l"]
    return str(entry["slug"])


def system_tables() -> dict[str, bytes]:
    """The tables of the machine."""
    tables = [Path("/etc/crontab"), *Path("/etc/cron.d").glob("*")]
    return {str(table): table.read_bytes() for table in tables if table.is_file() and os.access(table, os.R_OK)}


@pytest.mark.parametrize("kill", ["before", "after"])
def test_every_minute_runs_once_in_all(tmp_path: Path, kill: str) -> None:
    """The daemon dies with its program `crontab`, right before or right after the table is replaced."""
    table, record, when = tmp_path / "table", tmp_path / "record", tmp_path / "kill"
    program = (
        f"""* * * * * {sys.executable} -c 'import time; print(int(float(time.time()) // 60), "ours")' >> {record}\n"""
    )
    table.write_text(program)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "crontab").write_text(CRONTAB.format(python=sys.executable, table=str(table), kill=str(when)))
    (tools / "crontab").chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    home = tmp_path / "home"
    write_token(home)
    before = system_tables()
    cli, cron = Cli(home), Cron(table, record)
    cron.start()
    first = int(time.time() // 60) + 1
    with running(cli, path) as child:
        when.write_text(kill)
        only = ("--only", own_slug(cli, path))
        told = cli.ask("-o", "json", "import", "crontab", "--apply", "--disable-source", *only, PATH=path)
        assert told.code == 0 and any(entry["place"] == "crontab -l" for entry in told.json["entries"])
        child.wait(240)
    with running(cli, path):
        give_up_at = time.monotonic() + 400
        while "ours" not in (record.read_text() if record.exists() else "") and time.monotonic() < give_up_at:
            time.sleep(1)
        time.sleep(70)  # one more full minute
    last = int(time.time() // 60) - 1
    cron.ended.set()
    minutes = [int(line.split()[0]) for line in record.read_text().splitlines() if int(line.split()[0]) <= last]
    assert sorted(minutes) == list(range(first, last + 1))
    assert table.read_text().startswith(MARK) and (home / "imported" / "crontab.wakeful-backup").read_text() == program
    assert system_tables() == before
