"""`/api/schedule` for agents: the middleware sends requests with an agent's or a run's token to these routes.

An agent never reaches people's routes, so no request of it can name or reveal what belongs to others."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.app.agent_tools import call_tool, explain
from wakeful.app.self_scheduling import AgentWritten
from wakeful.core.errors import refuse
from wakeful.core.time.instants import format_instant
from wakeful.features.schedules.why_owned import without_figures
from wakeful.server.http import agent_tool_shapes as shapes
from wakeful.server.http.actors import known_actor
from wakeful.server.http.requests import instant_of, new_router, read_json, read_object
from wakeful.server.http.roles import OWN
from wakeful.server.http.shapes import answer, body, problems

_STATUS: Final = {"created": 201, "updated": 200, "unchanged": 200, "pending": 202}


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(tags=["agents"])
    _add_schedules(router, app)
    _add_state(router, app)

    @router.post(
        "/api/tools/{name}",
        summary="Call an agent tool",
        openapi_extra=body(shapes.ToolArguments),
        responses={200: answer(shapes.ToolAnswer, "What the tool returned, or its refusal."), **problems(404)},
    )
    async def call(name: str, request: Request) -> Response:
        """The tools of `/mcp`, without MCP; only with an agent's or a run's token."""
        actor = await known_actor(app, request.scope, for_commands=True)
        result = await call_tool(app, actor, name, await read_json(request))
        return JSONResponse({"content": result.content, "isError": result.is_error})

    return router


def _add_schedules(router: APIRouter, app: Wakeful) -> None:
    @router.get(f"{OWN}/schedule", include_in_schema=False)
    async def list_own(
        request: Request,
        q: Annotated[str | None, Query(max_length=200)] = None,
        owner: str | None = None,
        status: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
        finished: bool | None = None,
    ) -> Response:
        actor = await known_actor(app, request.scope)
        views = await app.list_as_agent(actor, q) if owner in (None, actor.agent) else []
        shown = [view for view in views if status in (None, view.status) and finished in (None, view.is_finished)]
        return JSONResponse({"schedules": [without_figures(view.to_json()) for view in shown], "next": None})

    @router.get(f"{OWN}/schedule/{{slug}}", include_in_schema=False)
    async def get_own(slug: str, request: Request) -> Response:
        actor = await known_actor(app, request.scope)
        return JSONResponse(without_figures((await app.get_as_agent(actor, slug)).to_json()))

    @router.put(f"{OWN}/schedule/{{slug}}", include_in_schema=False)
    async def put_own(slug: str, request: Request, dry_run: Annotated[bool, Query(alias="dryRun")] = False) -> Response:
        actor = await known_actor(app, request.scope)
        if dry_run:
            refuse("dryRun", "is not available to agents; use the tool preview_schedule")
        written = await app.put_as_agent(actor, slug, await read_json(request))
        return JSONResponse(_written(written), _STATUS[written.result])

    @router.delete(f"{OWN}/schedule/{{slug}}", include_in_schema=False)
    async def delete_own(slug: str, request: Request) -> Response:
        await app.remove_as_agent(await known_actor(app, request.scope), slug)
        return Response(status_code=204)


def _add_state(router: APIRouter, app: Wakeful) -> None:
    @router.post(f"{OWN}/schedule/{{slug}}/pause", include_in_schema=False)
    async def pause_own(slug: str, request: Request) -> Response:
        await read_object(request, known=())
        return JSONResponse((await app.pause_as_agent(await known_actor(app, request.scope), slug)).to_json())

    @router.post(f"{OWN}/schedule/{{slug}}/resume", include_in_schema=False)
    async def resume_own(slug: str, request: Request) -> Response:
        await read_object(request, known=())
        return JSONResponse((await app.resume_as_agent(await known_actor(app, request.scope), slug)).to_json())

    @router.get(f"{OWN}/schedule/{{slug}}/why", include_in_schema=False)
    async def why_own(slug: str, request: Request, at: str | None = None) -> Response:
        actor = await known_actor(app, request.scope)
        asked = None if at is None else format_instant(instant_of(at, "at"))
        return JSONResponse(await explain(app, actor, slug, asked))

    @router.get(f"{OWN}/schedule/{{slug}}/next", include_in_schema=False)
    async def next_own(
        slug: str, request: Request, count: Annotated[int, Query(ge=1, le=1_000)] = 5, after: str | None = None
    ) -> Response:
        view = await app.get_as_agent(await known_actor(app, request.scope), slug)
        if view.approval == "pending":
            return JSONResponse({"times": []})
        times = await app.next_times(view.slug, count, after=after)
        return JSONResponse({"times": [at.isoformat(timespec="milliseconds").replace("+00:00", "Z") for at in times]})

    @router.get(f"{OWN}/schedule/{{slug}}/runs", include_in_schema=False)
    async def runs_own(
        slug: str, request: Request, limit: Annotated[int, Query(ge=1, le=1_000)] = 100, cursor: str | None = None
    ) -> Response:
        view = await app.get_as_agent(await known_actor(app, request.scope), slug)
        if view.approval == "pending":
            return JSONResponse({"runs": [], "next": None})
        rows = await app.runs(view.slug, limit=limit)
        return JSONResponse({"runs": [without_figures(row.to_json()) for row in rows], "next": None})


def _written(written: AgentWritten) -> dict[str, Any]:
    shown = written.view.to_json() | {
        "result": written.result,
        "next": [] if written.result == "pending" else [format_instant(at) for at in written.next_times],
    }
    return shown if written.proposal is None else shown | {"proposal": written.proposal.proposal_id}
