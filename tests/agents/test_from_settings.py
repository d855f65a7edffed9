"""Agents as the settings describe them: what a person writes reaches the server, the program, the function."""

import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from agents.conftest import make_fire
from agents.server import AgentServer, ChatServer
from climbing import RecordingLadder
from settings.kit import loaded
from wakeful.core.run.results import Done, Failed, Result
from wakeful.core.schedule.actions import Prompt
from wakeful.engine.clock import SystemClock
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.agents.from_settings import AgentRegistry
from wakeful.integrations.agents.turn import TurnAction
from wakeful.ports.action import Fire
from wakeful.ports.agent import Toolbox, ToolSpec


async def _call(fire: Fire, name: str, arguments: Any) -> str:
    raise AssertionError(name)


# What a model is offered here.
ONE_TOOL = Toolbox(lambda: [ToolSpec("wake_me", "one more turn", {"type": "object"})], _call)


class Desk:
    """The agents of a settings file, and the session the schedule is in."""

    def __init__(self, home: Path, text: str) -> None:
        self.registry = CallRegistry()
        agents = AgentRegistry(home).agents(loaded(home, text).settings.agents, SystemClock(), self.registry)
        receipts = Receipts(b"0123456789abcdef")
        self.action = TurnAction(agents, SystemClock(), sessions=self._session, receipts=receipts, toolbox=ONE_TOOL)
        self.session_id: str | None = None

    async def turn(self, text: str = "what is new?", **config: Any) -> Result:
        result = await self.action.perform(Prompt(text, session_config=config), make_fire(), RecordingLadder())
        if isinstance(result, Done) and result.session_id is not None:
            self.session_id = result.session_id
        return result

    async def _session(self, fire: Fire) -> str | None:
        return self.session_id


@pytest.fixture
async def open_desk(tmp_path: Path) -> AsyncIterator[Callable[[str], Desk]]:
    desks: list[Desk] = []

    def make(text: str) -> Desk:
        desks.append(Desk(tmp_path, f"[agents.default]\n{text}"))
        return desks[-1]

    yield make
    for desk in desks:
        await desk.action.close()


async def test_headers_and_session_config_reach_the_session_server(
    server: AgentServer, open_desk: Callable[[str], Desk]
) -> None:
    """Every request has the headers; a new session the definition's model and folder, not the agent's."""
    desk = open_desk(
        f'adapter = "sessions"\nurl = "{server.url}"\nmodel = "plain"\ncwd = "/srv"\n'
        'headers = {X-Key = {env = "GLM_KEY"}, X-Team = "night"}\n'
    )
    assert isinstance(await desk.turn(model="special", cwd="/work", persistSession=False), Done)
    assert {one.headers.get("X-Key") for one in server.asked} == {"key-of-the-provider"}
    assert {one.headers.get("X-Team") for one in server.asked} == {"night"}
    (made,) = [one.body for one in server.asked if (one.method, one.path) == ("POST", "/api/sessions")]
    assert (made["model"], made["cwd"]) == ("special", "/work")


async def test_a_server_of_which_nothing_more_is_known_proves_acceptance(
    server: AgentServer, open_desk: Callable[[str], Desk]
) -> None:
    """With `proves = "accepted"` nothing is waited for."""
    server.manner = "silent"
    desk = open_desk(f'adapter = "sessions"\nurl = "{server.url}"\nproves = "accepted"\n')
    result = await desk.turn()
    assert isinstance(result, Done)
    assert result.rung == "accepted"


async def test_a_history_is_read_where_the_settings_say(
    server: AgentServer, open_desk: Callable[[str], Desk], tmp_path: Path
) -> None:
    """From another path of the server, or from a file on this machine."""
    desk = open_desk(
        f'adapter = "sessions"\nurl = "{server.url}"\nconfirm_within = "1s"\n'
        'history_path = "/api/elsewhere/{id}/log"\n'
    )
    await desk.turn(persistSession=False)
    assert "/api/elsewhere/session-1/log" in server.paths("GET")
    assert not any(path.endswith("/events") for path in server.paths("GET"))
    folder = tmp_path / "sessions"
    events = [
        {"type": "user.message", "correlationId": make_fire().idempotency_key, "data": {"content": "what is new?"}},
        {"type": "assistant.message", "data": {"content": "from the file"}},
        {"type": "session.idle"},
    ]
    (folder / "session-2").mkdir(parents=True)
    (folder / "session-2" / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    desk = open_desk(f'adapter = "sessions"\nurl = "{server.url}"\nhistory_file = "{folder}/{{id}}/events.jsonl"\n')
    server.missing.add("events")
    result = await desk.turn(persistSession=False)
    assert isinstance(result, Done)
    assert result.reply == "from the file"


async def test_a_request_may_take_no_longer_than_answer_within(
    server: AgentServer, open_desk: Callable[[str], Desk]
) -> None:
    """A server that does not answer at all is given up after that."""
    server.answers.clear()
    desk = open_desk(f'adapter = "sessions"\nurl = "{server.url}"\nanswer_within = "1s"\n')
    result = await desk.turn()
    server.answers.set()
    assert isinstance(result, Failed)
    assert "no answer within 1 s" in result.error


@pytest.mark.parametrize(
    ("adapter", "answer"),
    [
        ("openai", {"choices": [{"message": {"content": "well"}, "finish_reason": "stop"}]}),
        ("anthropic", {"content": [{"type": "text", "text": "well"}], "stop_reason": "end_turn"}),
    ],
)
async def test_headers_reach_a_chat_endpoint(
    chat: ChatServer, open_desk: Callable[[str], Desk], adapter: str, answer: Any
) -> None:
    """Beside the key."""
    chat.says(answer)
    desk = open_desk(
        f'adapter = "{adapter}"\nurl = "{chat.url}"\nmodel = "m"\napi_key = "sk-1234"\nheaders = {{X-Org = "ours"}}\n'
    )
    result = await desk.turn()
    assert isinstance(result, Done)
    assert result.reply == "well"
    (asked,) = chat.asked
    assert asked.headers["X-Org"] == "ours"
    assert "sk-1234" in (asked.headers.get("Authorization", "") + asked.headers.get("x-api-key", ""))


@pytest.mark.parametrize(("line", "is_offered"), [("", True), ("tools = true\n", True), ("tools = false\n", False)])
async def test_a_model_is_offered_the_tools_unless_the_settings_say_no(
    chat: ChatServer, open_desk: Callable[[str], Desk], line: str, is_offered: bool
) -> None:
    chat.says({"choices": [{"message": {"content": "well"}, "finish_reason": "stop"}]})
    desk = open_desk(f'adapter = "openai"\nurl = "{chat.url}"\nmodel = "m"\n{line}')
    assert isinstance(await desk.turn(), Done)
    (asked,) = chat.asked
    assert ("tools" in asked.body) is is_offered


PROGRAM = """
import json, sys
session = sys.argv[1] if len(sys.argv) > 1 else None
if session == "s-1":
    print("no such session: s-1")
    sys.exit(1)
asked = sys.stdin.read()
said = {"result": "well", "tokens": {"input_tokens": 3, "output_tokens": 4}, "session": "s-1", "problem": None}
if "fail" in asked:
    said["problem"] = "out of credit"
print(json.dumps(said))
"""


async def test_a_programs_output_is_read_by_its_keys(open_desk: Callable[[str], Desk], tmp_path: Path) -> None:
    """Usage and errors where the settings say; a session it lost is let go of, and the prompt given once more."""
    program = tmp_path / "agent.py"
    program.write_text(PROGRAM)
    argv = json.dumps([sys.executable, str(program)])
    resume = json.dumps([sys.executable, str(program), "{session}"])
    desk = open_desk(
        f'adapter = "command"\nargv = {argv}\nresume_argv = {resume}\nreply_key = "result"\nsession_key = "session"\n'
        'usage_key = "tokens"\nerror_key = "problem"\nlost_pattern = "no such session"\n'
    )
    first = await desk.turn()
    assert first == Done(reply="well", usage={"input": 3, "output": 4, "total": 7}, session_id="s-1")
    assert desk.session_id == "s-1"
    again = await desk.turn()
    assert isinstance(again, Done)
    assert again.reply == "well"
    failed = await desk.turn("fail", persistSession=False)
    assert isinstance(failed, Failed)
    assert "out of credit" in failed.error


async def test_a_function_gets_the_model_if_it_takes_one(open_desk: Callable[[str], Desk]) -> None:
    """The definition's, else the agent's; one that takes none is called without."""
    desk = open_desk('adapter = "call"\ntarget = "mine:answer"\nmodel = "usual"\n')
    desk.registry.register("mine:answer", lambda prompt, model: f"{model} says hello")
    assert await desk.turn() == Done(reply="usual says hello")
    assert await desk.turn(model="special") == Done(reply="special says hello")
    desk = open_desk('adapter = "call"\ntarget = "mine:answer"\nmodel = "usual"\n')
    desk.registry.register("mine:answer", lambda prompt, session_id, model: f"{model} in {session_id}")
    assert await desk.turn() == Done(reply="usual in None")
    desk = open_desk('adapter = "call"\ntarget = "mine:answer"\nmodel = "usual"\n')
    desk.registry.register("mine:answer", lambda prompt: "just hello")
    assert await desk.turn() == Done(reply="just hello")


async def test_an_agent_that_is_described_as_before_is_kept(tmp_path: Path) -> None:
    """The very same one; another description, or another secret, makes another."""
    book, clock, registry = AgentRegistry(tmp_path), SystemClock(), CallRegistry()
    text = '[agents.a]\nadapter = "sessions"\n[agents.b]\nadapter = "openai"\nmodel = "m"\napi_key = "{}"\n'
    first = book.agents(loaded(tmp_path, text.format("one-key")).settings.agents, clock, registry)
    same = book.agents(loaded(tmp_path, text.format("one-key")).settings.agents, clock, registry)
    other = book.agents(loaded(tmp_path, text.format("another")).settings.agents, clock, registry)
    assert all(first[name] is same[name] for name in first)
    assert other["a"] is first["a"]
    assert other["b"] is not first["b"]
