"""`/api/slots`: quota slots."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.config.one_slot import SLOT
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.features.quota.feature import Quota
from wakeful.features.schedules.ledger import Search
from wakeful.server.http import shapes, slot_shapes
from wakeful.server.http.requests import new_router, read_json, read_object, run_cursor
from wakeful.server.http.runs import runs_page
from wakeful.server.http.schedules import LIMIT, Cursor, Limit
from wakeful.server.http.shapes import answer, body, problems

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}", re.ASCII)
_KNOWN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)  # the slot of an agent has a longer name
# Read-only fields: ignored in a PUT, as with schedules.
READ_BACK: Final = frozenset(field.alias or name for name, field in slot_shapes.Slot.model_fields.items())
PATCH_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {
            name: {"schema": {"type": "object"}, "example": {"poll": "10m"}}
            for name in ("application/json", "application/merge-patch+json")
        },
    }
}

NamePath = Annotated[str, Path(json_schema_extra={"pattern": f"^{_KNOWN.pattern}$"}, examples=["main"])]


def routes(app: Wakeful, quota: Callable[[], Quota]) -> APIRouter:
    """The routes for the slots of one process."""
    router = new_router(prefix="/api/slots", tags=["quota"])
    _add_runs(router, app, quota)
    for add in (_add_reads, _add_writes, _add_commands):
        add(router, quota)
    return router


def _add_reads(router: APIRouter, quota: Callable[[], Quota]) -> None:
    @router.get("", summary="List slots", responses={200: answer(slot_shapes.Slots, "All of them."), **problems()})
    async def list_slots() -> Response:
        return JSONResponse({"slots": await quota().all()})

    @router.get(
        "/{name}",
        summary="One slot",
        responses={200: answer(slot_shapes.Slot, "With its history for charts."), **problems(404)},
    )
    async def get_slot(name: NamePath) -> Response:
        return JSONResponse(await quota().get(_known(name)))


def _add_runs(router: APIRouter, app: Wakeful, quota: Callable[[], Quota]) -> None:
    @router.get(
        "/{name}/runs",
        summary="List the wakes of a slot",
        responses={200: answer(shapes.Runs, "Newest first."), **problems(404)},
    )
    async def list_wakes(
        name: NamePath,
        limit: Limit = LIMIT,
        cursor: Cursor = None,
        outcome: Annotated[shapes.Outcome | None, Query(description="only runs with this outcome")] = None,
    ) -> Response:
        before_id = run_cursor(cursor)
        await quota().get(_known(name))
        try:
            return await runs_page(app, Search(f"slot:{name}", outcome), limit=limit, before_id=before_id)
        except NotFound:  # never woken
            return JSONResponse({"runs": [], "next": None})


def _add_writes(router: APIRouter, quota: Callable[[], Quota]) -> None:
    @router.put(
        "/{name}",
        summary="Create or replace a slot",
        openapi_extra=body(SLOT),
        responses={
            200: answer(slot_shapes.Slot, "Updated."),
            201: answer(slot_shapes.Slot, "Created.", Location="its URL"),
            **problems(409),
        },
    )
    async def put_slot(name: NamePath, request: Request) -> Response:
        """A slot from the settings is read-only: 409 names the file."""
        if not _NAME.fullmatch(name):
            refuse("name", f"{shown(name)} is not a name; use 1 to 32 letters, digits and . _ -")
        is_new = await quota().put(name, await _written(request))
        headers = {"Location": f"/api/slots/{name}"} if is_new else {}
        return JSONResponse(await quota().get(name), 201 if is_new else 200, headers)

    @router.patch(
        "/{name}",
        summary="Change fields of a slot (RFC 7396)",
        openapi_extra=PATCH_BODY,
        responses={200: answer(slot_shapes.Slot, "The new state."), **problems(404, 409)},
    )
    async def patch_slot(name: NamePath, request: Request) -> Response:
        """Null resets a field to its default."""
        await quota().patch(_known(name), await _written(request))
        return JSONResponse(await quota().get(name))

    @router.delete(
        "/{name}",
        summary="Remove a slot",
        status_code=204,
        response_class=Response,
        responses={204: {"description": "Removed; its runs stay in the ledger."}, **problems(404, 409)},
    )
    async def delete_slot(name: NamePath) -> Response:
        await quota().remove(_known(name))
        return Response(status_code=204)


def _add_commands(router: APIRouter, quota: Callable[[], Quota]) -> None:
    @router.post(
        "/{name}/wake",
        summary="Wake a slot now",
        status_code=202,
        responses={
            202: answer(shapes.Started, "The wake was requested; it is sent without a pre-check."),
            **problems(404, 409),
        },
    )
    async def wake_slot(name: NamePath, request: Request) -> Response:
        """The run ends when a poll shows the wake, or when the retry window is over."""
        await read_object(request, known=())
        run_id = await quota().wake(_known(name))
        return JSONResponse({"runId": str(run_id)}, 202)

    @router.post(
        "/{name}/poll",
        summary="Poll the quota of a slot now",
        status_code=202,
        responses={202: answer(slot_shapes.Slot, "The state before that poll."), **problems(404, 409)},
    )
    async def poll_slot(name: NamePath, request: Request) -> Response:
        await read_object(request, known=())
        await quota().poll(_known(name))
        return JSONResponse(await quota().get(name), 202)

    @router.post(
        "/{name}/resume",
        summary="Resume a disabled slot",
        responses={200: answer(slot_shapes.Slot, "The new state."), **problems(404, 409)},
    )
    async def resume_slot(name: NamePath, request: Request) -> Response:
        """Enables polling and waking again, resets the error counts, and polls the quota immediately."""
        await read_object(request, known=())
        await quota().resume(_known(name))
        return JSONResponse(await quota().get(name))


def _known(name: str) -> str:
    if not _KNOWN.fullmatch(name):
        raise NotFound(f"there is no slot {shown(name)}")
    return name


async def _written(request: Request) -> dict[str, Any]:
    data = await read_json(request)
    if not isinstance(data, Mapping):
        refuse("", "a slot is a JSON object; write {…}")
    return {field: value for field, value in data.items() if field not in READ_BACK}
