"""Headers of requests that users define: names, values, and those that only the connection may set.

A `Content-Length` or `Transfer-Encoding` that contradicts the body truncates it, or begins a second request on the same
connection (request smuggling); `Expect` holds it back, and a server that does not wait for it gets none. Such headers
are refused where they are written. Definitions that were stored earlier are sent without them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_HOST: Final = re.compile(r"(?!-)[A-Za-z0-9_.-]{1,253}(?::\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](?::\d{1,5})?", re.ASCII)
_PORT_MAX: Final = 65_535
_MULTILINE: Final = re.compile(r"[\r\n\0]")

MANAGED: Final = frozenset({"connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect"})
"""Set by the HTTP client, in accordance with the body and the connection."""


def wrong_headers(headers: Mapping[str, str]) -> str | None:
    """Why these cannot be sent, and the cure; None if they can."""
    return next(filter(None, (_wrong(name, value) for name, value in headers.items())), None)


def sendable(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers without those that are left out of what was stored earlier."""
    return {name: value for name, value in headers.items() if not _is_left_out(name, value)}


def left_out(definition: str) -> list[str]:
    """The headers of `http` objects in a stored definition that are not sent."""
    return sorted(
        {
            name
            for headers in _headers(json.loads(definition))
            for name, value in headers.items()
            if _is_left_out(name, value)
        }
    )


def _wrong(name: str, value: str) -> str | None:
    if not _NAME.fullmatch(name):
        return f"header name '{name}' has invalid characters; use letters, digits and hyphens"
    if _MULTILINE.search(value):
        return f"header '{name}' spans several lines; write it on one"
    if name.lower() in MANAGED:
        return f"header '{name}' is set by the connection itself; remove it"
    if name.lower() == "host" and not _is_host(value):
        return f"header '{name}' is '{value}', which is not a host; write one like example.com or example.com:8080"
    return None


def _is_left_out(name: str, value: str) -> bool:
    return name.lower() in MANAGED or (name.lower() == "host" and not _is_host(value))


def _is_host(value: str) -> bool:
    if not _HOST.fullmatch(value):
        return False
    port = value.rpartition(":")[2] if not value.endswith("]") and ":" in value else "0"
    return int(port) <= _PORT_MAX


def _headers(value: Any) -> Iterator[Mapping[str, str]]:
    match value:
        case {"headers": {**headers}, "url": str()}:
            yield {str(name): text for name, text in headers.items() if isinstance(text, str)}
        case {**fields}:
            for inner in fields.values():
                yield from _headers(inner)
        case [*items]:
            for inner in items:
                yield from _headers(inner)
