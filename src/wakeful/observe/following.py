"""Adds the events of other processes on the same store to the live stream, while it has subscribers.

Theory of operation
-------------------
While the stream has subscribers, and for `LINGER` after that so that a returning one misses nothing, this service marks
the stream as watched in the store and reads the events that other processes publish there (`observe.relay`). Their
events are appended to the stream like local ones, with its ids and sequence numbers. Each commit is published only by
the process that made it, so nothing is duplicated.

If events may be missing, the stream sends `reset`, and subscribers read the state again: a sender reports a loss, the
sequence numbers have a gap (events were pruned), our own row expired before it was renewed, or a node disappeared that
may have died between a commit and publishing it. There is also a `reset` when following ends, for subscribers that
return later with an older id.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from wakeful.core.time.instants import MINUTE, SECOND, Duration, Instant
from wakeful.observe.bus_rows import Bus, Relayed
from wakeful.observe.events import Data, EventBatch
from wakeful.observe.fan_out import FanOut
from wakeful.observe.stream import Stream
from wakeful.ports.clock import Clock
from wakeful.ports.sink import Fact, NodeLeft, Slugs
from wakeful.ports.store import Store, StoreUnavailable

log = logging.getLogger("wakeful.observe")

READ_EVERY: Final[Duration] = SECOND // 2
READ_MAX: Final = 50
RENEW_EVERY: Final[Duration] = 10 * SECOND
WATCH_FOR: Final[Duration] = 40 * SECOND
"""How long our row marks the stream as watched; several renewals may fail."""
LINGER: Final[Duration] = MINUTE

_MISSING: Final = "some events of other processes are missing here"
_UNFOLLOWED: Final = "events of other processes during that time are missing here"
_NODE_GONE: Final = "a node disappeared, and its last events may be missing"


class Following:
    """Follows other processes for one stream. A background service; `name` is the name of this process's relay."""

    def __init__(self, store: Store, clock: Clock, stream: Stream, fan_out: FanOut, name: str) -> None:
        self._store = store
        self._clock = clock
        self._stream = stream
        self._fan_out = fan_out
        self._name = name
        self._seq = 0
        self._until: Instant = 0
        self._renew_at = 0
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="wakeful-following")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        while True:
            self._stream.arrival.clear()
            if not self._stream.subscribers:
                await self._stream.arrival.wait()
            stop = self._fan_out.listen(self._hear)
            try:
                await self._follow()
            except Exception:  # affects only watchers
                log.exception("cannot follow the events of other processes")
                await self._clock.sleep(RENEW_EVERY)
            finally:
                stop()
            self._stream.reset(_UNFOLLOWED)

    async def _follow(self) -> None:
        self._renew_at = self._until = 0
        left_at = self._clock.read().monotonic
        while self._stream.subscribers or self._clock.read().monotonic - left_at < LINGER:
            if self._stream.subscribers:
                left_at = self._clock.read().monotonic
            is_more = False
            try:
                await self._renew()
                is_more = await self._read()
            except StoreUnavailable as error:
                log.debug("cannot read the events of other processes now: %s", error)
            if not is_more:
                await self._clock.sleep(READ_EVERY)

    async def _renew(self) -> None:
        """Renew the mark that the stream is watched, if due."""
        moment = self._clock.read()
        now, monotonic = moment.now, moment.monotonic
        if self._until and monotonic < self._renew_at and now + RENEW_EVERY < self._until:
            return
        until = now + WATCH_FOR
        last = await self._store.write(lambda tx: tx[Bus].watch(self._name, now=now, until=until))
        if not self._until:
            self._seq = last
        elif self._until < now:
            self._stream.reset(_MISSING)  # our row had expired, so nothing was published for us
        self._until, self._renew_at = until, monotonic + RENEW_EVERY

    async def _read(self) -> bool:
        """Append the events of other processes; returns whether there may be more already."""
        seq = self._seq
        rows = await self._store.read(lambda tx: tx[Bus].after(seq, reader=self._name, limit=READ_MAX))
        for row in rows:
            self._take(row)
        return len(rows) == READ_MAX

    def _take(self, row: Relayed) -> None:
        is_missing = row.seq != self._seq + 1
        self._seq = row.seq
        said: dict[str, Any] = {} if row.events is None else json.loads(row.events)
        if is_missing or said.get("isMissing"):
            self._stream.reset(_MISSING)
        for (stream, at), events in groupby(said.get("events", ()), key=lambda event: (event[0], event[1])):
            self._append(stream, at, [data for _, _, data in events])

    def _append(self, stream: str, at: Instant, data: Sequence[Data]) -> None:
        self._stream.append(EventBatch(stream, "reported", at, len(data), lambda i: data[i]))
        if stream == "nodes" and any(event.get("what") == "left" for event in data):
            self._stream.reset(_NODE_GONE)

    def _hear(self, facts: Sequence[Fact], _: Slugs) -> None:
        if any(isinstance(fact, NodeLeft) for fact in facts):
            self._stream.reset(_NODE_GONE)
