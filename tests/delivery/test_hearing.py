"""Listening to channels, on virtual time: one node at a time, each message once, and what is reported."""

from typing import Any

from delivery.kit import Person
from features.kit import Bench, World, virtual
from features.voice import Voice
from wakeful.core.schedule.actions import Prompt
from wakeful.core.time.instants import HOUR, SECOND, Duration
from wakeful.features.delivery.listening import LEASE
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.ports.channel import (
    IncomingMessage,
    ListenTrouble,
    MessageReceiver,
    Outcome,
    OutgoingMessage,
    Sender,
    Sent,
)


class Radio:
    """What everyone says to one account; like the service, it serves one listener at a time."""

    def __init__(self, world: World) -> None:
        self.person = Person(world)
        self.updates: list[IncomingMessage] = []
        self.trouble: ListenTrouble | None = None
        self.listeners: list[str] = []
        self.allowed = {"ann"}
        self.looks_every: Duration = SECOND

    def says(self, to: str | None = "ann", text: str = "", **fields: Any) -> None:
        self.updates.append(IncomingMessage(str(len(self.updates) + 1), to, text, **fields))


class RadioChannel:
    """The account as one node sees it."""

    kind = "radio"
    address = ""
    to: str | None = None

    def __init__(self, world: World, radio: Radio, node: str) -> None:
        self._world = world
        self._radio = radio
        self._node = node

    async def send(self, letter: OutgoingMessage) -> Outcome:
        return await self._radio.person(letter.text, letter) or Sent()

    async def close(self) -> None: ...

    def is_allowed(self, sender: str) -> bool:
        return sender in self._radio.allowed

    async def listen(self, mark: str | None, ear: MessageReceiver) -> None:
        place = int(mark or 0)
        self._radio.listeners.append(self._node)
        try:
            while True:
                await ear.failing(self._radio.trouble)
                for heard in self._radio.updates[place:] if self._radio.trouble is None else ():
                    await ear.hear(heard)
                    place = int(heard.mark)
                await self._world.clock.sleep(self._radio.looks_every)
        finally:
            self._radio.listeners.remove(self._node)


async def tuned(world: World, radio: Radio, name: str = "node", *, is_answered: bool = True, **settings: Any) -> Bench:
    """A node that listens to it."""
    if is_answered:
        settings |= {"heartbeat": HeartbeatFeature(HeartbeatTerms(enabled=False))}
    bench = world.bench(
        name=name,
        actions={Prompt: Voice(world, lambda fire: f"{name} answers")},
        channels=lambda *_: {"radio": RadioChannel(world, radio, name)},
        **settings,
    )
    await bench.start()
    return bench


async def findings(app: Bench) -> list[str]:
    """What `/healthz` says of channels."""
    return [
        one.sentence for one in (await app.system.health()).findings if one.name == "channels" and one.level == "warn"
    ]


@virtual
async def test_of_several_nodes_one_listens_and_another_takes_over(world: World) -> None:
    """At once if it stops in order, after its lease if it dies; each message is answered once."""
    radio = Radio(world)
    nodes = [await tuned(world, radio, name, is_shared=True) for name in ("a", "b", "c")]
    await world.sleep("1m")
    assert radio.listeners == ["a"]
    radio.says(text="one")
    await world.sleep("5s")
    await nodes[0].stop()
    await world.sleep("10s")
    (second,) = radio.listeners
    radio.says(text="two")
    await world.sleep("5s")
    await nodes[1 if second == "b" else 2].kill()
    radio.listeners.clear()
    radio.says(text="three")
    await world.sleep(LEASE + 10_000)
    assert len(radio.listeners) == 1
    assert radio.listeners != [second]
    await world.sleep("10s")
    assert len(radio.person.got) == 3


@virtual
async def test_trouble_is_kept_in_the_store_until_it_is_over(world: World) -> None:
    """Also over a restart, with the time it began; every node says the same, the one that does not listen too."""
    radio = Radio(world)
    radio.trouble = ListenTrouble("HTTP 409 Conflict", "end the other one")
    app = await tuned(world, radio, "a", is_shared=True)
    other = await tuned(world, radio, "b", is_shared=True)
    await world.sleep("1m")
    (said,) = await findings(app)
    assert said == "radio: no messages have been received since 2026-01-01T00:00:00.000Z: HTTP 409 Conflict"
    assert await findings(other) == [said]
    (channel, _) = (await other.people.channels()).channels
    assert [(one.sentence, one.cure) for one in channel.findings] == [(said, "end the other one")]
    await app.stop()
    await other.stop()
    app = await tuned(world, radio)
    await world.sleep("1m")
    assert await findings(app) == [said]
    radio.trouble = None
    await world.sleep("1m")
    assert await findings(app) == []


@virtual
async def test_strangers_are_named_for_a_day_and_not_when_they_are_allowed(world: World) -> None:
    """The newest twenty of them; one that writes again is counted."""
    radio = Radio(world)
    app = await tuned(world, radio)
    for n in range(30):
        radio.says(None, unknown=Sender(f"{n}", f"Stranger {n}"))
    radio.says(None, unknown=Sender("29", "Stranger 29"))
    await world.sleep("5s")
    (channel, _) = (await app.people.channels()).channels
    assert len(channel.findings) == 20
    assert "Stranger 29 (id 29) wrote without permission, 2 times, last at 2026-" in channel.findings[0].sentence
    assert len(await findings(app)) == 11  # ten, and that there are more
    radio.allowed.add("29")
    (channel, _) = (await app.people.channels()).channels
    assert len(channel.findings) == 19
    radio.looks_every = HOUR
    await world.sleep("1d")
    assert await findings(app) == []


@virtual
async def test_whoever_cannot_be_answered_is_told_once(world: World) -> None:
    """No text in it, too much text, or nothing here that answers; a restart does not repeat it."""
    radio = Radio(world)
    app = await tuned(world, radio)
    radio.says(unreadable="a sticker")
    radio.says(text="x" * 70_000)
    await world.sleep("5s")
    sticker, long = radio.person.got
    assert sticker == "Your message could not be answered: it is a sticker without text; write it as text"
    assert "send at most 65536" in long
    await app.stop()
    app = await tuned(world, radio, is_answered=False)
    await world.sleep("1m")
    radio.says(text="hello?")
    await world.sleep("1m")
    assert radio.person.got[2:] == [
        "Your message could not be answered: no agent is configured to answer messages; "
        "enable the heartbeat under [heartbeat]"
    ]
    last = (await app.people.channels()).last
    assert last is not None
    assert (last.channel, last.to) == ("radio", "ann")
