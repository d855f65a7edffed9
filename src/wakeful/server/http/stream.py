"""`/api/stream`: live events (server-sent events)."""

from typing import Annotated, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from wakeful.api.parameters import Param
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.observe.sse import parse_last_id
from wakeful.ports.events import STREAMS
from wakeful.server.http.serving import Api

ID_MAX: Final = 40
"""Maximum digits of an event id; a longer one is not ours."""
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # proxies must not buffer events


async def get_stream(
    api: Api,
    _request: Request,
    *,
    streams: Annotated[
        str | None,
        Param(
            "names separated by commas; default: all",
            longest=1_000,
            example="runs",
        ),
    ] = None,
    last_id: Annotated[str | None, Param("continue after this event", "Last-Event-ID", "header")] = None,
) -> Response:
    """A `reset` event means that events were lost; reload the state then."""
    watchers = api.serving.watchers
    if watchers is None:
        raise NotFound("this process has no live stream")
    known_id = None if last_id is None else parse_last_id(last_id[:ID_MAX])
    events = watchers.watch(_names(streams), known_id)
    return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)


def _names(streams: str | None) -> frozenset[str] | None:
    if streams is None:
        return None
    names = frozenset(name.strip() for name in streams.split(",") if name.strip())
    if not names or not names <= set(STREAMS):  # a misspelt name would never produce an event
        refuse("streams", f"{shown(streams)} is empty or has an unknown stream; the streams are {', '.join(STREAMS)}")
    return names
