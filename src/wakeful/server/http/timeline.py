"""`/api/timeline`: past and upcoming runs of many schedules on one time axis."""

from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import Response

from wakeful.app import Wakeful
from wakeful.core.errors import refuse
from wakeful.core.time.instants import DAY, INSTANT_MAX, Duration, Instant, format_instant
from wakeful.features.schedules import queries, timeline
from wakeful.features.schedules.queries import Choice
from wakeful.features.schedules.views import encode
from wakeful.ports.store import Tx
from wakeful.server.http import shapes
from wakeful.server.http.json_text import JsonText
from wakeful.server.http.requests import instant_of, new_router, slug_cursor, slugs_of
from wakeful.server.http.schedules import Cursor, Slugs
from wakeful.server.http.shapes import answer, problems

AROUND: Final[Duration] = DAY
ROWS_MAX: Final = 50


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api/timeline", tags=["schedules"])

    @router.get(
        "", summary="Schedules on one time axis", responses={200: answer(shapes.Timeline, "A page."), **problems()}
    )
    async def get_timeline(
        since: Annotated[str | None, Query(description="a time; default: a day ago")] = None,
        until: Annotated[str | None, Query(description="a time; default: a day from now")] = None,
        status: Annotated[shapes.Status | None, Query(description="only schedules with this status")] = None,
        q: Annotated[
            str | None, Query(max_length=200, description="only schedules with this text in the slug or the action")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=ROWS_MAX, description="maximum number of schedules")] = ROWS_MAX,
        cursor: Cursor = None,
        slugs: Slugs = None,
    ) -> Response:
        """At most 120 ledger rows and 120 instants for each, complete between `wholeSince` and `wholeUntil`. The first
        page also has `others`: the heartbeat, workflows and quota slots with planned instants. Each handler of a
        workflow has a row."""
        now = app.moment().now
        first = max(now - AROUND, 0) if since is None else instant_of(since, "since")
        last = min(now + AROUND, INSTANT_MAX) if until is None else instant_of(until, "until")
        if first >= last:
            refuse("until", f"is not after since ({format_instant(first)}); give a later time")
        choice = Choice(slug_cursor(cursor), limit, status, q, slugs_of(slugs))
        is_first = choice.after is None and status is None and choice.slugs is None
        others = await app.timeline_of_others(since=first, until=last) if is_first else []
        shown = [row for row in others if (q or "").casefold() in row.slug.casefold()]

        def page(tx: Tx, now: Instant) -> str:
            chosen = queries.chosen(tx, choice, now=now, terms=app.terms)
            rows = timeline.rows(tx, chosen.schedules, now=now, since=first, until=last, terms=app.terms)
            head = {"since": format_instant(first), "until": format_instant(last), "now": format_instant(now)}
            return (
                f'{encode(head)[:-1]},"rows":[{",".join(row.to_text() for row in rows)}],'
                f'"others":[{",".join(row.to_text() for row in shown)}],"next":{encode(chosen.next)}}}'
            )

        return JsonText(await app.look(page))

    return router
