"""`/api/cost` and `/api/budget`: what was spent, and what may be."""

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.errors import refuse
from wakeful.server.http import cost_shapes as shapes
from wakeful.server.http.requests import new_router, read_object
from wakeful.server.http.shapes import answer, body, problems

_SET: Final = ("period", "limit", "agent")
AgentPath = Annotated[str, Path(description="the agent", examples=["default"])]


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api", tags=["money"])

    @router.get(
        "/cost",
        summary="What agents cost",
        responses={200: answer(shapes.Cost, "The most expensive first; days in order."), **problems()},
    )
    async def get_cost(
        by: Annotated[Literal["schedule", "agent", "model", "day"], Query(description="what to sum by")] = "schedule",
        since: Annotated[str | None, Query(description="a time; default: 30 days ago")] = None,
    ) -> Response:
        return JSONResponse((await app.cost(by, since=since)).to_json())

    @router.get(
        "/budget",
        summary="List the budgets",
        responses={
            200: answer(shapes.Budgets, "Limits, amounts spent and reserved, and when they reset."),
            **problems(),
        },
    )
    async def get_budget() -> Response:
        return JSONResponse(await app.budget_json())

    @router.put(
        "/budget",
        summary="Set a budget",
        openapi_extra=body(shapes.NewBudget),
        responses={200: answer(shapes.Budgets, "All budgets."), **problems(404)},
    )
    async def put_budget(request: Request) -> Response:
        """A limit for all agents, or for one, in place of the one in the settings. It takes effect immediately."""
        given = await read_object(request, known=_SET)
        if "limit" not in given:
            refuse("limit", "is missing; write an amount in US dollars, or null for the limit in the settings")
        await app.set_budget(given.get("period"), given.get("limit"), agent=given.get("agent"))
        return JSONResponse(await app.budget_json())

    @router.post(
        "/budget/{agent}/release",
        summary="Release a stopped agent",
        responses={200: answer(shapes.Budgets, "All budgets."), **problems(404)},
    )
    async def release_agent(agent: AgentPath, request: Request) -> Response:
        """For an agent that was stopped because its turns cost ten times the usual."""
        await read_object(request, known=())
        await app.release_agent(agent)
        return JSONResponse(await app.budget_json())

    return router
