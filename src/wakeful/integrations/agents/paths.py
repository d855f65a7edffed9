"""Paths into JSON, as in the settings: `result`, `messages.-1.text`, `stats."gemini-2.5-pro".tokens`, or a list of
keys, which needs no quoting."""

import re
from typing import Any, Final, TypeAlias

Path: TypeAlias = tuple[str, ...]

_PART: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^."]+)')


def parts(path: str | Path) -> Path:
    """The keys of a path. A key with dots is quoted."""
    if not isinstance(path, str):
        return path
    return tuple(bare or re.sub(r"\\(.)", r"\1", quoted) for quoted, bare in _PART.findall(path))


def walk(value: Any, path: str | Path) -> Any:
    """The value at the path; None if there is no such value."""
    for part in parts(path):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.lstrip("-").isdigit() and -len(value) <= int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
