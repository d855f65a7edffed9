"""Receiving messages: channels that people write to are polled in the background.

The message, the interaction and the read position are committed together, so a message is accepted once even if this
process crashes. When several nodes share a store, one of them listens to a channel at a time: services refuse a second
listener on the same account.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from wakeful.core.errors import Invalid
from wakeful.core.run.effects import ChatDecision, Deliver, Effect, TakeMessage
from wakeful.core.self_scheduling.proposals import read_answer
from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.features.delivery import inbound
from wakeful.features.delivery.registry import ChannelRegistry
from wakeful.features.delivery.text import inert
from wakeful.ports.channel import IncomingMessage, Listening, ListenTrouble
from wakeful.ports.clock import Clock
from wakeful.ports.interactions import Interactions
from wakeful.ports.meta import Meta
from wakeful.ports.store import Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.delivery")

AGAIN: Final[Duration] = 5 * SECOND
"""How soon listening is retried after it failed."""

LEASE: Final[Duration] = 30 * SECOND
RENEW_EVERY: Final[Duration] = 10 * SECOND
"""One node at a time listens to a channel; a dead one is replaced when its lease expires."""

NO_AGENT: Final = "no agent is configured to answer messages; enable the heartbeat under [heartbeat]"

Apply: TypeAlias = Callable[[Tx, Effect, Instant], bool]


class ReadElsewhere(Exception):
    """Another process listens to the same channel and is ahead: it may have accepted our messages already."""


class ChannelReceiver:
    """Accepts the messages of one channel, each in its own transaction."""

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
            log.warning("a message on channel %s will not be answered: %s", self._name, wrong)
        self._ring_bell()

    async def failing(self, trouble: ListenTrouble | None) -> None:
        if trouble == self._trouble:
            return
        now = self._clock.read().now
        await self._store.write(
            lambda tx: inbound.write(tx, self._name, inbound.read(tx, self._name).failing(trouble, now))
        )
        if trouble is not None:
            log.warning("cannot receive messages on channel %s: %s; %s", self._name, *trouble)
        elif isinstance(self._trouble, ListenTrouble):
            log.info("receiving messages on channel %s again", self._name)
        self._trouble = trouble

    def _take(self, tx: Tx, heard: IncomingMessage, now: Instant) -> str | None:
        """Accept a message together with the read position; returns why it cannot be answered, if the sender should
        know."""
        if tx[Meta].value(_mark(self._name)) != self.mark:
            raise ReadElsewhere
        tx[Meta].set(_mark(self._name), heard.mark)
        state = inbound.read(tx, self._name)
        if heard.unknown is not None:
            inbound.write(tx, self._name, state.after_unknown(heard.unknown, now))
        if heard.moved is not None:
            inbound.write(tx, self._name, state.after_move(*heard.moved))
        text = inert(heard.text)
        if heard.to is None or not (text.strip() or heard.unreadable):
            return None
        tx[Interactions].touch(self._name, heard.to, at=now)  # even without an answer: the person is on this channel
        wrong = heard.unreadable and f"it is {heard.unreadable} without text; write it as text"
        decided = read_answer(text) if wrong is None else None
        if decided is not None:  # before any agent sees it
            answer = ChatDecision(*decided, self._name, heard.to, heard.author or heard.to)
            if self._apply(tx, answer, now):
                return None
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
            return None if self._apply(tx, TakeMessage(self._name, to, text), now) else NO_AGENT
        except Invalid as invalid:  # it would be refused again, so it must not block the next message
            return str(invalid)


class Unset:
    """Neither a problem nor its absence was reported yet."""


UNSET: Final = Unset()


class ChannelListeners:
    """Listens to every channel that can receive messages."""

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
                log.info("the store is unavailable; another node will listen when the lease expires")

    def _look(self) -> None:
        """Start listeners for new channels and stop those of removed ones."""
        if not self._is_open:
            return
        wanted: dict[str, Listening] = {}
        for name in self._registry.names:
            candidate: object = self._registry.get(name)
            if isinstance(candidate, Listening):
                wanted[name] = candidate
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
                log.info("another process also listens to channel %s; continuing from its position", name)
            except Exception as error:  # a failing channel must not affect the others (L9)
                log.warning("listening to channel %s failed, will retry: %s", name, error)
            await self._clock.sleep(AGAIN)

    async def _listen_once(self, name: str, channel: Listening) -> None:
        mark, state = await self._store.read(lambda tx: (tx[Meta].value(_mark(name)), inbound.read(tx, name)))
        ear = ChannelReceiver(name, mark, state.moved, self._store, self._clock, self._apply, self._ring_bell)
        await channel.listen(mark, ear)

    async def _listen_under_lease(self, name: str, channel: Listening) -> None:
        """Listen while the lease can be renewed."""
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
        """Whether this process holds the lease."""
        now = self._clock.read().now
        return await self._store.write(partial(self._take_lease, name=name, now=now))

    def _take_lease(self, tx: Tx, *, name: str, now: Instant) -> bool:
        owner, _, until = (tx[Meta].value(_lease(name)) or "").partition(" ")
        if owner not in ("", self._me) and until.isdecimal() and now < int(until) <= now + LEASE:
            return False
        tx[Meta].set(_lease(name), f"{self._me} {now + LEASE}")
        return True

    def _release(self, tx: Tx, names: list[str]) -> None:
        for name in names:
            if (tx[Meta].value(_lease(name)) or "").startswith(self._me):
                tx[Meta].set(_lease(name), "")


def _mark(name: str) -> str:
    return f"heard:{name}"


def _lease(name: str) -> str:
    return f"listener:{name}"
