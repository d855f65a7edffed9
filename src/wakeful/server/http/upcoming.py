"""`/api/upcoming`: everything that will start, in order."""

from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.instants import INSTANT_MAX, WEEK, Duration, format_instant
from wakeful.server.http import shapes
from wakeful.server.http.requests import instant_of
from wakeful.server.http.shapes import answer, problems

AHEAD: Final[Duration] = WEEK


def routes(app: Wakeful) -> APIRouter:
    """The routes, over one app."""
    router = APIRouter(prefix="/api/upcoming", tags=["schedules"])

    @router.get("", summary="What is to come", responses={200: answer(shapes.Upcoming, "In order."), **problems()})
    async def get_upcoming(
        until: Annotated[str | None, Query(description="a time; left out: a week from now")] = None,
        limit: Annotated[int, Query(ge=1, le=1_000, description="how many at most")] = 100,
    ) -> Response:
        """Instants of schedules, runs that wait for their next attempt, beats (`heartbeat`), producers and `wakeAt`s
        (`workflow:ID`) and wakes (`slot:NAME`). What will be skipped is not listed (paused, outside the active hours,
        on a run that waits, into a warm window); what errors delay is listed for when it will run (`dueAt`)."""
        last = min(app.moment().now + AHEAD, INSTANT_MAX) if until is None else instant_of(until, "until")
        ahead = await app.upcoming(last, limit=limit)
        return JSONResponse(
            {
                "upcoming": [_fire(one) for one in ahead.instants],
                "until": format_instant(max(ahead.until, 0)),
                "isCut": ahead.is_cut,
            }
        )

    return router


def _fire(one: Upcoming) -> dict[str, str | None]:
    return {
        "slug": one.slug,
        "kind": one.kind,
        "handler": one.handler or None,
        "plannedAt": format_instant(one.planned_at),
        "dueAt": format_instant(one.due_at),
    }
