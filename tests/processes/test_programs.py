"""Whole programs: the documented example, a plain script, a daemon that is told to stop."""

import signal
from pathlib import Path

import pytest

import forking
from patience import PATIENCE
from processes.kit import Nursery, ask, is_alive

pytestmark = pytest.mark.promise


def test_the_documented_example_works(children: Nursery, tmp_path: Path) -> None:
    """As it is printed; run twice, because registering at each start is harmless."""
    (tmp_path / "Makefile").write_text("report:\n\t@echo all is well\n")
    for _ in range(2):
        assert children.run("example.py") == "report idle 1 success\nstandup idle 1 None\n"
    outputs = ask(tmp_path / "wakeful.db", "SELECT result FROM runs ORDER BY run_id")
    assert [("all is well" in result) for (result,) in outputs] == [True, True]


def test_a_plain_script_needs_no_async(children: Nursery) -> None:
    """Every operation through `wakeful.sync`, and a clean end without a warning."""
    out = children.run("plain.py").splitlines()
    assert out[0].startswith("there is no schedule 'job-")
    assert out[1] == "['beat']"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_run_end_within_the_grace(children: Nursery, tmp_path: Path, number: signal.Signals) -> None:
    """`app.run()`: the job of half a second ends well, the process says goodbye with status 0."""
    daemon = _at_work(children, "0.5", "20s", "call")
    out = _told(daemon, number)
    assert out.endswith("over\n")
    assert ask(tmp_path / "wakeful.db", "SELECT outcome FROM runs") == [("succeeded",)]


def test_what_outlasts_the_grace_is_ended_and_recorded(children: Nursery, tmp_path: Path) -> None:
    """A job of a minute, a grace of a second: over in a few, and the next start will try it once more."""
    daemon = _at_work(children, "60", "1s", "call")
    _told(daemon, signal.SIGTERM)
    database = tmp_path / "wakeful.db"
    assert ask(database, "SELECT outcome, reason FROM runs") == [("waiting", "shutdown")]
    assert ask(database, "SELECT outcome FROM attempts") == [("interrupted",)]
    assert ask(database, "SELECT count(*) FROM nodes WHERE voided_at IS NULL") == [(0,)]


def test_a_command_that_outlasts_the_grace_is_ended_with_all_its_children(children: Nursery, tmp_path: Path) -> None:
    """No process is left behind by a clean stop."""
    daemon = _at_work(children, "60", "1s", "command")
    pid = int(children.eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
    assert is_alive(pid)
    _told(daemon, signal.SIGTERM)  # nobody is alerted of a run that a person asked for
    assert not is_alive(pid)
    runs = ask(tmp_path / "wakeful.db", "SELECT outcome, reason, error FROM runs ORDER BY run_id")
    assert runs == [("succeeded", None, None), ("unknown", "shutdown", "ended by shutdown")]


def _at_work(children: Nursery, takes: str, grace: str, kind: str) -> forking.Process:
    daemon = children.start("daemon.py", takes, grace, kind)
    children.eventually((children.folder / "working").exists)
    return daemon


def _told(daemon: forking.Process, number: signal.Signals) -> str:
    daemon.send_signal(number)
    out, err = daemon.communicate(timeout=PATIENCE)
    assert daemon.returncode == 0
    assert err == ""
    return out
