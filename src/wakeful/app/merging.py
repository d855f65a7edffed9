"""Definitions in their JSON shape, changed in part."""

import re
from collections.abc import Mapping
from typing import Any

from wakeful.core.definition_json import READ_BACK, WRITTEN


def merge(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396): null removes, objects merge, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def without_other_kind(definition: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A schedule that becomes another kind shares no field with the old one: there is nothing to merge into."""
    timing = changes.get("schedule")
    if (
        isinstance(timing, Mapping)
        and timing.get("type", definition["schedule"]["type"]) != definition["schedule"]["type"]
    ):
        return {name: value for name, value in definition.items() if name != "schedule"}
    return definition


def json_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """snake_case to camelCase."""
    return {re.sub(r"_([a-z])", lambda found: found[1].upper(), name): value for name, value in options.items()}


def changed(definition: dict[str, Any], changes: Mapping[str, Any]) -> Any:
    """A definition with changes merged into it. What no definition has cannot be taken back either: it stays in, and
    is refused with the rest."""
    unknown = {name: None for name, value in changes.items() if value is None and name not in (*WRITTEN, *READ_BACK)}
    return {**merge(without_other_kind(definition, changes), changes), **unknown}
