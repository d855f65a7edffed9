"""The sessions agent, turn by turn, against a real server: the table of answers, both kinds of sessions, and proof."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agents.conftest import make_fire
from agents.server import AgentServer, broken_off, constant, endless, hangs_up
from climbing import Eventually, RecordingLadder
from patience import PATIENCE
from wakeful.core.run.results import Busy, Done, Failed, Result, Throttled, Unconfirmed
from wakeful.core.schedule.actions import Prompt
from wakeful.core.time.instants import MINUTE
from wakeful.engine.clock import SystemClock
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.actions.reply import REPLY_MAX
from wakeful.integrations.agents import sessions as sessions_module
from wakeful.integrations.agents import turn as turn_module
from wakeful.integrations.agents.sessions import SessionsAgent, SessionsSettings
from wakeful.integrations.agents.turn import TurnAction
from wakeful.ports.action import FencedOff, Fire, NeverReceived, StillRunning, StillWorking, Told

USAGE = {"input": 10, "output": 3, "total": 13}
ONCE = {"persistSession": False}
ANSWERED = ({"type": "assistant.message", "data": {"content": "well"}}, {"type": "session.idle", "data": {}})


class Desk:
    """A turn action with one sessions agent, and the session its schedule goes on with."""

    def __init__(self, server: AgentServer, records: Path | None = None, **settings: Any) -> None:
        given = {"url": server.url, "confirm_within": MINUTE, **settings}
        self.agent = SessionsAgent(SessionsSettings(**given), SystemClock(), records=records)
        self.receipts = Receipts(b"0123456789abcdef", "http://127.0.0.1:8377")
        self.session_id: str | None = None
        self.ladder = RecordingLadder()
        self.action = TurnAction({"default": self.agent}, SystemClock(), sessions=self._session, receipts=self.receipts)

    async def turn(self, text: str = "what is new?", fire: Fire | None = None, **config: Any) -> Result:
        """One turn, its session kept as the engine keeps it."""
        result = await self.action.perform(Prompt(text, session_config=config), fire or make_fire(), self.ladder)
        if isinstance(result, Done | Failed | Busy | Throttled | Unconfirmed) and result.session_id is not None:
            self.session_id = result.session_id
        return result

    async def _session(self, fire: Fire) -> str | None:
        return self.session_id


@pytest.fixture
async def open_desk(server: AgentServer) -> AsyncIterator[Callable[..., Desk]]:
    desks: list[Desk] = []

    def make(**settings: Any) -> Desk:
        desks.append(Desk(server, **settings))
        return desks[-1]

    yield make
    for desk in desks:
        await desk.action.close()


@pytest.fixture
def desk(open_desk: Callable[..., Desk]) -> Desk:
    return open_desk()


async def test_a_turn_in_a_new_session(server: AgentServer, desk: Desk) -> None:
    """200: accepted, then proven by the history; the reply, the usage and the session come back."""
    assert await desk.turn() == Done(reply="all is well", usage=USAGE, session_id="session-1")
    assert desk.ladder.rungs[:2] == ["sent", "accepted"]
    assert server.sessions["session-1"].made_with["description"].endswith("standup")


async def test_what_the_server_is_sent(server: AgentServer, desk: Desk) -> None:
    """The bare prompt with its source, slug and key; the receipt's address in a header, nothing in the prose."""
    await desk.turn("Summarise <b>yesterday</b>")
    (message,) = server.messages()
    assert message.body == {
        "prompt": "Summarise <b>yesterday</b>",
        "source": "scheduler",
        "scheduleSlug": "standup",
        "correlationId": "store-7-1769763600000",
    }
    assert message.headers["Idempotency-Key"] == "store-7-1769763600000"
    assert message.headers["X-Wakeful-Run"] == "42"
    assert message.headers["X-Wakeful-Receipt"] == desk.receipts.url(42)


async def test_the_model_and_the_folder_are_the_definitions_or_the_agents(
    server: AgentServer, open_desk: Callable[..., Desk]
) -> None:
    """A session is made with what the definition says, else with what the agent's settings say."""
    desk = open_desk(model="plain", cwd="/srv")
    await desk.turn(model="special", persistSession=False)
    await desk.turn(persistSession=False)
    made = [one.body for one in server.asked if one.path == "/api/sessions" and one.method == "POST"]
    assert [(body["model"], body["cwd"]) for body in made] == [("special", "/srv"), ("plain", "/srv")]


async def test_a_persistent_session_is_used_again(server: AgentServer, desk: Desk) -> None:
    """The second turn goes to the session of the first, and its reply is its own."""
    await desk.turn()
    server.reply = "still well"
    again = await desk.turn(fire=make_fire(run_id=43, idempotency_key="next"))
    assert again == Done(reply="still well", usage=USAGE, session_id="session-1")
    assert list(server.sessions) == ["session-1"]


async def test_an_ephemeral_session_is_fresh_and_is_cleaned_up(server: AgentServer, desk: Desk) -> None:
    """A session per turn, gone after it; the schedule's own session is neither used nor replaced."""
    desk.session_id = "kept"
    server.add("kept")
    for _ in range(2):
        assert await desk.turn(**ONCE) == Done(reply="all is well", usage=USAGE)
    assert list(server.sessions) == ["kept"]
    assert [one.path for one in server.messages()] == [
        "/api/sessions/session-1/messages",
        "/api/sessions/session-2/messages",
    ]


async def test_404_makes_a_new_session_and_sends_once_more(server: AgentServer, desk: Desk) -> None:
    """A session the server has lost: a new one, the same message, and the new id is kept."""
    desk.session_id = "lost"
    result = await desk.turn()
    assert isinstance(result, Done) and result.session_id == "session-1"
    sent = server.messages()
    assert [one.path for one in sent] == ["/api/sessions/lost/messages", "/api/sessions/session-1/messages"]
    assert sent[0].body == sent[1].body


async def test_404_twice_fails(server: AgentServer, desk: Desk) -> None:
    """It is sent once more and not for ever; the session that was made for it is not left behind."""
    desk.session_id = "lost"
    server.missing = {"messages"}
    result = await desk.turn()
    assert isinstance(result, Failed) and result.error.startswith("HTTP 404")
    assert len(server.messages()) == 2
    assert server.sessions == {}


async def test_404_in_a_session_that_was_just_made_is_not_tried_again(server: AgentServer, desk: Desk) -> None:
    """A server that loses what it makes is not asked for ever."""
    server.missing = {"messages"}
    assert isinstance(await desk.turn(), Failed)
    assert len(server.messages()) == 1 and server.paths("POST").count("/api/sessions") == 1


async def test_a_server_that_forgets_its_sessions_does_not_use_up_the_limit(
    server: AgentServer, open_desk: Callable[..., Desk]
) -> None:
    """What is lost is not there any more, whether or not the server lists its sessions."""
    desk = open_desk(sessions_max=2)
    for number in range(8):
        server.missing = {"list"} if number % 2 else set()
        assert isinstance(await desk.turn(fire=make_fire(idempotency_key=str(number))), Done)
        server.sessions.clear()


async def test_409_is_busy(server: AgentServer, desk: Desk) -> None:
    """The words of the session scheduler, and neither a failure nor a second try; the session stays."""
    desk.session_id = "mine"
    server.add("mine").is_busy = True
    assert await desk.turn() == Busy("Session busy")
    assert len(server.messages()) == 1 and "mine" in server.sessions
    assert desk.ladder.rungs == ["sent"]


@pytest.mark.parametrize("evidence", ["message", "key", "list"])
async def test_409_of_our_own_turn_is_recognised(
    server: AgentServer, open_desk: Callable[..., Desk], tmp_path: Path, eventually: Eventually, evidence: str
) -> None:
    """After a crash the same run is tried again, and the session is busy with what we sent before: by our message or
    our key in its history, or by our slug in the list. It is followed to its end, and nothing is taken twice."""
    server.has_keys, server.writes_history = evidence == "key", evidence != "list"
    server.gate.clear()
    records = tmp_path / "default.json"
    proves = "idle" if evidence == "list" else "finished"
    before = open_desk(records=records, proves=proves)
    lost = asyncio.create_task(before.turn())
    await eventually(lambda: "started" in before.ladder.rungs)
    after = open_desk(records=records, proves=proves)  # another process, while the first one's turn goes on
    after.session_id = "session-1"
    again = asyncio.create_task(after.turn(fire=make_fire(attempt=2)))
    await eventually(lambda: "started" in after.ladder.rungs)
    server.gate.set()
    done = Done("started", output="idle, no reply read", session_id="session-1")
    if evidence != "list":
        done = Done(reply="all is well", usage=USAGE, session_id="session-1")
    assert await again == done
    await lost
    assert [event["type"] for event in server.sessions["session-1"].events].count("user.message") == 1


async def test_409_of_someone_elses_turn_is_busy_at_every_attempt(server: AgentServer, desk: Desk) -> None:
    """The list shows our schedule's session, and the history our text of yesterday: it is busy with a person's."""
    assert isinstance(await desk.turn(fire=make_fire(idempotency_key="yesterday")), Done)
    server.sessions["session-1"].is_busy = True
    for attempt in (1, 2, 3):
        assert await desk.turn(fire=make_fire(attempt=attempt)) == Busy("Session busy")


async def test_429_waits_as_told(server: AgentServer, desk: Desk) -> None:
    """Told to come back, it is throttled until then; told nothing, it failed."""
    server.statuses, server.headers = [429, 429], {"Retry-After": "120"}
    before = SystemClock().read().now
    result = await desk.turn()
    assert isinstance(result, Throttled) and 119_000 <= result.until - before <= 130_000
    assert result.session_id == desk.session_id == "session-1"
    server.headers = {}
    assert await desk.turn() == Failed("HTTP 429 Too Many Requests: told to say 429")
    assert list(server.sessions) == ["session-1"]


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_500_fails_and_may_be_tried_again(server: AgentServer, desk: Desk, status: int) -> None:
    """The error in the server's words; a retry is the schedule's decision, and finds the session that was made."""
    server.statuses = [status, status]
    result = await desk.turn()
    assert await desk.turn() == replace(result, session_id=None)
    assert isinstance(result, Failed) and not result.permanent
    assert result.error.startswith(f"HTTP {status} ") and result.error.endswith(f": told to say {status}")
    assert result.session_id == "session-1" and list(server.sessions) == ["session-1"]


@pytest.mark.parametrize(("status", "kind"), [(409, Busy), (500, Failed), (429, Throttled)])
async def test_a_session_made_after_a_404_is_kept_whatever_it_answers(
    server: AgentServer, desk: Desk, status: int, kind: type
) -> None:
    """The lost one is not asked again; an ephemeral turn leaves nothing behind."""
    desk.session_id = "lost"
    server.statuses, server.headers = [404, status], {"Retry-After": "60"}
    server.add("lost")
    result = await desk.turn()
    assert isinstance(result, kind) and getattr(result, "session_id", None) == "session-1"
    assert await desk.turn() == Done(reply="all is well", usage=USAGE, session_id="session-1")
    assert server.paths("POST").count("/api/sessions/lost/messages") == 1
    server.statuses = [status]
    result = await desk.turn(**ONCE)
    assert isinstance(result, kind) and getattr(result, "session_id", None) is None
    assert "session-2" not in server.sessions


@pytest.mark.parametrize("status", [400, 401, 403])
async def test_what_will_not_get_better_is_permanent(server: AgentServer, desk: Desk, status: int) -> None:
    """A wrong folder or a wrong token is not tried again every half hour."""
    server.raw["sessions"] = constant(lambda: web.json_response({"error": {"message": "cwd is none"}}, status=status))
    result = await desk.turn()
    assert isinstance(result, Failed) and result.permanent and "cwd is none" in result.error
    assert server.messages() == []
    assert desk.ladder.rungs == []  # nothing was sent


async def test_a_network_error_fails(open_desk: Callable[..., Desk]) -> None:
    """No server: a failure that names the host and what to look at."""
    result = await open_desk(url="http://127.0.0.1:9").turn()
    assert result == Failed("127.0.0.1:9: connection refused; is the server running on this port?")


async def test_a_connection_that_breaks_before_the_answer_fails(server: AgentServer, desk: Desk) -> None:
    """It was sent, and nothing shows that it arrived."""
    server.raw["messages"] = hangs_up
    result = await desk.turn()
    assert isinstance(result, Failed) and "without a response" in result.error


async def test_a_lost_answer_is_no_failure_if_the_history_shows_our_message(server: AgentServer, desk: Desk) -> None:
    """The prompt arrived and the answer did not: it is followed to its end, and not sent a second time."""

    async def take_and_hang_up(request: web.Request) -> web.StreamResponse:
        session = server.sessions[request.path.split("/")[3]]
        await server._messages(session, server.asked[-1].body)
        await asyncio.sleep(0)
        return await hangs_up(request)

    server.raw["messages"] = take_and_hang_up
    assert await desk.turn() == Done(reply="all is well", usage=USAGE, session_id="session-1")


async def test_200_that_says_no_is_no_acceptance(server: AgentServer, desk: Desk) -> None:
    """`ok: false` is a failure, whatever the status."""
    server.raw["messages"] = constant(lambda: web.json_response({"ok": False, "error": "queue is full"}))
    result = await desk.turn()
    assert isinstance(result, Failed) and "queue is full" in result.error


async def test_started_is_the_first_sign_of_life(server: AgentServer, desk: Desk, eventually: Eventually) -> None:
    """A session that is seen busy has started; it is finished when the history says so, however long it takes."""
    server.gate.clear()
    turn = asyncio.create_task(desk.turn())
    await eventually(lambda: "started" in desk.ladder.rungs)
    assert desk.ladder.rungs == ["sent", "accepted", "started"]
    server.gate.set()
    assert isinstance(await turn, Done)


BUSY_PLACES = pytest.mark.parametrize("state_says_busy", [True, False])


@BUSY_PLACES
async def test_busy_and_then_idle_is_no_proof(
    server: AgentServer, open_desk: Callable[..., Desk], eventually: Eventually, state_says_busy: bool
) -> None:
    """A server without a readable history: the turn was seen at work and then idle, and may have ended in any way."""
    server.writes_history, server.state_says_busy = False, state_says_busy
    server.gate.clear()
    desk = open_desk(confirm_within=400)
    turn = asyncio.create_task(desk.turn())
    await eventually(lambda: "started" in desk.ladder.rungs)
    server.gate.set()
    result = await turn
    assert isinstance(result, Unconfirmed) and "its history cannot be read" in result.error
    assert "no such file" in result.error and "returned HTTP 404" in result.error
    assert "finished" not in desk.ladder.rungs


@BUSY_PLACES
async def test_busy_and_then_idle_counts_where_the_settings_say_so(
    server: AgentServer, open_desk: Callable[..., Desk], eventually: Eventually, state_says_busy: bool
) -> None:
    """`proves = "idle"`: a success as far as `started`, and the run says that no reply was read."""
    server.writes_history, server.state_says_busy = False, state_says_busy
    server.gate.clear()
    desk = open_desk(proves="idle")
    assert desk.agent.proves == "started"
    turn = asyncio.create_task(desk.turn())
    await eventually(lambda: "started" in desk.ladder.rungs)
    server.gate.set()
    assert await turn == Done("started", output="idle, no reply read", session_id="session-1")


@pytest.mark.parametrize("proves", ["finished", "idle"])
async def test_idle_throughout_is_no_proof(server: AgentServer, open_desk: Callable[..., Desk], proves: str) -> None:
    """It was done too fast to be seen, and there is no history: unknown, also where going idle would count."""
    server.manner, server.writes_history = "hurries", False
    desk = open_desk(confirm_within=400, proves=proves)
    result = await desk.turn()
    assert isinstance(result, Unconfirmed) and "session-1" in result.error
    assert desk.ladder.rungs == ["sent", "accepted"]


@pytest.mark.parametrize("proves", ["finished", "idle"])
@pytest.mark.parametrize(
    ("manner", "says"),
    [
        ("mute", "its history contains the prompt, but no answer"),
        ("dies", "its history contains the prompt, but no answer"),
        ("lies", "the prompt is not in its history"),
    ],
)
async def test_a_history_that_can_be_read_must_hold_our_message_and_an_answer(
    server: AgentServer, open_desk: Callable[..., Desk], manner: Any, says: str, proves: str
) -> None:
    """Without an answer, cut off without an end, or without our message: never green, whatever else was seen."""
    desk = open_desk(confirm_within=400, proves=proves)
    desk.session_id = "mine"
    server.add("mine").say({"type": "user.message", "data": {"content": "of yesterday"}}, *ANSWERED)
    server.manner = manner
    result = await desk.turn()
    assert isinstance(result, Unconfirmed) and says in result.error


async def test_an_answer_is_proof_without_a_terminal_event(server: AgentServer, desk: Desk) -> None:
    """A server that writes no `session.idle`: our message, an answer, and the session no longer busy."""
    server.writes_ends = False
    assert await desk.turn() == Done(reply="all is well", usage=USAGE, session_id="session-1")


async def test_what_it_says_before_it_uses_a_tool_is_no_answer(
    server: AgentServer, desk: Desk, eventually: Eventually
) -> None:
    """ "I will look" is said while the session is busy, and with a tool to come."""
    server.gate.clear()
    turn = asyncio.create_task(desk.turn())
    await eventually(lambda: "started" in desk.ladder.rungs)
    server.sessions["session-1"].say({"type": "assistant.message", "data": {"content": "I will look"}})
    looked = len(server.asked)
    await eventually(lambda: len(server.asked) > looked + 6)
    assert not turn.done()
    server.gate.set()
    assert await turn == Done(reply="all is well", usage=USAGE, session_id="session-1")


async def test_a_terminal_event_under_our_key_is_proof(server: AgentServer, desk: Desk) -> None:
    """The server says itself that our turn ended; it had nothing to say."""
    server.manner, server.has_keys = "mute", True
    assert await desk.turn() == Done(session_id="session-1")


async def test_a_lost_message_whose_end_is_known_is_what_it_was(server: AgentServer, desk: Desk) -> None:
    """The message never got into the history; the error that ended it did, under our key."""
    server.manner = "lies"

    def fail(rung: str) -> None:
        if rung == "accepted":
            key = {"correlationId": make_fire().idempotency_key}
            server.sessions["session-1"].say({"type": "session.error", "data": {"message": "no model"}, **key})

    desk.ladder.on_rung = fail
    assert await desk.turn() == Failed("no model", rung="started", session_id="session-1")


async def test_the_history_may_be_a_route_of_the_server(server: AgentServer, desk: Desk) -> None:
    """The other usual place: a server that writes no file here, and returns its events."""
    server.writes_history, server.offers_events = False, True
    assert await desk.turn() == Done(reply="all is well", usage=USAGE, session_id="session-1")
    again = await desk.turn(fire=make_fire(run_id=43, idempotency_key="next"))
    assert again == Done(reply="all is well", usage=USAGE, session_id="session-1")


async def test_a_server_that_lies_is_unconfirmed(server: AgentServer, open_desk: Callable[..., Desk]) -> None:
    """200, and the message is never looked at; the session is left as evidence, even an ephemeral one."""
    server.manner = "lies"
    assert isinstance(await open_desk(confirm_within=400).turn(**ONCE), Unconfirmed)
    assert list(server.sessions) == ["session-1"]


async def test_the_session_of_an_unconfirmed_turn_is_gone_on_with(
    server: AgentServer, open_desk: Callable[..., Desk]
) -> None:
    """The next turn uses it, and no second one is made."""
    server.manner = "lies"
    desk = open_desk(confirm_within=300)
    result = await desk.turn()
    assert isinstance(result, Unconfirmed) and result.session_id == "session-1"
    server.manner = "works"
    assert await desk.turn(fire=make_fire(run_id=43, idempotency_key="b")) == Done(
        reply="all is well", usage=USAGE, session_id="session-1"
    )


async def test_200_is_enough_where_that_is_all_there_is(server: AgentServer, open_desk: Callable[..., Desk]) -> None:
    """A server known to prove nothing more: success as far as `accepted`, and nobody waits."""
    server.manner = "lies"
    desk = open_desk(proves="accepted")
    assert await desk.turn() == Done("accepted", session_id="session-1")
    assert await desk.turn(**ONCE) == Done("accepted")
    assert list(server.sessions) == ["session-1", "session-2"]  # it may still be at work there


async def test_an_error_event_is_a_failure(server: AgentServer, desk: Desk) -> None:
    """The model was out of order: not green, although the server said 200."""
    server.manner = "errors"
    assert await desk.turn() == Failed("the model is out of order", rung="started", session_id="session-1")


@pytest.mark.parametrize("marks_text", [True, False])
async def test_a_history_without_keys_is_matched_by_text(server: AgentServer, desk: Desk, marks_text: bool) -> None:
    """Only what came after the message was sent counts: the same prompt of yesterday proves nothing."""
    server.has_keys, server.marks_text = False, marks_text
    await desk.turn()
    server.reply = "of today"
    again = await desk.turn(fire=make_fire(run_id=43, idempotency_key="next"))
    assert isinstance(again, Done) and again.reply == "of today"


async def test_a_history_that_could_not_be_read_before_proves_nothing(
    server: AgentServer, open_desk: Callable[..., Desk]
) -> None:
    """The same prompt and its end of yesterday are in it, and nobody knows where yesterday ended."""
    server.offers_events = True
    desk = open_desk(confirm_within=300, history_path="/api/sessions/{id}/events")
    await desk.turn()
    server.manner = "lies"
    server.raw["events"] = constant(lambda: web.Response(status=500))

    def heal(rung: str) -> None:
        if rung == "accepted":
            del server.raw["events"]

    desk.ladder.on_rung = heal
    assert isinstance(await desk.turn(fire=make_fire(run_id=43, idempotency_key="next")), Unconfirmed)


async def test_someone_elses_turn_is_not_ours(server: AgentServer, open_desk: Callable[..., Desk]) -> None:
    """Our message is lost, a person's message keeps the session busy: that it ends proves nothing about ours."""
    server.manner = "lies"
    desk = open_desk(confirm_within=700)
    session = server.add("mine")
    desk.session_id = "mine"

    def busy_with_another(rung: str) -> None:
        if rung == "accepted":
            session.say({"type": "user.message", "data": {"content": "hello"}}, *ANSWERED)
            session.is_busy = True
        elif rung == "started":
            session.is_busy = False

    desk.ladder.on_rung = busy_with_another
    result = await desk.turn()
    assert isinstance(result, Unconfirmed) and "the prompt is not in its history" in result.error
    assert "started" in desk.ladder.rungs


async def test_a_server_that_was_away_while_it_worked_proves_nothing(
    server: AgentServer, open_desk: Callable[..., Desk]
) -> None:
    """Busy, unreachable, idle: a restarted server looks just like that, also where going idle would count."""
    server.writes_history = False
    server.gate.clear()
    desk = open_desk(confirm_within=400, proves="idle")

    def away(rung: str) -> None:
        if rung == "started":
            calls = iter(range(3))

            async def state(request: web.Request) -> web.StreamResponse:
                if next(calls, None) is not None:
                    return await hangs_up(request)
                del server.raw["state"]
                server.sessions["session-1"].is_busy = False
                return await server._state(server.sessions["session-1"], None)

            server.raw["state"] = state

    desk.ladder.on_rung = away
    result = await desk.turn()
    assert isinstance(result, Unconfirmed) and "unreachable while it worked" in result.error


async def test_a_session_that_vanishes_while_it_works_is_unconfirmed(server: AgentServer, desk: Desk) -> None:
    """Nobody waits two hours for a session that is no longer there."""
    server.gate.clear()

    def vanish(rung: str) -> None:
        if rung == "started":
            session = server.sessions.pop("session-1")
            assert session.dispatch is not None
            session.dispatch.cancel()

    desk.ladder.on_rung = vanish
    result = await desk.turn()
    assert isinstance(result, Unconfirmed) and "no longer on the server" in result.error


async def test_a_receipt_is_proof_and_its_text_the_reply(server: AgentServer, desk: Desk) -> None:
    """The agent posts to the address it was given: done, although the server shows nothing."""
    server.manner = "lies"
    posting: list[asyncio.Task[Any]] = []

    def post(rung: str) -> None:
        if rung == "accepted":
            token = server.messages()[0].headers["X-Wakeful-Receipt"].partition("token=")[2]
            posted = desk.receipts.post(42, token, "finished", "from the agent itself", {"input_tokens": 5})
            posting.append(asyncio.create_task(posted))

    desk.ladder.on_rung = post
    result = await desk.turn()
    assert result == Done(reply="from the agent itself", usage={"input": 5}, session_id="session-1")
    assert await posting[0] == "taken"


async def test_cancelling_ends_the_turn_on_the_server(server: AgentServer, desk: Desk, eventually: Eventually) -> None:
    """The deadline passes: the server is told, the session is seen idle, and only then is it over."""
    server.gate.clear()
    turn = asyncio.create_task(desk.turn(**ONCE))
    await eventually(lambda: "started" in desk.ladder.rungs)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert "/api/sessions/session-1/cancel" in server.paths("POST")
    assert server.sessions == {}  # ended, and cleaned up


@pytest.mark.parametrize("trouble", ["deaf", "no such route", "away"])
async def test_what_cannot_be_ended_is_still_running(
    server: AgentServer, desk: Desk, eventually: Eventually, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """A server that goes on, or cannot be told: said to be still running until its end is seen."""
    monkeypatch.setattr(sessions_module, "CANCEL_WITHIN", 500)
    monkeypatch.setattr(turn_module, "POLL_LAST", 100)
    server.gate.clear()
    turn = asyncio.create_task(desk.turn())
    await eventually(lambda: "started" in desk.ladder.rungs)
    if trouble == "deaf":
        server.is_deaf = True
    elif trouble == "away":
        server.raw["cancel"] = hangs_up
    else:
        server.missing = {"cancel"}
    turn.cancel()
    with pytest.raises(StillRunning) as still:
        await turn
    assert not still.value.ended.done()
    server.gate.set()
    async with asyncio.timeout(PATIENCE):
        await still.value.ended


async def test_cancelled_before_anything_was_sent(server: AgentServer, desk: Desk, eventually: Eventually) -> None:
    """Nothing was given to the agent, so nothing has to be ended."""
    server.answers.clear()
    turn = asyncio.create_task(desk.turn())
    await eventually(lambda: server.asked)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert desk.ladder.rungs == []


async def test_cancelled_while_sending(
    server: AgentServer, desk: Desk, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message may have arrived: the server is told to stop, and its session seen idle."""
    desk.session_id = "mine"
    server.add("mine")
    hold = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        await hold.wait()
        return web.json_response({"ok": True})

    server.raw["messages"] = slow
    turn = asyncio.create_task(desk.turn())
    await eventually(server.messages)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert "/api/sessions/mine/cancel" in server.paths("POST")
    hold.set()


async def test_a_turn_that_was_taken_from_us_stops(server: AgentServer, desk: Desk) -> None:
    """Fenced off before sending, nothing is sent."""
    desk.ladder.refuses["sent"] = FencedOff("taken")
    with pytest.raises(FencedOff):
        await desk.turn()
    assert server.messages() == []


async def test_sessions_max_removes_our_oldest(server: AgentServer, open_desk: Callable[..., Desk]) -> None:
    """Those of turns that are over first, then the one that was not used for the longest time, whichever schedule it
    belongs to; a person's are never touched. Nothing in the server's list says which are ours."""
    desk = open_desk(sessions_max=2)
    server.add("a-persons-own").slug = "standup"
    for slug in ("removed", "done", "kept"):
        desk.session_id = None
        assert isinstance(await desk.turn(fire=make_fire(slug=slug, idempotency_key=slug)), Done)
    assert list(server.sessions) == ["a-persons-own", "session-2", "session-3"]
    desk.session_id = "session-2"
    assert isinstance(await desk.turn(fire=make_fire(slug="done", idempotency_key="again")), Done)
    desk.session_id = None
    assert isinstance(await desk.turn(fire=make_fire(slug="new", idempotency_key="new")), Done)
    assert list(server.sessions) == ["a-persons-own", "session-2", "session-4"]


async def test_sessions_max_is_kept_across_restarts_and_without_a_list(
    server: AgentServer, open_desk: Callable[..., Desk], tmp_path: Path
) -> None:
    """The server's list is empty, and a new process knows what the old one made."""
    server.raw["list"] = constant(lambda: web.json_response({"grouped": {}}))
    for slug in ("a", "b", "c"):
        desk = open_desk(sessions_max=2, records=tmp_path / "sessions" / "default.json")
        assert isinstance(await desk.turn(fire=make_fire(slug=slug, idempotency_key=slug)), Done)
    assert list(server.sessions) == ["session-2", "session-3"]
    assert (tmp_path / "sessions" / "default.json").stat().st_mode & 0o777 == 0o600


async def test_sessions_of_an_earlier_version_are_known_by_their_description(
    server: AgentServer, open_desk: Callable[..., Desk]
) -> None:
    """Where the server lists descriptions. What is busy stays; if nothing can be removed, the error names the cure."""
    server.lists_descriptions = True
    server.add("kept", description="Scheduled by Wakeful: other")
    for number in range(2):
        server.add(f"old-{number}", description="Scheduled once by Wakeful: other")
    server.add("a-persons-own", description="my notes")
    desk = open_desk(sessions_max=3)
    assert isinstance(await desk.turn(), Done)
    assert list(server.sessions) == ["kept", "old-1", "a-persons-own", "session-1"]
    for session in server.sessions.values():
        session.is_busy = True
    result = await desk.turn(**ONCE)
    assert isinstance(result, Failed) and "sessions_max is 3" in result.error and "raise it" in result.error


async def test_sessions_max_without_a_list(server: AgentServer, open_desk: Callable[..., Desk]) -> None:
    """A server that lists nothing: what we made ourselves is counted."""
    server.missing = {"list"}
    server.raw["delete"] = constant(lambda: web.Response(status=405))
    desk = open_desk(sessions_max=2)
    results = [await desk.turn(fire=make_fire(idempotency_key=str(n)), **ONCE) for n in range(3)]
    assert [type(one) for one in results] == [Done, Done, Failed]


async def test_a_session_that_could_not_be_deleted_is_deleted_later(server: AgentServer, desk: Desk) -> None:
    """The server refuses while it is busy; the next turn that makes a session tries again."""
    server.raw["delete"] = constant(lambda: web.json_response({"error": "busy"}, status=400))
    assert isinstance(await desk.turn(**ONCE), Done)
    assert list(server.sessions) == ["session-1"]
    del server.raw["delete"]
    assert isinstance(await desk.turn(fire=make_fire(idempotency_key="b"), **ONCE), Done)
    assert server.sessions == {}


async def test_the_history_can_be_a_file(
    server: AgentServer, open_desk: Callable[..., Desk], tmp_path: Path, eventually: Eventually
) -> None:
    """A local server's own file of events, one a line, the last one half written: read where the last turn ended."""
    desk = open_desk(history_file=str(tmp_path / "{id}" / "events.jsonl"))
    desk.session_id = "mine"
    server.manner = "lies"
    server.add("mine")
    events = tmp_path / "mine" / "events.jsonl"
    events.parent.mkdir()
    lines = [
        {"type": "user.message", "data": {"content": "[scheduler:standup] what is new?"}},
        {"type": "assistant.message", "data": {"content": "yesterday's"}},
        {"type": "session.idle"},
    ]
    events.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def write(rung: str) -> None:
        if rung == "accepted":
            lines[1]["data"] = {"content": "today's"}
            with events.open("a") as file:
                file.write("".join(json.dumps(line) + "\n" for line in lines) + '{"type": "assis')

    desk.ladder.on_rung = write
    assert await desk.turn() == Done(reply="today's", session_id="mine")
    assert "/api/sessions/mine/events" not in server.paths("GET")


WELL = Done(reply="well", session_id="mine")


@pytest.mark.parametrize(
    ("events", "is_busy", "fate"),
    [
        ([("user.message", "ours"), ("assistant.message", None), ("session.idle", None)], False, WELL),
        ([("user.message", "ours"), ("assistant.message", None)], False, WELL),
        ([("user.message", "ours"), ("session.idle", "ours")], False, Done(session_id="mine")),
        ([("session.idle", "ours")], False, Done(session_id="mine")),
        (
            [("user.message", "ours"), ("session.error", None)],
            False,
            Failed("the session ended in error", rung="started"),
        ),
        ([("user.message", "ours"), ("assistant.message", None)], True, StillWorking()),
        ([("user.message", "ours"), ("session.idle", None)], False, None),
        ([("user.message", "ours")], False, None),
        ([("user.message", "another"), ("session.idle", None)], False, NeverReceived()),
        ([("user.message", None), ("session.idle", None)], False, None),
        ([], False, None),
    ],
)
async def test_what_became_of_a_turn_after_a_crash(
    server: AgentServer, desk: Desk, events: list[tuple[str, str | None]], is_busy: bool, fate: Told
) -> None:
    """The history is asked by the key; what it cannot tell is unknown, and never taken for done."""
    session = server.add("mine")
    session.is_busy = is_busy
    said = {"assistant.message": {"data": {"content": "well"}}}
    keyed = [{"type": kind, **({"correlationId": key} if key else {})} for kind, key in events]
    session.events = [{**event, **said.get(str(event["type"]), {})} for event in keyed]
    desk.session_id = "mine"
    assert await desk.action.ask(Prompt("what is new?"), make_fire(idempotency_key="ours")) == fate


async def test_asking_a_server_that_cannot_answer(server: AgentServer, open_desk: Callable[..., Desk]) -> None:
    """No session known, no server, no history: it cannot tell."""
    desk = open_desk()
    spec, fire = Prompt("what is new?"), make_fire()
    assert await desk.action.ask(spec, fire) is None
    desk.session_id = "mine"
    server.writes_history = False
    server.add("mine")
    assert await desk.action.ask(spec, fire) is None
    away = open_desk(url="http://127.0.0.1:9")
    away.session_id = "mine"
    assert await away.action.ask(spec, fire) is None


async def test_a_session_whose_name_was_lost_is_found_by_its_schedule(server: AgentServer, desk: Desk) -> None:
    """It was made in the attempt that was cut off: the newest of the schedule's are looked into, others' are not."""
    server.lists_descriptions = True
    other = server.add("other", description="Scheduled by Wakeful: another")
    other.events = [{"type": "user.message", "correlationId": "ours"}, {"type": "session.idle"}]
    session = server.add("made", description="Scheduled by Wakeful: standup")
    spec, fire = Prompt("what is new?"), make_fire(idempotency_key="ours")
    session.events = [{"type": "user.message", "correlationId": "another"}, {"type": "session.idle"}]
    assert await desk.action.ask(spec, fire) == NeverReceived()
    session.say(
        {"type": "user.message", "correlationId": "ours"},
        {"type": "assistant.message", "data": {"content": "done meanwhile"}},
        {"type": "session.idle"},
    )
    assert await desk.action.ask(spec, fire) == Done(reply="done meanwhile", session_id="made")
    assert not any("/other/" in path for path in server.paths("GET"))


async def test_an_ephemeral_session_is_removed_once_it_has_told(server: AgentServer, desk: Desk) -> None:
    """Nobody needs it any more."""
    server.lists_descriptions = True
    session = server.add("once", description="Scheduled once by Wakeful: standup")
    session.events = [{"type": "user.message", "correlationId": "ours"}, *ANSWERED]
    spec = Prompt("what is new?", session_config=ONCE)
    assert await desk.action.ask(spec, make_fire(idempotency_key="ours")) == Done(reply="well")
    assert "once" not in server.sessions


def hostile(body: bytes | str, **answer: Any) -> Callable[[web.Request], Any]:
    return constant(lambda: web.Response(body=body, **answer))


GARBAGE: dict[str, Callable[[web.Request], Any]] = {
    "broken JSON": hostile('{"events": ['),
    "no JSON": hostile("<html>\x00\x1b[2J</html>"),
    "wrong types": hostile('{"events": 7, "isBusy": "yes", "status": ["idle"], "sessionId": {"a": 1}}'),
    "a list of nonsense": hostile('[1, null, "x", [], {"type": 5}, {"type": "user.message", "data": "x"}]'),
    "deeply nested": hostile("[" * 100_000),
    "huge": hostile(b'{"a": "' + b"x" * 10_000_000 + b'"}'),
    "not UTF-8": hostile(b"\xff\xfe\xfa"),
    "packed": hostile(b"\x1f\x8b\x08\x00", headers={"Content-Encoding": "gzip"}),
    "endless": endless,
    "broken off": broken_off,
    "no answer": hangs_up,
    "a redirect": hostile("", status=307, headers={"Location": "/api/elsewhere"}),
}


@pytest.mark.parametrize("name", GARBAGE)
async def test_garbage_in_every_place_neither_crashes_nor_proves(
    server: AgentServer, open_desk: Callable[..., Desk], name: str
) -> None:
    """Whatever the server says of its sessions, the turn ends as unconfirmed; said of itself, as failed."""
    desk = open_desk(confirm_within=200)
    desk.session_id = "mine"
    server.writes_history, server.offers_events = False, True
    server.add("mine")
    server.manner = "lies"
    for route in ("state", "events", "list"):
        server.raw[route] = GARBAGE[name]
    assert isinstance(await desk.turn(), Unconfirmed)
    server.raw["sessions"] = GARBAGE[name]
    assert isinstance(await desk.turn(**ONCE), Failed)


async def test_a_reply_is_bounded_and_cleaned(server: AgentServer, desk: Desk) -> None:
    """Five megabytes with control characters: kept up to the limit, fit for every store; markup is left as it is."""
    server.reply = "<b>bold</b>\x00\x1b[31m\ud800" + "x" * 5_000_000
    result = await desk.turn()
    assert isinstance(result, Done) and result.reply is not None
    assert result.reply.startswith("<b>bold</b>\ufffd\ufffd[31m") and "left out" in result.reply
    assert len(result.reply) < REPLY_MAX + 100
    result.reply.encode()


async def test_a_message_without_text_is_no_answer(server: AgentServer, open_desk: Callable[..., Desk]) -> None:
    """Nothing to read, so nothing is proven: never an empty reply."""
    server.reply = {"wrong": ["type"]}
    result = await open_desk(confirm_within=400).turn()
    assert isinstance(result, Unconfirmed) and "no answer" in result.error


async def test_an_empty_reply_is_one(server: AgentServer, desk: Desk) -> None:
    """An agent that finished with an empty message did reply."""
    server.reply = ""
    assert await desk.turn() == Done(reply="", usage=USAGE, session_id="session-1")


@pytest.mark.parametrize("session_id", ["../../etc/passwd", "a b", "ü", "--option", "x" * 5000])
async def test_a_strange_session_id_stays_in_its_place(server: AgentServer, desk: Desk, session_id: str) -> None:
    """An id that a person edited goes into the address as one segment; the server does not know it, and one is made."""
    desk.session_id = session_id
    result = await desk.turn()
    assert isinstance(result, Done) and result.session_id == "session-1"
    assert all(path.startswith("/api/sessions") for path in server.paths("POST"))


async def test_a_session_id_that_is_none_is_refused(server: AgentServer, desk: Desk) -> None:
    """A server that gives a new session no usable name."""
    server.raw["sessions"] = constant(lambda: web.json_response({"sessionId": "../x\n"}))
    result = await desk.turn()
    assert isinstance(result, Failed) and "without a usable id" in result.error


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"persistSession": "yes"}, "persistSession is 'yes'; write true or false"),
        ({"model": 5}, "model is 5; write text"),
        ({"tone": "kind"}, "tone is not supported by this agent; it supports persistSession, model, cwd"),
    ],
)
async def test_a_config_it_cannot_use_is_refused(desk: Desk, config: dict[str, Any], says: str) -> None:
    """When it is written, and again when it is due, without sending anything."""
    wrong = desk.action.check(Prompt("hi", session_config=config))
    assert wrong is not None and wrong.field == "sessionConfig" and says in wrong.message
    assert await desk.turn("hi", **config) == Failed(wrong.message, permanent=True)


@pytest.mark.parametrize("url", ["", "127.0.0.1:53000", "ftp://host", "http://", "http://host:0", "http://a b"])
async def test_an_address_that_is_none_is_refused(open_desk: Callable[..., Desk], url: str) -> None:
    """The cure is in the sentence."""
    wrong = open_desk(url=url).action.check(Prompt("hi"))
    assert wrong is not None and "write it like http://127.0.0.1:53000" in wrong.message


async def test_a_slow_server_is_not_waited_for_for_ever(server: AgentServer, open_desk: Callable[..., Desk]) -> None:
    """What a server answers at once it answers within `answer_within`, or it is taken for away."""
    desk = open_desk(answer_within=200)
    hold = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        with contextlib.suppress(asyncio.CancelledError):
            await hold.wait()
        return web.Response()

    server.raw["sessions"] = slow
    result = await desk.turn()
    assert isinstance(result, Failed) and "no answer within 0.2 s" in result.error
    hold.set()
