"""`/api/upcoming`: what all schedules and the heartbeat are going to start, in order."""

from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.instants import INSTANT_MAX, WEEK, Duration, format_instant
from wakeful.http import shapes
from wakeful.http.asking import instant_of
from wakeful.http.shapes import answer, problems

AHEAD: Final[Duration] = WEEK


def routes(app: Wakeful) -> APIRouter:
    """The routes, over one app."""
    router = APIRouter(prefix="/api/upcoming", tags=["schedules"])

    @router.get("", summary="What is to come", responses={200: answer(shapes.Upcoming, "In order."), **problems()})
    async def get_upcoming(
        until: Annotated[str | None, Query(description="a time; left out: a week from now")] = None,
        limit: Annotated[int, Query(ge=1, le=1_000, description="how many at most")] = 100,
    ) -> Response:
        """Planned instants of schedules that are neither paused nor disabled nor outside their active hours then, and
        the beats of the heartbeat under its name."""
        last = min(app.moment().now + AHEAD, INSTANT_MAX) if until is None else instant_of(until, "until")
        ahead = await app.upcoming(last, limit=limit)
        return JSONResponse(
            {
                "upcoming": [
                    {"slug": one.slug, "plannedAt": format_instant(one.planned_at), "dueAt": format_instant(one.due_at)}
                    for one in ahead.instants
                ],
                "until": format_instant(max(ahead.until, 0)),
                "isCut": ahead.is_cut,
            }
        )

    return router
