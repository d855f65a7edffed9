"""The middleware that every request passes before the routes.

A page on the internet can make a browser send requests to this machine, and can make its own name point to it. So the
`Host` must be one of ours, and an `Origin`, which browsers add and scripts cannot change, must be the page we serve.
Then the caller is identified, before routing, and its role is checked. A few requests are in progress at a time
(`places`). Without authentication a body must be small (`exchange`). Errors from the routes become problem responses.
"""

import logging
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.ports.store import StoreUnavailable
from wakeful.server.http import roles
from wakeful.server.http.access import (
    UNKNOWN_CALLER,
    Access,
    Caller,
    host_and_port,
    origin_of,
)
from wakeful.server.http.authentication import (
    CONNECTION,
    UNIDENTIFIED,
    UNKNOWN_PEER,
    client_of,
    is_unix,
)
from wakeful.server.http.connections import Connections
from wakeful.server.http.exchange import Exchange, too_large
from wakeful.server.http.own_tokens import has_own_token, is_receipt
from wakeful.server.http.places import Places
from wakeful.server.http.problems import Problem, Refused, failed, stopping
from wakeful.server.http.roles import OPEN
from wakeful.server.http.serving import Api
from wakeful.server.page import PREFIX

log = logging.getLogger("wakeful.server.http")

VERDICTS: Final = frozenset({"/healthz", "/readyz"})
"""Served under any `Host`, and while the daemon starts or stops."""
STRANGERS_BODY_MAX: Final = 65_536
"""Bytes of a body before the request is authenticated."""
AUTHENTICATED: Final = "is_authenticated"
FORGET: Final = "forget_stranger"
CROWDED: Final = "too many requests without authentication are in progress from this address; try again later"


class Middleware:
    """The outermost part of the application."""

    def __init__(
        self,
        inner: ASGIApp,
        api: Api,
    ) -> None:
        serving = api.serving
        self._inner = inner
        self._access = serving.access
        self._authentication = api.authentication
        self._body_max = serving.body_max
        self._is_open = api.is_open
        self._connections = serving.connections
        self._places = Places()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        client = None if self._connections is None else _forwarded_client(scope, self._access())
        if self._connections is None or client is None:
            await self._placed(scope, receive, send)
            return
        with _Stranger(scope, self._connections, client) as stranger:
            if not stranger.is_welcome:
                await Problem(429, CROWDED, headers={"Retry-After": "5"})(scope, receive, send)
                return
            await self._placed(scope, receive, send)

    async def _placed(self, scope: Scope, receive: Receive, send: Send) -> None:
        place = await self._places.take()
        try:
            headers = Headers(scope=scope)
            refusal = await self._refusal(scope, headers)
            is_stranger = not is_authenticated(scope)
            body_max = min(self._body_max(), STRANGERS_BODY_MAX) if is_stranger else self._body_max()
            exchange = Exchange(receive, send, place, body_max, is_stranger=is_stranger)
            refusal = refusal or _wrong_length(headers, body_max)
            if refusal is None:
                await self._guarded(scope, exchange)
            else:
                await refusal(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            pass  # nobody is left to respond to
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
        if has_own_token(scope):
            refused = self._with_own_token(scope, headers)
        else:
            refused = await self._unauthorized(scope, headers)
        if refused is not None:
            return refused
        if not self._is_open() and path not in VERDICTS and not is_receipt(scope):
            return stopping()
        return None

    def _with_own_token(self, scope: Scope, headers: Headers) -> Response | None:
        try:
            self._authentication.check_own_token(scope, headers)
        except Refused as refused:
            return refused.problem()
        _authenticate(scope)
        return None

    async def _unauthorized(self, scope: Scope, headers: Headers) -> Response | None:
        path, method = scope["path"], scope["method"]
        is_public = path in OPEN or path.startswith(PREFIX)
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
        if caller is not None:
            _authenticate(scope)
        if is_public:
            return None
        if caller is None:
            return Problem(401, UNIDENTIFIED, headers={"WWW-Authenticate": "Bearer"})
        forbidden = roles.refusal(caller, method, path)
        if forbidden is not None and caller is UNKNOWN_CALLER:
            return Problem(401, UNKNOWN_PEER, headers={"WWW-Authenticate": "Bearer"})
        if forbidden is not None and path.startswith("/api/approvals/"):
            log.warning("a decision on a proposal by %s was refused: %s", caller.name, forbidden)
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

    async def _guarded(self, scope: Scope, exchange: Exchange) -> None:
        try:
            await self._inner(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            raise
        except Exception:
            log.exception("%s %r failed", scope["method"], scope["path"])
            if exchange.is_begun:
                raise  # part of the response was sent; the server closes the connection
            await failed()(scope, exchange.receive, exchange.send)


class _Stranger:
    """A request through a trusted proxy is counted for the address that it is forwarded for, until it is
    authenticated or has ended. Other requests are counted by their connections."""

    def __init__(self, scope: Scope, connections: Connections, client: str) -> None:
        self._scope = scope
        self._connections = connections
        self._client: str | None = client
        self.is_welcome = True

    def __enter__(self) -> "_Stranger":
        if self._client is not None:
            self.is_welcome = self._connections.begins(self._client)
            self._scope.setdefault("state", {})[FORGET] = self.forget
        return self

    def forget(self) -> None:
        """It is authenticated, or has ended: calling it twice is harmless."""
        client, self._client = self._client, None
        if client is not None and self.is_welcome:
            self._connections.ends(client)

    def __exit__(self, *_: object) -> None:
        self.forget()


def _authenticate(scope: Scope) -> None:
    """Note that the request is authenticated: its budget is not a stranger's any longer."""
    state = scope.setdefault("state", {})
    state[AUTHENTICATED] = True
    connection, forget = state.get(CONNECTION), state.get(FORGET)
    if connection is not None:
        connection.authenticated()
    if forget is not None:
        forget()


def is_authenticated(scope: Scope) -> bool:
    """Whether the request came with a valid token or session, or needs none."""
    return is_unix(scope) or bool(scope.get("state", {}).get(AUTHENTICATED))


def _forwarded_client(scope: Scope, access: Access) -> str | None:
    """The address that a trusted proxy forwards the request for; None if it comes from elsewhere."""
    peer = scope.get("client")
    is_forwarded = peer is not None and access.trusts(str(peer[0]))
    return client_of(scope, Headers(scope=scope), access) if is_forwarded else None


def _wrong_length(headers: Headers, body_max: int) -> Response | None:
    """Why the length of the body is refused."""
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit():
        return Problem(400, f"Content-Length {length[:40]!r} is not a number")
    return too_large(body_max).problem() if int(length[:20]) > body_max else None


def _hosts(scope: Scope, headers: Headers, access: Access) -> list[str]:
    """The `Host`, or the one forwarded by a trusted proxy."""
    client = scope.get("client")
    forwarded = headers.getlist("x-forwarded-host")
    if forwarded and client is not None and access.trusts(str(client[0])):
        return forwarded
    return headers.getlist("host")
