"""`/api/export` and `/api/apply`: definitions as files."""

from collections.abc import Mapping
from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app.definition_files import DefinitionFiles
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.server.http import moving_shapes as shapes
from wakeful.server.http.requests import new_router, read_object, text_of
from wakeful.server.http.shapes import answer, body, problems

Apply = Annotated[bool, Query(alias="apply", description="make the changes; otherwise nothing is changed")]
Prune = Annotated[
    bool, Query(description="remove definitions that were applied from this place before and are no longer in it")
]
PLACE_MAX: Final = 4096


def routes(files: DefinitionFiles) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api", tags=["moving"])

    @router.get(
        "/export",
        summary="All definitions as files",
        responses={200: answer(shapes.Exported, "Schedules, workflows and slots; without secrets."), **problems()},
    )
    async def export() -> Response:
        return JSONResponse({"files": await files.export()})

    @router.post(
        "/apply",
        summary="Apply definitions from files",
        openapi_extra=body(shapes.Files),
        responses={200: answer(shapes.Applied, "What changes, or what was changed."), **problems(409)},
    )
    async def apply(request: Request, is_applied: Apply = False, prune: Prune = False) -> Response:
        """All files are checked first; if one is refused, nothing is written."""
        data = await read_object(request, known=("files", "place"))
        given = data.get("files")
        if not isinstance(given, Mapping):
            refuse("files", f'{shown(given)} is not an object; write {{"schedules/daily-report.json": "…"}}')
        place = text_of(data, "place") or ""
        if len(place) > PLACE_MAX:
            refuse("place", f"is longer than {PLACE_MAX} characters; shorten it")
        applied = await files.apply(given, place=place, is_applied=is_applied, is_pruned=prune)
        return JSONResponse(applied.to_json())

    return router
