"""Publishes this process's events to other processes on the same store, while one of them is watched.

Theory of operation
-------------------
A process whose live stream has subscribers marks that in the store (`observe.following`). A relay checks for such a
mark after this process has written something or has learned that another one did, at most once a second: an idle
process never checks, and without watchers a busy one pays one small read a second and nothing per row.

While there is a watcher, the relay listens to facts as the log does. They are kept by reference and become JSON only
when they are sent: immediately if it was quiet, otherwise everything within `GATHER` in one row of the bus. The same
transaction checks whether anyone still watches; if not, the relay stops listening.

The relay never blocks the engine. Events from before the relay knew of a watcher, more than `EVENTS_MAX` at a time, and
events the store did not accept are dropped; the next row says that something is missing, and watchers read the state
again.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

from wakeful.core.time.instants import MINUTE, SECOND, Duration
from wakeful.observe.bus_rows import Bus
from wakeful.observe.events import EventBatch, batch_of
from wakeful.observe.fan_out import FanOut
from wakeful.ports.clock import Clock
from wakeful.ports.sink import Fact, Slugs
from wakeful.ports.store import Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.observe")

LOOK_EVERY: Final[Duration] = SECOND
GATHER: Final[Duration] = SECOND // 2
EVENTS_MAX: Final = 1_000
"""How many events one row holds; a person could not follow more at a time."""
KEPT_FOR: Final[Duration] = MINUTE
"""How long a row is kept: watchers read several times a second."""


class Relay:
    """Publishes events to other processes. A background service, triggered by commits."""

    def __init__(self, store: Store, clock: Clock, fan_out: FanOut) -> None:
        self.name = secrets.token_hex(8)  # identifies this process as sender and watcher; never reused
        self._store = store
        self._clock = clock
        self._fan_out = fan_out
        self._bell = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stop_listening: Callable[[], None] | None = None
        self._stop_watching: Callable[[], None] | None = None
        self._has_written = False  # since the last check for watchers
        self._is_missing = False  # watchers will miss some events
        self._waiting: list[EventBatch] = []
        self._size = 0

    async def start(self) -> None:
        self._stop_watching = self._fan_out.on_commit(self._on_commit)
        self._task = asyncio.create_task(self._run(), name="wakeful-relay")

    async def stop(self) -> None:
        """Send what is left, then stop."""
        if self._task is None or self._stop_watching is None:
            return
        self._stop_watching()
        self._task.cancel()
        await asyncio.wait([self._task])
        self._task = None
        if self._stop_listening is not None:
            await self._fan_out.drained()
            await self._tell()
            self._end_listening()

    def _on_commit(self, is_ours: bool) -> None:
        self._has_written = self._has_written or is_ours
        self._bell.set()

    async def _run(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            try:
                is_told = await (self._look() if self._stop_listening is None else self._tell())
            except Exception:  # affects only watchers
                log.exception("cannot publish events to other processes")
                is_told, self._is_missing = True, True
            if is_told:
                await self._clock.sleep(LOOK_EVERY if self._stop_listening is None else GATHER)

    async def _look(self) -> bool:
        """Start listening if there is a watcher."""
        has_written, self._has_written = self._has_written, False
        now = self._clock.read().now
        try:
            is_watched = await self._store.read(lambda tx: tx[Bus].is_watched(now=now, but=self.name))
        except StoreUnavailable:
            is_watched = False
        if not is_watched:
            return True
        self._stop_listening = self._fan_out.listen(self._listen)
        if has_written or self._has_written:
            self._is_missing = True
            self._bell.set()
        return False

    def _listen(self, facts: Sequence[Fact], slugs: Slugs) -> None:
        for fact in facts:
            batch = batch_of(fact, slugs)
            if batch is not None and batch.size:
                self._put(batch)

    def _put(self, batch: EventBatch) -> None:
        if self._size + batch.size > EVENTS_MAX:
            self._is_missing = True
        else:
            self._waiting.append(batch)
            self._size += batch.size
        self._bell.set()

    async def _tell(self) -> bool:
        """Send everything pending in one row; returns whether there was anything."""
        waiting, is_missing = self._waiting, self._is_missing
        if not waiting and not is_missing:
            return False
        self._waiting, self._size, self._is_missing = [], 0, False
        text = json.dumps(
            {"isMissing": is_missing, "events": [_event(batch, i) for batch in waiting for i in range(batch.size)]}
        )
        now = self._clock.read().now

        def publish(tx: Tx) -> bool:
            if not tx[Bus].is_watched(now=now, but=self.name):
                return False
            tx[Bus].publish(self.name, text, now=now, keep_from=now - KEPT_FOR)
            return True

        try:
            if not await self._store.write(publish):
                self._end_listening()
        except StoreUnavailable:
            self._is_missing = True
            self._bell.set()
        return True

    def _end_listening(self) -> None:
        """There are no watchers: stop listening."""
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        self._waiting, self._size, self._is_missing = [], 0, False


def _event(batch: EventBatch, index: int) -> list[Any]:
    return [batch.stream, batch.at, {"what": batch.what, **batch.expand(index)}]
