"""Load the settings from the file, or report everything that is wrong with it.

The only exception is `SettingsRefused`, even if the file is a folder, a pipe or a photo. It is raised outside of every
handler, so that no chained exception can carry the file's content (and with it a secret).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from wakeful.config.document import Document, read_document
from wakeful.config.faults import LocatedError, SettingsRefused
from wakeful.config.kinds.reading import Reading, masked
from wakeful.config.model import ENTRIES, Settings, agent_names, read_settings, tables_with
from wakeful.config.places import Path, dotted
from wakeful.config.plugins import offers_of
from wakeful.config.secrets import REDACTED_MIN, Redactor, Secret, SecretReader, SecretUrl, read_regular_file
from wakeful.config.table import UNUSED
from wakeful.config.walk import leaves
from wakeful.core.errors import FieldError
from wakeful.core.fields import Fields

FILE_NAME: Final = "wakeful.toml"
FILE_MAX: Final = 262_144
FAULTS_MAX: Final = 100
_OTHERS: Final = 0o077

From: TypeAlias = Literal["default", "file", "environment", "secretFile", "option"]


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a value: the line of the file, and for a secret the variable or file it names."""

    origin: From
    line: int | None = None
    name: str | None = None


DEFAULT: Final = Source("default")


@dataclass(frozen=True, slots=True)
class Loaded:
    """Loaded settings.

    `written` has every value as written in the file, secrets masked; `sources` where each came from; both by path.
    `secrets` are the values that logs must not show. `files` are those the settings depend on, existing or not.
    """

    settings: Settings
    sources: Mapping[str, Source] = field(repr=False)
    written: Mapping[Path, Any] = field(repr=False)
    file: FilePath
    files: frozenset[FilePath]
    warnings: tuple[LocatedError, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def secret_variables(self) -> frozenset[str]:
        """The environment variables that the file uses for secrets."""
        return frozenset(
            source.name for source in self.sources.values() if source.origin == "environment" and source.name
        )


def load(
    home: FilePath,
    *,
    file: FilePath | None = None,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Loaded:
    """Load the settings of a home folder, or of `file` instead, which then must exist.

    `options` override the file, by path (`server.port`); None means not given.
    """
    path = home / FILE_NAME if file is None else file
    reader = SecretReader(home, os.environ if environ is None else environ)
    content = _read(path, must_exist=file is not None)
    document = read_document(content) if isinstance(content, str) else None
    result: Loaded | list[LocatedError]
    if document is None:
        result = [content] if isinstance(content, LocatedError) else []
    elif not document.is_whole:
        result = list(document.faults)
    else:
        given: dict[Path, Any] = {
            tuple(name.split(".")): value for name, value in (options or {}).items() if value is not None
        }
        result = _validated(path, document, reader, given)
    if isinstance(result, Loaded):
        return result
    raise SettingsRefused(path, _in_order(result, reader), frozenset(reader.files))


def _read(path: FilePath, *, must_exist: bool) -> str | LocatedError:
    """The text of the file; empty if it is missing, unless it was named explicitly."""
    try:
        content = read_regular_file(path, FILE_MAX)
        return content.decode()
    except FileNotFoundError:
        if path.is_symlink():
            problem = "the file is a link with a missing target; correct or remove the link"
        elif must_exist:
            problem = "the file does not exist; check its name"
        else:
            return ""
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = "UTF-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else f"byte 0x{content[error.start]:02x}"
        return LocatedError("", f"the file is not UTF-8 text ({what}); save it as UTF-8", line)
    except OSError as error:
        problem = f"the file cannot be read ({error.strerror}); make it readable for its owner"
    except ValueError as error:
        problem = f"the file cannot be read ({error}); use a text file of at most {FILE_MAX // 1024} KiB"
    return LocatedError("", problem, 1)


def _validated(
    path: FilePath, document: Document, reader: SecretReader, given: Mapping[Path, Any]
) -> Loaded | list[LocatedError]:
    data = _with_options(document.data, given)
    packages = data.get("plugins")
    plugins = offers_of(packages if isinstance(packages, list) else ())
    reading = Reading(reader, agent_names(data), is_whole=not document.spoilt, tables_with=tables_with, plugins=plugins)
    fields = Fields(data, context=reading)
    settings = read_settings(fields)
    faults = [*document.faults, *_located(fields.errors, document, given)]
    if faults or settings is None:
        return faults
    return _loaded(path, settings, data, document, reader, given)


def _with_options(data: Mapping[str, Any], given: Mapping[Path, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = dict(data)
    for place, value in given.items():
        table: dict[str, Any] = merged
        for part in map(str, place[:-1]):
            inner = table.get(part, {})
            if not isinstance(inner, dict):
                break  # the file's own error is reported instead
            table[part] = table = dict(inner)
        else:
            table[str(place[-1])] = value
    return merged


def _located(errors: Sequence[FieldError], document: Document, given: Mapping[Path, Any]) -> Iterator[LocatedError]:
    """The errors with their lines, without those that may only follow from lines that could not be parsed."""
    lines = {dotted(place): line for place, line in document.places.lines.items()}
    options = {dotted(place) for place in given}
    for error in errors[:FAULTS_MAX]:
        if not _may_follow_from(error.field, document.spoilt):
            line = None if error.field in options else _line_of(error.field, lines)
            yield LocatedError(error.field, error.message, line)
    if len(errors) > FAULTS_MAX:
        last = max(lines.values(), default=1)
        yield LocatedError("", f"and {len(errors) - FAULTS_MAX} more; correct these first", last)


def _line_of(field: str, lines: Mapping[str, int]) -> int:
    """The line of a setting, or of the nearest table around it that has one."""
    while field and field not in lines:
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return lines.get(field, 1)


def _may_follow_from(field: str, spoilt: frozenset[Path]) -> bool:
    """Whether the setting could not be parsed, or is in an entry whose allowed keys are unknown for this reason."""
    return field in map(dotted, spoilt) or any(
        f"{field}.".startswith(f"{dotted(path[:2])}.") for path in spoilt if _selects_keys(path)
    )


def _selects_keys(path: Path) -> bool:
    entries = ENTRIES.get(str(path[0])) if len(path) == 3 else None
    return entries is not None and path[2] == entries.by


def _loaded(
    path: FilePath,
    settings: Settings,
    data: Mapping[str, Any],
    document: Document,
    reader: SecretReader,
    given: Mapping[Path, Any],
) -> Loaded:
    sources: dict[str, Source] = {}
    written: dict[Path, Any] = {}
    warnings: list[LocatedError] = []
    for place, value, described in leaves(settings):
        raw = _written_at(place, data)
        source = DEFAULT
        if place in given:
            source = Source("option")
        elif raw is not None:
            source = Source("file", document.places.line_of(place))
        if raw is not None and described.says == UNUSED:
            message = "has no effect with this adapter; remove it"
            warnings.append(LocatedError(dotted(place), message, source.line))
        if isinstance(value, Secret | SecretUrl):
            source = _secret_source(value, source)
            warnings += _exposed(place, value, source, path)
        sources[dotted(place)] = source
        written[place] = _as_written(value, described.written_default if raw is None else raw)
    return Loaded(
        settings,
        MappingProxyType(sources),
        MappingProxyType(written),
        path,
        frozenset({path, *reader.files}),
        tuple(warnings),
        tuple(dict.fromkeys(reader.values)),
    )


def _written_at(place: Path, data: Any) -> Any:
    for part in place:
        data = data.get(part) if isinstance(data, Mapping) else None
    return data


def _as_written(value: Any, written: Any) -> Any:
    """The value in the file, unless that would reveal a secret."""
    shown = masked(value)
    return shown if shown is not value and not isinstance(value, tuple) else masked(written)


def _secret_source(value: Secret | SecretUrl, source: Source) -> Source:
    origin = value.origin
    return source if origin.kind == "plain" else Source(origin.kind, source.line, origin.name)


def _exposed(place: Path, value: Secret | SecretUrl, source: Source, path: FilePath) -> list[LocatedError]:
    """Warn about secrets that other users of this machine can read, and those too short to be masked in logs."""
    file = value.origin.path or (path if source.origin == "file" and value.values else None)
    warnings = []
    if file is not None and _is_open_to_others(file):
        name = value.origin.name or path.name
        warnings.append(f"other users of this machine can read it in {name}; run chmod 600 on that file")
    if any(len(text) < REDACTED_MIN for text in value.values):
        warnings.append(f"is shorter than {REDACTED_MIN} characters and is not masked in logs; use a longer one")
    return [LocatedError(dotted(place), message, source.line) for message in warnings]


def _is_open_to_others(file: FilePath) -> bool:
    try:
        return bool(file.stat().st_mode & _OTHERS)
    except OSError:
        return False


def _in_order(faults: list[LocatedError], reader: SecretReader) -> tuple[LocatedError, ...]:
    """Sort by line; mask a secret that also appears in another place in the message about that place."""
    redact = Redactor(reader.values).redact
    safe = [LocatedError(fault.field, redact(fault.message), fault.line, fault.column) for fault in faults]
    return tuple(sorted(safe, key=lambda fault: fault.line or 0))
