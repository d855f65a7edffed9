"""`/api/approvals`: agents' proposals, and people's decisions. An agent's token gets 403."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.errors import refuse
from wakeful.server.http import agent_tool_shapes as shapes
from wakeful.server.http.middleware import caller_of
from wakeful.server.http.requests import new_router, read_object
from wakeful.server.http.shapes import answer, body, problems

ProposalPath = Annotated[str, Path(json_schema_extra={"pattern": "^p[0-9a-f]{8}$"}, examples=["p1f3a9c2e"])]


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api/approvals", tags=["people"])

    @router.get(
        "",
        summary="List what agents proposed",
        responses={200: answer(shapes.Approvals, "What waits for a person, by slug."), **problems()},
    )
    async def list_approvals() -> Response:
        return JSONResponse({"approvals": await app.proposals()})

    @router.post(
        "/{id}",
        summary="Approve or reject a proposal",
        openapi_extra=body(shapes.Decision),
        responses={200: answer(shapes.Decided, "The proposal as decided."), **problems(404, 409)},
    )
    async def decide(id: ProposalPath, request: Request) -> Response:
        """A decision is final. 409 if the proposal was decided, replaced, or has expired."""
        data = await read_object(request, known=("decision",))
        decision = data.get("decision")
        if decision not in ("approve", "reject"):
            refuse("decision", f"{decision!r} is not one of approve, reject")
        caller = caller_of(request.scope)
        decided = await app.decide(id, decision, by="unknown" if caller is None else caller.name)
        return JSONResponse(decided)

    return router
