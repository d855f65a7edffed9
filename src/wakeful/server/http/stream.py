"""`/api/stream`: what happens, as it happens (server-sent events)."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse

from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.observe.sse import parse_last_id, render
from wakeful.observe.stream import Stream, Subscription
from wakeful.ports.clock import Clock
from wakeful.server.http.shapes import problems

STREAMS: Final = (
    "runs", "schedules", "nodes", "alerts", "heartbeat", "events",
    "messages", "deliveries", "incidents", "workflows", "slots",
)  # fmt: skip
ID_MAX: Final = 40
"""Digits of an event's id; a longer one is none of ours, however it goes on."""
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # no proxy may hold events back


class Watchers:
    """Those who watch one stream over HTTP. They never leave by themselves, so the door lets them go when it closes."""

    def __init__(self, stream: Stream, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._open: set[Subscription] = set()

    def watch(self, streams: frozenset[str] | None, last_id: int | None) -> AsyncIterator[bytes]:
        """Events of these streams as text; raises `Conflict` if too many watch already."""
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
        """Let everybody go."""
        for subscription in tuple(self._open):
            subscription.close()


def routes(watchers: Watchers) -> APIRouter:
    """The routes, over one stream."""
    router = APIRouter(prefix="/api/stream", tags=["daemon"])

    @router.get(
        "",
        summary="What happens, as it happens",
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
            str | None, Query(max_length=1_000, description="names with commas; left out: all", examples=["runs"])
        ] = None,
        last_id: Annotated[str | None, Header(alias="Last-Event-ID", description="go on after this event")] = None,
    ) -> Response:
        """A `reset` event says that events were lost; then read the state anew."""
        known_id = None if last_id is None else parse_last_id(last_id[:ID_MAX])
        events = watchers.watch(_names(streams), known_id)
        return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)

    return router


def _names(streams: str | None) -> frozenset[str] | None:
    if streams is None:
        return None
    names = frozenset(name.strip() for name in streams.split(",") if name.strip())
    if not names or not names <= set(STREAMS):  # a misspelt one would be silent for ever
        refuse("streams", f"{shown(streams)} names none, or one that there is not; there are {', '.join(STREAMS)}")
    return names
