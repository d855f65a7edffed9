"""Plugins that do wrong: the daemon goes on, and a finding names them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.kit import Running, daemon_with, environ_with, put_package, until

CODE = """
import time

from wakeful.plugins import Sent

class Raising:
    proves, knows = "finished", {}
    def __init__(self, settings): ...
    def check(self, config): return None
    def begin(self, turn): raise ValueError("no line")
    async def ask(self, turn): return None
    async def close(self): ...

class Blocking:
    kind, address, to = "sleepy", "", None
    def __init__(self, settings): self.failed = False
    async def send(self, letter):
        time.sleep(1.2)
        return Sent()
    async def close(self): ...

class Moody:
    kind, address, to = "moody", "", None
    def __init__(self, settings): self.asked = 0
    async def send(self, letter):
        self.asked += 1
        if self.asked == 1:
            raise OSError("the line is cut")
        return Sent()
    async def close(self): ...

def partial(settings):
    return object()

def failing(settings):
    raise KeyError("file")

def newer(settings): ...
newer.wakeful_version = 2

constant = 7
"""
POINTS = {
    "wakeful.agents:raising": ":Raising",
    "wakeful.agents:newer": ":newer",
    "wakeful.agents:constant": ":constant",
    "wakeful.agents:partial": ":partial",
    "wakeful.channels:sleepy": ":Blocking",
    "wakeful.channels:moody": ":Moody",
    "wakeful.channels:failing": ":failing",
}
SETTINGS = """
plugins = ["troubled", "broken-import", "not-there"]

[agents.raising]
adapter = "raising"

[agents.newer]
adapter = "newer"

[agents.partial]
adapter = "partial"

[agents.lost]
adapter = "lost"

[channels.sleepy]
type = "sleepy"

[channels.moody]
type = "moody"

[channels.failing]
type = "failing"
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("packages")
    put_package(target, "troubled", CODE, POINTS)
    put_package(target, "broken-import", "import no_such_module", {"wakeful.agents:lone": ":agent"})
    return target


@pytest.fixture(scope="module")
def running(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with daemon_with(packages, tmp_path_factory.mktemp("home"), SETTINGS) as daemon:
        yield daemon


@pytest.mark.parametrize(
    "said",
    [
        "the package not-there is not installed",
        "the agent lone of broken-import cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
        "the agent newer of troubled is for version 2 of wakeful.plugins; this is version 1",
        "the agent constant of troubled is not a function: troubled:constant is of type int",
        "the agent partial of troubled made an object that lacks proves, knows, check, begin, ask, close",
        "the channel failing of troubled raised KeyError in its factory: 'file'",
    ],
)
def test_what_cannot_be_used_is_a_finding(running: Running, said: str) -> None:
    """And the daemon has started."""
    assert said in running.troubles()


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("newer", "is for version 2"),
        ("partial", "made an object that lacks"),
        ("lost", "there is no agent of the kind lost: not-there is not installed"),
    ],
)
def test_a_schedule_for_an_agent_that_cannot_be_used_is_refused(running: Running, agent: str, said: str) -> None:
    body = {"schedule": {"type": "manual"}, "prompt": "What is new?", "agent": agent}
    assert said in running.ask("PUT", "/api/schedule/ask", body)["errors"][0]["message"]


def test_an_agent_that_raises_fails_its_turn_and_is_named(running: Running) -> None:
    said = "the agent raising of troubled raised ValueError in begin: no line"
    run = running.run("ask", prompt="What is new?", agent="raising", retry={"times": 0})
    assert (run["outcome"], run["error"]) == ("failed", said)
    assert said in running.troubles()


def test_a_channel_that_blocks_the_loop_is_named(running: Running) -> None:
    """The message arrives; the finding says how long nothing else ran."""
    running.run("tell", command={"argv": ["echo", "hello"]}, deliver={"channel": "sleepy"})
    found = until(lambda: [one for one in running.troubles() if "blocked the event loop" in one])
    assert found and found[0].startswith("the channel sleepy of troubled blocked the event loop for ")
    sent = until(
        lambda: [one for one in running.ask("GET", "/api/deliveries")["deliveries"] if one["status"] != "pending"]
    )
    assert [(one["channel"], one["status"]) for one in sent] == [("sleepy", "delivered")]


def test_a_channel_that_raises_is_tried_again_and_named_until_it_works(running: Running) -> None:
    said = "the channel moody of troubled raised OSError in send: the line is cut"
    running.run("say", command={"argv": ["echo", "hello"]}, deliver={"channel": "moody"})
    assert until(lambda: said in running.troubles())
    (waiting,) = [one for one in running.ask("GET", "/api/deliveries")["deliveries"] if one["channel"] == "moody"]
    assert waiting["lastError"] == said
    running.ask("POST", f"/api/deliveries/{waiting['id']}/retry")
    assert until(lambda: said not in running.troubles())


def test_doctor_names_them_without_a_daemon(packages: Path, tmp_path: Path) -> None:
    """The settings are valid: a missing package must not stop what does not need it."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text('plugins = ["broken-import", "not-there"]\n')
    told = Running("", home, environ_with(packages)).cli("doctor").stdout
    assert "the package not-there is not installed" in " ".join(told.split())
    assert "cannot be imported: ModuleNotFoundError" in " ".join(told.split())
