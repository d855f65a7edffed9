"""Parses a program's output: JSON in several shapes, and text without terminal escape sequences."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from wakeful.integrations.system.text import parse_json

LINES_MAX: Final = 20_000
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NESTING_MAX: Final = 6


def plain(text: str) -> str:
    """The text without escape sequences."""
    return _ANSI.sub("", text)


def objects(text: str) -> list[dict[str, Any]]:
    """The printed JSON objects, in order: one object, one array of them, or one per line."""
    stripped = text.strip()
    if stripped.startswith(("{", "[")):
        whole = parse_json(stripped)
        if isinstance(whole, dict):
            return [whole]
        if isinstance(whole, list):
            return [item for item in whole if isinstance(item, dict)]
    lines = (line.strip() for line in stripped.splitlines()[-LINES_MAX:])
    values = (parse_json(line) for line in lines if line.startswith("{"))
    return [value for value in values if isinstance(value, dict)]


def of_type(events: list[dict[str, Any]], *types: str) -> Iterator[dict[str, Any]]:
    """The events of these types, in order."""
    return (event for event in events if event.get("type") in types)


def last(events: list[dict[str, Any]], *types: str) -> dict[str, Any] | None:
    """The last event of these types."""
    return next((event for event in reversed(events) if event.get("type") in types), None)


def at(value: Any, *path: str | int) -> Any:
    """The value at a path of keys and indexes; None if there is none."""
    for part in path:
        if isinstance(value, Mapping) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and -len(value) <= part < len(value):
            value = value[part]
        else:
            return None
    return value


def text_at(value: Any, *path: str | int) -> str | None:
    """The value at a path, if it is text."""
    text = at(value, *path)
    return text if isinstance(text, str) else None


def message_in(said: str) -> tuple[str, int | None]:
    """The message inside `text`, which may contain nested JSON, and the HTTP status next to it."""
    status: int | None = None
    for _ in range(_NESTING_MAX):
        begin, end = said.find("{"), said.rfind("}")
        value = parse_json(said[begin : end + 1]) if 0 <= begin < end else None
        if not isinstance(value, dict):
            break
        inner = _message(value)
        status = status or _status(value)
        if inner is None:
            said = (said[:begin] + said[end + 1 :]).strip()
            break
        said = inner
    return said, status


def _message(value: Mapping[str, Any]) -> str | None:
    for path in (("error", "message"), ("message",), ("error",), ("detail",), ("data", "message")):
        text = text_at(value, *path)
        if text:
            return text
    return None


_TYPES: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
}


def _status(value: Mapping[str, Any]) -> int | None:
    for name in ("code", "type"):
        known = _TYPES.get(text_at(value, "error", name) or "")
        if known is not None:
            return known
    for path in (("error", "code"), ("status",), ("statusCode",), ("code",), ("error", "status")):
        status = at(value, *path)
        if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 599:
            return status
    return None
