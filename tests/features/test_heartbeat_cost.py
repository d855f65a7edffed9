"""What the heartbeat costs: what is sent with each beat, what is remembered of it, and when nobody is asked at all."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from features.kit import Bench, World, ledger, virtual
from features.voice import OK, Voice, beating
from wakeful.core.heartbeat.heartbeat import BeatRules
from wakeful.core.run.results import Done, Result
from wakeful.core.schedule.actions import Prompt
from wakeful.core.time.instants import DAY, HOUR, MINUTE
from wakeful.features.heartbeat.action import HeartbeatAction, HeartbeatTurn, notes_in
from wakeful.features.heartbeat.prompts import is_blank
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.agents.anthropic import anthropic_agent
from wakeful.integrations.agents.chat import ChatAgent, ChatSettings
from wakeful.integrations.agents.openai import openai_agent
from wakeful.integrations.agents.transcripts import TURNS_MAX, Transcripts, TranscriptTurn
from wakeful.integrations.agents.turn import TurnAction
from wakeful.integrations.net.body import Body
from wakeful.integrations.net.exchange import READ_MAX, Response
from wakeful.ports.action import Fire
from wakeful.ports.store import SystemEvent

QUIET = HeartbeatTerms(enabled=False)
A_FEW = replace(QUIET, beats=BeatRules(turns_per_hour_max=4))

TERMS = HeartbeatTerms(enabled=True)
CHECKLIST = "\n".join(f"- look after thing {number:03} and say what is wrong with it" for number in range(80))


class Notes:
    """HEARTBEAT.md, without a disk."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    async def __call__(self) -> str | None:
        return self.text


class Kept(Transcripts):
    """Transcripts in memory, bounded as those on disk are."""

    def __init__(self) -> None:
        self.turns: dict[str, list[TranscriptTurn]] = {}

    async def read(self, session_id: str) -> list[TranscriptTurn]:
        return list(self.turns.get(session_id, ()))

    async def add(self, session_id: str, spoken: TranscriptTurn) -> None:
        self.turns[session_id] = [*self.turns.get(session_id, ()), spoken][-TURNS_MAX:]


class Endpoint:
    """A chat endpoint, in the place of the client: counts the bytes of every request, and answers as it is told."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self.reply = OK
        self.sent: list[bytes] = []

    async def request(self, method: str, path: str, about: Any, *, json_body: Any, **_: Any) -> Response:
        self.sent.append(json.dumps(json_body).encode())
        answer: dict[str, Any] = {"content": [{"type": "text", "text": self.reply}], "stop_reason": "end_turn"}
        if self._dialect == "openai":
            answer = {"choices": [{"message": {"content": self.reply}, "finish_reason": "stop"}]}
        body = Body(READ_MAX, READ_MAX)

        async def chunks() -> AsyncIterator[bytes]:
            yield json.dumps(answer).encode()

        await body.read(chunks(), "")
        return Response(200, "OK", {}, body)

    async def close(self) -> None: ...

    def bodies(self) -> list[Any]:
        return [json.loads(one) for one in self.sent]


class Chat:
    """A heartbeat whose agent is a chat endpoint."""

    def __init__(self, world: World, dialect: str = "openai") -> None:
        make = openai_agent if dialect == "openai" else anthropic_agent
        self.kept = Kept()
        self.agent: ChatAgent = make(ChatSettings("http://127.0.0.1:9", "big"), world.clock, self.kept)
        self.endpoint = Endpoint(dialect)
        self.agent._client = self.endpoint  # type: ignore[assignment]  # sockets wait in real time
        self._world = world
        self.app: Bench

    async def open(self, terms: HeartbeatTerms, notes: Notes) -> Bench:
        receipts = Receipts(b"0123456789abcdef")
        turns = TurnAction({"default": self.agent}, self._world.clock, sessions=self._session, receipts=receipts)
        self.app = await beating(self._world, turns, terms, notes=notes)
        return self.app

    async def _session(self, fire: Fire) -> str | None:
        cadences = await self.app.store.read(lambda tx: tx.cadences.lock([fire.schedule_id]))
        return cadences[fire.schedule_id].session_id


@pytest.mark.parametrize(
    ("dialect", "days"), [("openai", 1), ("anthropic", 1), pytest.param("openai", 30, marks=pytest.mark.torture)]
)
@virtual
async def test_after_a_month_of_silent_beats_a_beat_costs_what_the_first_did(
    world: World, dialect: str, days: int
) -> None:
    """Every half hour for thirty days, with a checklist of 4 KB: what is sent does not grow."""
    chat = Chat(world, dialect)
    assert len(CHECKLIST) >= 4096
    app = await chat.open(TERMS, Notes(CHECKLIST))
    await world.sleep(f"{days}d")
    sizes = [len(one) for one in chat.endpoint.sent]
    assert len(sizes) >= days * 48 - 1
    assert sizes[0] > 4096 and max(sizes) <= 1.1 * sizes[0]
    assert chat.kept.turns == {}
    assert {run.reason for run in await app.runs("heartbeat")} == {"ok-ack"}


@virtual
async def test_what_was_said_is_remembered_without_the_checklist(world: World) -> None:
    """A turn that had something to say is told again in the next ones; the checklist is in each request once."""
    chat = Chat(world)
    app = await chat.open(TERMS, Notes(CHECKLIST))
    chat.endpoint.reply = "the plants are dry"
    await app.request_wake("manual", "it is hot", context_key="weather")
    await world.sleep("31m")
    chat.endpoint.reply = ""
    await world.sleep("1h")
    said, later, last = chat.endpoint.bodies()[0], chat.endpoint.bodies()[1], chat.endpoint.bodies()[-1]
    assert [one["role"] for one in said["messages"]] == ["user"]
    assert "> it is hot" in later["messages"][0]["content"] and "thing 001" not in later["messages"][0]["content"]
    assert later["messages"][1] == {"role": "assistant", "content": "the plants are dry"}
    assert json.dumps(last).count("thing 001") == 1
    assert len(last["messages"]) == len(later["messages"]) + 2  # two turns that spoke, and the empty ones are forgotten


@virtual
async def test_a_fresh_session_remembers_nothing_and_the_model_may_be_another(world: World) -> None:
    """`session = "fresh"` and `model`: each beat on its own, with the model of the heartbeat."""
    chat = Chat(world)
    chat.endpoint.reply = "there is something"
    await chat.open(replace(TERMS, session="fresh", model="small"), Notes(CHECKLIST))
    await world.sleep("2h")
    assert len(chat.endpoint.sent) >= 3
    assert {(body["model"], len(body["messages"])) for body in chat.endpoint.bodies()} == {("small", 1)}
    assert chat.kept.turns == {}


@pytest.mark.parametrize(
    "text", ["", " \n\t\n", "# HEARTBEAT\n\n## Today\n", "<!-- add tasks\nhere -->\n# List\n", "\ufeff\n"]
)
@virtual
async def test_an_empty_file_asks_nobody(world: World, text: str) -> None:
    """It exists and says nothing, and no event waits: no turn. The beats are in the ledger, and use up no budget."""
    voice = Voice(world)
    terms = replace(TERMS, every=10 * MINUTE, beats=BeatRules(turns_per_hour_max=2))
    app = await beating(world, voice, terms, notes=Notes(text))
    await world.sleep("2h1m")
    assert voice.heard == []
    assert {line.partition(" ")[2].partition(" ")[2] for line in await ledger(app, "heartbeat")} == {
        "skipped (nothing to do)"
    }
    assert len(await app.runs("heartbeat")) == 12
    assert (app.alerted, world.reported()) == ([], [])
    asked = await app.why("heartbeat", at="2026-01-01T00:10:10Z")
    assert (
        "was skipped because HEARTBEAT.md is empty or the check found nothing, and no event was waiting"
        in asked.sentence
    )


@virtual
async def test_an_empty_file_keeps_no_event_and_no_person_waiting(world: World) -> None:
    """Whoever asks for a turn gets one, and so does an event; afterwards beats are skipped again."""
    voice = Voice(world)
    app = await beating(world, voice, notes=Notes("# nothing so far\n"))
    await world.sleep("10m")
    await app.request_wake("manual")
    await world.sleep("1m")
    assert len(voice.heard) == 1 and "HEARTBEAT.md" not in voice.heard[0]
    await app.request_wake("hook", "the door", context_key="door")
    await world.sleep("1h")
    assert len(voice.heard) == 2 and "> the door" in voice.heard[1]
    assert [line.split(" ", 2)[2] for line in await ledger(app, "heartbeat")][-2:] == ["skipped (nothing to do)"] * 2


@virtual
async def test_a_file_that_is_missing_or_filled_beats_as_before(world: World) -> None:
    """No file at all is no empty file; and what is written into it counts from the next beat on."""
    voice, notes = Voice(world), Notes(None)
    await beating(world, voice, notes=notes)
    await world.sleep("31m")
    assert len(voice.heard) == 1
    notes.text = ""
    await world.sleep("30m")
    assert len(voice.heard) == 1
    notes.text = "# List\n- water the plants\n"
    await world.sleep("30m")
    assert len(voice.heard) == 2 and "- water the plants" in voice.heard[-1]


@pytest.mark.parametrize(
    ("text", "is_empty"),
    [("", True), ("# a\n#b", True), ("<!-- x", True), ("<!-- a --> b", False), ("- ", False), ("a", False)],
)
def test_what_is_an_empty_file(text: str, is_empty: bool) -> None:
    """Blank lines, headings and comments, and nothing else."""
    assert is_blank(text) is is_empty


@pytest.mark.promise
@pytest.mark.parametrize("notes", ["", " \n\n"])
async def test_an_empty_heartbeat_file_keeps_nothing_back(tmp_path: Path, notes: str) -> None:
    """45, OC#2217: a file without a word skipped the turns of cron jobs elsewhere; here events are told."""
    (tmp_path / "HEARTBEAT.md").write_text(notes)
    heard: list[str] = []

    class Listening(Voice):
        async def perform(self, spec: Prompt, fire: Any, ladder: Any) -> Result:
            heard.append(spec.text)
            return Done(reply=OK)

    event = SystemEvent(1, "cron:plants", "cron", "water the plants", 0, 1, "plants", 7, None, None)
    turn = HeartbeatTurn("default", "look around", (event,), ("cron",))
    action = HeartbeatAction(Listening.__new__(Listening), notes_in(tmp_path))
    assert await action.perform(turn, None, None) == Done(reply=OK)  # type: ignore[arg-type]  # neither is looked at
    (told,) = heard
    assert "> water the plants" in told
    assert "HEARTBEAT.md" not in told


@pytest.mark.promise
@pytest.mark.parametrize("most", [1, 2, 5])
@virtual
async def test_a_heartbeat_nobody_needs_costs_no_more_than_its_budget(world: World, most: int) -> None:
    """41 and 42, OC#98556, OC#48723: hooks that fire for hours cannot buy more turns than were allowed; that is told of
    once, however small the budget is; and switched off it costs nothing."""
    voice = Voice(world)
    app = await beating(
        world, voice, HeartbeatTerms(enabled=True, every=HOUR, beats=BeatRules(turns_per_hour_max=most))
    )
    for _ in range(6 * 12):
        await app.request_wake("hook")
        await world.sleep(5 * MINUTE)
    assert len(voice.began) <= most * 7
    assert [alert.incident for alert in app.alerted] == ["heartbeat:budget"]
    await app.feature.follow(HeartbeatTerms(enabled=False))  # type: ignore[attr-defined]
    await world.sleep(2 * HOUR)
    turns = len(voice.began)
    await world.sleep(DAY)
    assert len(voice.began) == turns


@pytest.mark.promise
@virtual
async def test_each_time_the_budget_trips_people_are_told_and_told_when_it_is_over(world: World) -> None:
    """Two loops hours apart are two incidents: two alerts, and a note in between."""
    said: list[Any] = []
    app = await beating(world, Voice(world), A_FEW, said=said)
    for _ in range(2):
        for _ in range(6):
            await app.request_wake("manual")
            await world.sleep("1s")
        await world.sleep("3h")
        await app.request_wake("manual")  # a look at how it stands
        await world.sleep("1s")
    told = [one.text.split(";")[0] for one in said]
    assert [("had 4 turns within an hour" in text, "recovered after" in text) for text in told] == [
        (True, False),
        (True, True),
        (True, False),
        (True, True),
    ]


@pytest.mark.promise
@virtual
async def test_a_tripped_budget_is_a_finding_of_the_doctor(world: World) -> None:
    """With since when, until when, and what to look at; and gone when it is over."""
    app = await beating(world, Voice(world), A_FEW)

    async def found() -> Any:
        return next(one for one in (await app.system.health()).findings if one.name == "heartbeat")

    assert (await found()).level == "ok"
    for _ in range(6):
        await app.request_wake("manual")
        await world.sleep("1s")
    seen = await found()
    assert seen.level == "warn"
    assert "used up its 4 turns per hour at 2026-01-01T00:00:0" in seen.sentence
    assert "waits until 2026-01-01T01:00:00.250" in seen.sentence
    assert seen.cure == "see who wakes it: wakeful runs heartbeat"
    await world.sleep("3h")
    await app.request_wake("manual")
    await world.sleep("1s")
    assert (await found()).level == "ok"
