"""Iterate over settings value by value."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from wakeful.config.model import ENTRIES, SETTINGS, Settings
from wakeful.config.places import Path, dotted
from wakeful.core.description import Field, Object


class Leaf(NamedTuple):
    """One value of the settings, and its description."""

    path: Path
    value: Any
    field: Field


def leaves(settings: Settings) -> Iterator[Leaf]:
    """Every value; lists and tables of secrets are one value."""
    return _leaves(SETTINGS, settings, ())


def _leaves(described: Object[Any], table: Any, path: Path) -> Iterator[Leaf]:
    for field in described:
        value, place = getattr(table, field.attribute), (*path, field.name)
        if path == () and field.name in ENTRIES:
            for entry, inner in value.items():
                if (kind := ENTRIES[field.name].described(inner)) is not None:
                    yield from _leaves(kind, inner, (*place, entry))
        elif field.kind.inner and value is not None:
            yield from _leaves(field.kind.inner[0], value, place)
        else:
            yield Leaf(place, value, field)


def diff(old: Settings, new: Settings) -> list[str]:
    """The paths at which two settings differ; an added, removed or retyped entry is reported as a whole."""
    return [dotted(path) for path in _differences((), old, new)]


def _differences(path: Path, old: Any, new: Any) -> Iterator[Path]:
    if old == new:
        return
    if dataclasses.is_dataclass(old) and type(old) is type(new):
        for name in (field.name for field in dataclasses.fields(old)):
            yield from _differences((*path, name), getattr(old, name), getattr(new, name))
    elif len(path) == 1 and path[0] in ENTRIES and isinstance(old, Mapping):
        for name in dict.fromkeys([*old, *new]):
            yield from _differences((*path, name), old.get(name), new.get(name))
    else:
        yield path
