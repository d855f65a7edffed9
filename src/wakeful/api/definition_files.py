"""Export and apply: the definitions of a store as files, and files back into the store.

Schedules are written in one transaction; the plan is the same transaction, rolled back. Workflows and slots go through
their own commands. Everything is checked before anything is written.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from wakeful.api.origin_rows import Origin, Origins
from wakeful.core.definition_files import (
    DefinitionFile,
    FileKind,
    file_path,
    file_text,
    read_files,
    under,
    with_secrets,
)
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.returned import kind
from wakeful.core.time.instants import Instant
from wakeful.core.workflow.definition_json import decode_workflow, encode_workflow, resolved, workflow_from_json
from wakeful.features.moving.exporting import schedule_file, stored_files
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Tx
from wakeful.ports.workflows import StoredWorkflows

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful

APPLY: Final = "apply"
_SLOT_FIELDS: Final = ("slot", "schedule.slot")


Paths: TypeAlias = Annotated[
    Sequence[str],
    kind({"type": "array", "items": {"type": "string"}, "examples": [["schedules/daily-report.json"]]}, list),
]


@dataclass(frozen=True, slots=True)
class Applied:
    """What applying the files changes, or changed, by path."""

    create: Paths
    update: Paths
    remove: Paths
    unchanged: Paths
    diff: Annotated[str, "a unified diff of all changes"]


@dataclass(slots=True)
class _Changes:
    """What applying files changes, by path, in any order."""

    create: list[str] = field(default_factory=list)
    update: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    diffs: dict[str, str] = field(default_factory=dict)

    def view(self) -> Applied:
        diff = "".join(self.diffs[path] for path in sorted(self.diffs))
        return Applied(sorted(self.create), sorted(self.update), sorted(self.remove), sorted(self.unchanged), diff)

    def add(self, path: str, before: str | None, after: str | None) -> None:
        """Record what happens to one file."""
        if before == after:
            self.unchanged.append(path)
            return
        (self.create if before is None else self.remove if after is None else self.update).append(path)
        old, new = ("" if text is None else text for text in (before, after))
        names = ("/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}")
        self.diffs[path] = "".join(
            unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), *names, n=3)
        )


class _Rehearsed(Exception):
    """Rolls the transaction back, and carries what it would have stored."""

    def __init__(self, after: Mapping[str, str]) -> None:
        super().__init__()
        self.after = after


class DefinitionFiles:
    """Exports and applies one app's definitions."""

    def __init__(self, app: "Wakeful") -> None:
        self._app = app

    async def export(self) -> dict[str, str]:
        """All definitions as files, by path."""
        return {file.path: file_text(file.data) for file in await self._app._store.read(stored_files)}

    async def apply(
        self, files: Mapping[str, Any], *, place: str = "", is_applied: bool = False, is_pruned: bool = False
    ) -> Applied:
        """Show what these files change; if `is_applied`, change it. `place` identifies the folder: with `is_pruned`,
        definitions that were applied from it and are missing now are removed."""
        given = read_files(files)
        before = await self.export()
        gone = await self._gone(given, place) if is_pruned else []
        after = await self._checked(given, before)
        applied = _Changes()
        for file in given:
            applied.add(file.path, before.get(file.path), after[file.path])
        for origin in gone:
            path = file_path(_kind(origin), origin.name)
            if path in before:
                applied.add(path, before[path], None)
        if is_applied:
            changed = {*applied.create, *applied.update}
            await self._write([file for file in given if file.path in changed])
            await self._remove(gone, before)
            await self._remember(given, after, gone, place)
        return applied.view()

    async def _gone(self, given: Sequence[DefinitionFile], place: str) -> list[Origin]:
        paths = {file.path for file in given}
        known = await self._app._store.read(lambda tx: tx[Origins].of_place(APPLY, place))
        return [origin for origin in known if origin.ref not in paths]

    async def _checked(self, given: Sequence[DefinitionFile], before: Mapping[str, str]) -> dict[str, str]:
        """The content of each file once it is stored; raises `Invalid` with all files' errors."""
        errors: list[FieldError] = []
        after: dict[str, str] = {}
        new_slots = {file.name for file in given if file.kind == "slot" and file.path not in before}
        for file in given:
            try:
                after[file.path] = await self._after(file, before.get(file.path), new_slots)
            except Invalid as invalid:
                errors += under(file.path, invalid)
            except Conflict as conflict:
                errors.append(FieldError(file.path, str(conflict)))
        if errors:
            raise Invalid(*errors)
        return after

    async def _after(self, file: DefinitionFile, before: str | None, new_slots: set[str]) -> str:
        match file.kind:
            case "schedule":
                try:
                    return (await self._put_schedules([file], is_rehearsal=True))[file.path]
                except Invalid as invalid:
                    if not all(error.field in _SLOT_FIELDS for error in invalid.errors):
                        raise
                    if not _slots_of(file.data) <= new_slots:
                        raise
                    return file_text(file.data)  # it needs a slot that is written first
            case "workflow":
                after = await self._workflow_after(file)
                if after != before:
                    await self._app.workflows.put(file.name, file.data, force=True, dry_run=True)
                return after
            case "slot":
                await self._check_slot(file)
                kept = json.dumps(file.data, sort_keys=True)
                is_same = before is not None and json.dumps(json.loads(before), sort_keys=True) == kept
                return before if is_same and before is not None else file_text(json.loads(kept))

    async def _workflow_after(self, file: DefinitionFile) -> str:
        definition, status = workflow_from_json(dict(file.data), name=file.name)
        rows = await self._app._store.read(lambda tx: tx[StoredWorkflows].by_names([file.name]))
        row = rows.get(file.name)
        if row is not None and row.origin == "python":
            raise Conflict(f"workflow '{row.name}' is defined by its Python module; change it there")
        known = None if row is None else decode_workflow(row.definition)
        definition = resolved(
            definition, known, now=self._app._moment().now, default_zone=self._app._open.conditions.default_zone
        )
        data = json.loads(encode_workflow(definition))
        status = status or ("active" if row is None else row.status)
        return file_text({"id": file.name, "status": status, **data})

    async def _check_slot(self, file: DefinitionFile) -> None:
        self._app._quota().registry.check(file.name, await self._complete_slot(file))

    async def _complete_slot(self, file: DefinitionFile) -> dict[str, Any]:
        rows = await self._app._store.read(lambda tx: tx[QuotaSlots].by_names([file.name]))
        stored = json.loads(rows[file.name].definition or "{}") if file.name in rows else {}
        return with_secrets(file.data, stored)

    async def _write(self, files: Sequence[DefinitionFile]) -> None:
        """Slots first, because schedules may refer to them."""
        for file in files:
            if file.kind == "slot":
                await self._app.slots.put(file.name, await self._complete_slot(file))
        await self._put_schedules([file for file in files if file.kind == "schedule"])
        for file in files:
            if file.kind == "workflow":
                await self._app.workflows.put(file.name, file.data, force=True)

    async def _put_schedules(self, files: Sequence[DefinitionFile], *, is_rehearsal: bool = False) -> dict[str, str]:
        """Write schedules in one transaction; returns their files as stored."""

        def stored(tx: Tx, _now: Instant) -> dict[str, str]:
            by_path = {file.path: schedule_file(tx, file.name) for file in files}
            after = {
                file.path: file_text(file.data if (kept := by_path[file.path]) is None else kept.data) for file in files
            }
            if is_rehearsal:
                raise _Rehearsed(after)
            return after

        try:
            return await self._app._put_all({file.name: file.data for file in files}, then=stored)
        except _Rehearsed as rehearsed:
            return dict(rehearsed.after)

    async def _remove(self, gone: Sequence[Origin], before: Mapping[str, str]) -> None:
        for origin in gone:
            if file_path(_kind(origin), origin.name) not in before:
                continue
            try:
                match _kind(origin):
                    case "schedule":
                        await self._app.remove(origin.name)
                    case "workflow":
                        await self._app.workflows.remove(origin.name)
                    case "slot" if self._app._host.quota is not None:
                        await self._app.slots.remove(origin.name)
            except NotFound:  # removed meanwhile
                continue

    async def _remember(
        self, given: Sequence[DefinitionFile], after: Mapping[str, str], gone: Sequence[Origin], place: str
    ) -> None:
        now = self._app._moment().now
        rows = [
            Origin(APPLY, place, file.path, file.kind, file.name, digest_of(after[file.path]), now) for file in given
        ]

        def remember(tx: Tx) -> None:
            tx[Origins].put_many(rows)
            tx[Origins].forget(list(gone))

        await self._app._store.write(remember)


def digest_of(text: str) -> str:
    """A short digest of a definition's text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _kind(origin: Origin) -> FileKind:
    return "workflow" if origin.kind == "workflow" else "slot" if origin.kind == "slot" else "schedule"


def _slots_of(data: Mapping[str, Any]) -> set[str]:
    timing = data.get("schedule")
    named = [data.get("slot"), timing.get("slot") if isinstance(timing, Mapping) else None]
    return {name for name in named if isinstance(name, str)}
