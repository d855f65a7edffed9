"""Only evidence of an answer is green: a real daemon with the documented settings, and a server that speaks the
protocol to the letter."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import forking
from agents.server import AgentServer
from sessions.kit import Desk, Town, daemon, desk_of, until

pytestmark = pytest.mark.promise

DOCUMENTED = """
[agents.default]
adapter = "sessions"
url = "{url}"
confirm_within = "{within}"
{more}
"""


@pytest.fixture
def own_server(town: Town) -> AgentServer:
    """A server for one test: nothing it is told reaches another."""
    return town.server()


def write_home(home: Path, server: AgentServer, within: str = "5m", more: str = "") -> Path:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "wakeful.toml").write_text(DOCUMENTED.format(url=server.url, within=within, more=more))
    return home


def doctor(home: Path, server: AgentServer) -> list[dict[str, Any]]:
    """What `wakeful doctor` finds there."""
    environment = {**os.environ, **server.environ}
    ended = forking.run("wakeful.cli.main", "--home", home, "doctor", "-o", "json", environment=environment)
    return list(json.loads(ended.out)["findings"])


@pytest.fixture
def open_desk(tmp_path: Path, own_server: AgentServer, town: Town) -> Iterator[Callable[..., Any]]:
    def opened(within: str = "5m", more: str = "") -> Any:
        home = write_home(tmp_path / "home", own_server, within, more)
        return daemon(home, environ=own_server.environ)

    yield opened


def test_the_documented_settings_find_the_reply_and_deliver_it(
    open_desk: Callable[..., Any], own_server: AgentServer, town: Town
) -> None:
    """The reply is read from the server's own file, is on the run, and reaches the channel."""
    own_server.reply = "three commits, all green"
    with open_desk() as one, desk_of(one, own_server, town, "default", "standup") as desk:
        desk.put(deliver={"channel": "inbox"})
        run = desk.run()
        assert (run["outcome"], run["rung"], run["reply"]) == ("succeeded", "finished", "three commits, all green")

        def delivered() -> list[str]:
            found = desk.api.get("/api/deliveries")["deliveries"]
            return [one["text"] for one in found if one["status"] == "delivered"]

        assert until(delivered) == ["three commits, all green"]


@pytest.mark.parametrize(
    ("manner", "outcome", "says"),
    [
        ("errors", "failed", "the model is out of order"),
        ("lies", "unconfirmed", "the prompt is not in its history"),
        ("mute", "unconfirmed", "its history contains the prompt, but no answer"),
        ("dies", "unconfirmed", "its history contains the prompt, but no answer"),
    ],
)
def test_a_turn_without_an_answer_is_never_green(
    open_desk: Callable[..., Any], own_server: AgentServer, town: Town, manner: Any, outcome: str, says: str
) -> None:
    """An error, a message that is missing from the history, a history without an answer."""
    with open_desk("1s") as one, desk_of(one, own_server, town, "default", "standup") as desk:
        desk.put()
        assert desk.run()["outcome"] == "succeeded"
        own_server.manner = manner
        run = desk.run()
        assert (run["outcome"], run["rung"] == "finished") == (outcome, False)
        assert says in run["error"] and says in desk.why()
        assert desk.get()["lastResult"] == "error"


@pytest.mark.parametrize(("proves", "outcome"), [("finished", "unconfirmed"), ("idle", "succeeded")])
def test_a_server_without_a_readable_history(
    open_desk: Callable[..., Any], own_server: AgentServer, town: Town, proves: str, outcome: str
) -> None:
    """Unconfirmed; with `proves = "idle"` a success as far as `started` that says so. `doctor` tells why."""
    own_server.writes_history = False
    with open_desk("1s", f'proves = "{proves}"') as one, desk_of(one, own_server, town, "default", "standup") as desk:
        desk.hold()
        desk.put()
        desk.due("soon")
        until(lambda: [run["rung"] for run in desk.runs("soon")] == ["started"])
        desk.let_go()
        run = desk.ended("soon")
        assert (run["outcome"], run["rung"]) == (outcome, "started")
        said = run["output"] if proves == "idle" else run["error"]
        assert ("idle, no reply read" if proves == "idle" else "its history cannot be read") in said
        findings = doctor(one.home, own_server)
        (found,) = [finding for finding in findings if finding["what"] == "history"]
        assert found["state"] == "warning" and "default: session history cannot be read" in found["words"]
        assert "history_file" in found["cure"]


@pytest.mark.parametrize("evidence", ["history", "list"])
def test_after_kill_9_a_busy_session_is_known_to_be_busy_with_our_own_turn(
    tmp_path: Path, own_server: AgentServer, town: Town, evidence: str
) -> None:
    """The daemon is killed while the agent works. The next one does not wait an hour for a busy session, and does not
    send the message twice: it follows its own turn to its end."""
    own_server.writes_history = evidence == "history"
    more = "" if evidence == "history" else 'proves = "idle"'
    home = write_home(tmp_path / "home", own_server, more=more)
    with daemon(home, environ=own_server.environ) as one, desk_of(one, own_server, town, "default", "standup") as desk:
        desk.hold()
        desk.due()
        until(lambda: [run["rung"] for run in desk.runs()] == ["started"])
        one.end(signal.SIGKILL)
        with daemon(home, environ=own_server.environ) as two:
            later = Desk(type(desk.api)(two.address), home, own_server, town, "default", "standup")
            if evidence == "list":  # the history cannot tell, so the message is tried again and refused as busy
                until(lambda: len(desk.messages()) == 2)
                until(lambda: later.runs()[0]["rung"] == "started" and later.runs()[0]["attempt"] == 2)
            town.let_go(own_server)
            run = later.ended()
    assert run["outcome"] == "succeeded"
    assert run["rung"] == ("finished" if evidence == "history" else "started")
    assert (run.get("reply") == "all is well") is (evidence == "history")
    taken = json.dumps([one.session_id for one in own_server.sessions.values()])
    assert taken == '["session-1"]' and own_server.at_work_max == 1
