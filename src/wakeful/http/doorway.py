"""The way in: what every request passes before any route sees it.

A page on the internet can make a browser send requests to this machine, and can make a name of its own point here. So
the `Host` must be one of ours and an `Origin`, which a browser adds and cannot be talked out of, must be the very page
we serve. Whoever listens beyond loopback needs a token too. Bodies are counted as they arrive, so that nothing larger
than allowed is ever held; and whatever goes wrong further in ends here, as a problem.
"""

import hmac
import ipaddress
import logging
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.dashboard import PREFIX
from wakeful.http.lingering import Lingering
from wakeful.http.problems import Problem, Refused, failed, stopping

log = logging.getLogger("wakeful.http")

BODY_MAX: Final = 1_048_576
WITHOUT_TOKEN: Final = frozenset({"/", "/healthz", "/readyz"})
# The whole path and nothing less: a schedule may be called `receipt` as well.
RECEIPT: Final = re.compile(r"/api/runs/[0-9]+/receipt", re.ASCII)
HOOK: Final = re.compile(r"/api/hooks/[^/]+")
WHILE_STOPPING: Final = frozenset({"/healthz", "/readyz"})


@dataclass(frozen=True, slots=True)
class Access:
    """Who may come in. With a `token` everybody must bring it; without one only this machine is served."""

    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    def knows_host(self, name: str) -> bool:
        """Whether a request for that host can be meant for us.

        An address is safe where a name is not: only names can be made to point here by somebody else."""
        if name in ("localhost", _plain(self.host)):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            own = socket.gethostname().lower()
            return not self.is_local and name in (own, own.partition(".")[0], f"{own.partition('.')[0]}.local")
        return address.is_loopback or not self.is_local

    def is_admitted(self, authorization: str | None) -> bool:
        """Whether the bearer token is ours, compared in constant time; nobody needs one on loopback."""
        if self.is_local or self.token is None:
            return self.is_local
        scheme, _, given = (authorization or "").partition(" ")
        is_same = hmac.compare_digest(given.strip().encode("latin-1", "replace"), self.token.encode())
        return is_same and scheme.lower() == "bearer"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    try:
        return ipaddress.ip_address(_plain(host)).is_loopback
    except ValueError:
        return _plain(host) == "localhost"


class Doorway:
    """The outermost part of the application."""

    def __init__(
        self,
        inner: ASGIApp,
        *,
        access: Callable[[], Access],
        body_max: Callable[[], int],
        is_open: Callable[[], bool],
    ) -> None:
        self._inner = inner
        self._access = access
        self._body_max = body_max
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers, way = Headers(scope=scope), Lingering(receive, send)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, way.receive, way.send)
            return
        await self._guarded(scope, _counted(way.receive, self._body_max()), way.send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        foreign = self._foreign(headers)
        if foreign is not None:
            return Problem(403, foreign)
        path: str = scope["path"]
        is_receipt = scope["method"] == "POST" and RECEIPT.fullmatch(path) is not None  # it brings its run's own token
        is_hook = scope["method"] == "POST" and HOOK.fullmatch(path) is not None  # and this one the hook's
        is_page = path.startswith(PREFIX)  # files of the package, the same for everybody
        needs_token = path not in WITHOUT_TOKEN and not (is_receipt or is_hook or is_page)
        if needs_token and not self._access().is_admitted(headers.get("authorization")):
            text = "a token is needed here; send Authorization: Bearer with the token of [server] in wakeful.toml"
            return Problem(401, text, headers={"WWW-Authenticate": "Bearer"})
        if not self._is_open() and path not in WHILE_STOPPING and not is_receipt:
            return stopping()
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            return Problem(400, f"Content-Length {length[:40]!r} is not a number")
        body_max = self._body_max()
        return too_large(body_max).problem() if int(length[:20]) > body_max else None

    def _foreign(self, headers: Headers) -> str | None:
        hosts = headers.getlist("host")
        host = _split(hosts[0]) if len(hosts) == 1 else None
        if host is None or not self._access().knows_host(host[0]):
            return f"the host {', '.join(hosts)[:100]!r} is not this daemon; ask for it by its address or localhost"
        for origin in headers.getlist("origin"):
            parts = urlsplit(origin) if origin.startswith(("http://", "https://")) else None
            here = None if parts is None else _split(parts.netloc)
            usual = 443 if parts is not None and parts.scheme == "https" else 80
            if here is None or (here[0], here[1] or usual) != (host[0], host[1] or usual):
                return f"a page of {origin[:100]!r} may not use this daemon; only its own page may"
        return None

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def noted(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        try:
            await self._inner(scope, receive, noted)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            if is_begun:
                raise  # half an answer is out; the server ends the connection
            await failed()(scope, receive, send)


def too_large(body_max: int) -> Refused:
    """A body over the limit; the connection ends, so that not all of it need be read."""
    text = f"the body is larger than {body_max} bytes; send less, or raise body_max under [limits]"
    return Refused(413, text, headers={"Connection": "close"})


def _counted(receive: Receive, body_max: int) -> Receive:
    """The body as it arrives, up to the limit: one sent in pieces does not say beforehand how long it is."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > body_max:
            raise too_large(body_max)
        return message

    return counted


def _split(netloc: str) -> tuple[str, int | None] | None:
    """Host and port of `name:port`, or None for what is neither."""
    try:
        parts = urlsplit(f"//{netloc}")
        if not parts.hostname or parts.username is not None or parts.path or parts.query or parts.fragment:
            return None
        return _plain(parts.hostname), parts.port
    except ValueError:
        return None


def _plain(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()
