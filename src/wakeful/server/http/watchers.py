"""The HTTP clients of the live stream."""

from collections.abc import AsyncIterator

from wakeful.observe.sse import render
from wakeful.observe.stream import Stream, Subscription
from wakeful.ports.clock import Clock


class Watchers:
    """The HTTP clients of one stream. They never disconnect on their own, so shutdown disconnects them."""

    def __init__(self, stream: Stream, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._open: set[Subscription] = set()

    def watch(self, streams: frozenset[str] | None, last_id: int | None) -> AsyncIterator[bytes]:
        """Events of these streams as text; raises `Conflict` if there are too many clients."""
        return self._rendered(self._stream.subscribe(streams, last_id))

    async def _rendered(self, subscription: Subscription) -> AsyncIterator[bytes]:
        self._open.add(subscription)
        try:
            async for text in render(subscription, self._clock):
                yield text
        finally:
            subscription.close()
            self._open.discard(subscription)

    def close(self) -> None:
        """Disconnect all clients."""
        for subscription in tuple(self._open):
            subscription.close()
