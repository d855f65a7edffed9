"""Identify the caller: the Unix socket, a bearer token, a run's token, or the page's session cookie.

Wrong tokens are counted per address: after ten in a minute that address gets 429. On loopback a valid token is still
accepted, because all users of the machine share that address and could lock each other out.
"""

import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from http.cookies import CookieError, SimpleCookie
from typing import Final, TypeAlias
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import Scope

from wakeful.api.planned import CALENDAR
from wakeful.core.time.instants import MINUTE, SECOND, Duration
from wakeful.integrations.actions.ancestry import Ancestry, ancestry_of
from wakeful.integrations.net.guard import is_loopback
from wakeful.integrations.system.threads import in_thread
from wakeful.server.http.access import (
    CALENDAR_CALLER,
    LOCAL_CALLER,
    SOCKET_CALLER,
    UNKNOWN_CALLER,
    Access,
    Caller,
    host_and_port,
)
from wakeful.server.http.logins import COOKIE, Logins
from wakeful.server.http.own_tokens import NO_RECEIPT, OwnTokens
from wakeful.server.http.problems import Refused

WRONG_MAX: Final = 10
WRONG_WITHIN: Final[Duration] = MINUTE
ADDRESSES_MAX: Final = 10_000
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

AS_AGENT: Final = "x-wakeful-agent"
"""On the socket: act as this agent and no more, as `wakeful mcp --agent NAME` does."""

UNIDENTIFIED: Final = (
    "a token is required; it is in the file `token` of the daemon's home folder (WAKEFUL_HOME, by default ~/.wakeful), "
    "unless [server] token in wakeful.toml overrides it: send it as `Authorization: Bearer TOKEN`. The Unix socket "
    "`wakeful.sock` in that folder needs none: curl --unix-socket ~/.wakeful/wakeful.sock http://wakeful/api/schedule"
)
WRONG_ON_SOCKET: Final = "this token is not valid, or its run has ended; the Unix socket needs none"
MISIDENTIFIED: Final = f"this token is not valid; {UNIDENTIFIED}"

UNKNOWN_PEER: Final = (
    "the process that opened this connection has ended, or cannot be seen from here (as in another container), so it "
    "may only read; send a token: Authorization: Bearer TOKEN (for the command line: WAKEFUL_TOKEN). The owner's is in "
    "the file `token` of the daemon's home folder"
)

WRONG_KEY: Final = "this key is not valid, or was renewed; `wakeful calendar` prints the current address"

RunCaller: TypeAlias = Callable[[str], Awaitable[Caller | None]]
"""The caller whose run this token belongs to, while that run is running."""

PeerCaller: TypeAlias = Callable[[Ancestry], Awaitable[Caller | None]]
"""The caller whose run, or other program of the daemon, a process descends from. None: a process of the owner."""

PEER: Final = "peer_pid"
"""In the state of a request on the socket: the process that opened it, where the system tells; 0 if it is hidden."""
CONNECTION: Final = "connection"
"""In the state of a request over TCP: its connection."""


class Authentication:
    """Identifies the caller."""

    def __init__(
        self,
        access: Callable[[], Access],
        monotonic: Callable[[], int],
        *,
        logins: Logins | None = None,
        run_caller: RunCaller | None = None,
        peer_caller: PeerCaller | None = None,
        is_calendar_key: Callable[[str], Awaitable[bool]] | None = None,
        own_tokens: OwnTokens | None = None,
    ) -> None:
        self._access = access
        self._monotonic = monotonic
        self._logins = logins
        self._run_caller = run_caller
        self._peer_caller = peer_caller
        self._is_calendar_key = is_calendar_key
        self._own_tokens = own_tokens
        self._wrong: OrderedDict[str, list[int]] = OrderedDict()

    async def caller(self, scope: Scope, headers: Headers) -> Caller | None:
        """The caller; None without credentials. Raises `Refused` for wrong ones."""
        if is_unix(scope):
            return await self._on_socket(scope, headers)
        access = self._access()
        authorization = headers.get("authorization")
        key = key_of(scope)
        if authorization is None and key is not None:
            return await self._by_key(key, client_of(scope, headers, access))
        if authorization is not None:
            return await self._bearer(access, authorization, client_of(scope, headers, access))
        if access.is_open:
            return LOCAL_CALLER
        return await self._by_cookie(scope, headers)

    def check_own_token(self, scope: Scope, headers: Headers) -> None:
        """Check the token of a receipt or a hook. A right one is always accepted: it is random, so the limit is there
        for what wrong ones cost, and a remote agent may post its receipts too late."""
        wrong = NO_RECEIPT if self._own_tokens is None else self._own_tokens.wrong(scope, headers)
        if wrong is None:
            return
        client = client_of(scope, headers, self._access())
        self.count_wrong(scope, f"{client} with tokens of runs or hooks")
        raise Refused(401, wrong, headers={"WWW-Authenticate": "Bearer"})

    def refuse_login(self, scope: Scope, headers: Headers) -> None:
        """Before a login from an address that sent too many wrong codes or tokens."""
        client = client_of(scope, headers, self._access())
        if not is_unix(scope) and self._is_limited(client) and not is_loopback(client):
            raise _too_many()

    def wrong_login(self, scope: Scope, headers: Headers) -> None:
        """After a login with a wrong code or token."""
        self.count_wrong(scope, client_of(scope, headers, self._access()))

    def count_wrong(self, scope: Scope, client: str) -> None:
        """Count a wrong token; raises 429 if there were too many. The socket's users are not strangers."""
        if is_unix(scope):
            return
        is_limited = self._is_limited(client)
        self._count_wrong(client)
        if is_limited:
            raise _too_many()

    async def _on_socket(self, scope: Scope, headers: Headers) -> Caller:
        """The caller on the Unix socket. What an agent's run started has that run's rights, whatever it sends. For
        others, a token gives its own rights, and no more."""
        found = await self._by_descent(scope)
        if found.role in ("agent", "run"):
            return found
        authorization, agent = headers.get("authorization"), headers.get(AS_AGENT)
        if authorization is not None:
            caller = self._access().caller_of(authorization) or await self._run(authorization)
            if caller is None:
                raise Refused(401, WRONG_ON_SOCKET, headers={"WWW-Authenticate": "Bearer"})
            return caller
        if agent is not None and found is not UNKNOWN_CALLER:
            return Caller("agent", f"socket as {agent[:80]}", agent=agent[:80])
        return found

    async def _bearer(self, access: Access, authorization: str, client: str) -> Caller | None:
        is_limited = self._is_limited(client)
        if is_limited and not is_loopback(client):
            raise _too_many()
        caller = access.caller_of(authorization) or await self._run(authorization)
        if caller is None and access.is_open:
            return LOCAL_CALLER
        if caller is not None:
            return caller
        self._count_wrong(client)
        raise _too_many() if is_limited else Refused(401, MISIDENTIFIED, headers={"WWW-Authenticate": "Bearer"})

    async def _by_key(self, key: str, client: str) -> Caller:
        """The caller with the calendar feed's key. A wrong key counts like a wrong token."""
        is_limited = self._is_limited(client)
        if is_limited and not is_loopback(client):
            raise _too_many()
        if self._is_calendar_key is not None and await self._is_calendar_key(key):
            return CALENDAR_CALLER
        self._count_wrong(client)
        raise _too_many() if is_limited else Refused(401, WRONG_KEY)

    async def _run(self, authorization: str) -> Caller | None:
        scheme, _, token = authorization.partition(" ")
        if self._run_caller is None or scheme.lower() != "bearer":
            return None
        return await self._run_caller(token.strip())

    async def _by_descent(self, scope: Scope) -> Caller:
        """The caller by what its process descends from: an agent that drops its token, or leaves the session of its
        run, stays itself."""
        peer = scope.get("state", {}).get(PEER)
        if peer is None or self._peer_caller is None or peer == os.getpid():
            return SOCKET_CALLER
        ancestry = await in_thread(partial(ancestry_of, peer), name="peer") if peer else None
        if ancestry is None:
            return UNKNOWN_CALLER
        return await self._peer_caller(ancestry) or SOCKET_CALLER

    async def _by_cookie(self, scope: Scope, headers: Headers) -> Caller | None:
        value = cookie_of(headers)
        if value is None or self._logins is None:
            return None
        caller = await self._logins.caller(value)
        if caller is None:
            return None
        _check_same_origin(scope["method"], headers)
        return caller

    def _is_limited(self, client: str) -> bool:
        if client not in self._wrong:
            return False
        since = self._monotonic() - WRONG_WITHIN
        recent = [at for at in self._wrong[client] if at > since]
        return len(recent) >= WRONG_MAX

    def _count_wrong(self, client: str) -> None:
        now = self._monotonic()
        recent = [at for at in self._wrong.pop(client, ()) if at > now - WRONG_WITHIN][-WRONG_MAX:]
        self._wrong[client] = [*recent, now]
        while len(self._wrong) > ADDRESSES_MAX:
            self._wrong.popitem(last=False)


def is_unix(scope: Scope) -> bool:
    """Whether the request came through a Unix socket: the server then has a path and no port."""
    server = scope.get("server")
    return server is not None and server[1] is None and scope.get("client") is None


def client_of(scope: Scope, headers: Headers, access: Access) -> str:
    """The client's address: behind a trusted proxy the last one in `X-Forwarded-For` that is not itself trusted."""
    client = scope.get("client")
    address = "" if client is None else str(client[0])
    if not access.trusts(address):
        return address
    forwarded = [hop.strip() for hop in ",".join(headers.getlist("x-forwarded-for")).split(",") if hop.strip()]
    return next((hop for hop in reversed(forwarded) if not access.trusts(hop)), address)[:64]


def is_https(scope: Scope, headers: Headers, access: Access) -> bool:
    """Whether the browser uses TLS, according to a trusted proxy or `public_url`."""
    client = scope.get("client")
    if client is not None and access.trusts(str(client[0])) and "x-forwarded-proto" in headers:
        return headers["x-forwarded-proto"].strip().lower() == "https"
    public, host = access.public_origin, host_and_port(headers.get("host", ""))
    return public is not None and public[0] == "https" and host is not None and host[0] == public[1]


def key_of(scope: Scope) -> str | None:
    """The key of a request for the calendar feed."""
    if scope["path"] != CALENDAR or scope["method"] not in SAFE_METHODS:
        return None
    keys = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True).get("key", [])
    return keys[0] if len(keys) == 1 else None


def cookie_of(headers: Headers) -> str | None:
    """The session cookie's value."""
    for header in headers.getlist("cookie"):
        try:
            cookie = SimpleCookie(header).get(COOKIE)
        except CookieError:
            continue
        if cookie is not None:
            return cookie.value
    return None


def _check_same_origin(method: str, headers: Headers) -> None:
    """Browsers send the cookie from every page of this host, on any port: only our own page may use it."""
    site = headers.get("sec-fetch-site")
    if site not in (None, "same-origin", "none"):
        raise Refused(403, "only the daemon's own page may use its session cookie")
    if method not in SAFE_METHODS and "origin" not in headers and site != "same-origin":
        raise Refused(403, "a request with the session cookie must have the page's Origin; use a token instead")


def _too_many() -> Refused:
    seconds = WRONG_WITHIN // SECOND
    text = f"{WRONG_MAX} wrong tokens within a minute from this address; try again in {seconds} s with a valid one"
    return Refused(429, text, headers={"Retry-After": str(seconds)})
