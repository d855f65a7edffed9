"""`/api/runs`: the ledger."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Header, Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.fields import Fields
from wakeful.core.time.instants import INSTANT_MAX, Instant
from wakeful.core.time.timing_builders import as_instant
from wakeful.features.schedules.ledger import Search, search
from wakeful.features.schedules.views import encode
from wakeful.features.workflows.queries import handlers_of
from wakeful.observe.log_reading import RunLog
from wakeful.ports.store import Tx
from wakeful.server.http import shapes
from wakeful.server.http.json_text import JsonText
from wakeful.server.http.middleware import caller_of
from wakeful.server.http.problems import Refused
from wakeful.server.http.requests import instant_of, new_router, read_json, run_cursor, run_id_of
from wakeful.server.http.shapes import answer, body, problems

RunPath = Annotated[str, Path(json_schema_extra={"pattern": "^[0-9]{1,18}$"}, examples=["42"])]


LogOfRun: TypeAlias = Callable[[int, Instant, Instant], Awaitable[RunLog]]
"""The log lines of a run between two times."""


def routes(app: Wakeful, log_of_run: LogOfRun | None = None) -> APIRouter:
    """The routes for one app; `log` may be missing."""
    router = new_router(prefix="/api/runs", tags=["runs"])

    @router.get(
        "", summary="List runs (the ledger)", responses={200: answer(shapes.Runs, "Newest first."), **problems(404)}
    )
    async def list_all_runs(
        limit: Annotated[int, Query(ge=1, le=1_000, description="maximum number of items")] = 100,
        cursor: Annotated[str | None, Query(description="`next` of the previous page")] = None,
        outcome: Annotated[shapes.Outcome | None, Query(description="only runs with this outcome")] = None,
        slug: Annotated[str | None, Query(max_length=200, description="only runs of this schedule")] = None,
        q: Annotated[
            str, Query(max_length=200, description="only runs with this text in the slug, error, reason or result")
        ] = "",
        since: Annotated[str | None, Query(description="only runs that started, or were due, at or after this")] = None,
        until: Annotated[str | None, Query(description="only runs that started, or were due, before this")] = None,
    ) -> Response:
        """A search reads 2,000 rows at most: a page may be short or even empty, and its `next` continues."""
        wanted = Search(
            slug or None,
            outcome,
            q.strip(),
            0 if since is None else instant_of(since, "since"),
            INSTANT_MAX if until is None else instant_of(until, "until"),
        )
        return await runs_page(app, wanted, limit=limit, before_id=run_cursor(cursor))

    @router.get(
        "/{id}",
        summary="One run, with its rungs, attempts and log",
        responses={200: answer(shapes.RunWithLog, "The run."), **problems(404)},
    )
    async def get_run(id: RunPath) -> Response:
        """`log` has its log lines, oldest first, as far as they are kept; bounded."""
        run = await app.get_run(run_id_of(id))
        if log_of_run is None:
            return JSONResponse(run.to_json())
        until = app.moment().now if run.ended_at is None else as_instant(run.ended_at, "endedAt")
        log = await log_of_run(run.run_id, as_instant(run.planned_at, "plannedAt"), until)
        return JSONResponse({**run.to_json(), "log": log.lines, "logIsCut": log.is_cut})

    @router.post(
        "/{id}/cancel",
        summary="Cancel a run",
        status_code=202,
        responses={202: answer(shapes.Run, "The run is cancelled, or will be shortly."), **problems(404, 409)},
    )
    async def cancel_run(id: RunPath, request: Request) -> Response:
        """A waiting run is cancelled immediately, a running one as soon as it is proven to have stopped. 409 if it has
        ended."""
        caller = caller_of(request.scope)
        run = await app.cancel(run_id_of(id), by="" if caller is None else caller.name)
        return JSONResponse(run.to_json(), status_code=202)

    @router.post(
        "/{id}/receipt",
        summary="Post a receipt for a run",
        openapi_extra=body(shapes.Receipt),
        responses={200: answer(shapes.Received, "The receipt was accepted."), **problems(404)},
    )
    async def post_receipt(
        id: RunPath,
        request: Request,
        token: Annotated[str | None, Query(description="token of the run; may also be sent as a bearer token")] = None,
        authorization: Annotated[str | None, Header(include_in_schema=False)] = None,
    ) -> Response:
        """For the agent or command of the run, which gets this URL and the run's token."""
        run_id = run_id_of(id)
        data = await read_json(request)
        fields = Fields(data if isinstance(data, Mapping) else {"rung": data})
        fields.refuse_unknown(("rung", "text", "usage", "error"))
        given = token or (authorization or "").partition(" ")[2].strip()
        if not app.knows_token(run_id, given):  # checked first, so that nothing is revealed without the token
            raise Refused(401, "the token does not belong to this run", headers={"WWW-Authenticate": "Bearer"})
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
    wanted: Search,
    *,
    limit: int,
    before_id: int | None,
    with_handlers: bool = False,
) -> Response:
    """A page of the ledger. `with_handlers`: they are runs of a workflow, and say which handler ran."""

    def page(tx: Tx, _now: Instant) -> str:
        rows, following = search(tx, wanted, limit=limit, before_id=before_id)
        runs = [run.to_json() for run in rows]
        if with_handlers:
            handlers = handlers_of(tx, [run.run_id for run in rows])
            runs = [{**shown, "handler": handlers.get(run.run_id)} for run, shown in zip(rows, runs, strict=True)]
        return encode({"runs": runs, "next": None if following is None else str(following)})

    return JsonText(await app.look(page))
