"""`/api/stream`: live events (server-sent events)."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse

from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.observe.sse import parse_last_id, render
from wakeful.observe.stream import Stream, Subscription
from wakeful.ports.clock import Clock
from wakeful.server.http.requests import new_router
from wakeful.server.http.shapes import problems

STREAMS: Final = (
    "runs", "schedules", "nodes", "alerts", "heartbeat", "events",
    "messages", "deliveries", "incidents", "workflows", "slots",
)  # fmt: skip
ID_MAX: Final = 40
"""Maximum digits of an event id; a longer one is not ours."""
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # proxies must not buffer events


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


def routes(watchers: Watchers) -> APIRouter:
    """The routes for one stream."""
    router = new_router(prefix="/api/stream", tags=["daemon"])

    @router.get(
        "",
        summary="Live events",
        response_class=StreamingResponse,
        responses={
            200: {
                "description": "Server-sent events; `data` is JSON with `stream`, `seq`, `at`, `what` and more.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            **problems(409),
        },
    )
    async def get_stream(
        streams: Annotated[
            str | None,
            Query(max_length=1_000, description="names separated by commas; default: all", examples=["runs"]),
        ] = None,
        last_id: Annotated[str | None, Header(alias="Last-Event-ID", description="continue after this event")] = None,
    ) -> Response:
        """A `reset` event means that events were lost; reload the state then."""
        known_id = None if last_id is None else parse_last_id(last_id[:ID_MAX])
        events = watchers.watch(_names(streams), known_id)
        return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)

    return router


def _names(streams: str | None) -> frozenset[str] | None:
    if streams is None:
        return None
    names = frozenset(name.strip() for name in streams.split(",") if name.strip())
    if not names or not names <= set(STREAMS):  # a misspelt name would never produce an event
        refuse("streams", f"{shown(streams)} is empty or has an unknown stream; the streams are {', '.join(STREAMS)}")
    return names
