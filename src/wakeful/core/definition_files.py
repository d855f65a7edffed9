"""Definitions as files made for Git: `schedules/SLUG.json`, `workflows/ID.json`, `slots/NAME.json`.

A file has the stored form of one definition, indented, with its fields in a fixed order, so that equal definitions
give equal files. What is not part of a definition (state, runs, secrets) is not in it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import check_plain, shown

FileKind: TypeAlias = Literal["schedule", "workflow", "slot"]
KINDS: Final[tuple[FileKind, ...]] = get_args(FileKind)
NAME_FIELD: Final[Mapping[FileKind, str]] = {"schedule": "slug", "workflow": "id", "slot": "name"}
FILES_MAX: Final = 10_000
FILE_MAX: Final = 1024 * 1024
"""Maximum size in bytes."""
_FILE: Final = re.compile(r"(schedule|workflow|slot)s/([A-Za-z0-9][A-Za-z0-9._-]{0,63})\.json", re.ASCII)
_SECRETS: Final = ("apiKey",)


@dataclass(frozen=True, slots=True)
class DefinitionFile:
    """One definition as a file."""

    kind: FileKind
    name: str
    data: Mapping[str, Any]

    @property
    def path(self) -> str:
        return file_path(self.kind, self.name)


def file_path(kind: FileKind, name: str) -> str:
    """The path of a definition, relative to the folder."""
    return f"{kind}s/{name}.json"


def is_file_path(path: str) -> bool:
    """Whether a definition may have this path."""
    return _FILE.fullmatch(path) is not None


def file_text(data: Mapping[str, Any]) -> str:
    """The content of a file."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def read_files(files: Mapping[str, Any]) -> list[DefinitionFile]:
    """The definitions in these files, by path; raises `Invalid` with every error, under the path of its file."""
    if len(files) > FILES_MAX:
        raise Invalid(FieldError("files", f"there are {len(files)}; apply at most {FILES_MAX} at once"))
    errors: list[FieldError] = []
    definitions: list[DefinitionFile] = []
    for path in sorted(files):
        try:
            definitions.append(_read(path, files[path]))
        except Invalid as invalid:
            errors += under(path, invalid)
    if errors:
        raise Invalid(*errors)
    return definitions


def under(path: str, invalid: Invalid) -> list[FieldError]:
    """The errors of one file, with its path in front."""
    return [FieldError(f"{path}: {error.field}" if error.field else path, error.message) for error in invalid.errors]


def without_secrets(slot: Mapping[str, Any]) -> dict[str, Any]:
    """A slot without secret values; references to a variable or a file stay."""
    kept = {name: value for name, value in slot.items() if name not in _SECRETS or isinstance(value, Mapping)}
    if isinstance(kept.get("env"), Mapping):
        kept["env"] = {name: value for name, value in kept["env"].items() if isinstance(value, Mapping)}
        if not kept["env"]:
            del kept["env"]
    return kept


def with_secrets(slot: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """A slot from a file, with its stored secret values filled in."""
    merged = dict(slot)
    for name in _SECRETS:
        if name not in merged and isinstance(stored.get(name), str):
            merged[name] = stored[name]
    env, kept = merged.get("env", {}), stored.get("env")
    if isinstance(env, Mapping) and isinstance(kept, Mapping):
        secret = {name: value for name, value in kept.items() if isinstance(value, str) and name not in env}
        if secret or "env" in merged:
            merged["env"] = {**env, **secret}
    return merged


def _read(path: str, text: Any) -> DefinitionFile:
    place = _FILE.fullmatch(path)
    if place is None:
        raise Invalid(FieldError("", "is not the path of a definition; write for example schedules/daily-report.json"))
    if not isinstance(text, str):
        raise Invalid(FieldError("", f"{shown(text)} is not the text of a file; put it in quotes"))
    if len(text.encode(errors="replace")) > FILE_MAX:
        raise Invalid(FieldError("", f"is larger than {FILE_MAX} bytes; a definition is small"))
    data = _json(text)
    check_plain(data)
    kind, name = _kind(place[1]), place[2]
    written = data.get(NAME_FIELD[kind], name)
    if written != name:
        cure = f"write {name!r}, or rename the file"
        raise Invalid(FieldError(NAME_FIELD[kind], f"{shown(written)} does not match the file's name; {cure}"))
    if kind == "slot":
        data = {field: value for field, value in data.items() if field != "name"}
    return DefinitionFile(kind, name, data)


def _json(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text, object_pairs_hook=_no_key_twice)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise Invalid(FieldError("", f"is not JSON ({reason})")) from error
    if not isinstance(data, dict):
        raise Invalid(FieldError("", "is not a definition; write a JSON object"))
    return data


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"duplicate key {name[:80]!r}")
        members[name] = value
    return members


def _kind(word: str) -> FileKind:
    return next(kind for kind in KINDS if kind == word)
