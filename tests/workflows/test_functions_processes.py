"""A daemon and a program with a Python workflow as real processes: on one file only one of them ticks, on PostgreSQL
both do. The daemon has none of the functions, and takes every message."""

import itertools
import json
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import forking
from edges.http.kit import Daemon, daemon
from patience import PATIENCE
from postgres.server import emptied_url as url
from postgres.server import server
from wakeful import Wakeful
from wakeful.ports.owners import Owners

__all__ = ["server", "url"]

PROGRAM = Path(__file__).with_name("program.py")
MINUTE = 60.0


def ask(one: Daemon, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(one.address + path, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read() or b"null")


def eventually(condition: Callable[[], Any]) -> Any:
    give_up = time.monotonic() + PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < give_up, condition
        time.sleep(0.05)
    return answer


def publish(one: Daemon, message_id: str) -> None:
    ask(one, "/api/workflows/inbox/topics/mail/messages", {"id": message_id, "payload": 1})


def findings(one: Daemon) -> list[str]:
    listed = ask(one, "/healthz")["findings"]
    return [found["sentence"] for found in listed if found["name"] == "workflows" and found["level"] != "ok"]


def lines(file: Path) -> list[str]:
    """The messages that happened, in order."""
    return [line.partition(" ")[2] for line in file.read_text().splitlines()] if file.exists() else []


@contextmanager
def program(store: str, file: Path, folder: Path) -> Iterator[forking.Process]:
    process = forking.start(PROGRAM, store, file, folder=folder)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)


def is_deployed(one: Daemon) -> bool:
    return any(flow["id"] == "inbox" for flow in ask(one, "/api/workflows")["workflows"])


def test_a_daemon_that_ticks_and_a_program_that_does_not(tmp_path: Path) -> None:
    """One SQLite file: the work waits, the finding names both processes, and the program takes over with the clock."""
    home, file = tmp_path / "home", tmp_path / "sent"
    with daemon(home) as one, program(str(home / "wakeful.db"), file, tmp_path) as other:
        eventually(lambda: is_deployed(one))
        for n in range(5):
            publish(one, f"m{n}")
        (sentence,) = eventually(lambda: findings(one))
        assert f"(pid {one.process.pid} on " in sentence
        assert sentence.endswith(f"program.py (pid {other.pid}) has, but not the clock")
        view = ask(one, "/api/workflows/inbox")
        assert (view["error"], view["openRun"], view["topics"]["mail"]["pending"]) == (None, None, 5)
        assert one.end() == 0
        eventually(lambda: len(lines(file)) == 5)
        assert lines(file) == [f"m{n}" for n in range(5)]
    with daemon(home) as one:  # the daemon alone, after a kill -9 of the program: the next message waits too
        publish(one, "late")
        (sentence,) = eventually(lambda: findings(one))
        assert f"program.py (pid {other.pid} on " in sentence and sentence.endswith(", which had, has died")
        assert ask(one, "/api/workflows/inbox")["error"] is None
        assert lines(file) == [f"m{n}" for n in range(5)]


def settle(one: Daemon, file: Path) -> None:
    """What a person does: look outside, and say what happened to an uncertain message."""
    view = ask(one, "/api/workflows/inbox")
    assert "is loaded here" not in (view["error"] or "")
    run = view["openRun"]
    if run is not None and run["awaits"] == "uncertain":
        is_done = any(line.startswith(f"{run['runId']} ") for line in file.read_text().splitlines())
        choice = "skip" if is_done else "didNotHappen"
        ask(one, f"/api/workflows/inbox/runs/{run['runId']}/resolve", {"choice": choice})


@pytest.mark.promise
@pytest.mark.torture
async def test_a_minute_of_kill_9_on_postgres(url: str, tmp_path: Path) -> None:
    """The program is killed again and again, and so is a plain daemon; each message happens once, and no run was ever
    claimed by a daemon."""
    file, ends_at = tmp_path / "sent", time.monotonic() + MINUTE
    numbers = itertools.count()
    published = 0
    with daemon(tmp_path / "witness", "--store", url) as witness:
        while time.monotonic() < ends_at:
            with daemon(tmp_path / "daemon", "--store", url) as one, program(url, file, tmp_path) as other:
                eventually(lambda: is_deployed(witness))
                # Before more is published: on a busy machine most of it is handled meanwhile.
                goal = len(lines(file)) + 10
                for n in itertools.islice(numbers, 20):
                    publish(one if n % 2 else witness, f"m{n:04}")
                    published += 1
                eventually(lambda goal=goal: settle(witness, file) or len(lines(file)) >= goal)  # type: ignore[misc]
                other.send_signal(signal.SIGKILL)
                one.process.send_signal(signal.SIGKILL)
        with program(url, file, tmp_path):
            eventually(lambda: settle(witness, file) or len(lines(file)) >= published)
            eventually(lambda: ask(witness, "/api/workflows/inbox")["openRun"] is None)
    assert sorted(lines(file)) == sorted(f"m{n:04}" for n in range(published))
    app = Wakeful(url, tick=False)
    async with app:
        names = await app._open.store.read(_claimed_by)
    assert names == {"program"}


def _claimed_by(tx: Any) -> set[str]:
    """The names of the nodes that claimed runs of the workflow."""
    owner = tx[Owners].find("workflow:inbox")
    rows, before = [], None
    while page := tx.runs.page(schedule_id=owner, before_id=before, limit=200):
        rows += page
        before = page[-1].run_id
    return set(tx.nodes.names({row.owner for row in rows if row.owner is not None}).values())


@pytest.mark.torture
def test_a_minute_of_a_daemon_and_a_program_on_one_file(tmp_path: Path) -> None:
    """They take turns with the clock, each killed with -9: what is published meanwhile waits for the program."""
    home, file, ends_at = tmp_path / "home", tmp_path / "sent", time.monotonic() + MINUTE
    numbers = itertools.count()
    published = 0
    while time.monotonic() < ends_at or published == 0:
        with daemon(home) as one, program(str(home / "wakeful.db"), file, tmp_path) as other:
            eventually(lambda: is_deployed(one))
            settle(one, file)
            for n in itertools.islice(numbers, 10):
                publish(one, f"m{n:04}")
                published += 1
            eventually(lambda: findings(one) or ask(one, "/api/workflows/inbox")["openRun"])
            before = len(lines(file))
            one.process.send_signal(signal.SIGKILL)
            eventually(lambda before=before: len(lines(file)) > before)  # type: ignore[misc]
            other.send_signal(signal.SIGKILL)
    with daemon(home) as one, program(str(home / "wakeful.db"), file, tmp_path):
        eventually(lambda: settle(one, file) or ask(one, "/api/workflows/inbox")["error"] is None)
        assert one.end() == 0
        eventually(lambda: len(lines(file)) >= published)
    assert sorted(lines(file)) == sorted(f"m{n:04}" for n in range(published))


FLOWS = """
from wakeful import Prepare, Workflow

inbox = Workflow("inbox")


@inbox.consumer(subscribe=["mail"])
def digest(ctx):
    return Prepare({"mail": [one.id for one in ctx.messages["mail"]]} if ctx.messages["mail"] else {})
"""


def test_a_module_whose_import_breaks(tmp_path: Path) -> None:
    """The daemon had loaded it once: what is published waits, and two findings say what to do. Once the module is
    repaired, it is handled."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text('[workflows]\nmodules = ["flows_of_this_test"]\n')
    module = home / "flows_of_this_test.py"
    module.write_text(FLOWS)
    with daemon(home) as one:
        eventually(lambda: is_deployed(one))
        assert one.end() == 0
    module.write_text("raise ImportError('a library is missing')")
    with daemon(home) as one:
        publish(one, "a")
        assert any("cannot be loaded: ImportError: a library is missing" in found for found in findings(one))
        (waits,) = eventually(lambda: [found for found in findings(one) if "is waiting for its Python" in found])
        assert ", which had, ended at " in waits
        view = ask(one, "/api/workflows/inbox")
        assert (view["error"], view["topics"]["mail"]["pending"]) == (None, 1)
        assert one.end() == 0
    module.write_text(FLOWS)
    with daemon(home) as one:
        eventually(lambda: ask(one, "/api/workflows/inbox")["topics"]["mail"]["consumed"] == 1)
        assert findings(one) == []
