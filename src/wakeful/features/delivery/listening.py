"""Hearing: channels on which people speak are listened to beside the clock.

What was heard, that the person was there, and how far the channel has been listened to become durable together: a
message is taken once, whatever happens to this process. On a store that several nodes share, one of them listens to a
channel at a time: services refuse a second listener to the same account.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from wakeful.core.errors import Invalid
from wakeful.core.run.effects import Deliver, Effect, TakeMessage
from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.features.delivery import inbound
from wakeful.features.delivery.registry import ChannelRegistry
from wakeful.features.delivery.text import inert
from wakeful.ports.channel import IncomingMessage, Listening, ListenTrouble
from wakeful.ports.clock import Clock
from wakeful.ports.store import Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.delivery")

AGAIN: Final[Duration] = 5 * SECOND
"""How soon a channel whose listening broke off is listened to again."""

LEASE: Final[Duration] = 30 * SECOND
RENEW_EVERY: Final[Duration] = 10 * SECOND
"""One node at a time listens to a channel; one that died is replaced after its lease."""

NOBODY: Final = "no agent here answers messages; enable the heartbeat under [heartbeat]"

Apply: TypeAlias = Callable[[Tx, Effect, Instant], bool]


class ReadElsewhere(Exception):
    """Another process listens to the same channel and got further: what we heard may be what it took already."""


class ChannelEar:
    """Takes what one channel hears, in transactions of its own."""

    def __init__(
        self,
        name: str,
        mark: str | None,
        moved: Mapping[str, str],
        store: Store,
        clock: Clock,
        apply: Apply,
        ring_bell: Callable[[], None],
    ) -> None:
        self.mark = mark
        self.moved = moved
        self._name = name
        self._store = store
        self._clock = clock
        self._apply = apply
        self._ring_bell = ring_bell
        self._trouble: ListenTrouble | Unset | None = UNSET

    async def hear(self, heard: IncomingMessage) -> None:
        now = self._clock.read().now
        wrong = await self._store.write(lambda tx: self._take(tx, heard, now))
        self.mark = heard.mark
        if wrong is not None:
            log.warning("a message on channel %s is not answered: %s", self._name, wrong)
        self._ring_bell()

    async def failing(self, trouble: ListenTrouble | None) -> None:
        if trouble == self._trouble:
            return
        now = self._clock.read().now
        await self._store.write(
            lambda tx: inbound.write(tx, self._name, inbound.read(tx, self._name).failing(trouble, now))
        )
        if trouble is not None:
            log.warning("no messages are received on channel %s: %s; %s", self._name, *trouble)
        elif isinstance(self._trouble, ListenTrouble):
            log.info("messages are received on channel %s again", self._name)
        self._trouble = trouble

    def _take(self, tx: Tx, heard: IncomingMessage, now: Instant) -> str | None:
        """Take it with the mark; returns why nothing came of it, if that is anybody's concern."""
        if tx.meta.get(_mark(self._name)) != self.mark:
            raise ReadElsewhere
        tx.meta.set(_mark(self._name), heard.mark)
        state = inbound.read(tx, self._name)
        if heard.unknown is not None:
            inbound.write(tx, self._name, state.after_unknown(heard.unknown, now))
        if heard.moved is not None:
            inbound.write(tx, self._name, state.after_move(*heard.moved))
        text = inert(heard.text)
        if heard.to is None or not (text.strip() or heard.unreadable):
            return None
        tx.channels.touch(self._name, heard.to, at=now)  # also when nobody answers: this is where the person is
        wrong = heard.unreadable and f"it is {heard.unreadable} without text; write it as text"
        if wrong is None:
            wrong = self._hand_over(tx, heard.to, text, now)
        else:
            inbound.write(tx, self._name, state.after_unreadable(heard.to, heard.unreadable or "", now))
        if wrong is not None:
            note = f"Your message could not be answered: {wrong}"
            self._apply(tx, Deliver(note, self._name, heard.to, is_note=True), now)
        return wrong

    def _hand_over(self, tx: Tx, to: str, text: str, now: Instant) -> str | None:
        try:
            return None if self._apply(tx, TakeMessage(self._name, to, text), now) else NOBODY
        except Invalid as invalid:  # it would be refused again: the next message is not kept waiting for it
            return str(invalid)


class Unset:
    """Nothing was reported yet, neither trouble nor its absence."""


UNSET: Final = Unset()


class ChannelListeners:
    """Listens to every channel that can be listened to."""

    def __init__(
        self, store: Store, clock: Clock, registry: ChannelRegistry, apply: Apply, ring_bell: Callable[[], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._registry = registry
        self._apply = apply
        self._ring_bell = ring_bell
        self._tasks: dict[str, tuple[Listening, asyncio.Task[None]]] = {}
        self._is_open = False
        self._me = uuid.uuid4().hex
        registry.on_change(self._look)

    async def start(self) -> None:
        self._is_open = True
        self._look()

    async def stop(self) -> None:
        self._is_open = False
        names, tasks = list(self._tasks), [task for _, task in self._tasks.values()]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if names and not self._store.is_exclusive:
            try:
                await self._store.write(lambda tx: self._release(tx, names))
            except StoreUnavailable:
                log.info("the store is gone; another node listens when the lease has run out")

    def _look(self) -> None:
        """Listen to the channels that are there, and to no others."""
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
                if self._store.is_exclusive:
                    await self._listen_once(name, channel)
                elif await self._lease(name):
                    await self._listen_under_lease(name, channel)
            except ReadElsewhere:
                log.info("channel %s is listened to by another process as well; going on from where it is", name)
            except Exception as error:  # a channel that cannot be heard must not silence the others (L9)
                log.warning("channel %s cannot be listened to, trying again: %s", name, error)
            await self._clock.sleep(AGAIN)

    async def _listen_once(self, name: str, channel: Listening) -> None:
        mark, state = await self._store.read(lambda tx: (tx.meta.get(_mark(name)), inbound.read(tx, name)))
        ear = ChannelEar(name, mark, state.moved, self._store, self._clock, self._apply, self._ring_bell)
        await channel.listen(mark, ear)

    async def _listen_under_lease(self, name: str, channel: Listening) -> None:
        """Listen as long as the lease can be renewed."""
        listening = asyncio.create_task(self._listen_once(name, channel))
        renewing = asyncio.create_task(self._renew(name))
        try:
            ended, _ = await asyncio.wait((listening, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (listening, renewing):
                task.cancel()
            await asyncio.gather(listening, renewing, return_exceptions=True)
        for task in ended:
            task.result()

    async def _renew(self, name: str) -> None:
        while True:
            await self._clock.sleep(RENEW_EVERY)
            if not await self._lease(name):
                return

    async def _lease(self, name: str) -> bool:
        """Whether it is this process that listens for now."""
        now = self._clock.read().now
        return await self._store.write(partial(self._take_lease, name=name, now=now))

    def _take_lease(self, tx: Tx, *, name: str, now: Instant) -> bool:
        owner, _, until = (tx.meta.get(_lease(name)) or "").partition(" ")
        if owner not in ("", self._me) and until.isdecimal() and now < int(until) <= now + LEASE:
            return False
        tx.meta.set(_lease(name), f"{self._me} {now + LEASE}")
        return True

    def _release(self, tx: Tx, names: list[str]) -> None:
        for name in names:
            if (tx.meta.get(_lease(name)) or "").startswith(self._me):
                tx.meta.set(_lease(name), "")


def _mark(name: str) -> str:
    return f"heard:{name}"


def _lease(name: str) -> str:
    return f"listener:{name}"
