"""Translate pydantic's errors: what is wrong with the value, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

from pydantic_core import ErrorDetails

from wakeful.config.faults import REFUSED
from wakeful.config.kinds import Kind, short, shown
from wakeful.config.model import ENTRIES, ActiveHoursTable, Settings
from wakeful.config.places import Path, dotted
from wakeful.config.table import Table

_KEY: Final = "[key]"
_ALIKE: Final = 0.7
_NOT_A_TABLE: Final = ("model_type", "model_attributes_type", "dict_type", "mapping_type")
_NO_SUCH_ENTRY: Final = ("union_tag_invalid", "union_tag_not_found")


def faults_of(error: ErrorDetails, data: Mapping[str, Any]) -> Iterable[tuple[Path, str]]:
    """The path and the message of each fault behind a pydantic error."""
    path, written = _path(error), error["input"]
    match error["type"]:
        case "refused":
            yield from _refused(path, error.get("ctx", {}))
        case "missing":
            yield path, _missing(path, data)
        case "extra_forbidden":
            yield path, _unknown(path, data)
        case "literal_error":
            yield path, _none_of(written, _choices(path, data))
        case kind if kind in _NOT_A_TABLE or (kind in _NO_SUCH_ENTRY and not isinstance(written, Mapping)):
            yield path, _not_a_table(path, written)
        case kind if kind in _NO_SUCH_ENTRY:
            entries = ENTRIES[str(path[0])]
            by = entries.by or ""
            if by in written:
                yield (*path, by), _none_of(written[by], entries.models)
            else:
                yield (*path, by), f"is missing; write {by} = one of {', '.join(entries.models)}"
        case _:
            yield path, f"{error['msg']}; correct it"


def may_follow_from(error: ErrorDetails, spoilt: frozenset[Path]) -> bool:
    """Whether the error may only be a consequence of lines that could not be parsed."""
    path = _path(error)
    if not spoilt or path in spoilt:
        return bool(spoilt)
    if len(path) >= 2 and path[0] in ENTRIES and (*path[:2], ENTRIES[str(path[0])].by) in spoilt:
        return True  # the allowed keys of the entry are unknown then
    return error["type"] == REFUSED and error.get("ctx", {}).get("at") is not None


def kind_of(model: type[Table], field: str) -> Kind | None:
    """The kind of a field; None if it is a choice or a table."""
    return next((item for item in model.model_fields[field].metadata if isinstance(item, Kind)), None)


def choices_of(model: type[Table], field: str) -> tuple[str, ...]:
    return tuple(word for word in get_args(model.model_fields[field].annotation) if isinstance(word, str))


def table_at(path: Path, data: Mapping[str, Any]) -> type[Table] | None:
    """The model of the table at a path; None for a table of named tables."""
    match path:
        case ():
            return Settings
        case ("heartbeat", "active_hours"):
            return ActiveHoursTable
        case (str(section),) if section not in ENTRIES and section in Settings.model_fields:
            annotation = Settings.model_fields[section].annotation
            return annotation if isinstance(annotation, type) and issubclass(annotation, Table) else None
        case (str(section), entry) if section in ENTRIES:
            named = data.get(section)
            return ENTRIES[section].model_of(named.get(entry)) if isinstance(named, Mapping) else None
        case _:
            return None


def _path(error: ErrorDetails) -> Path:
    """The path of the error in the file, without what pydantic adds for unions and keys."""
    loc = error["loc"]
    if len(loc) >= 3 and loc[0] in ENTRIES:
        if loc[2] == _KEY and error["type"] == REFUSED:
            return loc[:2]
        if ENTRIES[str(loc[0])].by is not None:
            return loc[:2] + loc[3:]
    return loc


def _refused(path: Path, context: Mapping[str, Any]) -> Iterable[tuple[Path, str]]:
    if context["inner"]:
        for place, message in context["inner"]:
            yield (*path, place), message
    elif context["at"] is not None:
        yield path[:-1] + context["at"], context["message"]
    else:
        yield path, context["message"]


def _missing(path: Path, data: Mapping[str, Any]) -> str:
    table, field = table_at(path[:-1], data), str(path[-1])
    kind = kind_of(table, field) if table else None
    return f"is missing; write {field} = {kind.example if kind else '…'}"


def _choices(path: Path, data: Mapping[str, Any]) -> Iterable[str]:
    table = table_at(path[:-1], data)
    return choices_of(table, str(path[-1])) if table else ()


def _none_of(written: Any, words: Iterable[str]) -> str:
    words = list(words)
    near = difflib.get_close_matches(written[:80].lower(), words, n=1) if isinstance(written, str) else []
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"{shown(written)} is not one of {', '.join(words)}{hint or '; write one of them'}"


def _not_a_table(path: Path, written: Any) -> str:
    if len(path) == 1 and path[0] in ENTRIES:
        return f"{shown(written)} is not a table; write [{path[0]}.NAME] and its settings below"
    return f"{shown(written)} is not a table; write [{dotted(path)}] and its settings below"


def _unknown(path: Path, data: Mapping[str, Any]) -> str:
    table, name = table_at(path[:-1], data), str(path[-1])
    known = list(table.model_fields) if table else []
    if near := difflib.get_close_matches(name[:80], known, n=1, cutoff=_ALIKE):
        return f"unknown key; did you mean '{near[0]}'?"
    if owners := _owners(path[:-1], name, data):
        return f"unknown key here; it belongs to {' or '.join(owners)}"
    if table is Settings:
        return f"unknown key; the tables are {', '.join(f'[{section}]' for section in known)}"
    return short(f"unknown key; the keys here are {', '.join(known)}")


def _owners(table: Path, name: str, data: Mapping[str, Any]) -> list[str]:
    """Where an unknown key would be valid: with another adapter, or in another table."""
    if len(table) == 2 and table[0] in ENTRIES:
        entries = ENTRIES[str(table[0])]
        others = [f'{entries.by} = "{tag}"' for tag, model in entries.models.items() if name in model.model_fields]
        if others:
            return others
    sections = [(section, table_at((section,), data)) for section in Settings.model_fields if section not in ENTRIES]
    return [f"[{section}]" for section, model in sections if model and name in model.model_fields]
