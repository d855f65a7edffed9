"""The http action: one request, one answer.

No retries, no cookies, no kept connections: a retry is the schedule's decision, a cookie would tie one schedule to
another, and a connection kept since the last fire is often closed by the time of the next, which would look like an
error of the target.

A request that is cancelled leaves nothing of ours behind; what the target still does with it, nobody here can know.
"""

import json
import re
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from wakeful.actions.http_body import Body
from wakeful.actions.retry_after import retry_after
from wakeful.actions.spec import expect
from wakeful.actions.text import one_line
from wakeful.actions.threads import in_thread
from wakeful.core.actions import ActionSpec, Http
from wakeful.core.instants import format_instant
from wakeful.core.results import Done, Failed, Result, Throttled
from wakeful.core.runs import RungName
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.clock import Clock

if TYPE_CHECKING:
    import aiohttp

REDIRECTS_MAX: Final = 5

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f]")
_CHUNK: Final = 64 * 1024


class HttpAction:
    """Performs `Http`; any 2xx is success."""

    proves: RungName = "finished"
    is_local = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    def check(self, spec: ActionSpec) -> str | None:
        request = expect(spec, Http)
        return _wrong_url(request.url) or _wrong_head(request.method, request.headers) or _wrong_body(request.body)

    async def perform(self, spec: ActionSpec, fire: Fire, ladder: Ladder) -> Result:
        request = expect(spec, Http)
        wrong = self.check(request)
        if wrong is not None:
            return Failed(wrong, permanent=True)
        session = await self._open()
        await ladder.climb("sent")
        try:
            return await self._ask(session, request, fire)
        except Exception as error:
            return Failed(_cause(error, request.url))

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _open(self) -> "aiohttp.ClientSession":
        if self._session is not None:
            return self._session
        # In a thread: importing it takes a good part of a second, and the clock must not stand still meanwhile.
        await in_thread(_import_aiohttp, name="import")
        if self._session is None:  # another attempt may have been first
            self._session = _session()
        return self._session

    async def _ask(self, session: "aiohttp.ClientSession", request: Http, fire: Fire) -> Result:
        data, content_type = _payload(request.body)
        async with session.request(
            request.method,
            request.url,
            data=data,
            headers=_headers(request.headers, content_type, fire),
            max_redirects=REDIRECTS_MAX + 1,  # the library counts the one it refuses
        ) as answer:
            body = Body()
            await body.read(answer.content.iter_chunked(_CHUNK), answer.headers.get("Content-Encoding", "").lower())
            return self._result(answer, body.text(answer.charset))

    def _result(self, answer: "aiohttp.ClientResponse", text: str) -> Result:
        if 200 <= answer.status < 300:
            return Done(output=text)
        error = f"HTTP {answer.status} {answer.reason or ''}".rstrip()
        if answer.status in (429, 503):
            until = retry_after(answer.headers.get("Retry-After"), self._clock.read().now)
            if until is not None:
                return Throttled(f"{error}: asked to come back at {format_instant(until)}", until)
        said = one_line(text)
        return Failed(f"{error}: {said}" if said else error, output=text)


def _import_aiohttp() -> None:
    import aiohttp  # noqa: F401 - only who sends requests pays for it


def _session() -> "aiohttp.ClientSession":
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True, limit=0),  # how many there are is the engine's business
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),  # and so is how long they take
        auto_decompress=False,  # unpacked by `Body`, which knows when to stop
        middlewares=(_once,),
    )


class _NoAnswer(Exception):
    """The connection broke after the request was sent."""


async def _once(request: "aiohttp.ClientRequest", send: "aiohttp.ClientHandlerType") -> "aiohttp.ClientResponse":
    """Send it and, if the connection breaks, say so in a way that the library does not take for a reason to try again:
    it repeats GET, PUT and DELETE by itself, and has no switch for it."""
    import aiohttp

    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _NoAnswer from error


def _payload(body: Any) -> tuple[bytes | None, str | None]:
    if body is None:
        return None, None
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return json.dumps(body).encode(), "application/json"


def _headers(given: Mapping[str, str], content_type: str | None, fire: Fire) -> dict[str, str]:
    """The definition's, with ours in place of any of the same name: every attempt must show the same key."""
    ours = {"Idempotency-Key": fire.idempotency_key, "X-Wakeful-Run": str(fire.run_id)}
    names = {name.lower() for name in ours}
    headers = {name: value for name, value in given.items() if name.lower() not in names} | ours
    present = {name.lower() for name in headers}
    if content_type is not None and "content-type" not in present:
        headers["Content-Type"] = content_type
    if "accept-encoding" not in present:
        headers["Accept-Encoding"] = "identity"  # packing saves nothing in what little is read
    return headers


def _wrong_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0  # reading the port checks it
    except ValueError as error:
        return f"url '{url}' cannot be read ({error}); write it like https://example.com/path"
    if parts.scheme not in ("http", "https"):
        return f"url '{url}' is not a web address; begin it with http:// or https://"
    if not has_host or _UNSAFE.search(url):
        return f"url '{url}' names no host, or holds spaces; write it like https://example.com/path"
    return None


def _wrong_head(method: str, headers: Mapping[str, str]) -> str | None:
    if not _TOKEN.fullmatch(method):
        return f"method '{method}' is none; write one such as POST"
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            return f"header name '{name}' holds what no name may; use letters, digits and hyphens"
        if any(char in value for char in "\r\n\0"):
            return f"header '{name}' runs over several lines; write it on one"
    return None


def _wrong_body(body: Any) -> str | None:
    try:
        _payload(body)
    except (TypeError, ValueError, RecursionError) as error:
        return f"body cannot be sent as JSON ({error}); use text, numbers, lists and objects"
    return None


def _cause(error: Exception, url: str) -> str:
    """What went wrong on the way, in a user's words."""
    import aiohttp

    host = urlsplit(url).netloc.rpartition("@")[2]  # without the password
    match error:
        case aiohttp.TooManyRedirects():
            said = f"redirected more than {REDIRECTS_MAX} times; write the final address"
        case aiohttp.ClientConnectorError(os_error=socket.gaierror()):
            said = "there is no such host; check the name, and the network"
        case aiohttp.ClientSSLError():
            said = f"no secure connection ({error}); check the certificate"
        case aiohttp.ClientConnectorError(os_error=ConnectionRefusedError()):
            said = "connection refused; is it running, and on this port?"
        case aiohttp.ClientConnectorError(os_error=OSError(strerror=reason)):
            said = f"cannot connect ({reason})"
        case _NoAnswer():
            said = "it closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            said = "the answer broke off"
        case _:
            said = f"{type(error).__name__}: {error}"
    return one_line(f"{host}: {said}")
