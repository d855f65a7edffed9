"""The settings for display: as in the file, secrets masked, with the source of each value."""

from __future__ import annotations

from typing import Any

from wakeful.config.load import Loaded, Source
from wakeful.config.model import SETTINGS


def to_json(loaded: Loaded) -> dict[str, Any]:
    """The body of `GET /api/config`."""
    return {
        "file": str(loaded.file),
        "settings": _nested(loaded),
        "sources": {path: _source(source) for path, source in loaded.sources.items()},
        "warnings": [
            {"field": warning.field, "message": warning.message, "line": warning.line} for warning in loaded.warnings
        ],
    }


def _nested(loaded: Loaded) -> dict[str, Any]:
    """Names stay as in the file, where a person would write them."""
    root: dict[str, Any] = {section: {} for section in SETTINGS.names}
    for path, value in loaded.written.items():
        table = root
        for part in map(str, path[:-1]):
            table = table.setdefault(part, {})
        table[str(path[-1])] = value
    return root


def _source(source: Source) -> dict[str, Any]:
    parts = {"from": source.origin, "line": source.line, "name": source.name}
    return {name: value for name, value in parts.items() if value is not None}
