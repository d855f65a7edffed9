"""The calendar feed."""

import asyncio
from typing import Annotated, Final

from starlette.requests import Request
from starlette.responses import Response

from wakeful.api.parameters import Param
from wakeful.server.http.calendar_text import calendar_text
from wakeful.server.http.serving import Api

MEDIA_TYPE: Final = "text/calendar; charset=utf-8"


async def get_calendar(
    api: Api,
    _request: Request,
    *,
    key: Annotated[str | None, Param("the key of the feed, in place of a token")] = None,  # checked before
) -> Response:
    """Schedules, retries, beats, producers, `wakeAt`s and slot wakes, as in `/api/upcoming`. More than four times
    of one owner in a day become one entry, from the first to the last."""
    entries, store_id = await api.app._look(api.app._calendar)
    # In a thread: thousands of entries would keep the event loop from the clock.
    text = await asyncio.to_thread(calendar_text, entries, now=api.app._moment().now, store_id=store_id)
    return Response(text, media_type=MEDIA_TYPE, headers={"Cache-Control": "private, no-cache"})
