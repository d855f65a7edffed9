"""The chat agents against real endpoints, and the transcripts they keep."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.conftest import make_fire
from agents.server import ChatServer, broken_off, constant, endless, hangs_up
from climbing import Eventually, RecordingLadder
from wakeful.core.run.results import Done, Failed, Result, Throttled
from wakeful.core.run.traces import attempt_of, turn_of
from wakeful.core.schedule.actions import Prompt
from wakeful.engine.clock import SystemClock
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.actions.reply import REPLY_MAX
from wakeful.integrations.agents.anthropic import TOKENS_MAX, VERSION, anthropic_agent
from wakeful.integrations.agents.anthropic import _answer as anthropic_answer
from wakeful.integrations.agents.chat import CUT, ChatAgent, ChatSettings
from wakeful.integrations.agents.openai import _answer as openai_answer
from wakeful.integrations.agents.openai import openai_agent
from wakeful.integrations.agents.transcripts import BYTES_MAX, Transcripts, TranscriptTurn
from wakeful.integrations.agents.turn import TurnAction
from wakeful.ports.action import Fire, NeverReceived
from wakeful.ports.agent import Replied

MARKED = "[scheduler:standup] what is new?"


def openai_says(text: Any, reason: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, **more}
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15, "prompt_tokens_details": {"cached": 1}}
    return {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": usage}


def anthropic_says(*texts: Any, reason: str = "end_turn") -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    usage = {"input_tokens": 12, "output_tokens": 3, "service_tier": "standard", "cache_creation": {"a": 1}}
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": reason, "usage": usage}


class Desk:
    """A turn action with one chat agent, whose schedule's session is kept as the engine keeps it."""

    def __init__(self, agent: ChatAgent) -> None:
        self.session_id: str | None = None
        self.ladder = RecordingLadder()
        receipts = Receipts(b"0123456789abcdef")
        self.action = TurnAction({"default": agent}, SystemClock(), sessions=self._session, receipts=receipts)

    async def turn(self, text: str = "what is new?", key: str = "k1", **config: Any) -> Result:
        fire = make_fire(idempotency_key=key)
        result = await self.action.perform(Prompt(text, session_config=config), fire, self.ladder)
        if isinstance(result, Done) and result.session_id is not None:
            self.session_id = result.session_id
        return result

    async def _session(self, fire: Fire) -> str | None:
        return self.session_id


class FullDisk(Transcripts):
    """Transcripts that cannot be written."""

    async def read(self, session_id: str) -> Sequence[TranscriptTurn]:
        return ()

    async def add(self, session_id: str, spoken: TranscriptTurn) -> None:
        raise OSError(28, "No space left on device")


@pytest.fixture
async def open_desk(chat: ChatServer, tmp_path: Path) -> AsyncIterator[Callable[..., Desk]]:
    desks: list[Desk] = []

    def make(make_agent: Any = openai_agent, transcripts: Any = None, **settings: Any) -> Desk:
        given = ChatSettings(**{"url": chat.url + "/v1", "model": "small", "api_key": "secret", **settings})
        kept = transcripts or Transcripts(tmp_path / "transcripts")
        desks.append(Desk(make_agent(given, SystemClock(), kept)))
        return desks[-1]

    yield make
    for desk in desks:
        await desk.action.close()


@pytest.fixture
def desk(open_desk: Callable[..., Desk]) -> Desk:
    return open_desk()


async def test_an_openai_turn(chat: ChatServer, desk: Desk) -> None:
    """The marked prompt, the key in a header, the token as a bearer's; reply and usage come back."""
    chat.says(openai_says("all is well"))
    result = await desk.turn()
    assert result == Done(
        reply="all is well",
        usage={"model": "small", "input": 12, "output": 3, "total": 15},
        session_id=desk.session_id,
    )
    (asked,) = chat.asked
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.body == {"model": "small", "messages": [{"role": "user", "content": MARKED}]}
    assert asked.headers["Authorization"] == "Bearer secret"
    assert asked.headers["Idempotency-Key"] == "k1"
    assert desk.ladder.rungs == ["sent"]


async def test_an_anthropic_turn(chat: ChatServer, open_desk: Callable[..., Desk]) -> None:
    """The messages API: its headers, a limit of tokens, the system text beside the messages."""
    desk = open_desk(anthropic_agent, url=chat.url, system="be brief")
    chat.says(anthropic_says("all ", "is well"))
    result = await desk.turn()
    assert result == Done(
        reply="all is well", usage={"model": "small", "input": 12, "output": 3, "total": 15}, session_id=desk.session_id
    )
    (asked,) = chat.asked
    assert asked.path == "/v1/messages"
    assert asked.body == {
        "model": "small",
        "max_tokens": TOKENS_MAX,
        "system": "be brief",
        "messages": [{"role": "user", "content": MARKED}],
    }
    assert asked.headers["x-api-key"] == "secret" and asked.headers["anthropic-version"] == VERSION
    assert asked.headers["Idempotency-Key"] == "k1"


async def test_a_traced_turn_passes_its_span_on(chat: ChatServer, desk: Desk) -> None:
    """The model gets the span of the turn, which is inside that of the attempt."""
    chat.says(openai_says("all is well"))
    attempt = attempt_of("k1", 1, 1_769_763_600_000)
    await desk.action.perform(Prompt("hello"), make_fire(traceparent=attempt.traceparent), desk.ladder)
    assert chat.asked[0].headers["traceparent"] == turn_of(attempt).traceparent


async def test_the_definition_overrides_the_agent(chat: ChatServer, open_desk: Callable[..., Desk]) -> None:
    """Model, system text and limit of tokens."""
    desk = open_desk(system="be brief", max_tokens=5)
    chat.says(openai_says("x"))
    await desk.turn(model="large", system="be kind", maxTokens=9)
    await desk.turn(key="k2", persistSession=False)
    first, second = (asked.body for asked in chat.asked)
    assert (first["model"], first["max_tokens"], first["messages"][0]["content"]) == ("large", 9, "be kind")
    assert (second["model"], second["max_tokens"], second["messages"][0]["content"]) == ("small", 5, "be brief")


async def test_a_persistent_session_remembers(chat: ChatServer, desk: Desk) -> None:
    """What was said is sent again, in order, under one session id."""
    chat.says(openai_says("first"))
    await desk.turn("one", "k1")
    chat.says(openai_says("second"))
    await desk.turn("two", "k2")
    assert [(message["role"], message["content"]) for message in chat.asked[1].body["messages"]] == [
        ("user", "[scheduler:standup] one"),
        ("assistant", "first"),
        ("user", "[scheduler:standup] two"),
    ]


async def test_an_ephemeral_session_remembers_nothing(chat: ChatServer, desk: Desk, tmp_path: Path) -> None:
    """No transcript, no session id, nothing to clean up."""
    chat.says(openai_says("first"))
    for key in ("k1", "k2"):
        result = await desk.turn(key=key, persistSession=False)
        assert isinstance(result, Done) and result.session_id is None
    assert len(chat.asked[1].body["messages"]) == 1
    assert not (tmp_path / "transcripts").exists()


async def test_an_attempt_after_a_crash_does_not_pay_twice(chat: ChatServer, desk: Desk) -> None:
    """The answer was kept under the key before the run was settled: it is found, even if the session's id was lost."""
    chat.says(openai_says("dear"))
    await desk.turn()
    desk.session_id = None
    fire = make_fire(idempotency_key="k1")
    told = await desk.action.ask(Prompt("what is new?"), fire)
    assert isinstance(told, Done) and told.reply == "dear" and told.session_id is not None
    assert await desk.action.ask(Prompt("what is new?"), make_fire(idempotency_key="k2")) == NeverReceived()
    result = await desk.turn()
    assert isinstance(result, Done) and result.reply == "dear" and len(chat.asked) == 1


async def test_a_transcript_that_cannot_be_kept_is_no_failure(chat: ChatServer, open_desk: Callable[..., Desk]) -> None:
    """The model answered; that it will not remember is said beside the reply."""
    chat.says(openai_says("fine"))
    result = await open_desk(transcripts=FullDisk(Path())).turn()
    assert isinstance(result, Done) and result.reply == "fine"
    assert result.output is not None and "No space left" in result.output


@pytest.mark.parametrize("make_agent", [openai_agent, anthropic_agent])
async def test_throttled_and_failing_endpoints(
    chat: ChatServer, open_desk: Callable[..., Desk], make_agent: Any
) -> None:
    """Told to come back: throttled. Else failed, in the endpoint's words; for good only if it will not get better."""
    desk = open_desk(make_agent)
    error = {"error": {"message": "slow down", "type": "rate_limit"}}
    for status in (429, 503, 529):
        chat.says(error, status=status, headers={"Retry-After": "30"})
        assert isinstance(await desk.turn(), Throttled)
        chat.says(error, status=status)
        result = await desk.turn()
        assert isinstance(result, Failed) and not result.permanent and result.error.endswith(": slow down")
    for status in (400, 401, 403, 404, 422):
        chat.says(error, status=status)
        result = await desk.turn()
        assert isinstance(result, Failed) and result.permanent
    chat.says(error, status=500)
    result = await desk.turn()
    assert isinstance(result, Failed) and not result.permanent


@pytest.mark.parametrize("make_agent", [openai_agent, anthropic_agent])
async def test_an_error_costs_nothing_unless_a_gateway_lost_the_answer(
    chat: ChatServer, open_desk: Callable[..., Desk], make_agent: Any
) -> None:
    """A wrong key or an overloaded model is not billed. A gateway does not know whether its model has answered."""
    desk = open_desk(make_agent)
    refused = {}
    for status in (400, 401, 429, 500, 502, 503, 504, 529):
        chat.says({"error": {"message": "no"}}, status=status)
        result = await desk.turn()
        assert isinstance(result, Failed)
        refused[status] = result.is_refused
    assert [status for status, is_refused in refused.items() if not is_refused] == [502, 504]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (openai_says("I must not", "content_filter"), "content filter"),
        (openai_says(None, refusal="I will not"), "refused: I will not"),
        (openai_says(None, "tool_calls", tool_calls=[{"id": "1"}]), "no text (finish reason tool_calls)"),
        (openai_says("", "length"), "raise max_tokens"),
        ({"choices": []}, "no message"),
        ({"choices": [{"message": "x"}]}, "no message"),
        ({"choices": {"0": 1}}, "no message"),
        ({"error": {"message": "hidden"}}, "no message"),
        ({}, "no message"),
        ([], "not a JSON object"),
        ("text", "not a JSON object"),
    ],
)
async def test_200_without_a_reply_is_not_green_at_openai(chat: ChatServer, desk: Desk, answer: Any, says: str) -> None:
    """Filtered, refused, cut off before the first word, or nonsense: each is a failure with its cause."""
    chat.says(answer)
    result = await desk.turn()
    assert isinstance(result, Failed) and says in result.error


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (anthropic_says("no", reason="refusal"), "refused"),
        (anthropic_says(reason="tool_use"), "no text (stop reason tool_use)"),
        (anthropic_says("", reason="max_tokens"), "raise max_tokens"),
        ({"type": "error", "content": [], "error": {"message": "x"}}, "no content"),
        ({"content": "text"}, "no content"),
    ],
)
async def test_200_without_a_reply_is_not_green_at_anthropic(
    chat: ChatServer, open_desk: Callable[..., Desk], answer: Any, says: str
) -> None:
    """The same for the messages API."""
    chat.says(answer)
    result = await open_desk(anthropic_agent).turn()
    assert isinstance(result, Failed) and says in result.error


def test_a_reply_that_was_cut_off_says_so() -> None:
    """What there is of it is kept, and the reader sees that it is not all."""
    assert openai_answer(openai_says("half", "length")) == Replied("half" + CUT)
    cut = anthropic_answer(anthropic_says("half", reason="max_tokens"))
    assert isinstance(cut, Replied) and cut.text == "half" + CUT


def test_an_empty_reply_is_one() -> None:
    """The model ended its turn and said nothing: that is a reply, and an empty one."""
    empty = [openai_answer(openai_says("")), anthropic_answer(anthropic_says()), anthropic_answer(anthropic_says(""))]
    assert [one.text for one in empty if isinstance(one, Replied)] == ["", "", ""]


def test_content_in_parts() -> None:
    """Some endpoints answer with a list."""
    parts = [{"type": "text", "text": "one "}, {"type": "image"}, "x", {"type": "text", "text": "two"}]
    answer = openai_answer(openai_says(parts))
    assert isinstance(answer, Replied) and answer.text == "one two"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "text", "type", "usage", "finish_reason", "stop_reason"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None)
@given(JSON.filter(lambda value: isinstance(value, dict)))
def test_no_answer_whatever_its_shape_does_harm(value: dict[str, Any]) -> None:
    """It is a reply or a failure."""
    assert isinstance(openai_answer(value), Replied | Failed)
    assert isinstance(anthropic_answer(value), Replied | Failed)


@pytest.mark.parametrize("make_agent", [openai_agent, anthropic_agent])
async def test_a_request_may_take_no_longer_than_answer_within(
    chat: ChatServer, open_desk: Callable[..., Desk], make_agent: Any
) -> None:
    """An endpoint that takes the prompt and says nothing is given up, and the turn may be tried again."""
    hold = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        await hold.wait()
        return web.Response()

    chat.answer = silent
    result = await open_desk(make_agent, answer_within=200).turn()
    assert isinstance(result, Failed) and not result.permanent and "no answer within 0.2 s" in result.error
    hold.set()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (endless, "longer than 1048576 bytes"),
        (broken_off, "broke during the response"),
        (hangs_up, "without a response"),
        (constant(lambda: web.Response(text='{"choices": [')), "not a JSON object"),
        (constant(lambda: web.Response(body=b"\xff\x00\x1b")), "not a JSON object"),
        (constant(lambda: web.Response(text="[" * 200_000)), "not a JSON object"),
        (constant(lambda: web.Response(text='{"a": ' + "9" * 10_000 + "}")), "not a JSON object"),
        (constant(lambda: web.json_response(openai_says("x" * 10_000_000))), "longer than 1048576 bytes"),
        (constant(lambda: web.Response(status=302, headers={"Location": "/"})), "HTTP 302"),
    ],
)
async def test_hostile_answers_fail_and_never_hang(chat: ChatServer, desk: Desk, answer: Any, says: str) -> None:
    """Endless, broken, huge: a failure with its cause."""
    chat.answer = answer
    result = await desk.turn()
    assert isinstance(result, Failed) and says in result.error


async def test_a_long_reply_is_bounded_and_cleaned(chat: ChatServer, desk: Desk) -> None:
    """In what is delivered, and in what is kept to be sent again."""
    chat.says(openai_says("<script>\x00\x1b[2J" + "y" * 500_000))
    result = await desk.turn()
    assert isinstance(result, Done) and result.reply is not None
    assert result.reply.startswith("<script>\ufffd\ufffd[2J") and len(result.reply) < REPLY_MAX + 100
    chat.says(openai_says("x"))
    await desk.turn(key="k2")
    assert len(json.dumps(chat.asked[1].body)) < REPLY_MAX + 10_000


async def test_no_server(open_desk: Callable[..., Desk]) -> None:
    """A failure that names the host."""
    result = await open_desk(url="http://127.0.0.1:9/v1").turn()
    assert result == Failed("127.0.0.1:9: connection refused; is the server running on this port?", rung="claimed")


async def test_cancelling_ends_the_request(chat: ChatServer, desk: Desk, eventually: Eventually) -> None:
    """Nothing of ours is left behind, and a chat has no other effect."""
    hold = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        await hold.wait()
        return web.Response()

    chat.answer = slow
    turn = asyncio.create_task(desk.turn())
    await eventually(lambda: chat.asked)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    hold.set()


@pytest.mark.parametrize(
    ("settings", "config", "says"),
    [
        ({"url": "api.example.com"}, {}, "not a web address"),
        ({"model": None}, {}, "no model is configured"),
        ({}, {"maxTokens": 0}, "write 1 or more"),
        ({}, {"maxTokens": True}, "write a whole number"),
        ({}, {"cwd": "/"}, "it supports persistSession, model, system, maxTokens"),
    ],
)
async def test_settings_that_cannot_work(
    open_desk: Callable[..., Desk], settings: dict[str, Any], config: dict[str, Any], says: str
) -> None:
    """Named when the definition is written."""
    wrong = open_desk(**settings).action.check(Prompt("hi", session_config=config))
    assert wrong is not None and says in wrong.message


def test_secrets_are_not_shown() -> None:
    """A settings object in a log line or a traceback gives nothing away."""
    assert "secret" not in repr(ChatSettings("http://x", api_key="secret", headers={"a": "secret"}))


async def test_a_transcript_is_bounded(tmp_path: Path) -> None:
    """In turns, in bytes and in sessions; the oldest go first, and the last turn always stays."""
    transcripts = Transcripts(tmp_path, sessions_max=3, turns_max=5)
    for number in range(8):
        await transcripts.add("s", TranscriptTurn(str(number), "q", "a"))
    assert [one.key for one in await transcripts.read("s")] == ["3", "4", "5", "6", "7"]
    for number in range(4):
        await transcripts.add("s", TranscriptTurn(f"big-{number}", "q", "ä" * (BYTES_MAX // 5)))
    assert [one.key for one in await transcripts.read("s")] == ["big-2", "big-3"]
    await transcripts.add("s", TranscriptTurn("huge", "q" * BYTES_MAX, "a"))
    assert [one.key for one in await transcripts.read("s")] == ["huge"]
    for number in range(5):
        await transcripts.add(f"other-{number}", TranscriptTurn("k", "q", "a"))
    assert len(list(tmp_path.iterdir())) == 3 and await transcripts.read("s") == []


async def test_a_turn_under_the_same_key_takes_the_place_of_the_older(tmp_path: Path) -> None:
    """Another attempt at one run is not another turn."""
    transcripts = Transcripts(tmp_path)
    await transcripts.add("s", TranscriptTurn("k", "q", "first"))
    await transcripts.add("s", TranscriptTurn("k", "q", "second"))
    assert await transcripts.read("s") == [TranscriptTurn("k", "q", "second")]


@pytest.mark.parametrize(
    "spoilt", ["", "[", "{}", "7", '[{"key": 1}, null, {"key": "k", "prompt": "q", "reply": "a"}]']
)
async def test_a_spoilt_transcript_is_begun_anew(tmp_path: Path, spoilt: str) -> None:
    """What can be read of it is used."""
    transcripts = Transcripts(tmp_path)
    (tmp_path / "s.json").write_text(spoilt)
    kept = [TranscriptTurn("k", "q", "a")] if "reply" in spoilt else []
    assert await transcripts.read("s") == kept
    await transcripts.add("s", TranscriptTurn("k2", "q", "a"))
    assert len(await transcripts.read("s")) == len(kept) + 1


@pytest.mark.parametrize(
    "session_id", ["../../outside", "/etc/passwd", ".hidden", "", "a/b", "x" * 500, "ü\ud800\0", ".."]
)
async def test_a_strange_session_id_does_not_lead_out_of_the_folder(tmp_path: Path, session_id: str) -> None:
    """It is kept under another name."""
    folder = tmp_path / "in" / "here"
    transcripts = Transcripts(folder)
    await transcripts.add(session_id, TranscriptTurn("k", "q", "a"))
    assert await transcripts.read(session_id) == [TranscriptTurn("k", "q", "a")]
    assert len(list(folder.iterdir())) == 1 and list(tmp_path.rglob("*.json")) == list(folder.iterdir())


async def test_transcripts_are_their_owners(tmp_path: Path) -> None:
    """Readable by nobody else, and no draft is left."""
    folder = tmp_path / "transcripts"
    await Transcripts(folder).add("s", TranscriptTurn("k", "q", "a\ud800"))
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
