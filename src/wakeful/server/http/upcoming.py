"""`/api/upcoming`: upcoming starts, in order."""

from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.instants import INSTANT_MAX, WEEK, Duration, format_instant
from wakeful.server.http import shapes
from wakeful.server.http.requests import instant_of, new_router
from wakeful.server.http.shapes import answer, problems

AHEAD: Final[Duration] = WEEK


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api/upcoming", tags=["schedules"])

    @router.get(
        "",
        summary="List upcoming starts",
        responses={200: answer(shapes.Upcoming, "Ordered by due time."), **problems()},
    )
    async def get_upcoming(
        until: Annotated[str | None, Query(description="a time; default: a week from now")] = None,
        limit: Annotated[int, Query(ge=1, le=1_000, description="maximum number of items")] = 100,
    ) -> Response:
        """Instants of schedules, retries, beats (`heartbeat`), producers and `wakeAt`s (`workflow:ID`) and wakes
        (`slot:NAME`). Instants that will be skipped are not listed (paused, outside the active hours, during a waiting
        run, into a warm window); instants delayed by errors are listed with the time they will run (`dueAt`)."""
        last = min(app.moment().now + AHEAD, INSTANT_MAX) if until is None else instant_of(until, "until")
        ahead = await app.upcoming(last, limit=limit)
        return JSONResponse(
            {
                "upcoming": [fire_json(upcoming) for upcoming in ahead.instants],
                "until": format_instant(max(ahead.until, 0)),
                "isCut": ahead.is_cut,
            }
        )

    return router


def fire_json(upcoming: Upcoming) -> dict[str, str | None]:
    """The JSON shape of an upcoming start."""
    return {
        "slug": upcoming.slug,
        "kind": upcoming.kind,
        "handler": upcoming.handler or None,
        "plannedAt": format_instant(upcoming.planned_at),
        "dueAt": format_instant(upcoming.due_at),
    }
