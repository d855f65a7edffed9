"""The live stream: events for subscribers as they happen.

Theory of operation
-------------------
Events belong to named streams (`runs`, `schedules`, `nodes`, `alerts`, and those of features). Within a stream `seq`
increases by one per event; across all streams `id` does, and it starts at the wall clock (milliseconds, shifted by 20
bits), so that it also increases from one process to the next without storing anything: a process would have to publish
a million events per millisecond to overtake the clock.

The last `kept_max` events stay in a ring buffer. A subscriber is only a cursor into that ring: it has no queue, so any
number of slow ones cost nothing, and publishing never waits. A subscriber that needs events that are no longer kept,
because it was away too long (`Last-Event-ID`) or reads too slowly, gets a `reset` event that says how many it lost, and
continues with what is left. After a reset it should read the state again by ordinary requests.

Batches stay batches: an event's JSON is built when it is first read (see `observe.events`).
"""

import asyncio
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from wakeful.core.refusals import Conflict
from wakeful.core.time.instants import Duration, Instant
from wakeful.observe.events import EventBatch, batch_of
from wakeful.ports.clock import Clock
from wakeful.ports.sink import Fact, Slugs

log = logging.getLogger("wakeful.observe")

KEPT_MAX: Final = 10_000
SUBSCRIBERS_MAX: Final = 256
READ_MAX: Final = 256
ID_BITS: Final = 20
RESET: Final = "reset"


class Event(NamedTuple):
    """Something that happened."""

    id: int  # increases across all streams and restarts
    stream: str
    seq: int  # increases by one within its stream
    at: Instant
    what: str
    data: Mapping[str, Any]


Handler: TypeAlias = Callable[[Event], None]


class _Batch(NamedTuple):
    """Similar events of one stream under consecutive ids."""

    first_id: int
    first_seq: int
    events: EventBatch

    def event(self, index: int) -> Event:
        stream, what, at, _, expand = self.events
        data = expand(index)
        return Event(self.first_id + index, stream, self.first_seq + index, at, data.get("what", what), data)


class Stream:
    """The event stream of one process."""

    def __init__(self, clock: Clock, *, kept_max: int = KEPT_MAX, first_id: int | None = None) -> None:
        self._clock = clock
        self._kept_max = kept_max
        self._next_id = (clock.read().now << ID_BITS) + 1 if first_id is None else first_id
        self._first_id = self._next_id  # the oldest event still kept, or the next one
        self._born_id = self._next_id
        self._next_seq: dict[str, int] = {}
        self._lost_seq: dict[str, int] = {}  # per stream, the last event dropped from the ring
        self._ring: deque[_Batch] = deque()
        self._kept = 0
        self._subscriptions: set[Subscription] = set()
        self._handlers: dict[int, tuple[str | None, Handler]] = {}
        self._next_key = 0
        self.arrival = asyncio.Event()  # set when a subscriber arrives

    @property
    def last_id(self) -> int:
        """The id of the newest event; before the first one, an id that precedes all."""
        return self._next_id - 1

    @property
    def subscribers(self) -> int:
        return len(self._subscriptions)

    # --- publishing --------------------------------------------------------------------------------------------------

    def listen(self, facts: Sequence[Fact], slugs: Slugs) -> None:
        """Take facts from a fan-out."""
        for fact in facts:
            batch = batch_of(fact, slugs)
            if batch is not None and batch.size:
                self.append(batch)

    def publish(self, stream: str, what: str, data: Mapping[str, Any]) -> None:
        """Publish one event to a stream; used by features."""
        self.append(EventBatch(stream, what, self._clock.read().now, 1, lambda _: data))

    def reset(self, reason: str) -> None:
        """Tell all subscribers that events are missing at this point."""
        data = _reset_data(reason, None)
        self.append(EventBatch(RESET, RESET, self._clock.read().now, 1, lambda _: data))

    def append(self, batch: EventBatch) -> None:
        seq = self._next_seq.get(batch.stream, 1)
        kept = _Batch(self._next_id, seq, batch)
        self._next_id += batch.size
        self._next_seq[batch.stream] = seq + batch.size
        self._ring.append(kept)
        self._kept += batch.size
        while self._kept - self._ring[0].events.size >= self._kept_max:
            gone = self._ring.popleft()
            self._kept -= gone.events.size
            self._first_id = gone.first_id + gone.events.size
            self._lost_seq[gone.events.stream] = gone.first_seq + gone.events.size - 1
        if self._handlers:
            self._hand_over(kept)
        for subscription in self._subscriptions:
            subscription.bell.set()

    # --- listening in this process -----------------------------------------------------------------------------------

    def on(self, handler: Handler, stream: str | None = None) -> Callable[[], None]:
        """Add a handler for all events or one stream; returns its remover. If it raises, it is removed."""
        key = self._next_key
        self._next_key += 1
        self._handlers[key] = (stream, handler)

        def stop() -> None:
            self._handlers.pop(key, None)

        return stop

    def _hand_over(self, batch: _Batch) -> None:
        """Build each event once, for all handlers that hear its stream."""
        hearing = [
            (key, handler)
            for key, (stream, handler) in self._handlers.items()
            if stream is None or stream == batch.events.stream
        ]
        for index in range(batch.events.size if hearing else 0):
            event = batch.event(index)
            for key, handler in hearing:
                if key not in self._handlers:
                    continue
                try:
                    handler(event)
                except Exception:  # a handler must not be able to block the engine
                    self._handlers.pop(key, None)
                    log.exception("an event handler failed and was removed")

    # --- subscribing -------------------------------------------------------------------------------------------------

    def subscribe(self, streams: Iterable[str] | None = None, last_id: int | None = None) -> "Subscription":
        """Events of these streams (all, if left out) after `last_id` (from now on, if left out)."""
        if len(self._subscriptions) >= SUBSCRIBERS_MAX:
            raise Conflict(f"the limit of {SUBSCRIBERS_MAX} subscribers is reached; close one first")
        wanted = None if streams is None else frozenset(streams)
        subscription = Subscription(self, wanted, self._next_id if last_id is None else last_id + 1)
        self._subscriptions.add(subscription)
        self.arrival.set()
        subscription.is_late = subscription.next_id < self._first_id
        if last_id is not None and not self._born_id - 1 <= last_id < self._next_id:
            subscription.is_foreign = True
        return subscription

    def forget(self, subscription: "Subscription") -> None:
        """Remove a closed subscription."""
        self._subscriptions.discard(subscription)

    def read_after(self, subscription: "Subscription", limit: int) -> list[Event]:
        """The next events for a subscription, which advances; a `reset` comes first if some are lost."""
        events: list[Event] = []
        if subscription.is_foreign:
            subscription.is_foreign = False
            subscription.next_id = self._next_id
            self._see_all(subscription)
            return [self._reset(subscription, "the events after this id are not known here", None)]
        if subscription.next_id < self._first_id:
            missed = self._lost(subscription)
            subscription.next_id = self._first_id
            if missed != 0:
                events.append(self._reset(subscription, "these events are no longer kept", missed))
        at = bisect_right(self._ring, subscription.next_id, key=lambda batch: batch.first_id) - 1
        for batch in islice(self._ring, max(at, 0), None):
            if len(events) >= limit:
                break
            start = max(subscription.next_id - batch.first_id, 0)
            stop = min(batch.events.size, start + limit - len(events))
            if (
                subscription.streams is None
                or batch.events.stream == RESET
                or batch.events.stream in subscription.streams
            ):
                events += [batch.event(index) for index in range(start, stop)]
            else:
                stop = batch.events.size
            if stop > start:
                subscription.next_id = batch.first_id + stop
                subscription.seen[batch.events.stream] = batch.first_seq + stop - 1
        return events

    def _lost(self, subscription: "Subscription") -> int | None:
        """How many events of its streams it has missed; None if some, but the number is unknown."""
        if subscription.is_late:  # it returned after they were dropped: only the ids show how many there were
            subscription.is_late = False
            subscription.seen.update(self._lost_seq)
            return self._first_id - subscription.next_id if subscription.streams is None else None
        missed = 0
        for stream, lost in self._lost_seq.items():
            seen = subscription.seen.get(stream, 0)
            if lost > seen:
                subscription.seen[stream] = lost
                if subscription.streams is None or stream in subscription.streams:
                    missed += lost - seen
        return missed

    def _see_all(self, subscription: "Subscription") -> None:
        subscription.seen.update({stream: following - 1 for stream, following in self._next_seq.items()})

    def seen_until(self, next_id: int) -> dict[str, int]:
        """Per stream, the last event before an id, as far as the ring shows."""
        seen = dict(self._lost_seq)
        for batch in self._ring:
            if batch.first_id >= next_id:
                break
            seen[batch.events.stream] = batch.first_seq + min(batch.events.size, next_id - batch.first_id) - 1
        return seen

    def _reset(self, subscription: "Subscription", reason: str, missed: int | None) -> Event:
        at = self._clock.read().now
        return Event(subscription.next_id - 1, RESET, 0, at, RESET, _reset_data(reason, missed))


def _reset_data(reason: str, missed: int | None) -> Mapping[str, Any]:
    return {"reason": f"{reason}; reload the state", "missed": missed}


class Subscription:
    """A cursor into the ring. Iterate over it or call `next`; close it when done."""

    def __init__(self, stream: Stream, streams: frozenset[str] | None, next_id: int) -> None:
        self.streams = streams
        self.next_id = next_id
        self.seen = stream.seen_until(next_id)
        self.bell = asyncio.Event()
        self.is_late = False  # its next events were dropped before it subscribed
        self.is_foreign = False  # it presented an id that this process never issued
        self._stream = stream
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    async def next(self, clock: Clock, within: Duration, limit: int = READ_MAX) -> list[Event]:
        """New events, waiting at most `within`; empty if there were none."""
        while not self._is_closed:
            self.bell.clear()
            events = self._stream.read_after(self, limit)
            if events or not await clock.wait(self.bell, within):
                return events
        return []

    def close(self) -> None:
        """Unsubscribe; a caller waiting in `next` returns."""
        self._is_closed = True
        self._stream.forget(self)
        self.bell.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        try:
            while not self._is_closed:
                self.bell.clear()
                events = self._stream.read_after(self, READ_MAX)
                for event in events:
                    yield event
                if not events:
                    await self.bell.wait()
        finally:
            self.close()
