"""People at the other end: receivers that answer as they are told, on virtual time."""

import json
from typing import Any

from features.kit import Bench, World, short
from wakeful.core.run.effects import Prove
from wakeful.ports.channel import Outcome, OutgoingMessage, Refused, Sent, Unsent

__all__ = ["Person", "Refused", "Sent", "Unsent"]


class Person:
    """Takes what a channel delivers, and ends each attempt as told.

    `script` holds what the next attempts do, `usual` what all others do: an outcome is answered, an exception raised, a
    duration passes before the text arrives, anything callable is called with the letter."""

    def __init__(self, world: World, usual: Any = None) -> None:
        self._world = world
        self.usual = usual
        self.script: list[Any] = []
        self.letters: list[OutgoingMessage] = []  # every attempt
        self.at: list[str] = []
        self.got: list[str] = []  # what arrived
        self.under_way = 0
        self.under_way_max = 0

    async def __call__(self, text: str, letter: OutgoingMessage) -> Outcome | None:
        self.letters.append(letter)
        self.at.append(short(self._world.now))
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        try:
            return await self._act(self.script.pop(0) if self.script else self.usual, text, letter)
        finally:
            self.under_way -= 1

    async def _act(self, act: Any, text: str, letter: OutgoingMessage) -> Outcome | None:
        if callable(act):
            act = act(letter)
        if isinstance(act, BaseException):
            raise act
        if isinstance(act, int):
            await self._world.clock.sleep(act)
            act = None
        if act is None or isinstance(act, Sent):
            self.got.append(text)
        return act

    @property
    def ids(self) -> list[str]:
        return [letter.delivery_id for letter in self.letters]


async def reachable(world: World, *names: str, usual: Any = None, **settings: Any) -> tuple[Bench, dict[str, Person]]:
    """An app that ticks, and a person on each of these channels."""
    people = {name: Person(world, usual) for name in names}
    bench = world.bench(**settings)
    for name, person in people.items():
        bench.register_channel(name, None, person)
    await bench.start()
    return bench, people


async def prove_late(app: Bench, run_id: int, reply: str) -> None:
    """Proof of a run that closed without any arrives after all."""
    parts = app.parts
    await parts.store.write(lambda tx: parts.apply(tx, Prove(run_id, reply=reply), parts.clock.read().now))
    parts.engine.ring_bell()


def statuses(world: World) -> list[Any]:
    """What the outbox says, in order of ids."""
    return world.query("SELECT text, status, attempts FROM deliveries ORDER BY delivery_id")


def target_of(world: World, slug: str) -> str:
    """The name under which a schedule's function is known."""
    ((definition,),) = world.query("SELECT definition FROM schedules WHERE slug = ?", slug)
    return str(json.loads(definition)["call"]["target"])
