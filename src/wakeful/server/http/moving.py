"""`/api/export`, `/api/apply` and `/api/import`: definitions as files, and other systems' schedules."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app.definition_files import DefinitionFiles
from wakeful.app.importing import Importer
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.integrations.imports.catalogue import KINDS
from wakeful.integrations.imports.entries import SourceRefused
from wakeful.server.http import moving_shapes as shapes
from wakeful.server.http.requests import new_router, read_object, text_of
from wakeful.server.http.shapes import answer, body, problems

Apply = Annotated[bool, Query(alias="apply", description="make the changes; otherwise nothing is changed")]
Prune = Annotated[
    bool, Query(description="remove definitions that were applied from this place before and are no longer in it")
]
Adopt = Annotated[bool, Query(description="leave the job in its system, and start it there")]
DisableSource = Annotated[
    bool, Query(alias="disableSource", description="with apply: switch the source off, as a handover")
]
PLACE_MAX: Final = 4096


def routes(files: DefinitionFiles, importer: Importer) -> APIRouter:
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

    _add_import(router, importer)
    return router


def _add_import(router: APIRouter, importer: Importer) -> None:
    @router.post(
        "/import",
        summary="Import schedules from another scheduler",
        openapi_extra=body(shapes.ImportSource),
        responses={200: answer(shapes.Imported, "The plan, or what was done."), **problems(409)},
    )
    async def import_schedules(
        request: Request, is_applied: Apply = False, adopt: Adopt = False, disable_source: DisableSource = False
    ) -> Response:
        """Importing twice changes nothing. An entry that cannot be imported is refused alone; a file that cannot be
        read as a whole is refused with its line, and nothing is written."""
        data = await read_object(request, known=("kind", "content", "path", "only", "except"))
        kind, content, path = (text_of(data, name) for name in ("kind", "content", "path"))
        if kind is None or kind not in KINDS:
            refuse("kind", f"{shown(kind)} is not a kind of import; write one of {', '.join(KINDS)}")
        if content is not None and path is not None:
            refuse("content", "give either content or path")
        if path is not None and not Path(path).is_absolute():
            refuse("path", f"{shown(path)} is not an absolute path; begin with /")
        only, leaving = (_slugs(data, name) for name in ("only", "except"))
        if disable_source and content is not None:
            refuse("disableSource", "a pasted text has no source to switch off; give a path, or neither")
        try:
            context = await importer.context(is_adopting=adopt)
            plan = await importer.plan(
                kind, content=content, path=None if path is None else Path(path), context=context
            )
        except SourceRefused as refused:
            refuse("content" if content is not None else "path", str(refused))
        plan = plan.chosen(only, leaving or ())
        if disable_source:
            plan = plan.handed_over()
        if is_applied:
            plan = await importer.apply(plan, is_handover=disable_source)
        return JSONResponse(plan.to_json())


def _slugs(data: Mapping[str, Any], name: str) -> list[str] | None:
    given = data.get(name)
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(slug, str) for slug in given):
        refuse(name, f'{shown(given)} is not a list of slugs; write ["backup", "report"]')
    return given
