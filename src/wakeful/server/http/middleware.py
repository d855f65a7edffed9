"""The middleware that every request passes before the routes.

A page on the internet can make a browser send requests to this machine, and can make its own name point to it. So the
`Host` must be one of ours, and an `Origin`, which browsers add and scripts cannot change, must be the page we serve.
Then the caller is identified, before routing, and its role is checked. A few requests are in progress at a time
(`places`). Bodies are counted as they arrive, so that nothing above the limit is held in memory. Errors from the routes
become problem responses.
"""

import logging
import re
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.ports.store import StoreUnavailable
from wakeful.server.http import roles
from wakeful.server.http.access import Access, Caller, host_and_port, origin_of
from wakeful.server.http.authentication import UNIDENTIFIED, Authentication, is_unix
from wakeful.server.http.places import Place, Places
from wakeful.server.http.problems import Problem, Refused, failed, stopping
from wakeful.server.http.refused_bodies import RefusedBody
from wakeful.server.page import PREFIX

log = logging.getLogger("wakeful.server.http")

BODY_MAX: Final = 1_048_576
LOGIN: Final = "/login"
WITHOUT_TOKEN: Final = frozenset({"/", "/healthz", "/readyz", "/logout"})
VERDICTS: Final = frozenset({"/healthz", "/readyz"})
"""Served under any `Host`, and while the daemon starts or stops."""
# Match the whole path: a schedule may be called `receipt`.
RECEIPT: Final = re.compile(r"/api/runs/[0-9]+/receipt", re.ASCII)
HOOK: Final = re.compile(r"/api/hooks/[^/]+")


class Middleware:
    """The outermost part of the application."""

    def __init__(
        self,
        inner: ASGIApp,
        *,
        access: Callable[[], Access],
        authentication: Authentication,
        body_max: Callable[[], int],
        is_open: Callable[[], bool],
    ) -> None:
        self._inner = inner
        self._access = access
        self._authentication = authentication
        self._body_max = body_max
        self._is_open = is_open
        self._places = Places()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        place = await self._places.take()
        try:
            headers, way = Headers(scope=scope), RefusedBody(receive, send)
            refusal = await self._refusal(scope, headers)
            if refusal is not None:
                await refusal(scope, way.receive, way.send)
                return
            await self._guarded(scope, _counted(way.receive, self._body_max()), way.send, place)
        finally:
            place.leave()

    async def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Why the request is refused; None if it may proceed. The caller is stored in the scope."""
        path: str = scope["path"]
        if not is_unix(scope):
            foreign = self._foreign_host(scope, headers)
            if foreign is not None and path in VERDICTS:
                return None  # a probe; without a caller it gets only the status
            foreign = foreign or self._foreign_origin(scope, headers)
            if foreign is not None:
                return Problem(403, foreign)
        is_receipt = (
            scope["method"] == "POST" and RECEIPT.fullmatch(path) is not None
        )  # authenticated by the run's own token
        is_hook = scope["method"] == "POST" and HOOK.fullmatch(path) is not None  # authenticated by the hook's token
        if not (is_receipt or is_hook):
            refused = await self._unauthorized(scope, headers)
            if refused is not None:
                return refused
        if not self._is_open() and path not in VERDICTS and not is_receipt:
            return stopping()
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            return Problem(400, f"Content-Length {length[:40]!r} is not a number")
        body_max = self._body_max()
        return too_large(body_max).problem() if int(length[:20]) > body_max else None

    async def _unauthorized(self, scope: Scope, headers: Headers) -> Response | None:
        path, method = scope["path"], scope["method"]
        is_public = path in WITHOUT_TOKEN or path.startswith(PREFIX) or (path == LOGIN and method == "POST")
        caller: Caller | None = None
        try:
            caller = await self._authentication.caller(scope, headers)
        except Refused as refused:
            if not is_public:
                return refused.problem()
        except StoreUnavailable as error:
            if not is_public:
                return Problem(503, f"the store cannot be read: {error}", headers={"Retry-After": "5"})
        scope.setdefault("state", {})["caller"] = caller
        if is_public:
            return None
        if caller is None:
            return Problem(401, UNIDENTIFIED, headers={"WWW-Authenticate": "Bearer"})
        forbidden = roles.refusal(caller, method, path)
        if forbidden is not None and path.startswith("/api/approvals/"):
            log.warning("a decision on a proposal by %s was refused: %s", caller.name, forbidden)
        if forbidden is None:
            scope["path"] = roles.path_for(caller, path)
        return None if forbidden is None else Problem(403, forbidden)

    def _foreign_host(self, scope: Scope, headers: Headers) -> str | None:
        access = self._access()
        hosts = _hosts(scope, headers, access)
        host = host_and_port(hosts[0]) if len(hosts) == 1 else None
        if host is not None and access.knows_host(host[0]):
            return None
        return (
            f"the host {', '.join(hosts)[:100]!r} is not this daemon; use its address or localhost, or add the name to "
            "[server] allowed_hosts"
        )

    def _foreign_origin(self, scope: Scope, headers: Headers) -> str | None:
        origins = headers.getlist("origin")
        if not origins:
            return None
        access = self._access()
        host = host_and_port(_hosts(scope, headers, access)[0]) or ("", None)
        for origin in origins:
            here = origin_of(origin) if origin.startswith(("http://", "https://")) else None
            usual = 443 if here is not None and here[0] == "https" else 80
            if here is None or (here[1:] != (host[0], host[1] or usual) and here != access.public_origin):
                return f"a page from {origin[:100]!r} may not use this daemon; only its own page may"
        return None

    async def _guarded(self, scope: Scope, receive: Receive, send: Send, place: Place) -> None:
        is_begun = False

        async def noted(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            place.leave()  # a stream never ends on its own
            await send(message)

        try:
            await self._inner(scope, receive, noted)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            if is_begun:
                raise  # part of the response was sent; the server closes the connection
            await failed()(scope, receive, send)


def too_large(body_max: int) -> Refused:
    """A body over the limit; the connection is closed, so that the rest need not be read."""
    text = f"the body is larger than {body_max} bytes; send less, or raise body_max under [limits]"
    return Refused(413, text, headers={"Connection": "close"})


def _counted(receive: Receive, body_max: int) -> Receive:
    """The body as it arrives, up to the limit: a chunked body has no length up front."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > body_max:
            raise too_large(body_max)
        return message

    return counted


def caller_of(scope: Scope) -> Caller | None:
    """The caller of a request that has passed the middleware."""
    caller: Caller | None = scope.get("state", {}).get("caller")
    return caller


def _hosts(scope: Scope, headers: Headers, access: Access) -> list[str]:
    """The `Host`, or the one forwarded by a trusted proxy."""
    client = scope.get("client")
    forwarded = headers.getlist("x-forwarded-host")
    if forwarded and client is not None and access.trusts(str(client[0])):
        return forwarded
    return headers.getlist("host")
