"""`/api/pause` and `/api/resume`: all schedules together."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.server.http import shapes
from wakeful.server.http.middleware import caller_of
from wakeful.server.http.requests import new_router, read_object, until_of
from wakeful.server.http.shapes import answer, body, problems


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api", tags=["schedules"])

    @router.post(
        "/pause",
        summary="Pause all schedules",
        openapi_extra=body(shapes.Pause, is_required=False),
        responses={200: answer(shapes.PausedTogether, "What was paused."), **problems()},
    )
    async def pause_all(request: Request) -> Response:
        """Pauses all active schedules and the heartbeat in one commit. Runs in progress finish."""
        data = await read_object(request, known=("until",))
        slugs = await app.pause_all(until_of(data, app.moment().now), by=_name(request))
        return JSONResponse({"slugs": slugs, "count": len(slugs)})

    @router.post(
        "/resume",
        summary="Resume everything that was paused together",
        responses={200: answer(shapes.PausedTogether, "What was resumed."), **problems()},
    )
    async def resume_all(request: Request) -> Response:
        """Resumes what `POST /api/pause` paused; schedules paused or disabled separately stay so."""
        await read_object(request, known=())
        slugs = await app.resume_all(by=_name(request))
        return JSONResponse({"slugs": slugs, "count": len(slugs)})

    return router


def _name(request: Request) -> str:
    caller = caller_of(request.scope)
    return "" if caller is None else caller.name
