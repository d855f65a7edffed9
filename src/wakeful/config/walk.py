"""Iterate over settings value by value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wakeful.config.model import ENTRIES, Settings
from wakeful.config.places import Path, dotted
from wakeful.config.table import Table


def leaves(table: Table, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Every value with its path and its default as written; lists and tables of secrets are one value."""
    for name, field in type(table).model_fields.items():
        value, place = getattr(table, name), (*path, name)
        if isinstance(value, Table):
            yield from leaves(value, place)
        elif path == () and name in ENTRIES:
            for entry, inner in value.items():
                yield from leaves(inner, (*place, entry))
        else:
            yield place, value, None if field.is_required() else field.default


def diff(old: Settings, new: Settings) -> list[str]:
    """The paths at which two settings differ; an added, removed or retyped entry is reported as a whole."""
    return [dotted(path) for path in _differences((), old, new)]


def _differences(path: Path, old: Any, new: Any) -> Iterator[Path]:
    if old == new:
        return
    if isinstance(old, Table) and type(old) is type(new):
        for name in type(old).model_fields:
            yield from _differences((*path, name), getattr(old, name), getattr(new, name))
    elif len(path) == 1 and path[0] in ENTRIES and isinstance(old, Mapping):
        for name in dict.fromkeys([*old, *new]):
            yield from _differences((*path, name), old.get(name), new.get(name))
    else:
        yield path
