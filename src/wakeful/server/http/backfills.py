"""Replay and backfill: past instants, run on request."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.errors import refuse
from wakeful.core.time.instants import format_instant
from wakeful.server.http import shapes
from wakeful.server.http.middleware import caller_of
from wakeful.server.http.requests import known_slug, new_router, read_object, run_id_of, text_of
from wakeful.server.http.runs import RunPath
from wakeful.server.http.schedules import SlugPath
from wakeful.server.http.shapes import answer, body, problems

DryRun = Annotated[bool, Query(alias="dryRun", description="only count; nothing runs")]


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api", tags=["runs"])

    @router.post(
        "/runs/{id}/replay",
        summary="Run the instant of a run once more",
        status_code=202,
        responses={
            200: answer(shapes.PastInstants, "With `dryRun`: what it would run and cost."),
            202: answer(shapes.Run, "The new run."),
            **problems(404, 409),
        },
    )
    async def replay_run(id: RunPath, dry_run: DryRun = False) -> Response:
        """Starts a separate run, outside the plan, with its own key. 409 if the run has not ended."""
        if dry_run:
            return await _counted(app, {await app.check_replay(run_id_of(id)): 1}, status=200)
        return JSONResponse((await app.replay(run_id_of(id))).to_json(), status_code=202)

    @router.post(
        "/replay",
        summary="Run missed instants",
        status_code=202,
        openapi_extra=body(shapes.Replay),
        responses={202: answer(shapes.PastInstants, "How many."), **problems(404, 409)},
    )
    async def replay_missed(request: Request, dry_run: DryRun = False) -> Response:
        """Runs the missed instants since `since`, of one schedule or of all, one after another for each schedule."""
        data = await read_object(request, known=("since", "slug"))
        slug = text_of(data, "slug")
        counts = await app.replay_missed(_time(data, "since"), slug, apply=not dry_run, by=_name(request))
        return await _counted(app, counts)

    @router.post(
        "/schedule/{slug}/backfill",
        summary="Run past instants of a schedule",
        status_code=202,
        openapi_extra=body(shapes.Backfill),
        responses={202: answer(shapes.PastInstants, "How many."), **problems(404, 409)},
    )
    async def backfill(slug: SlugPath, request: Request, dry_run: DryRun = False) -> Response:
        """Runs the instants in the range that have not succeeded, oldest first, one after another. Regular instants
        take precedence."""
        data = await read_object(request, known=("from", "until"))
        since, until = _time(data, "from"), text_of(data, "until") or format_instant(app.moment().now)
        count = await app.backfill(known_slug(slug), since, until, apply=not dry_run, by=_name(request))
        return await _counted(app, {slug: count} if count else {})

    @router.delete(
        "/schedule/{slug}/backfill",
        summary="Stop the backfills of a schedule",
        responses={200: answer(shapes.StoppedBackfill, "How many instants will not run."), **problems(404)},
    )
    async def stop_backfill(slug: SlugPath) -> Response:
        """A run in progress finishes; cancel it to end it."""
        return JSONResponse({"left": await app.stop_backfill(known_slug(slug))})

    return router


def _time(data: Any, name: str) -> str:
    text = text_of(data, name)
    if text is None:
        refuse(name, "missing; give a time such as 2026-01-30T09:00:00Z")
    return text


def _name(request: Request) -> str:
    caller = caller_of(request.scope)
    return "" if caller is None else caller.name


async def _counted(app: Wakeful, counts: dict[str, int], *, status: int = 202) -> Response:
    estimate = await app.estimated_cost(counts)
    return JSONResponse({"instants": sum(counts.values()), "bySlug": counts, "estimate": estimate}, status_code=status)
