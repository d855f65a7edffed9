"""The drill as a person runs it: real daemons, faults, counts, and nothing left behind."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from drill.kit import begun, drill, users_of
from patience import PATIENCE
from postgres.server import Server, server

__all__ = ["server"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with settings of its own, which a drill must not follow."""
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    (made / "wakeful.toml").write_text("[limits]\nconcurrency_max = 1\n")
    return made


def _is_passed(report: dict[str, Any]) -> None:
    assert report["findings"] == []
    assert report["verdict"] == "passed"
    assert report["lost"] == report["doubled"] == 0
    assert report["planned"] == report["ran"] + report["excused"]
    assert report["ran"] > 0
    assert sum(report["reasons"].values()) == report["excused"]


def test_a_short_drill_passes_and_leaves_nothing(home: Path) -> None:
    """Everything that was planned ran once or has a reason; the home is as it was, and nothing is next to it."""
    before = {file: file.read_bytes() for file in home.iterdir()}
    for minutes in ("0.25", "1", "4"):  # more on a busy machine
        code, report = drill(home, "--minutes", minutes)
        if not any("allow more time with --minutes" in finding for finding in report["findings"]):
            break
    _is_passed(report)
    assert code == 0
    assert any(fault["recoveredMs"] is not None for fault in report["faults"])
    assert report["store"] == "SQLite"
    assert {"system", "fileSystem", "sync", "clock", "sleep", "disk"} == report["machine"].keys()
    assert {file: file.read_bytes() for file in home.iterdir()} == before
    assert list(home.parent.iterdir()) == [home]


@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=pytest.mark.torture) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)]
)
def test_a_drill_that_is_stopped_leaves_nothing(home: Path, number: signal.Signals) -> None:
    """Ctrl-C, kill, and kill -9: no process and no file stays."""
    with begun(home, "--minutes", "2") as process:
        (scratch,) = home.parent.glob(".wakeful-drill-*")
        assert len(users_of(scratch)) >= 3, "daemons and a witness"
        process.send_signal(number)
        assert process.wait(PATIENCE) == (-number if number == signal.SIGKILL else 128 + number)
    give_up_at = time.monotonic() + PATIENCE
    while scratch.exists() or users_of(scratch):  # after kill -9, the fork server cleans up
        assert time.monotonic() < give_up_at
        time.sleep(0.1)
    assert list(home.parent.iterdir()) == [home]


@pytest.mark.torture
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for the children of a process")
def test_a_drill_whose_processes_are_killed_fails(home: Path) -> None:
    """Something else ends the process that starts the others: the drill says so, and still leaves nothing."""
    with begun(home, "--minutes", "2", "-o", "json") as process:
        (scratch,) = home.parent.glob(".wakeful-drill-*")
        (fork_server,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(fork_server), signal.SIGKILL)
        assert process.wait(PATIENCE) == 1
    give_up_at = time.monotonic() + PATIENCE
    while users_of(scratch):
        assert time.monotonic() < give_up_at
        time.sleep(0.1)
    assert list(home.parent.iterdir()) == [home]


@pytest.mark.torture
def test_a_whole_drill_tries_every_fault(home: Path) -> None:
    """Two minutes, the default: every kind of fault is tried."""
    began = time.monotonic()
    code, report = drill(home)
    assert time.monotonic() - began < 120, "it ends within its time"
    _is_passed(report)
    assert code == 0
    assert report["planned"] > 2_000
    tried = {fault["kind"] for fault in report["faults"] if fault["recoveredMs"] is not None}
    assert tried == {"kill", "disk", "freeze", "lock", "restart", "clock"}


@pytest.mark.torture
def test_a_whole_drill_on_postgresql(home: Path, server: Server) -> None:
    """Two daemons behind proxies that are cut; its schemas are gone afterwards."""
    began = time.monotonic()
    code, report = drill(home, "--store", server.url)
    assert time.monotonic() - began < 120, "it ends within its time"
    _is_passed(report)
    assert code == 0
    assert {fault["kind"] for fault in report["faults"]} == {"kill", "freeze", "cut", "restart", "clock"}
    assert report["machine"]["server"]["state"] == "warning", "fsync is off in tests"
    with server.connect() as connection:
        left = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'wakeful_drill%'").fetchall()
    assert left == []
