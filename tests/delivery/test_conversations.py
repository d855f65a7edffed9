"""Conversations: each message is taken once, and the agent it was written to replies."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from channels.receiver import Got, Receiver, receiving
from delivery.kit import Person, reachable
from features.kit import World, virtual
from features.voice import OK, Voice, beating
from patience import PATIENCE
from wakeful import cron
from wakeful.core.refusals import NotFound
from wakeful.core.run.results import Done
from wakeful.engine.clock import SystemClock
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.integrations.channels.telegram import Bot
from wakeful.integrations.channels.telegram_listening import ListeningTelegramChannel
from wakeful.ports.action import Fire
from wakeful.ports.channel import (
    IncomingMessage,
    ListenTrouble,
    MessageReceiver,
    Outcome,
    OutgoingMessage,
    Refused,
    Sent,
)
from wakeful.ports.meta import Meta

pytestmark = pytest.mark.promise

QUIET = HeartbeatTerms(enabled=False)


class Line:
    """A channel on which people can be heard: what is put on it, to whoever listens from that mark on."""

    kind = "line"
    address = ""
    to: str | None = None

    def __init__(self, *said: IncomingMessage) -> None:
        self.said = list(said)
        self.sent: list[str] = []
        self.listened_from: list[str | None] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, letter: OutgoingMessage) -> Outcome:
        self.sent.append(letter.text)
        return Sent()

    async def close(self) -> None: ...

    def is_allowed(self, sender: str) -> bool:
        return True

    async def listen(self, mark: str | None, ear: MessageReceiver) -> None:
        self.listened_from.append(mark)
        await self.gate.wait()
        for heard in list(self.said):
            if mark is None or int(heard.mark) > int(mark):
                await ear.hear(heard)
        await asyncio.Event().wait()


@virtual
async def test_a_message_that_is_refused_does_not_silence_those_after_it(world: World) -> None:
    """It would be refused again and again, and nobody else on that channel be heard."""
    voice = Voice(world, lambda _: "hello")
    line = Line(
        IncomingMessage("1", "ann", "x" * 70_000),
        IncomingMessage("2", "ann", "hi"),
        IncomingMessage("3", "ben", "\x07"),
    )
    bench = await beating(world, voice, QUIET, channels=lambda *_: {"line": line})
    assert bench._is_started
    await world.sleep("1m")
    assert voice.heard[-1] == "hi"
    assert line.sent[-1] == "hello"
    assert line.listened_from == [None]
    assert world.query("SELECT value FROM meta WHERE name = 'heard:line'") == [("3",)]


@virtual
async def test_what_another_process_took_meanwhile_is_not_taken_again(world: World) -> None:
    """One that was frozen past its lease finds the mark moved: it goes on from there, and answers nothing twice."""
    voice = Voice(world, lambda _: "hello")
    line = Line(
        IncomingMessage("7", "ann", "hi"),
        IncomingMessage("8", "ann", "still there?"),
        IncomingMessage("9", "ben", "and me"),
    )
    line.gate.clear()
    app = await beating(world, voice, QUIET, channels=lambda *_: {"line": line})
    await world.sleep("1s")
    await app.parts.store.write(lambda tx: tx[Meta].set("heard:line", "8"))
    line.gate.set()
    await world.sleep("30s")
    assert voice.heard == ["and me"]
    assert line.listened_from == [None, "8"]


@virtual
async def test_another_agent_begins_the_conversation_anew(world: World) -> None:
    """A session belongs to the agent that made it; a turn that ends with the old one does not bring it back."""
    seen: list[tuple[str | None, str]] = []

    async def answer(fire: Fire) -> Any:
        sessions = await app.parts.store.read(lambda tx: tx.cadences.lock([fire.schedule_id]))
        seen.append((sessions[fire.schedule_id].session_id, fire.slug))
        if len(seen) == 2:  # the agent is changed while it works
            await app.feature.follow(replace(QUIET, agent="other"))  # type: ignore[attr-defined]
            await app.people.receive("phone", "ann", "three")
        return Done(reply="yes", session_id=f"session-{len(seen)}")

    app = await beating(world, Voice(world, answer), QUIET, said=[])
    for text in ("one", "two"):
        await app.people.receive("phone", "ann", text)
        await world.sleep("10s")
    await app.people.receive("phone", "ann", "four")
    await world.sleep("10s")
    # With the first agent its session is kept; the other begins without any, and then keeps its own.
    assert [given for given, _ in seen] == [None, "session-1", None, "session-3"]


@virtual
async def test_a_message_on_a_channel_nobody_has_is_refused_by_name(world: World) -> None:
    """And leaves nothing behind: no interaction, no turn."""
    voice = Voice(world)
    app = await beating(world, voice, QUIET, said=[])
    with pytest.raises(NotFound, match=r"there is no channel 'pigeon'; write last or one of phone, inbox"):
        await app.people.receive("pigeon", "ann", "hello?")
    await world.sleep("1m")
    assert voice.heard == []
    assert (await app.people.channels()).last is None


@virtual
async def test_where_a_person_was_last_heard_the_next_turn_speaks(world: World) -> None:
    """After a message, the heartbeat delivers there, not on the first channel."""
    voice = Voice(world)
    voice.script = [lambda _: "hello Ann", lambda _: "news"]
    people = {name: Person(world) for name in ("desk", "phone")}
    bench = await beating(world, voice, QUIET)
    for name, person in people.items():
        bench.register_channel(name, None, person)
    await bench.people.receive("phone", "ann", "hi")
    await world.sleep("1s")
    await bench.request_wake("manual")
    await world.sleep("1s")
    assert people["phone"].got == ["hello Ann", "news"]
    assert [letter.to for letter in people["phone"].letters] == ["ann", "ann"]
    assert people["desk"].got == []


@virtual
async def test_dead_letters_are_a_finding_of_the_doctor(world: World) -> None:
    """How many on which channel, and what to do; gone when they are."""
    app, people = await reachable(world, "phone", "desk")
    people["phone"].usual = Refused("no such number")

    async def found() -> Any:
        return next(one for one in (await app.system.health()).findings if one.name == "deliveries")

    assert (await found()).level == "ok"
    for text in ("a", "b"):
        await app.people.send(text, channel="phone")
    await world.sleep("1s")
    seen = await found()
    assert (seen.level, seen.sentence) == ("warn", "dead letters: 2 to phone")
    assert "wakeful outbox retry ID" in seen.cure
    people["phone"].usual = None
    for one in (await app.people.deliveries(status="dead")).deliveries:
        await app.people.retry(one.id)
    await world.sleep("1s")
    assert (await found()).level == "ok"


@virtual
async def test_a_cron_event_that_is_due_at_the_start_finds_its_channels(world: World) -> None:
    """Channels first, then schedules, then what was left over: nothing rings into the void."""
    voice = Voice(world, lambda _: "news")
    app = await beating(world, voice, QUIET)
    await app.add("look", cron("0 * * * *"), event="look around")
    await app.stop()
    await world.sleep("2h")
    said: list[Any] = []
    await beating(world, voice, QUIET, said=said)
    await world.sleep("1s")
    assert [one.text for one in said] == ["news"]
    assert world.query("SELECT channel FROM deliveries") == [("phone",)]


class Counting(SystemClock):
    """A clock on which waiting takes no time, and is counted."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses = 0

    async def sleep(self, duration: int) -> None:
        self.pauses += 1
        await asyncio.sleep(0)


@pytest.mark.parametrize("updates", [[], ["nonsense"], [{"update_id": 3}]])
async def test_a_bot_that_does_not_wait_is_not_asked_without_a_pause(updates: list[Any]) -> None:
    """It answers at once that there is nothing, or the same over and over: between two questions there is a pause."""
    async with receiving() as receiver:
        enough = asyncio.Event()

        def answer(_: Got) -> web.StreamResponse:
            if len(receiver.got) == 20:
                enough.set()
            return web.json_response({"ok": True, "result": updates})

        receiver.usual = answer
        pauses = await _listened(receiver, enough)
        assert pauses >= 18


class Deaf:
    """Hears nothing, because nothing is said."""

    moved: Mapping[str, str] = {}

    async def hear(self, heard: IncomingMessage) -> None:
        raise AssertionError("there is nothing to hear")

    async def failing(self, trouble: ListenTrouble | None) -> None:
        assert trouble is None


async def _listened(receiver: Receiver, enough: asyncio.Event) -> int:
    clock = Counting()
    channel = ListeningTelegramChannel(Bot("1:x", receiver.url, SystemClock(), None), "42", clock)

    listening = asyncio.create_task(channel.listen("9", Deaf()))
    async with asyncio.timeout(PATIENCE):
        await enough.wait()
    listening.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await listening
    await channel.close()
    return clock.pauses


def test_the_default_ack_token() -> None:
    """The one that agents are told to reply with."""
    assert HeartbeatTerms().ack.token == OK
    assert HeartbeatTerms().ack.chars_max == 300
