"""`/api/runs`: the ledger."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Header, Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.fields import Fields
from wakeful.core.run.runs import Outcome
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing_builders import as_instant
from wakeful.observe.log_reading import RunLog
from wakeful.server.http import shapes
from wakeful.server.http.problems import Refused
from wakeful.server.http.requests import read_json, run_cursor, run_id_of
from wakeful.server.http.shapes import answer, body, problems

RunPath = Annotated[str, Path(json_schema_extra={"pattern": "^[0-9]{1,18}$"}, examples=["42"])]


LogOfRun: TypeAlias = Callable[[int, Instant, Instant], Awaitable[RunLog]]
"""What the log says of a run between two times."""


def routes(app: Wakeful, log_of_run: LogOfRun | None = None) -> APIRouter:
    """The routes, over one app; without a log, a run has none."""
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
        summary="One run, with its ladder, its attempts and its log",
        responses={200: answer(shapes.RunWithLog, "As it stands."), **problems(404)},
    )
    async def get_run(id: RunPath) -> Response:
        """`log` has the lines of the log about it, oldest first, as far as they are kept; bounded."""
        run = await app.get_run(run_id_of(id))
        if log_of_run is None:
            return JSONResponse(run.to_json())
        until = app.moment().now if run.ended_at is None else as_instant(run.ended_at, "endedAt")
        found = await log_of_run(run.run_id, as_instant(run.planned_at, "plannedAt"), until)
        return JSONResponse({**run.to_json(), "log": found.lines, "logIsCut": found.is_cut})

    @router.post(
        "/{id}/receipt",
        summary="Say how far a run got",
        openapi_extra=body(shapes.Receipt),
        responses={200: answer(shapes.Received, "It was taken."), **problems(404)},
    )
    async def post_receipt(
        id: RunPath,
        request: Request,
        token: Annotated[str | None, Query(description="the token of the run; or as a bearer token")] = None,
        authorization: Annotated[str | None, Header(include_in_schema=False)] = None,
    ) -> Response:
        """For the agent or the command itself, which was given this address with the token of its run."""
        run_id = run_id_of(id)
        data = await read_json(request)
        fields = Fields(data if isinstance(data, Mapping) else {"rung": data})
        fields.refuse_unknown(("rung", "text", "usage", "error"))
        given = token or (authorization or "").partition(" ")[2].strip()
        if not app.knows_token(run_id, given):  # said before anything else, so that nothing is learnt without the token
            raise Refused(401, "the token is not this run's", headers={"WWW-Authenticate": "Bearer"})
        fields.finish()
        status = await app.receive(
            run_id,
            given,
            fields.raw("rung"),
            text=fields.raw("text"),
            usage=fields.raw("usage"),
            error=fields.raw("error"),
        )
        return JSONResponse({"status": status})

    return router


async def runs_page(
    app: Wakeful,
    slug: str | None,
    *,
    limit: int,
    before_id: int | None,
    outcome: Outcome | None,
    with_handlers: bool = False,
) -> Response:
    """A page of the ledger; one row more is read to know whether another page follows. `with_handlers`: they are runs
    of a workflow, and say which handler ran."""
    found = await app.runs(slug, limit=limit + 1, before_id=before_id, outcome=outcome)
    following = str(found[limit - 1].run_id) if len(found) > limit else None
    runs = [run.to_json() for run in found[:limit]]
    if with_handlers:
        handlers = await app.workflows.handlers_of([run.run_id for run in found[:limit]])
        runs = [{**shown, "handler": handlers.get(run.run_id)} for run, shown in zip(found[:limit], runs, strict=True)]
    return JSONResponse({"runs": runs, "next": following})
