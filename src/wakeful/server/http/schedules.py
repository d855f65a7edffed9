"""`/api/schedule`: schedules."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Header, Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful, WrittenSchedule
from wakeful.core.errors import refuse
from wakeful.core.refusals import Conflict
from wakeful.core.schedule.definition import SCHEDULE
from wakeful.core.slug import SLUG_PATTERN
from wakeful.core.time.instants import MINUTE, Instant, format_duration, format_instant
from wakeful.features.schedules.ledger import Search
from wakeful.features.schedules.queries import Choice, chosen
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.timeline import latest
from wakeful.features.schedules.views import ScheduleView, as_text, encode, glances_text
from wakeful.ports.store import Tx
from wakeful.server.http import shapes
from wakeful.server.http.etags import etag_of, if_match, if_match_existing, if_none_match
from wakeful.server.http.json_text import JsonText
from wakeful.server.http.requests import (
    OWNER_PATTERN,
    duration_of,
    instant_of,
    known_owner,
    known_slug,
    new_router,
    read_json,
    read_object,
    run_cursor,
    slug_cursor,
    slugs_of,
    until_of,
)
from wakeful.server.http.runs import runs_page
from wakeful.server.http.shapes import answer, body, problems

LIMIT: Final = 100
LIMIT_MAX: Final = 1_000
RECENT_MAX: Final = 30
TIMES_MAX: Final = 1_000
WAIT_MAX: Final = MINUTE

Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="maximum number of items")]
Cursor = Annotated[str | None, Query(description="`next` of the previous page")]
Slugs = Annotated[
    str | None,
    Query(
        max_length=7_000, description="only these slugs, separated by commas, at most 100; other filters are ignored"
    ),
]
SlugPath = Annotated[str, Path(json_schema_extra={"pattern": f"^{SLUG_PATTERN.pattern}$"}, examples=["daily-standup"])]
OwnerPath = Annotated[
    str,
    Path(
        json_schema_extra={"pattern": f"^({SLUG_PATTERN.pattern}|(slot|workflow):{OWNER_PATTERN.pattern})$"},
        examples=["daily-standup"],
    ),
]
IfMatch = Annotated[str | None, Header(description="write only if the ETag still matches")]
IfNoneMatch = Annotated[str | None, Header(description="* : write only if it does not exist yet")]
DryRun = Annotated[
    bool, Query(alias="dryRun", description="check the definition and return the next five times; change nothing")
]
ETAG: Final = "version of the definition"
WARNING: Final = "a warning about the definition, if any"
PATCH_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {
            name: {"schema": {"type": "object"}, "example": {"enabled": False}}
            for name in ("application/json", "application/merge-patch+json")
        },
    }
}


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api/schedule", tags=["schedules"])
    for add in (_add_reads, _add_put, _add_patch, _add_delete, _add_commands, _add_questions):
        add(router, app)
    return router


def _add_reads(router: APIRouter, app: Wakeful) -> None:
    @router.get("", summary="List schedules", responses={200: answer(shapes.Schedules, "A page."), **problems()})
    async def list_schedules(
        status: Annotated[shapes.Status | None, Query(description="only schedules with this status")] = None,
        q: Annotated[
            str | None, Query(max_length=200, description="only schedules with this text in the slug or the action")
        ] = None,
        limit: Limit = LIMIT,
        cursor: Cursor = None,
        slugs: Slugs = None,
        recent: Annotated[
            int, Query(ge=0, le=RECENT_MAX, description="include this many of the latest runs with each")
        ] = 0,
        troubled: Annotated[bool, Query(description="only schedules whose health is failing or late")] = False,
        health: Annotated[shapes.Health | None, Query(description="only schedules with this health")] = None,
        finished: Annotated[
            bool | None, Query(description="true: only one-shots that succeeded; false: all others")
        ] = None,
        owner: Annotated[str | None, Query(max_length=80, description="only schedules of this agent")] = None,
    ) -> Response:
        """Ordered by slug. A filtered page may be short or even empty and still have a `next`."""
        most = limit if recent == 0 else min(limit, LIMIT)
        choice = Choice(slug_cursor(cursor), most, status, q, slugs_of(slugs), troubled, health, finished, owner)
        return JsonText(await app.look(lambda tx, now: _page_text(tx, choice, recent=recent, now=now, terms=app.terms)))

    @router.get(
        "/{slug}",
        summary="One schedule",
        responses={200: answer(shapes.Schedule, "The current state.", ETag=ETAG), **problems(404)},
    )
    async def get_schedule(slug: SlugPath) -> Response:
        return await _shown(app, await app.get(known_slug(slug)))


def _add_put(router: APIRouter, app: Wakeful) -> None:
    @router.put(
        "/{slug}",
        summary="Create or replace a schedule",
        openapi_extra=body(SCHEDULE),
        responses={
            200: answer(shapes.Schedule, "Updated, or only checked.", ETag=ETAG, **{"Wakeful-Warning": WARNING}),
            201: answer(shapes.Schedule, "Created.", ETag=ETAG, Location="its URL"),
            **problems(409, 412),
        },
    )
    async def put_schedule(
        slug: SlugPath,
        request: Request,
        dry_run: DryRun = False,
        if_match_header: Annotated[IfMatch, Header(alias="If-Match")] = None,
        if_none_match_header: Annotated[IfNoneMatch, Header(alias="If-None-Match")] = None,
    ) -> Response:
        """The schedule's state (next time, pause, error count) is kept; only a changed timing is planned again."""
        guard = if_match(if_match_header) or if_none_match(if_none_match_header)
        written = await app.write(slug, await read_json(request), guard=guard, is_rehearsal=dry_run)
        return await _written(app, written, is_rehearsal=dry_run)


def _add_patch(router: APIRouter, app: Wakeful) -> None:
    @router.patch(
        "/{slug}",
        summary="Change fields of a schedule (RFC 7396)",
        openapi_extra=PATCH_BODY,
        responses={
            200: answer(shapes.Schedule, "The new state.", ETag=ETAG, **{"Wakeful-Warning": WARNING}),
            **problems(404, 409, 412),
        },
    )
    async def patch_schedule(
        slug: SlugPath,
        request: Request,
        dry_run: DryRun = False,
        if_match_header: Annotated[IfMatch, Header(alias="If-Match")] = None,
    ) -> Response:
        """Objects merge, null resets a field to its default, everything else replaces."""
        changes = await read_json(request)
        if not isinstance(changes, Mapping):
            refuse("", "a patch is a JSON object; write {…}")
        guard = if_match(if_match_header)
        written = await app.patch(known_slug(slug), changes, guard=guard, is_rehearsal=dry_run)
        return await _written(app, written, is_rehearsal=dry_run)


def _add_delete(router: APIRouter, app: Wakeful) -> None:
    @router.delete(
        "/{slug}",
        summary="Remove a schedule",
        status_code=204,
        response_class=Response,
        responses={
            204: {"description": "Removed; a run in progress may finish, and past runs are kept."},
            **problems(404, 412),
        },
    )
    async def delete_schedule(
        slug: SlugPath, if_match_header: Annotated[IfMatch, Header(alias="If-Match")] = None
    ) -> Response:
        await app.remove(known_slug(slug), guard=if_match_existing(if_match_header))
        return Response(status_code=204)


def _add_commands(router: APIRouter, app: Wakeful) -> None:
    @router.post(
        "/{slug}/run",
        summary="Run a schedule now",
        status_code=202,
        responses={
            200: answer(shapes.Run, "With `wait`: the finished run."),
            202: answer(shapes.Started, "The run was requested; with `wait`: it has not ended within the timeout."),
            **problems(404, 409),
        },
    )
    async def run_schedule(
        slug: SlugPath,
        request: Request,
        wait: Annotated[bool, Query(description="respond when the run has ended")] = False,
        patience: Annotated[
            str, Query(alias="timeout", description="how long to wait, at most 60s", examples=["10s"])
        ] = "60s",
    ) -> Response:
        """One attempt; the next times do not change. 409 if it has an open run."""
        within = duration_of(patience, "timeout", most=WAIT_MAX, most_text="60s")
        await read_object(request, known=())
        run_id = await app.request_run(known_slug(slug))
        if wait:
            try:
                ended = await app.wait_for(run_id, within=format_duration(within))
                return JSONResponse(ended.to_json())
            except Conflict:
                pass  # still in progress: the run was requested all the same
        return JSONResponse({"runId": str(run_id)}, 202)

    @router.post(
        "/{slug}/pause",
        summary="Pause a schedule",
        openapi_extra=body(shapes.Pause, is_required=False),
        responses={200: answer(shapes.Schedule, "The new state."), **problems(404, 409)},
    )
    async def pause_schedule(slug: SlugPath, request: Request) -> Response:
        """Nothing starts until the schedule is resumed, or until `until`; a run in progress finishes."""
        data = await read_object(request, known=("until",))
        await app.pause(known_slug(slug), until_of(data, app.moment().now))
        return await _shown(app, await app.get(slug))

    @router.post(
        "/{slug}/resume",
        summary="Resume a schedule",
        responses={200: answer(shapes.Schedule, "The new state."), **problems(404, 409)},
    )
    async def resume_schedule(slug: SlugPath, request: Request) -> Response:
        """Continues a paused or disabled schedule from now on; resets the error count."""
        await read_object(request, known=())
        await app.resume(known_slug(slug))
        return await _shown(app, await app.get(slug))

    @router.post(
        "/{slug}/acknowledge",
        summary="Acknowledge the incident of a schedule",
        responses={200: answer(shapes.Schedule, "The new state."), **problems(404)},
    )
    async def acknowledge_schedule(slug: SlugPath, request: Request) -> Response:
        """Closes the schedule's incident without a recovery message; a failed one-shot is done."""
        await read_object(request, known=())
        await app.acknowledge(known_slug(slug))
        return await _shown(app, await app.get(slug))


def _add_questions(router: APIRouter, app: Wakeful) -> None:
    @router.get(
        "/{slug}/runs",
        summary="List the runs of a schedule",
        responses={200: answer(shapes.Runs, "Newest first."), **problems(404)},
    )
    async def list_runs(
        slug: SlugPath,
        limit: Limit = LIMIT,
        cursor: Cursor = None,
        outcome: Annotated[shapes.Outcome | None, Query(description="only runs with this outcome")] = None,
    ) -> Response:
        """Also for a removed schedule, as long as the ledger keeps its rows, and for `heartbeat`."""
        return await runs_page(app, Search(known_slug(slug), outcome), limit=limit, before_id=run_cursor(cursor))

    @router.get(
        "/{slug}/stats",
        summary="Statistics of a schedule",
        responses={200: answer(shapes.Stats, "Counts, success rate, durations, streak."), **problems(404)},
    )
    async def get_stats(
        slug: OwnerPath, since: Annotated[str | None, Query(description="a time; default: all history")] = None
    ) -> Response:
        """Also for `slot:NAME`, `workflow:ID` and `heartbeat`."""
        start = None if since is None else format_instant(instant_of(since, "since"))
        return JSONResponse((await app.stats(known_owner(slug), since=start)).to_json())

    @router.get(
        "/{slug}/next",
        summary="Next times of a schedule",
        responses={200: answer(shapes.NextTimes, "Strictly after `after`."), **problems(404)},
    )
    async def get_next(
        slug: SlugPath,
        count: Annotated[int, Query(ge=1, le=TIMES_MAX, description="number of times")] = 5,
        after: Annotated[str | None, Query(description="a time; default: now")] = None,
    ) -> Response:
        start = None if after is None else format_instant(instant_of(after, "after"))
        times: list[datetime] = await app.next_times(known_slug(slug), count, after=start)
        return JSONResponse({"times": [as_text(at) for at in times]})

    @router.get(
        "/{slug}/why",
        summary="Why it ran, did not run, or will not run",
        responses={200: answer(shapes.Why, "One sentence, and the facts."), **problems(404)},
    )
    async def get_why(
        slug: OwnerPath, at: Annotated[str | None, Query(description="an instant; default: the current state")] = None
    ) -> Response:
        """Also for `slot:NAME`, `workflow:ID` and `heartbeat`."""
        asked = None if at is None else format_instant(instant_of(at, "at"))
        return JSONResponse((await app.why(known_owner(slug), at=asked)).to_json())


def _page_text(tx: Tx, choice: Choice, *, recent: int, now: Instant, terms: Terms) -> str:
    """A page of schedules, each with its latest runs if requested."""
    page = chosen(tx, choice, now=now, terms=terms)
    runs = latest(tx, page.schedules, limit=recent) if recent else {}
    shown = (
        view.to_text(recent=glances_text(runs.get(view.slug, ()))) if recent else view.to_text()
        for view in page.schedules
    )
    return f'{{"schedules":[{",".join(shown)}],"next":{encode(page.next)}}}'


async def _shown(app: Wakeful, view: ScheduleView) -> Response:
    cost = await app.cost_of(view)
    return JsonText(view.to_text(cost=cost), headers={"ETag": etag_of(view)})


def warning_header(warnings: Sequence[str]) -> dict[str, str]:
    """Warnings about an accepted definition, as a header."""
    return {"Wakeful-Warning": "; ".join(warnings)} if warnings else {}


async def _written(app: Wakeful, written: WrittenSchedule, *, is_rehearsal: bool) -> Response:
    view = written.view
    cost = await app.cost_of(view)
    headers = {"ETag": etag_of(view), **warning_header(written.warnings)}
    if is_rehearsal:
        times = encode([format_instant(at) for at in written.next_times])
        return JsonText(view.to_text(cost=cost, next=times), 200, headers)
    if written.is_created:
        headers["Location"] = f"/api/schedule/{view.slug}"
    return JsonText(view.to_text(cost=cost), 201 if written.is_created else 200, headers)
