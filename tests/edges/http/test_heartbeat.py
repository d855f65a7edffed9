"""The heartbeat of a running daemon, with a real server as its agent."""

import asyncio
import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.server import AgentServer, serving
from edges.http.kit import Client, Daemon, daemon, served
from patience import PATIENCE
from wakeful import Heartbeat

WITHIN = PATIENCE
SETTINGS = """
[agents.default]
adapter = "sessions"
url = "{url}"

[heartbeat]
enabled = {enabled}
every = "{every}"

[hooks.door]
token = "a-secret-of-the-door"
"""


@pytest.fixture
async def agent() -> AsyncIterator[AgentServer]:
    """An agent behind HTTP that has nothing to say."""
    async with serving(AgentServer()) as one:
        one.reply = "HEARTBEAT_OK"
        yield one


@contextmanager
def beating(home: Path, agent: AgentServer, *, enabled: bool = False, every: str = "1h") -> Iterator[Daemon]:
    """A daemon whose heart beats."""
    home.mkdir(exist_ok=True)
    text = SETTINGS.format(url=agent.url, enabled=str(enabled).lower(), every=every)
    (home / "wakeful.toml").write_text(text)
    with daemon(home, environ=agent.environ) as one:
        yield one


def ask(one: Daemon, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, Any]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(one.address + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.status, json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


async def asked(one: Daemon, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, Any]:
    """Without holding up the agent that lives in this process."""
    return await asyncio.to_thread(ask, one, method, path, body, token)


async def until(condition: Callable[[], Any]) -> Any:
    """Wait for it to hold; an async condition is awaited."""
    end = time.monotonic() + WITHIN
    while True:
        found = condition()
        found = await found if asyncio.iscoroutine(found) else found
        if found:
            return found
        assert time.monotonic() < end, "it did not come to pass"
        await asyncio.sleep(0.02)


async def test_a_wake_gives_the_agent_a_turn_that_tells_it_why(tmp_path: Path, agent: AgentServer) -> None:
    """Over REST, in a session of its own; HEARTBEAT.md is in the prompt; the ledger and why know about it."""
    with beating(tmp_path / "home", agent) as one:
        (one.home / "HEARTBEAT.md").write_text("Look at the garden.\n")
        wake = {"reason": "manual", "text": "it rains", "contextKey": "w"}
        assert await asked(one, "POST", "/api/wake", wake) == (202, {"coalesced": False})
        await until(agent.messages)
        message = agent.messages()[0].body
        assert message["source"] == "scheduler"
        assert message["scheduleSlug"] == "heartbeat"
        assert "answer only HEARTBEAT_OK" in message["prompt"]
        assert "# HEARTBEAT.md\n\nLook at the garden." in message["prompt"]
        assert "> it rains" in message["prompt"]
        assert "woken by: manual" in message["prompt"]

        async def turned() -> Any:
            _, state = await asked(one, "GET", "/api/heartbeat")
            return state if state["lastTurns"] and state["lastTurns"][0]["outcome"] == "succeeded" else None

        state = await until(turned)
        assert state["lastTurns"][0]["reason"] == "ok-ack"
        assert state["lastTurns"][0]["reasons"] == ["manual"]
        assert state["sessionId"] == "session-1"
        assert (await asked(one, "GET", "/api/system-events"))[1] == {"events": []}
        runs = (await asked(one, "GET", "/api/schedule/heartbeat/runs"))[1]["runs"]
        assert [run["slug"] for run in runs] == ["heartbeat"]
        why = (await asked(one, "GET", "/api/schedule/heartbeat/why"))[1]
        assert "disabled in the settings" in why["sentence"]


async def test_it_beats_by_itself_and_follows_changed_settings(tmp_path: Path, agent: AgentServer) -> None:
    """Every second, until the file says otherwise."""
    with beating(tmp_path / "home", agent, enabled=True, every="1s") as one:
        await until(lambda: len(agent.messages()) >= 2)
        text = SETTINGS.format(url=agent.url, enabled="false", every="1s")
        (one.home / "wakeful.toml").write_text(text)

        async def is_off() -> bool:
            return (await asked(one, "GET", "/api/heartbeat"))[1]["status"] == "disabled"

        await until(is_off)
        assert (await asked(one, "GET", "/api/heartbeat"))[1]["nextBeat"] is None


async def test_a_hook_wakes_with_its_own_token_and_no_other(tmp_path: Path, agent: AgentServer) -> None:
    """What else its body says is not looked at; an unknown hook and a wrong token look the same."""
    with beating(tmp_path / "home", agent) as one:
        body = {"text": "somebody rang", "contextKey": "door", "event": {"id": 7}}
        for name, token in (("door", "wrong"), ("door", None), ("window", "a-secret-of-the-door"), ("door", "")):
            assert (await asked(one, "POST", f"/api/hooks/{name}", body, token))[0] == 401
        assert (await asked(one, "POST", "/api/hooks/door", {"text": 5}, "a-secret-of-the-door"))[0] == 400
        assert (await asked(one, "POST", "/api/hooks/door", body, "a-secret-of-the-door"))[0] == 202
        await until(agent.messages)
        assert "from hook:door at" in agent.messages()[0].body["prompt"]
        assert "> somebody rang" in agent.messages()[0].body["prompt"]


async def test_an_event_schedule_reaches_the_agent_and_ends_with_the_turn(tmp_path: Path, agent: AgentServer) -> None:
    """Accepted while the agent is at it, finished when it has answered."""
    agent.gate.clear()
    with beating(tmp_path / "home", agent) as one:
        definition = {"schedule": {"type": "manual"}, "event": {"text": "Check BTC RSI"}}
        assert (await asked(one, "PUT", "/api/schedule/check", definition))[0] == 201
        run_id = (await asked(one, "POST", "/api/schedule/check/run"))[1]["runId"]
        await until(agent.messages)
        run = (await asked(one, "GET", f"/api/runs/{run_id}"))[1]
        assert (run["outcome"], run["rung"], run["reason"]) == ("waiting", "accepted", "turn")
        (event,) = (await asked(one, "GET", "/api/system-events"))[1]["events"]
        assert (event["contextKey"], event["source"], event["runId"]) == ("cron:check", "cron", run_id)
        agent.gate.set()

        async def ended() -> Any:
            found = (await asked(one, "GET", f"/api/runs/{run_id}"))[1]
            return found if found["outcome"] != "waiting" else None

        run = await until(ended)
        assert (run["outcome"], run["rung"]) == ("succeeded", "finished")


async def test_an_event_survives_kill_9_while_its_turn_is_under_way(tmp_path: Path, agent: AgentServer) -> None:
    """The process is gone between carrying and hearing: the next one has the event heard, and the run finished."""
    agent.gate.clear()
    home = tmp_path / "home"
    with beating(home, agent) as one:
        definition = {"schedule": {"type": "every", "every": "10s"}, "event": {"text": "Check BTC RSI"}}
        await asked(one, "PUT", "/api/schedule/check", definition)
        await until(agent.messages)
        await asyncio.to_thread(one.end, signal.SIGKILL)
    for session in agent.sessions.values():  # the agent forgot it, too: nobody can tell what became of the turn
        session.events = ()
        if session.dispatch is not None:
            session.dispatch.cancel()
        session.is_busy = False
    agent.sessions.clear()
    agent.gate.set()
    before = len(agent.messages())
    with beating(home, agent) as one:

        async def heard() -> Any:
            runs = (await asked(one, "GET", "/api/schedule/check/runs"))[1]["runs"]
            return [run for run in runs if run["outcome"] == "succeeded"]

        runs = await until(heard)
        assert runs[-1]["rung"] == "finished"
        assert any("> Check BTC RSI" in message.body["prompt"] for message in agent.messages()[before:])


async def test_a_turn_proves_itself_when_it_asks_for_another(tmp_path: Path, agent: AgentServer) -> None:
    """With the token of its run the request is its own; a forged one is refused."""
    with beating(tmp_path / "home", agent) as one:
        await asked(one, "POST", "/api/wake")
        await until(agent.messages)
        receipt = agent.messages()[0].headers["X-Wakeful-Receipt"]
        run_id, token = receipt.split("/")[-2], receipt.partition("token=")[2]
        assert (await asked(one, "POST", "/api/wake", {"runId": run_id, "token": "forged"}))[0] == 409
        assert (await asked(one, "POST", "/api/wake", {"runId": run_id}))[0] == 400
        assert (await asked(one, "POST", "/api/wake", {"reason": "hook", "runId": run_id, "token": token}))[0] == 202

        async def own() -> Any:
            state = (await asked(one, "GET", "/api/heartbeat"))[1]
            return state if state["pending"] else None

        state = await until(own)
        assert state["pending"] == [{"reason": "hook", "own": True, "times": 1}]


async def test_what_cannot_be_a_wake_is_refused(api: Client) -> None:
    """By field, with the cure; and where no heartbeat is, that is said."""
    for body, field in (
        ({"reason": "interval"}, "reason"),
        ({"reason": ""}, "reason"),
        ({"text": " "}, "text"),
        ({"text": "x" * 9_000}, "text"),
        ({"contextKey": "k"}, "contextKey"),
        ({"text": "x", "contextKey": "k" * 201}, "contextKey"),
        ({"txt": "x"}, "txt"),
    ):
        refused = await api.post("/api/wake", body)
        assert (refused.status, refused.body["errors"][0]["field"]) == (400, field), body
    assert (await api.post("/api/wake", {})).status == 409
    assert (await api.get("/api/heartbeat")).body["status"] == "disabled"
    assert (await api.get("/api/system-events")).body == {"events": []}


async def test_the_heartbeat_is_paused_and_resumed_over_rest(tmp_path: Path) -> None:
    """A time that is past, and a field that is not known, are refused; its record is read like that of a schedule."""
    async with served(tmp_path, heartbeat=Heartbeat(every="1h")) as api:
        said = await api.post("/api/heartbeat/pause", {"until": "2100-01-01T00:00:00Z"})
        assert (said.status, said.body["status"], said.body["resumeAt"]) == (200, "paused", "2100-01-01T00:00:00.000Z")
        assert said.body["nextBeat"] is None
        for body in ({"until": "2001-01-01T00:00:00Z"}, {"untill": "2100-01-01T00:00:00Z"}):
            assert (await api.post("/api/heartbeat/pause", body)).status == 400
        said = await api.post("/api/heartbeat/resume")
        assert (said.status, said.body["status"], said.body["pausedAt"]) == (200, "idle", None)
        assert (await api.get("/api/schedule/heartbeat/stats")).body["nextRun"] == said.body["nextBeat"]
    async with served(tmp_path, heartbeat=Heartbeat(enabled=False)) as api:
        assert (await api.post("/api/heartbeat/pause")).status == 409
