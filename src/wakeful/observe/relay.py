"""What this process does, told to the others that share its store, as long as somebody watches there.

Theory of operation
-------------------
Whoever watches a live stream writes so into the store (`telemetry.following`). A relay looks for such a row after this
process has written something or has heard that another one did, at most once a second: a process that is idle looks
never, and as long as nobody watches, a busy one pays one small read a second and nothing for any row.

While somebody watches, the relay listens like the log does. What it hears lies here by reference and becomes JSON only
when it is sent: at once if it was quiet, otherwise all that came within `GATHER`, in one row of the bus. The same
transaction looks whether anybody still watches; if not, the relay listens no more.

Nothing here may hold up what is done. What was written before the relay knew that it is watched, what is more than
`EVENTS_MAX` at a time and what the store would not take is not told; instead the next row says that something is
missing, and those who watch read the state anew.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

from wakeful.core.time.instants import MINUTE, SECOND, Duration
from wakeful.observe.events import EventBatch, told
from wakeful.observe.fan_out import FanOut
from wakeful.ports.clock import Clock
from wakeful.ports.sink import Fact, Slugs
from wakeful.ports.store import Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.observe")

LOOK_EVERY: Final[Duration] = SECOND
GATHER: Final[Duration] = SECOND // 2
EVENTS_MAX: Final = 1_000
"""Events in one row; more at a time are no use to a person."""
KEPT_FOR: Final[Duration] = MINUTE
"""How long a row stays: those who watch read several times a second."""


class Relay:
    """Tells the others. Lives beside the clock; whatever is committed stirs it."""

    def __init__(self, store: Store, clock: Clock, fan_out: FanOut) -> None:
        self.name = secrets.token_hex(8)  # who tells, and who watches: never a name used before
        self._store = store
        self._clock = clock
        self._fan_out = fan_out
        self._bell = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stop_listening: Callable[[], None] | None = None
        self._stop_stirring: Callable[[], None] | None = None
        self._has_written = False  # since it was last looked whether anybody watches
        self._is_missing = False  # something that those who watch will never be told
        self._waiting: list[EventBatch] = []
        self._size = 0

    async def start(self) -> None:
        self._stop_stirring = self._fan_out.on_stir(self._stir)
        self._task = asyncio.create_task(self._run(), name="wakeful-relay")

    async def stop(self) -> None:
        """Tell what is left, then no more."""
        if self._task is None or self._stop_stirring is None:
            return
        self._stop_stirring()
        self._task.cancel()
        await asyncio.wait([self._task])
        self._task = None
        if self._stop_listening is not None:
            await self._fan_out.drained()
            await self._tell()
            self._rest()

    def _stir(self, is_ours: bool) -> None:
        self._has_written = self._has_written or is_ours
        self._bell.set()

    async def _run(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            try:
                is_told = await (self._look() if self._stop_listening is None else self._tell())
            except Exception:  # whatever it is, it concerns only those who look on
                log.exception("what happens here cannot be told to those who watch elsewhere")
                is_told, self._is_missing = True, True
            if is_told:
                await self._clock.sleep(LOOK_EVERY if self._stop_listening is None else GATHER)

    async def _look(self) -> bool:
        """Begin to listen if anybody watches."""
        has_written, self._has_written = self._has_written, False
        now = self._clock.read().now
        try:
            is_watched = await self._store.read(lambda tx: tx.bus.is_watched(now=now, but=self.name))
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
            batch = told(fact, slugs)
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
        """One row of all that waits; answers whether there was anything to tell."""
        waiting, is_missing = self._waiting, self._is_missing
        if not waiting and not is_missing:
            return False
        self._waiting, self._size, self._is_missing = [], 0, False
        text = json.dumps(
            {"isMissing": is_missing, "events": [_event(one, i) for one in waiting for i in range(one.size)]}
        )
        now = self._clock.read().now

        def publish(tx: Tx) -> bool:
            if not tx.bus.is_watched(now=now, but=self.name):
                return False
            tx.bus.publish(self.name, text, now=now, keep_from=now - KEPT_FOR)
            return True

        try:
            if not await self._store.write(publish):
                self._rest()
        except StoreUnavailable:
            self._is_missing = True
            self._bell.set()
        return True

    def _rest(self) -> None:
        """Nobody watches: listen no more."""
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        self._waiting, self._size, self._is_missing = [], 0, False


def _event(batch: EventBatch, index: int) -> list[Any]:
    return [batch.stream, batch.at, {"what": batch.what, **batch.expand(index)}]
