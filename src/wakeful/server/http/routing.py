"""Finds the function that responds to a request, by looking up each segment of the path.

Trying over a hundred patterns in order would take most of the time of a small request.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

Endpoint: TypeAlias = Callable[[Request], Awaitable[ASGIApp]]

_ANY: Final = ""
"""The key of a segment that is a parameter: no segment of a known path is empty."""
_REST: Final = "*"
"""The key of a parameter that takes all segments that are left; no path has it as a segment."""


class _Node:
    """The paths that begin with the same segments."""

    __slots__ = ("endpoints", "next")

    def __init__(self) -> None:
        self.next: dict[str, _Node] = {}
        self.endpoints: dict[str, tuple[Endpoint, tuple[str, ...]]] = {}  # by method, with the parameters' names


class Dispatch:
    """Passes requests to the function of their route."""

    def __init__(self, endpoints: Mapping[str, Endpoint]) -> None:
        self._root = _Node()
        for route, endpoint in endpoints.items():
            self._add(route, endpoint)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint, scope["path_params"] = self._find(scope["method"], scope["path"])
        response = await endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    def _add(self, route: str, endpoint: Endpoint) -> None:
        method, _, path = route.partition(" ")
        node, names = self._root, []
        for segment in path.split("/"):
            is_parameter, is_rest = segment.startswith("{"), segment.endswith(":path}")
            node = node.next.setdefault(_REST if is_rest else _ANY if is_parameter else segment or "/", _Node())
            names += [segment.strip("{}").removesuffix(":path")] if is_parameter else []
        node.endpoints[method] = (endpoint, tuple(names))

    def _find(self, method: str, path: str) -> tuple[Endpoint, dict[str, str]]:
        segments = path.split("/")
        found = _match(self._root, segments, 0, method)
        if found is None:
            methods = _methods(self._root, segments, 0)
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods))}) if methods else HTTPException(404)
        (endpoint, names), given = found
        return endpoint, dict(zip(names, reversed(given), strict=True))


def _match(
    node: _Node, segments: list[str], depth: int, method: str
) -> tuple[tuple[Endpoint, tuple[str, ...]], list[str]] | None:
    """The endpoint below this node, and the values of its parameters, the last one first. A segment that is written in
    a path goes before a parameter."""
    if depth == len(segments):
        endpoint = node.endpoints.get(method)
        return None if endpoint is None else (endpoint, [])
    segment = segments[depth]
    if (written := node.next.get(segment or "/")) is not None:
        found = _match(written, segments, depth + 1, method)
        if found is not None:
            return found
    if segment and (parameter := node.next.get(_ANY)) is not None:
        found = _match(parameter, segments, depth + 1, method)
        if found is not None:
            found[1].append(segment)
            return found
    if (rest := node.next.get(_REST)) is not None and (endpoint := rest.endpoints.get(method)) is not None:
        return endpoint, ["/".join(segments[depth:])]
    return None


def _methods(node: _Node, segments: list[str], depth: int) -> set[str]:
    """The methods that this path has."""
    if depth == len(segments):
        return set(node.endpoints)
    segment = segments[depth]
    inner = [node.next.get(segment or "/"), node.next.get(_ANY) if segment else None]
    found = {method for one in inner if one is not None for method in _methods(one, segments, depth + 1)}
    return found | (set(node.next[_REST].endpoints) if _REST in node.next else set())
