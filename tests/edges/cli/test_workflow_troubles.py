"""Workflows from outside, over a daemon as a process: silent handlers, wakeAt, several consumers, modules."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import Cli, daemon
from patience import PATIENCE
from sampling import sampled

MODULE = """
from wakeful import Prepare, Workflow

here = Workflow("here")


@here.consumer(subscribe=["t"])
def take(ctx):
    return Prepare({"t": [one.id for one in ctx.messages["t"]]} if ctx.messages["t"] else {})
"""


class Outside:
    """Handlers behind a port: what each answers in each phase, and what each was asked."""

    def __init__(self) -> None:
        self.statuses: dict[str, int] = {}
        self.prepares: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        self.asked: list[dict[str, Any]] = []
        outside = self

        class Requests(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, said = outside.answer(asked)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(said).encode())

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, asked: dict[str, Any]) -> tuple[int, Any]:
        name = asked["handler"]
        if not asked["dryRun"]:
            self.asked.append(asked)
            if name in self.statuses:
                return self.statuses[name], {}
        if asked["phase"] == "prepare":
            return 200, self.prepares.get(name, take_all)(asked["messages"])
        return 200, {}

    def prepared(self, name: str) -> int:
        return sum(one["handler"] == name and one["phase"] == "prepare" for one in self.asked)


def take_all(messages: dict[str, Any]) -> dict[str, Any]:
    return {"reservations": [{"topic": t, "ids": [one["id"] for one in found]} for t, found in messages.items()]}


@pytest.fixture
def outside() -> Iterator[Outside]:
    """Handlers."""
    one = Outside()
    thread = threading.Thread(target=one.server.serve_forever, daemon=True)
    thread.start()
    yield one
    one.server.shutdown()
    one.server.server_close()
    thread.join()


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A daemon."""
    with daemon(tmp_path / "home") as one:
        yield one


def deploy(cli: Cli, outside: Outside, *consumers: str, **changes: Any) -> None:
    """A workflow `w` whose consumers read topic t."""
    handler = {"http": {"url": outside.address}}
    written = {"subscribe": ["t"], "mutate": False, "handler": handler}
    definition = {"id": "w", "consumers": {name: {**written, **changes} for name in consumers}}
    said = cli.ask("workflows", "deploy", "-", feed=json.dumps(definition))
    assert said.code == 0, said.err


def until(cli: Cli, is_so: Callable[[Any], object]) -> Any:
    """The workflow, as soon as it stands like this."""
    give_up = time.monotonic() + PATIENCE
    while True:
        view = cli.ask("workflows", "show", "w", "-o", "json").json
        if is_so(view):
            return view
        assert time.monotonic() < give_up, view
        time.sleep(0.05)


def is_idle(view: Any) -> bool:
    return not view["openRun"] and not any(one["dirty"] for one in view["consumers"].values())


def test_a_wake_at_that_came_with_a_reservation_is_kept(cli: Cli, outside: Outside) -> None:
    """One prepare for the message, and none that overwrites it."""
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    outside.prepares["c"] = lambda messages: {**take_all(messages), **({"wakeAt": soon} if messages["t"] else {})}
    deploy(cli, outside, "c")
    until(cli, is_idle)
    cli.ask("workflows", "publish", "w", "t", "1", "--id", "a")
    view = until(cli, lambda view: view["topics"]["t"]["consumed"] == 1 and is_idle(view))
    assert view["consumers"]["c"]["wakeAt"] is not None
    assert outside.prepared("c") == 2  # after the deploy, and for the message


@pytest.mark.parametrize("status", sampled([502, 503, 504], every=3))
def test_a_handler_that_cannot_be_reached_stops_nothing(cli: Cli, outside: Outside, status: int) -> None:
    """It is held off and says so, the other consumer goes on, and resuming tries it at once."""
    deploy(cli, outside, "down", "up")
    until(cli, is_idle)
    outside.statuses["down"] = status
    cli.ask("workflows", "publish", "w", "t", "1", "--id", "a")
    view = until(cli, lambda view: view["consumers"]["down"]["heldUntil"] and is_taken(view, "up"))
    assert view["error"] is None
    assert f"HTTP {status}" in view["consumers"]["down"]["lastError"]
    shown = cli.ask("workflows", "show", "w").out
    assert "unreachable, next try" in shown
    runs = cli.ask("runs", "workflow:w", "-o", "json", "--outcome", "failed").json["runs"]
    assert {(run["handler"], run["reason"]) for run in runs} == {("down", "transient")}
    assert "workflow:w/down" in cli.ask("runs", "workflow:w").out
    outside.statuses.clear()
    assert cli.ask("workflows", "resume", "w").code == 0
    until(cli, lambda view: is_taken(view, "down"))


def test_people_are_told_of_a_silent_handler_once_and_when_it_is_back(tmp_path: Path, outside: Outside) -> None:
    """After as many failures as `alerts.errors` says; the end is told as well, after the second success in a row."""
    (tmp_path / "wakeful.toml").write_text("[alerts]\nerrors = 1\n")
    with daemon(tmp_path) as cli:
        deploy(cli, outside, "down")
        until(cli, is_idle)
        outside.statuses["down"] = 503
        cli.ask("workflows", "publish", "w", "t", "1", "--id", "a")
        cli.until(lambda: told(cli, "down could not be reached (HTTP 503") == 1)
        outside.statuses.clear()
        cli.ask("workflows", "resume", "w")
        until(cli, lambda view: is_taken(view, "down"))
        assert told(cli, "recovered after") == 0
        cli.ask("workflows", "publish", "w", "t", "2", "--id", "b")
        cli.until(lambda: told(cli, "recovered after") == 1)
        assert told(cli, "could not be reached") == 2  # that it began, and in the word that it is over


def told(cli: Cli, words: str) -> int:
    return sum(words in one["text"] for one in cli.ask("outbox", "-o", "json").json["deliveries"])


def is_taken(view: Any, consumer: str) -> bool:
    return bool(view["consumers"][consumer]["messages"]["t"]["consumed"] == 1)


def test_messages_are_listed_by_status_and_skipped(cli: Cli, outside: Outside) -> None:
    """For one consumer of a topic or for all; what a removed consumer leaves is told."""
    outside.prepares["slow"] = lambda _: {"reservations": []}
    deploy(cli, outside, "slow", "fast")
    for name in ("a", "b", "c"):
        cli.ask("workflows", "publish", "w", "t", "1", "--id", name)
    until(cli, lambda view: view["topics"]["t"]["consumed"] == 3 and is_idle(view))
    pending = cli.ask("workflows", "messages", "w", "t", "--status", "pending", "-o", "json").json["messages"]
    assert [(one["id"], one["consumer"]) for one in pending] == [("a", "slow"), ("b", "slow"), ("c", "slow")]
    assert "consumed" in cli.ask("workflows", "messages", "w", "t").out
    assert cli.ask("workflows", "skip", "w", "t").code == 2
    assert cli.ask("workflows", "skip", "w", "t", "a", "none").code == 1
    assert cli.ask("workflows", "skip", "w", "t", "a").out == "1 skipped in t\n"
    handler = {"http": {"url": outside.address}}
    only_fast = {"id": "w", "consumers": {"fast": {"subscribe": ["t"], "mutate": False, "handler": handler}}}
    said = cli.ask("workflows", "deploy", "-", feed=json.dumps(only_fast))
    assert "consumer 'slow' no longer reads 't' and leaves 2 pending messages in it" in said.err
    assert cli.ask("workflows", "skip", "w", "t", "--all", "--consumer", "slow").out == "2 skipped in t\n"
    skipped = cli.ask("workflows", "messages", "w", "t", "--status", "skipped", "-o", "json").json["messages"]
    assert [one["id"] for one in skipped] == ["a", "b", "c"]


def test_a_draft_that_was_paused_is_tried_out_when_it_is_resumed(cli: Cli, outside: Outside) -> None:
    """Its handler answers wrongly, and it stays paused."""
    outside.prepares["c"] = lambda _: {"reservations": "all"}
    handler = {"http": {"url": outside.address}}
    draft = {"id": "w", "status": "draft", "consumers": {"c": {"subscribe": ["t"], "handler": handler}}}
    assert cli.ask("workflows", "deploy", "-", feed=json.dumps(draft)).code == 0
    assert cli.ask("workflows", "pause", "w").code == 0
    refused = cli.ask("workflows", "resume", "w")
    assert (refused.code != 0, "is not a list" in refused.err) == (True, True)
    assert cli.ask("workflows", "show", "w", "-o", "json").json["status"] == "paused"


def test_modules_are_found_in_the_home_folder_and_named_when_they_cannot_be_loaded(tmp_path: Path) -> None:
    """By check and doctor without a daemon, and by doctor and /healthz with one; the others run."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "my_home_flows.py").write_text(MODULE)
    (home / "my_broken_flows.py").write_text("import no_such_package_at_all\n")
    settings = home / "wakeful.toml"
    settings.write_text('[workflows]\nmodules = [\n  "my_home_flows",\n  "my_broken_flows",\n]\n')
    alone = Cli(home)
    checked = alone.run("check", str(settings), "-o", "json")
    assert checked.code == 1
    (fault,) = checked.json["errors"]
    assert (fault["field"], fault["line"]) == ("workflows.modules", 4)
    assert "my_broken_flows cannot be loaded: ModuleNotFoundError" in fault["message"]
    assert is_named(alone)
    with daemon(home) as cli:
        assert cli.ask("workflows", "-o", "json").json["workflows"][0]["id"] == "here"
        assert is_named(cli)
    settings.write_text('[workflows]\nmodules = ["my_home_flows"]\n')
    assert alone.run("check", str(settings)).code == 0


def is_named(cli: Cli) -> bool:
    findings = cli.run("doctor", "-o", "json").json["findings"]
    (words,) = [one["words"] for one in findings if one["what"] == "workflows"]
    return "module my_broken_flows cannot be loaded: ModuleNotFoundError" in words
