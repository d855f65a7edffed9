"""`/api/runs`: the ledger."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.runs import Outcome
from wakeful.http import shapes
from wakeful.http.asking import run_cursor, run_id_of
from wakeful.http.shapes import answer, problems


def routes(app: Wakeful) -> APIRouter:
    """The routes, over one app."""
    router = APIRouter(prefix="/api/runs", tags=["runs"])

    @router.get("", summary="The ledger", responses={200: answer(shapes.Runs, "Newest first."), **problems()})
    async def list_all_runs(
        limit: Annotated[int, Query(ge=1, le=1_000, description="how many at most")] = 100,
        cursor: Annotated[str | None, Query(description="the `next` of the page before")] = None,
        outcome: Annotated[shapes.Outcome | None, Query(description="only those that ended like this")] = None,
    ) -> Response:
        return await runs_page(app, None, limit=limit, before_id=run_cursor(cursor), outcome=outcome)

    @router.get(
        "/{id}",
        summary="One run, with its ladder and its attempts",
        responses={200: answer(shapes.Run, "As it stands."), **problems(404)},
    )
    async def get_run(id: str) -> Response:
        return JSONResponse((await app.get_run(run_id_of(id))).to_json())

    return router


async def runs_page(
    app: Wakeful, slug: str | None, *, limit: int, before_id: int | None, outcome: Outcome | None
) -> Response:
    """A page of the ledger; one row more is read to know whether another page follows."""
    found = await app.runs(slug, limit=limit + 1, before_id=before_id, outcome=outcome)
    following = str(found[limit - 1].run_id) if len(found) > limit else None
    return JSONResponse({"runs": [run.to_json() for run in found[:limit]], "next": following})
