"""Python workflows in the daemon, loaded by the settings; and the blocking face of the Python API."""

import json
import os
import time
import urllib.request
from pathlib import Path
from typing import Any

from edges.http.kit import daemon
from patience import PATIENCE
from wakeful import Context, Prepare, Produced, Publish, every
from wakeful.sync import Wakeful

MODULE = """
from wakeful import Prepare, Produced, Publish, Workflow, every

inbox = Workflow("inbox")


@inbox.producer(every("1h"), publishes=["mail"])
def poll(ctx):
    return Produced([Publish("mail", "a", 1)])


@inbox.consumer(subscribe=["mail"])
def digest(ctx):
    return Prepare({"mail": [one.id for one in ctx.messages["mail"]]} if ctx.messages["mail"] else {})


@digest.mutate
def send(ctx):
    return {"result": "sent"}
"""


def ask(address: str, path: str) -> Any:
    with urllib.request.urlopen(address + path, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def test_the_daemon_loads_the_workflows_of_modules_and_goes_on_without_those_it_cannot(tmp_path: Path) -> None:
    """One module is fine, one does not exist, one breaks: the first runs, the clock ticks, the log says the rest."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (tmp_path / "my_flows.py").write_text(MODULE)
    (tmp_path / "my_broken_flows.py").write_text("raise SystemExit('no')")
    (home / "wakeful.toml").write_text('[workflows]\nmodules = ["nowhere.flows", "my_broken_flows", "my_flows"]\n')
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with daemon(home, environ={"PYTHONPATH": path}) as one:
        give_up = time.monotonic() + PATIENCE
        while True:
            view = ask(one.address, "/api/workflows/inbox")
            if view["topics"]["mail"]["consumed"] == 1 and view["openRun"] is None:
                break
            assert time.monotonic() < give_up, view
            time.sleep(0.05)
        assert (view["origin"], view["status"]) == ("python", "active")
        assert view["producers"]["poll"]["handler"] == {"python": "my_flows:poll"}
        health = ask(one.address, "/healthz")
        assert (health["status"], health["problems"]) == ("degraded", [])
        bad = {found["name"] for found in health["findings"] if found["level"] != "ok"}
        assert bad - {"lag"} == {"workflows"}  # a busy machine starts runs late
        assert one.end() == 0
        said = one.process.stderr.read() if one.process.stderr is not None else ""
    said += "".join(file.read_text() for file in home.glob("*.log"))
    assert "workflows of 'nowhere.flows' cannot be loaded" in said
    assert "workflows of 'my_broken_flows' cannot be loaded" in said


def test_the_blocking_face_has_workflows_too(tmp_path: Path) -> None:
    """Decorators as they are, everything else waits for its answer."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    flow = app.workflow("inbox")
    taken: list[str] = []

    @flow.producer(every("1h"), publishes=["mail"])
    def poll(_: Context) -> Produced:
        return Produced([Publish("mail", "a", 1)])

    @flow.consumer(subscribe=["mail"])
    def digest(ctx: Context) -> Prepare:
        return Prepare(
            {"mail": [one.id for one in ctx.messages["mail"]]}, data=[one.id for one in ctx.messages["mail"]]
        )

    @digest.next
    def after(ctx: Context) -> None:
        taken.extend(ctx.prepared.get("data") or ())

    with app:
        assert flow.publish("mail", "b", 2) in ("published", "duplicate")
        give_up = time.monotonic() + PATIENCE
        while sorted(taken) != ["a", "b"]:
            assert time.monotonic() < give_up, (taken, flow.get())
            time.sleep(0.02)
        assert [view.id for view in app.workflows.list().workflows] == ["inbox"]
        flow.pause()
        assert flow.get()["status"] == "paused"
