"""Handlers that are programs: JSON over stdin and stdout, and whatever else a program may do."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from new_store import prepare
from sampling import sampled
from wakeful import Wakeful
from wakeful.integrations.actions import child
from wakeful.integrations.actions.sessions import is_session_gone
from workflows.kit import state_of

PROGRAM = """
import json, os, pathlib, subprocess, sys, time
folder, asked = pathlib.Path(sys.argv[1]), json.load(sys.stdin)
mode = "" if asked["dryRun"] else (folder / asked["phase"]).read_text() if (folder / asked["phase"]).exists() else ""
if mode:
    (folder / asked["phase"]).unlink()
if mode == "later":
    sys.exit(75)
if mode == "fail":
    print("out of luck", file=sys.stderr)
    sys.exit(4)
if mode == "garbage":
    print("<html>")
    sys.exit()
if mode == "much":
    print(json.dumps("x" * 10_000_000))
    sys.exit()
if mode == "killed":
    os.kill(os.getpid(), 9)
if mode == "silence":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (folder / "pids").write_text(f"{os.getpid()} {child.pid}")
    time.sleep(600)
(folder / "env").write_text(json.dumps({k: v for k, v in os.environ.items() if k.startswith("WAKEFUL_")}))
if asked["phase"] == "prepare":
    listed = [{"topic": topic, "ids": [one["id"] for one in found]} for topic, found in asked["messages"].items()]
    print(json.dumps({"reservations": listed}))
"""


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Wakeful]:
    """An app with a workflow whose consumer is a program."""
    (tmp_path / "handler.py").write_text(PROGRAM)
    handler = {"command": {"argv": [sys.executable, str(tmp_path / "handler.py"), str(tmp_path)]}}
    prepare(tmp_path / "wakeful.db")
    async with Wakeful(tmp_path / "wakeful.db", timezone="UTC", shutdown_grace="1s") as one:
        consumers = {"digest": {"subscribe": ["mail"], "timeout": "5s", "handler": handler}}
        await one.workflows.put("inbox", {"consumers": consumers})
        await until(one, lambda view: view["openRun"] is None and not view["consumers"]["digest"]["dirty"])
        yield one


async def until(app: Wakeful, is_so: Callable[[Any], bool]) -> Any:
    """The workflow, as soon as it stands like this."""
    for _ in range(2000):
        view = await state_of(app, "inbox")
        if is_so(view):
            return view
        await asyncio.sleep(0.02)
    raise AssertionError(view)


async def test_a_program_is_told_the_facts_of_its_run(app: Wakeful, tmp_path: Path) -> None:
    """In its environment, as every command is."""
    await app.workflow("inbox").publish("mail", "a", 1)
    await until(app, lambda view: view["topics"]["mail"]["consumed"] == 1 and view["openRun"] is None)
    told = (tmp_path / "env").read_text()
    assert '"WAKEFUL_SLUG": "workflow:inbox"' in told
    assert "WAKEFUL_IDEMPOTENCY_KEY" in told and "WAKEFUL_RUN_ID" in told


async def test_a_program_that_finds_no_room_waits(app: Wakeful, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same run begins when there is some: this is neither an attempt nor a failure of the handler."""
    answers = iter([False])
    monkeypatch.setattr(child, "is_room_for_child", lambda: next(answers, True))
    before = {run.run_id for run in await app.runs("workflow:inbox")}
    await app.workflow("inbox").publish("mail", "a", 1)
    await until(app, lambda view: view["openRun"] is not None and view["openRun"]["reason"] == "resources")
    view = await until(app, lambda view: view["topics"]["mail"]["consumed"] == 1 and view["openRun"] is None)
    assert view["consumers"]["digest"]["lastError"] is None
    (run,) = [run for run in await app.runs("workflow:inbox") if run.run_id not in before]
    assert (run.outcome, run.attempt, len(run.attempts)) == ("succeeded", 1, 1)


@pytest.mark.parametrize(
    ("mode", "words"),
    sampled(
        [
            ("fail", "exited with 4: out of luck"),
            ("garbage", "not JSON"),
            ("much", "printed more than"),
            ("killed", "exited with -9"),
        ],
        every=2,
    ),
)
async def test_a_program_that_fails_in_prepare_stops_its_workflow(
    app: Wakeful, tmp_path: Path, mode: str, words: str
) -> None:
    """With a clear error; the message is pending, and resuming goes on."""
    (tmp_path / "prepare").write_text(mode)
    await app.workflow("inbox").publish("mail", "a", 1)
    view = await until(app, lambda view: view["error"] is not None)
    assert words in view["error"]
    assert view["topics"]["mail"]["pending"] == 1
    await app.workflow("inbox").resume()
    await until(app, lambda view: view["topics"]["mail"]["consumed"] == 1)


@pytest.mark.parametrize("mode", sampled(["killed", "fail"], every=2))
async def test_a_program_that_fails_in_mutate_leaves_open_what_happened(
    app: Wakeful, tmp_path: Path, mode: str
) -> None:
    """A person says."""
    (tmp_path / "mutate").write_text(mode)
    await app.workflow("inbox").publish("mail", "a", 1)
    view = await until(app, lambda view: view["error"] is not None)
    assert view["openRun"]["awaits"] == "uncertain"
    await app.workflow("inbox").resolve(int(view["openRun"]["runId"]), "skip")
    await until(app, lambda view: view["topics"]["mail"]["skipped"] == 1)


async def test_exit_code_75_means_that_nothing_happened_and_to_try_later(app: Wakeful, tmp_path: Path) -> None:
    """Also in mutate."""
    (tmp_path / "mutate").write_text("later")
    await app.workflow("inbox").publish("mail", "a", 1)
    view = await until(app, lambda view: any(one["heldUntil"] is not None for one in view["consumers"].values()))
    assert (view["error"], view["openRun"]) == (None, None)
    assert view["topics"]["mail"]["pending"] == 1


async def test_a_program_that_never_answers_is_ended_with_all_it_started(app: Wakeful, tmp_path: Path) -> None:
    """In mutate nobody knows what it did before; nothing of it is left running."""
    (tmp_path / "mutate").write_text("silence")
    await app.workflow("inbox").publish("mail", "a", 1)
    view = await until(app, lambda view: view["error"] is not None)
    assert "no answer within 5 s" in view["error"]
    assert view["openRun"]["awaits"] == "uncertain"
    leader, _ = (tmp_path / "pids").read_text().split()
    assert await is_session_gone(int(leader))  # it and its child; a zombie has ended
