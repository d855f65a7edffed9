"""Hearing: channels on which people speak are listened to beside the clock.

What was heard, that the person was there, and how far the channel has been listened to become durable together: a
message is taken once, whatever happens to this process.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from wakeful.core.effects import TakeMessage
from wakeful.core.errors import Invalid
from wakeful.core.instants import SECOND, Duration, Instant
from wakeful.features.delivery.registry import ChannelRegistry
from wakeful.features.delivery.text import inert
from wakeful.ports.channel import Heard, Listening
from wakeful.ports.clock import Clock
from wakeful.ports.store import Store, Tx

log = logging.getLogger("wakeful.delivery")

AGAIN: Final[Duration] = 5 * SECOND
"""How soon a channel whose listening broke off is listened to again."""

Take: TypeAlias = Callable[[Tx, TakeMessage, Instant], bool]


class HeardElsewhere(Exception):
    """Another process listens to the same channel and got further: what we heard may be what it took already."""


class Place:
    """How far one listener got."""

    def __init__(self, mark: str | None) -> None:
        self.mark = mark


class Ears:
    """Listens to every channel that can be listened to."""

    def __init__(
        self, store: Store, clock: Clock, registry: ChannelRegistry, take: Take, ring_bell: Callable[[], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._registry = registry
        self._take = take
        self._ring_bell = ring_bell
        self._tasks: dict[str, tuple[Listening, asyncio.Task[None]]] = {}
        self._is_open = False
        registry.on_change(self._look)

    async def start(self) -> None:
        self._is_open = True
        self._look()

    async def stop(self) -> None:
        self._is_open = False
        tasks = [task for _, task in self._tasks.values()]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _look(self) -> None:
        """Listen to those that are there, and to nobody else."""
        if not self._is_open:
            return
        wanted: dict[str, Listening] = {}
        for name in self._registry.names:
            found: object = self._registry.get(name)
            if isinstance(found, Listening):
                wanted[name] = found
        for name, (channel, task) in list(self._tasks.items()):
            if wanted.get(name) is not channel:
                task.cancel()
                del self._tasks[name]
        for name, channel in wanted.items():
            if name not in self._tasks:
                task = asyncio.create_task(self._listen(name, channel), name=f"wakeful-ear {name}")
                self._tasks[name] = (channel, task)

    async def _listen(self, name: str, channel: Listening) -> None:
        while True:
            try:
                place = Place(await self._store.read(lambda tx: tx.meta.get(_mark(name))))
                await channel.listen(place.mark, partial(self._hear, name, place))
            except HeardElsewhere:
                log.info("channel %s is listened to by another process as well; going on from where it is", name)
            except Exception as error:  # a channel that cannot be heard must not silence the others (L9)
                log.warning("channel %s cannot be listened to, trying again: %s", name, error)
            await self._clock.sleep(AGAIN)

    async def _hear(self, name: str, place: Place, heard: Heard) -> None:
        now = self._clock.read().now
        text = inert(heard.text)

        def take(tx: Tx) -> str | None:
            if tx.meta.get(_mark(name)) != place.mark:
                raise HeardElsewhere
            tx.meta.set(_mark(name), heard.mark)
            if heard.to is None or not text.strip():
                return None
            tx.channels.touch(name, heard.to, at=now)  # also when nobody answers: this is where the person is
            try:
                is_taken = self._take(tx, TakeMessage(name, heard.to, text), now)
            except Invalid as invalid:  # it would be refused again: whoever speaks next is not kept waiting for it
                return str(invalid)
            return None if is_taken else "nobody here answers; run with the heartbeat"

        wrong = await self._store.write(take)
        place.mark = heard.mark
        if wrong is not None:
            log.warning("somebody wrote on channel %s, and gets no answer: %s", name, wrong)
        self._ring_bell()


def _mark(name: str) -> str:
    return f"heard:{name}"
