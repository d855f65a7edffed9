"""`wakeful workflows` as a process, over a daemon whose handlers are programs."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import Cli, daemon
from patience import PATIENCE

HANDLER = """
import json, pathlib, sys
asked = json.load(sys.stdin)
folder = pathlib.Path(sys.argv[1])
if not asked["dryRun"]:
    with (folder / "asked").open("a") as log:
        log.write(json.dumps(asked) + "\\n")
if asked["phase"] == "produce":
    print(json.dumps({"messages": [{"topic": "mail", "id": asked["runId"], "payload": 1}]}))
elif asked["phase"] == "prepare":
    listed = [{"topic": t, "ids": [m["id"] for m in found]} for t, found in asked["messages"].items()]
    print(json.dumps({"reservations": listed, "data": 1, "ui": {"title": "mail"}}))
elif asked["phase"] == "mutate" and (folder / "fail").exists():
    (folder / "fail").unlink()
    print("half of an answer")
    print("the server said no", file=sys.stderr)
    sys.exit(3)
"""


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A daemon, and a handler beside it."""
    (tmp_path / "handler.py").write_text(HANDLER)
    with daemon(tmp_path / "home") as one:
        yield one


def written(folder: Path, **changes: Any) -> Path:
    """The workflow as a file."""
    handler = {"command": {"argv": [sys.executable, str(folder / "handler.py"), str(folder)]}}
    definition = {
        "id": "inbox",
        "producers": {"poll": {"schedule": {"type": "manual"}, "publishes": ["mail"], "handler": handler}},
        "consumers": {"digest": {"subscribe": ["mail"], "handler": handler}},
        **changes,
    }
    file = folder / "inbox.json"
    file.write_text(json.dumps(definition))
    return file


def until(cli: Cli, is_so: Callable[[Any], bool]) -> Any:
    """The workflow, as soon as it stands like this."""
    give_up = time.monotonic() + PATIENCE
    while True:
        view = cli.ask("workflows", "show", "inbox", "-o", "json").json
        if is_so(view):
            return view
        assert time.monotonic() < give_up, view
        time.sleep(0.05)


def is_idle(view: Any) -> bool:
    return not view["openRun"] and not view["consumers"]["digest"]["dirty"]


def test_a_workflow_from_the_command_line(cli: Cli, tmp_path: Path) -> None:
    """Deploy, list, show, run, publish, pause, resume, resolve, remove: each as a process of its own."""
    assert "no workflows" in cli.run("workflows").out
    dry = cli.run("workflows", "deploy", str(written(tmp_path)), "--dry-run")
    assert (dry.code, dry.out) == (0, "inbox would be accepted\n")
    said = cli.run("workflows", "deploy", str(written(tmp_path)))
    assert (said.code, said.out) == (0, "inbox created; it is active\n")
    until(cli, is_idle)
    said = cli.run("workflows", "run", "inbox")
    assert said.out.startswith("inbox runs as session ")
    until(cli, lambda view: view["topics"]["mail"]["consumed"] == 1 and is_idle(view))
    said = cli.run("workflows", "publish", "inbox", "mail", '{"x": 1}', "--id", "a")
    assert said.out == "a published in mail\n"
    until(cli, lambda view: view["topics"]["mail"]["consumed"] == 2 and is_idle(view))
    assert cli.run("workflows", "publish", "inbox", "mail", '{"id": "a", "payload": 2}').out == "a duplicate in mail\n"
    runs = cli.run("runs", "workflow:inbox", "-o", "json").json["runs"]
    assert [run["slug"] for run in runs] == ["workflow:inbox"] * len(runs) and len(runs) >= 3
    assert len(cli.run("log", "workflow:inbox", "--limit", "2").out.splitlines()) == 2
    shown = cli.run("workflows", "show", "inbox")
    assert "topic mail" in shown.out and "2 consumed" in shown.out and "digest:committed" in shown.out
    listed = cli.run("workflows")
    assert "inbox" in listed.out and "active" in listed.out
    assert cli.run("workflows", "-o", "json").json["workflows"][0]["id"] == "inbox"
    (tmp_path / "fail").touch()
    cli.run("workflows", "publish", "inbox", "mail", "5", "--id", "b")
    view = until(cli, lambda view: view["error"] is not None)
    assert "exited with 3: the server said no" in view["error"]
    assert view["openRun"]["ui"] == {"title": "mail"}
    run_id = view["openRun"]["runId"]
    named = [one for one in cli.ask("doctor", "-o", "json").json["findings"] if one["what"] == "workflows"]
    assert [one["state"] for one in named] == ["warning"]
    assert named[0]["words"].startswith(f"inbox has stopped: {view['error'][:20]}")
    assert f"wakeful workflows resolve inbox {run_id} retry" in named[0]["cure"]
    refused = cli.run("workflows", "resume", "inbox")
    assert (refused.code, "waits to be resolved" in refused.err) == (1, True)
    assert "needs a person" in cli.run("workflows", "show", "inbox").out
    assert cli.run("workflows", "resolve", "inbox", run_id, "perhaps").code == 2
    said = cli.run("workflows", "resolve", "inbox", run_id, "retry")
    assert (said.code, said.out) == (0, f"run {run_id} of inbox: retry\n")
    until(cli, lambda view: view["topics"]["mail"]["consumed"] == 3 and is_idle(view))
    assert cli.run("workflows", "pause", "inbox").out == "inbox is paused\n"
    assert cli.run("workflows", "run", "inbox").code == 1
    assert cli.run("workflows", "resume", "inbox").out == "inbox is active\n"
    assert cli.run("workflows", "rm", "inbox").out == "inbox removed\n"
    assert cli.run("workflows", "show", "inbox").code == 1
    assert len(cli.run("runs", "workflow:inbox", "-o", "json").json["runs"]) >= len(runs)  # its past runs are kept
    assert cli.run("runs", "workflow:nope").code == 1


def test_what_cannot_be_deployed_is_said(cli: Cli, tmp_path: Path) -> None:
    """Every fault with its field; a file that is none; a workflow from stdin."""
    bad = cli.run("workflows", "deploy", str(written(tmp_path, consumers={})))
    assert (bad.code, bad.out) == (2, "")
    assert "no consumer reads 'mail'" in bad.err
    (tmp_path / "x.json").write_text("{")
    assert cli.run("workflows", "deploy", str(tmp_path / "x.json")).code == 2
    assert "cannot be read" in cli.run("workflows", "deploy", str(tmp_path / "none.json")).err
    handler = {"command": {"argv": ["/nowhere/program"]}}
    text = written(tmp_path, consumers={"digest": {"subscribe": ["mail"], "handler": handler}}).read_text()
    missing = cli.run("workflows", "deploy", "-", feed=text)
    assert (missing.code, "'/nowhere/program' does not exist" in missing.err) == (2, True)
    assert cli.run("workflows", "deploy", "-", feed=written(tmp_path).read_text()).code == 0
    assert cli.run("workflows", "publish", "inbox", "none", "1").code == 1
    assert cli.run("workflows", "publish", "inbox", "mail", "{").code == 2
    assert cli.run("workflows", "resolve", "inbox", "x", "skip").code == 1
    assert cli.run("workflows", "show", "No Such").code == 1


def test_without_a_daemon(alone: Cli) -> None:
    """Exit code 3, as everywhere."""
    assert alone.run("workflows").code == 3
    assert alone.run("workflows", "show", "x").code == 3
    assert alone.run("workflows", "frob").code == 2
