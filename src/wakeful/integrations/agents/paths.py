"""Places in JSON, as settings name them: `result`, `messages.-1.text`, `stats."gemini-2.5-pro".tokens`, or a list of
keys for those that no quoting should touch."""

import re
from typing import Any, Final, TypeAlias

Path: TypeAlias = tuple[str, ...]

_PART: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^."]+)')


def parts(path: str | Path) -> Path:
    """The keys of a path. A key with dots stands in quotes."""
    if not isinstance(path, str):
        return path
    return tuple(bare or re.sub(r"\\(.)", r"\1", quoted) for quoted, bare in _PART.findall(path))


def walk(value: Any, path: str | Path) -> Any:
    """What is found there; None if the path leads nowhere."""
    for part in parts(path):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.lstrip("-").isdigit() and -len(value) <= int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
