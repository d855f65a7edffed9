"""Definitions as files, and other schedulers' schedules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from wakeful.api.definition_files import Applied, DefinitionFiles
from wakeful.api.operation import Noun, Returns, perform
from wakeful.api.parameters import Param
from wakeful.app.bootstrap import resolve_zone
from wakeful.app.import_plan import Imported
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.returned import returned
from wakeful.features.moving.outward import Format, LostSchedule, moved_out
from wakeful.integrations.imports.entries import SourceRefused

PLACE_MAX: Final = 4096
_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_SLUGS: Final = {"type": "array", "items": {"type": "string"}}


@dataclass(frozen=True, slots=True)
class Exported:
    """All definitions as files."""

    files: Annotated[Mapping[str, str], "the text of each file, by its path"]
    lost: Annotated[
        Sequence[LostSchedule], "in the form of another scheduler: what each schedule loses, or why it cannot move"
    ] = ()


def _read_files(given: Any) -> Any:
    if not isinstance(given, Mapping):
        refuse("files", f'{shown(given)} is not an object; write {{"schedules/daily-report.json": "…"}}')
    return given


def _read_place(place: str) -> str:
    if len(place) > PLACE_MAX:
        refuse("place", f"is longer than {PLACE_MAX} characters; shorten it")
    return place


def _read_slugs(name: str) -> Callable[[Any], Any]:
    def read(given: Any) -> Any:
        if not isinstance(given, list) or not all(isinstance(slug, str) for slug in given):
            refuse(name, f'{shown(given)} is not a list of slugs; write ["backup", "report"]')
        return given

    return read


class Moving(Noun):
    """Export, apply and import."""

    @perform(
        "GET /api/export",
        "All definitions as files",
        Returns(returned(Exported), "Schedules, workflows and slots; without secrets."),
        least="read",
        id="export",
        tag="moving",
    )
    async def export(
        self,
        form: Annotated[
            Format | None, Param("in the form of another scheduler, instead of our own", "as", where="query")
        ] = None,
    ) -> Exported:
        """In the form of another scheduler, schedules that run commands are exported, and `lost` says for each what the
        other one cannot express."""
        files = await DefinitionFiles(self._app).export()
        if form is None:
            return Exported(files)
        moved = moved_out(files, form, zone=resolve_zone("local"), now=self._app._moment().now)
        return Exported(moved.files, moved.lost)

    @perform(
        "POST /api/apply",
        "Apply definitions from files",
        Returns(returned(Applied), "What changes, or what was changed."),
        refuses=(409,),
        least="admin",
        id="apply",
        tag="moving",
        body_name="Files",
        body_says="Definitions as files.",
    )
    async def apply(
        self,
        files: Annotated[
            Mapping[str, Any],
            Param(
                "the text of each file, by its path: `schedules/SLUG.json`, `workflows/ID.json`, …",
                schema=_TEXTS,
                read=_read_files,
                missing='write {"schedules/daily-report.json": "…"}',
            ),
        ],
        place: Annotated[
            str | None,
            Param(
                "identifies the folder, for `prune`",
                schema={"type": "string", "maxLength": PLACE_MAX},
                read=_read_place,
            ),
        ] = None,
        *,
        apply: Annotated[bool, Param("make the changes; otherwise nothing is changed", where="query")] = False,
        prune: Annotated[
            bool,
            Param("remove definitions that were applied from this place before and are no longer in it", where="query"),
        ] = False,
    ) -> Applied:
        """All files are checked first; if one is refused, nothing is written."""
        return await DefinitionFiles(self._app).apply(files, place=place or "", is_applied=apply, is_pruned=prune)

    @perform(
        "POST /api/import",
        "Import schedules from another scheduler",
        Returns(returned(Imported), "The plan, or what was done."),
        refuses=(409,),
        least="admin",
        id="import_schedules",
        tag="moving",
        body_name="ImportSource",
        body_says="What to import: pasted text, a path on the daemon's machine, or the default locations.",
    )
    async def import_schedules(
        self,
        kind: Annotated[str, Param(example="crontab", missing="write one, such as crontab")],
        content: Annotated[str | None, Param("the text of the source")] = None,
        path: Annotated[str | None, Param("a file or folder on the daemon's machine")] = None,
        *,
        only: Annotated[
            Sequence[str] | None,
            Param(
                "the slugs of the entries to take; without it, all",
                schema=_SLUGS,
                read=_read_slugs("only"),
            ),
        ] = None,
        leaving: Annotated[
            Sequence[str] | None,
            Param("the slugs of entries to leave", "except", schema=_SLUGS, read=_read_slugs("except")),
        ] = None,
        apply: Annotated[bool, Param("make the changes; otherwise nothing is changed", where="query")] = False,
        adopt: Annotated[bool, Param("leave the job in its system, and start it there", where="query")] = False,
        disable_source: Annotated[
            bool, Param("with apply: switch the source off, as a handover", where="query")
        ] = False,
    ) -> Imported:
        """Importing twice changes nothing. An entry that cannot be imported is refused alone; a file that cannot be
        read as a whole is refused with its line, and nothing is written."""
        from wakeful.integrations.imports.catalogue import kinds_of  # few programs import

        kinds = kinds_of(self._app._host.plugins)
        if kind not in kinds:
            refuse("kind", f"{shown(kind)} is not a kind of import; write one of {', '.join(kinds)}")
        if content is not None and path is not None:
            refuse("content", "give either content or path")
        if path is not None and not Path(path).is_absolute():
            refuse("path", f"{shown(path)} is not an absolute path; begin with /")
        if disable_source and content is not None:
            refuse("disableSource", "a pasted text has no source to switch off; give a path, or neither")
        importer = self._app._importer
        source = None if path is None else Path(path)
        try:
            context = await importer.context(is_adopting=adopt)
            plan = await importer.plan(
                kind, content=content, path=source, context=context, only=only, leaving=leaving or ()
            )
        except SourceRefused as refused:
            refuse("content" if content is not None else "path", str(refused))
        if disable_source:
            plan = plan.handed_over()
        if apply:
            plan = await importer.apply(plan, is_handover=disable_source)
        return plan.view()
