"""The command and call agents: real processes, real callables."""

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.conftest import make_fire
from climbing import Eventually, RecordingLadder
from patience import PATIENCE
from wakeful.core.heartbeat.conversations import conversation
from wakeful.core.run.results import Busy, Done, Failed, Interrupted, Result, Throttled
from wakeful.core.schedule.actions import Prompt
from wakeful.engine.clock import SystemClock
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.actions.reply import REPLY_MAX
from wakeful.integrations.agents.call import CallAgent
from wakeful.integrations.agents.command import CommandAgent, CommandSettings
from wakeful.integrations.agents.turn import TurnAction
from wakeful.ports.action import Fire, StillRunning
from wakeful.ports.agent import Agent

MARKED = "[scheduler:standup] what is new?"
SESSION = "import json, os, sys; args = sys.argv[1:]\n"


class Desk:
    """A turn action with one agent, whose schedule's session is kept as the engine keeps it."""

    def __init__(self, agent: Agent) -> None:
        self.session_id: str | None = None
        self.ladder = RecordingLadder()
        self.receipts = Receipts(b"0123456789abcdef", "https://here")
        self.action = TurnAction({"default": agent}, SystemClock(), sessions=self._session, receipts=self.receipts)

    async def turn(self, text: str = "what is new?", **config: Any) -> Result:
        result = await self.action.perform(Prompt(text, session_config=config), make_fire(), self.ladder)
        if isinstance(result, Done) and result.session_id is not None:
            self.session_id = result.session_id
        return result

    def wrong(self, **config: Any) -> str | None:
        found = self.action.check(Prompt("hi", session_config=config))
        return None if found is None else found.message

    async def _session(self, fire: Fire) -> str | None:
        return self.session_id


@pytest.fixture
async def seat() -> AsyncIterator[Callable[[Agent], Desk]]:
    desks: list[Desk] = []

    def make(agent: Agent) -> Desk:
        desks.append(Desk(agent))
        return desks[-1]

    yield make
    for desk in desks:
        await desk.action.close()


@pytest.fixture
def program(seat: Callable[[Agent], Desk], tmp_path: Path) -> Callable[..., Desk]:
    """A desk whose agent is this Python program, with these words after it."""

    def make(source: str, *words: str, resume: Sequence[str] = (), **settings: Any) -> Desk:
        path = tmp_path / "agent.py"
        path.write_text(SESSION + source)
        argv = (sys.executable, str(path), *words)
        written = CommandSettings(argv, (*argv, *resume), **settings)
        return seat(CommandAgent(written, SystemClock(), grace=500))

    return make


async def test_a_prompt_in_the_arguments(program: Callable[..., Desk]) -> None:
    """Where argv says so, marked; what is printed is the reply, without the blanks around it."""
    desk = program("print('got', args); print()", "-p", "{prompt}")
    assert await desk.turn() == Done(reply=f"got ['-p', {MARKED!r}]")
    assert desk.ladder.rungs == ["sent", "started"] and desk.ladder.process is not None


async def test_a_prompt_over_stdin(program: Callable[..., Desk]) -> None:
    """Where argv does not say; of any length and with any character, and never through a shell."""
    desk = program("print(len(sys.stdin.read()), args)", "$(id)", "a b")
    text = "'\"$(id)`\n\0 ü" * 50_000
    assert await desk.turn(text) == Done(reply=f"{len('[scheduler:standup] ' + text)} ['$(id)', 'a b']")


async def test_the_key_is_in_the_environment_and_not_in_the_prose(program: Callable[..., Desk]) -> None:
    """With the other facts of the run, and the address for the receipt."""
    desk = program("print(os.environ['WAKEFUL_IDEMPOTENCY_KEY'], os.environ['WAKEFUL_RECEIPT_URL'], os.environ['A'])",
                   env={"A": "b"})  # fmt: skip
    assert await desk.turn() == Done(reply=f"store-7-1769763600000 {desk.receipts.url(42)} b")


async def test_a_prompt_that_looks_like_a_placeholder(program: Callable[..., Desk]) -> None:
    """Is left as it is."""
    desk = program("print(args)", "{model}", "{prompt}", model="small")
    assert await desk.turn("say {session} and {model}") == Done(
        reply="['small', '[scheduler:standup] say {session} and {model}']"
    )
    assert await desk.turn("x", model="large") == Done(reply="['large', '[scheduler:standup] x']")


async def test_nothing_printed_is_an_empty_reply(program: Callable[..., Desk]) -> None:
    """All that it printed was read: the turn ended without a word."""
    result = await program("pass").turn()
    assert result == Done(reply="")


async def test_a_session_found_by_a_pattern_is_resumed(program: Callable[..., Desk]) -> None:
    """The first turn begins one, the second goes on with it; an ephemeral turn does neither."""
    desk = program(
        "print('session: abc-123'); print(args)",
        resume=("--resume", "{session}"),
        session_pattern=r"session: (\S+)",
    )
    assert await desk.turn() == Done(reply="session: abc-123\n[]", session_id="abc-123")
    assert await desk.turn() == Done(reply="session: abc-123\n['--resume', 'abc-123']", session_id="abc-123")
    assert await desk.turn(persistSession=False) == Done(reply="session: abc-123\n[]")


JSON_SETTINGS = {
    "session_path": "session_id",
    "reply_path": "result.0.text",
    "usage_path": "usage",
    "error_path": "is_error",
    "resume": ("--resume={session}",),
}


async def test_reply_session_and_usage_in_json(program: Callable[..., Desk]) -> None:
    """At the places the settings name, among other lines or alone."""
    answer = {
        "session_id": "s-1",
        "result": [{"text": "fine"}],
        "usage": {"input_tokens": 4, "x": "y"},
        "is_error": False,
    }
    desk = program(
        f"print('warming up\\n{{}}\\n{{\"a\"'); print({json.dumps(answer)!r}); print('bye')", **JSON_SETTINGS
    )
    expected = Done(reply="fine", usage={"input": 4}, session_id="s-1")
    assert await desk.turn() == expected
    alone = program(f"print(json.dumps(json.loads({json.dumps(answer)!r}), indent=1))", **JSON_SETTINGS)
    assert await alone.turn() == expected


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        ('{"is_error": true, "result": [{"text": "credit is too low"}]}', "credit is too low"),
        ('{"is_error": "overloaded"}', "overloaded"),
        ('{"is_error": {"code": 5}}', "it reported an error: without a message"),
        ('{"result": "elsewhere"}', "no text at 'result.0.text'"),
        ('{"result": [{"text": 5}]}', "no text at 'result.0.text'"),
        ("plain text", "no text at 'result.0.text'"),
        ("[" * 50_000, "no text at 'result.0.text'"),
        ("", "no text at 'result.0.text'"),
    ],
)
async def test_exit_0_is_not_green_by_itself(program: Callable[..., Desk], printed: str, says: str) -> None:
    """An error in the JSON, or no reply where one is promised, is a failure."""
    result = await program(f"print({printed!r})", **JSON_SETTINGS).turn()
    assert isinstance(result, Failed) and says in result.error


@pytest.mark.parametrize("session_id", ["--danger", "a b", "x;y", "../up", "", "ü", "x" * 300])
async def test_a_session_id_that_would_be_something_else_is_dropped(
    program: Callable[..., Desk], session_id: object
) -> None:
    """It comes from an agent and goes onto a command line: it is never trusted, nor is one that a person edited."""
    desk = program(f"print(json.dumps({{'id': {session_id!r}, 'args': str(args)}}))", session_path="id",
                   reply_path="args", resume=("{session}",))  # fmt: skip
    assert await desk.turn() == Done(reply="[]")
    desk.session_id = str(session_id)
    assert await desk.turn() == Done(reply="[]")


async def test_a_session_the_agent_has_lost_is_begun_anew(program: Callable[..., Desk], tmp_path: Path) -> None:
    """Run once more without it, and the new id is kept; any other failure is not repeated."""
    source = """
open('runs', 'a').write('x')
if args: sys.exit('No conversation found' if args[1] == 'old' else 'something else')
print('id=new-1')
"""
    desk = program(
        source,
        cwd=str(tmp_path),
        resume=("-r", "{session}"),
        session_pattern="id=(.*)",
        lost_pattern="(?i)no conversation",
    )
    desk.session_id = "old"
    note = "[the program no longer knows the session old: a new one was started]"
    assert await desk.turn() == Done(reply="id=new-1", session_id="new-1", output=note)
    assert (tmp_path / "runs").read_text() == "xx"
    assert isinstance(await desk.turn(), Failed)
    assert (tmp_path / "runs").read_text() == "xxx"


async def test_a_failing_program(program: Callable[..., Desk]) -> None:
    """Its last words on stderr are the error; both streams are the output, apart."""
    result = await program("print('thinking'); sys.exit('rate limit')").turn()
    name = Path(sys.executable).name
    assert result == Failed(f"{name}: exited with 1: rate limit", output="[stdout]\nthinking\n[stderr]\nrate limit")


async def test_stderr_is_no_part_of_the_reply(program: Callable[..., Desk]) -> None:
    """Warnings are for people; JSON is read although they are there."""
    desk = program("print('careful', file=sys.stderr); print('{\"a\": \"fine\"}'); print('x', file=sys.stderr)",
                   reply_path="a")  # fmt: skip
    assert await desk.turn() == Done(reply="fine", output="[stderr]\ncareful\nx")


@pytest.mark.parametrize("text", ["--dangerously-skip-permissions", "-c x"])
async def test_a_message_of_a_person_never_becomes_an_option(program: Callable[..., Desk], text: str) -> None:
    """It stays one word, and begins with a blank where it would begin with a hyphen."""
    desk = program("print(args)", "-p", "{prompt}", "--message={prompt}")
    prompt = Prompt(text)
    fire = make_fire()._replace(slug=conversation("phone", "me"))
    result = await desk.action.perform(prompt, fire, desk.ladder)
    assert result == Done(reply=str(["-p", f" {text}", f"--message={text}"]))


async def test_an_error_pattern_counts_whatever_the_exit_code(program: Callable[..., Desk]) -> None:
    """On either stream; its group is the message, dug out of JSON."""
    source = """print('all well'); print('ERROR {"error": {"message": "no credit"}}', file=sys.stderr)"""
    result = await program(source, error_pattern="^ERROR (.*)").turn()
    assert isinstance(result, Failed) and result.error.endswith("it reported an error: no credit")


async def test_a_limit_pattern_names_the_reset(program: Callable[..., Desk]) -> None:
    """Then the run waits for it; a limit without a time is a failure."""
    limited = await program("sys.exit('limit reached, try again in 90 seconds')", limit_pattern="limit (.*)").turn()
    assert isinstance(limited, Throttled) and limited.reason == "quota"
    assert "its usage limit is reached, and resets at" in limited.error
    other = await program("print('limit reached')", limit_pattern="limit (.*)").turn()
    assert isinstance(other, Failed) and other.error.endswith("it reported an error: reached")


async def test_a_key_with_dots_stands_in_quotes_or_in_a_list(program: Callable[..., Desk]) -> None:
    """Names of models have dots."""
    answer = {"text": "hi", "models": {"gemini-2.5-pro": {"input": 3, "output": 1}}}
    for path in ('models."gemini-2.5-pro"', ("models", "gemini-2.5-pro")):
        desk = program(f"print({json.dumps(answer)!r})", reply_path="text", usage_path=path)
        assert await desk.turn() == Done(reply="hi", usage={"input": 3, "output": 1, "total": 4})


async def test_the_format_decides_what_is_json(program: Callable[..., Desk]) -> None:
    """`text` reads none, `jsonl` reads lines, `json` reads one value and nothing among other lines."""
    lines = 'print(\'{"a": "one"}\'); print(\'{"a": "two"}\')'
    assert await program(lines, format="jsonl", reply_path="a").turn() == Done(reply="two")
    assert isinstance(await program(lines, format="json", reply_path="a").turn(), Failed)
    assert isinstance(await program(lines, format="text", reply_path="a").turn(), Failed)


async def test_a_prompt_over_stdin_and_in_the_arguments(program: Callable[..., Desk]) -> None:
    """If the settings say so."""
    desk = program("print(args, sys.stdin.read())", "{prompt}", stdin=True)
    assert await desk.turn("x") == Done(reply="['[scheduler:standup] x'] [scheduler:standup] x")


async def test_ten_megabytes_and_control_characters(program: Callable[..., Desk]) -> None:
    """Read without being kept, cleaned, and bounded."""
    result = await program("sys.stdout.write('<b>\\x1b[2J\\0' + 'x' * 10_000_000)").turn()
    assert isinstance(result, Done) and result.reply is not None
    assert result.reply.startswith("<b>\ufffd[2J\ufffd") and len(result.reply) < REPLY_MAX + 200


async def test_cancelling_ends_the_program(program: Callable[..., Desk], eventually: Eventually) -> None:
    """And what it started, before it is said to be over."""
    desk = program("import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)")
    turn = asyncio.create_task(desk.turn())
    await eventually(lambda: desk.ladder.process)
    assert desk.ladder.process is not None
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    leader = desk.ladder.process.pid
    await eventually(lambda: _is_group_gone(leader))


def _is_group_gone(pid: int) -> bool:
    """A zombie is in its group until it is reaped, which may take a moment."""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_a_receipt_posted_by_a_program_is_its_reply(program: Callable[..., Desk], tmp_path: Path) -> None:
    """What it prints beside that is not."""
    desk = program(
        "import time\nwhile not os.path.exists(args[0]): time.sleep(0.01)\nprint('noise')", str(tmp_path / "go")
    )

    async def post() -> None:
        await desk.receipts.post(42, desk.receipts.token(42), "finished", "the real reply")
        (tmp_path / "go").touch()

    posting: list[asyncio.Task[None]] = []
    desk.ladder.on_rung = lambda rung: rung == "started" and posting.append(asyncio.create_task(post()))
    assert await desk.turn() == Done(reply="the real reply")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"argv": ("no-such-agent-here",)}, "was not found on the PATH"),
        ({"argv": ()}, "argv is empty"),
        ({"session_pattern": "("}, "session_pattern '(' cannot be read"),
        ({"lost_pattern": "["}, "lost_pattern '[' cannot be read"),
        ({"argv": ("true", "{model}")}, "set model for the agent"),
    ],
)
async def test_settings_that_cannot_work(seat: Callable[[Agent], Desk], settings: dict[str, Any], says: str) -> None:
    """Named when the definition is written."""
    wrong = seat(CommandAgent(CommandSettings(**{"argv": ("true",), **settings}), SystemClock())).wrong()
    assert wrong is not None and says in wrong


async def test_nobody_knows_what_a_lost_program_had_done(program: Callable[..., Desk]) -> None:
    """After a crash nobody can tell."""
    assert await program("").action.ask(Prompt("hi"), make_fire()) is None


class Callables:
    """A registry, and a desk whose agent is what was registered."""

    def __init__(self, seat: Callable[[Agent], Desk]) -> None:
        self._seat = seat

    def __call__(self, target: Any) -> Desk:
        registry = CallRegistry()
        if not isinstance(target, str):
            registry.register("agent", target)
            target = "agent"
        return self._seat(CallAgent(target, registry))


@pytest.fixture
def callable_agent(seat: Callable[[Agent], Desk]) -> Callables:
    return Callables(seat)


async def test_a_callable_takes_what_it_has_room_for(callable_agent: Callables) -> None:
    """The prompt alone; with the session; with the fire, which carries the key; sync or async."""

    def only(prompt: str) -> str:
        return prompt

    async def more(fire: Any, prompt: str, session_id: str | None) -> Done:
        return Done(reply=f"{fire.idempotency_key} {prompt} {session_id}", usage={"input_tokens": 2}, session_id="c-1")

    assert await callable_agent(only).turn() == Done(reply=MARKED)
    desk = callable_agent(more)
    key = "store-7-1769763600000"
    assert await desk.turn() == Done(reply=f"{key} {MARKED} None", usage={"input": 2}, session_id="c-1")
    assert await desk.turn() == Done(reply=f"{key} {MARKED} c-1", usage={"input": 2}, session_id="c-1")
    assert desk.ladder.rungs == ["started", "started"]


async def test_what_a_callable_returns(callable_agent: Callables) -> None:
    """None is no reply, "" an empty one; results of its own making count, those that are ours to make do not."""
    for value, expected in (
        (None, Done(reply=None)),
        ("", Done(reply="")),
        ("a\0\x1bb", Done(reply="a\ufffd\ufffdb")),
        (Busy("not now"), Busy("not now")),
        (Failed("no", permanent=True), Failed("no", permanent=True)),
        (Done(reply="r", output="o", session_id="--x"), Done(reply="r", output="o")),
    ):
        assert await callable_agent(lambda prompt, value=value: value).turn() == expected
    result = await callable_agent(lambda prompt: Interrupted("x")).turn()
    assert isinstance(result, Failed) and "return text, None or AgentReply" in result.error


async def test_a_callable_that_raises(callable_agent: Callables) -> None:
    """Failed, with its words."""

    def broken(prompt: str) -> str:
        raise ValueError("no idea")

    result = await callable_agent(broken).turn()
    assert isinstance(result, Failed) and result.error == "ValueError: no idea"


async def test_a_callable_by_its_place_is_imported_in_a_thread(
    callable_agent: Callables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its import does not hold up the clock."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "agent_in_a_module.py").write_text(
        "import threading\nWHERE = threading.current_thread() is threading.main_thread()\n"
        "def answer(prompt): return str(WHERE)\n"
    )
    assert await callable_agent("agent_in_a_module:answer").turn() == Done(reply="False")


async def test_a_callable_that_cannot_be_one(callable_agent: Callables) -> None:
    """Unknown, or without room for the prompt: named when the definition is written."""
    assert "no callable is registered as 'nobody'" in (callable_agent("nobody").wrong() or "")
    assert "cannot be called" in (callable_agent(lambda: None).wrong() or "")
    assert callable_agent(lambda prompt: None).wrong() is None


async def test_a_thread_that_cannot_be_ended_is_still_running(
    callable_agent: Callables, eventually: Eventually
) -> None:
    """It is said so, and said when it ends."""
    hold, began = threading.Event(), threading.Event()

    def stubborn(prompt: str) -> None:
        began.set()
        hold.wait(PATIENCE)

    turn = asyncio.create_task(callable_agent(stubborn).turn())
    await eventually(began.is_set)
    turn.cancel()
    with pytest.raises(StillRunning) as still:
        await turn
    hold.set()
    await still.value.ended
