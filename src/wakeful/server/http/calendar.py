"""The calendar feed, and its key."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.server.http.calendar_text import calendar_text
from wakeful.server.http.requests import new_router
from wakeful.server.http.roles import CALENDAR
from wakeful.server.http.shapes import answer, problems

MEDIA_TYPE: Final = "text/calendar; charset=utf-8"


class CalendarAddress(BaseModel):
    """The address of the calendar feed."""

    key: Annotated[str | None, Field(description="null: no key has been created")]
    path: Annotated[str | None, Field(description="of the feed, with its key")]
    url: Annotated[str | None, Field(description="the whole address, as this daemon knows it")]


def routes(app: Wakeful, base: Callable[[], str]) -> APIRouter:
    """The routes for one app. `base` is the address of this daemon."""
    router = new_router(tags=["schedules"])

    @router.get(
        CALENDAR,
        summary="A calendar of what will run",
        response_class=Response,
        responses={
            200: {
                "description": "The next four weeks (RFC 5545).",
                "content": {"text/calendar": {"schema": {"type": "string"}}},
            },
            **problems(),
        },
    )
    async def get_calendar(
        key: Annotated[str | None, Query(description="the key of the feed, in place of a token")] = None,
    ) -> Response:
        """Schedules, retries, beats, producers, `wakeAt`s and slot wakes, as in `/api/upcoming`. More than four times
        of one owner in a day become one entry, from the first to the last."""
        entries, store_id = await app.calendar()
        # In a thread: thousands of entries would keep the event loop from the clock.
        text = await asyncio.to_thread(calendar_text, entries, now=app.moment().now, store_id=store_id)
        return Response(text, media_type=MEDIA_TYPE, headers={"Cache-Control": "private, no-cache"})

    @router.get(
        "/api/calendar/key",
        summary="The address of the calendar feed",
        responses={200: answer(CalendarAddress, "Nulls if no key has been created."), **problems()},
    )
    async def get_key() -> Response:
        return JSONResponse(_address(await app.calendar_key(), base()))

    @router.post(
        "/api/calendar/key",
        summary="Make a new key for the calendar feed",
        status_code=201,
        responses={201: answer(CalendarAddress, "The old key stops working immediately."), **problems()},
    )
    async def renew_key() -> Response:
        return JSONResponse(_address(await app.renew_calendar_key(), base()), status_code=201)

    return router


def _address(key: str | None, base: str) -> dict[str, str | None]:
    path = None if key is None else f"{CALENDAR}?key={key}"
    return {"key": key, "path": path, "url": None if path is None else f"{base}{path}"}
