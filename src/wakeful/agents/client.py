"""The HTTP client of the agents: one request, one bounded answer, an error in a user's words.

The same habits as the http action: no retries, no cookies, no kept connections, no redirects (a redirected POST becomes
a GET, which would look like an answer). How long an exchange may take is measured by the clock port.
"""

import asyncio
import json
import socket
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from wakeful.actions.retry_after import retry_after
from wakeful.actions.text import one_line
from wakeful.actions.threads import in_thread
from wakeful.agents.reply import READ_MAX
from wakeful.core.instants import Duration, format_instant
from wakeful.core.results import Failed, Throttled
from wakeful.ports.clock import Clock

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

_CHUNK: Final = 64 * 1024
_THREAD_FROM: Final = 256 * 1024  # parsing more than this at once would be felt by the clock
_PERMANENT: Final = frozenset({400, 401, 403, 404, 405, 413, 422})


class NoConnection(Exception):
    """The request never left: it is certain that the agent did not get it."""


class NoAnswer(Exception):
    """The request left and no answer came back: the agent may have got it."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: its status, and as much of its body as was read."""

    status: int
    reason: str
    retry_after: str | None
    body: bytes
    is_whole: bool

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    async def json(self) -> Any:
        """The body as JSON; None for whatever is none."""
        if len(self.body) < _THREAD_FROM:
            return parse_json(self.text)
        return await in_thread(lambda: parse_json(self.text), name="json")


def parse_json(text: str) -> Any:
    """The value a text stands for; None for whatever is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def is_web_address(url: str) -> bool:
    """Whether requests can be sent there."""
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0  # reading the port checks it
    except ValueError:
        return False
    has_blanks = any(char.isspace() or not char.isprintable() for char in url)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and has_port and not has_blanks


async def within(clock: Clock, duration: Duration, work: Coroutine[Any, Any, T]) -> T:
    """The work's result. Raises `TimeoutError` if it takes longer than `duration`, after ending it."""
    bell = asyncio.Event()
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda _: bell.set())
    try:
        if await clock.wait(bell, duration):
            return task.result()
        raise TimeoutError
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class Client:
    """Sends requests to one server."""

    def __init__(self, clock: Clock, base_url: str, headers: Mapping[str, str]) -> None:
        self._clock = clock
        self._base_url = base_url.rstrip("/")
        self._headers = {"Accept-Encoding": "identity", "Accept": "application/json", **headers}
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        json_body: Any = None,
        headers: Mapping[str, str] | None = None,
        limit: Duration | None = None,
        read_max: int = READ_MAX,
    ) -> Response:
        """Ask and read the answer. Raises `NoConnection` and `NoAnswer`, with a sentence."""
        session = await self._open()
        url = self._base_url + path
        asking = self._ask(session, method, url, json_body, headers or {}, read_max)
        try:
            return await (asking if limit is None else within(self._clock, limit, asking))
        except TimeoutError:
            raise NoAnswer(f"{_host(url)}: no answer within {(limit or 0) / 1000:g} s") from None
        except (NoConnection, NoAnswer):
            raise
        except Exception as error:
            raise _translated(error, url) from error

    def failure(self, response: Response) -> Failed | Throttled:
        """What an answer that is none of the expected ones means: told to come back later, or failed."""
        error = f"HTTP {response.status} {response.reason}".rstrip()
        if response.status in (429, 503, 529):
            until = retry_after(response.retry_after, self._clock.read().now)
            if until is not None:
                return Throttled(f"{error}: asked to come back at {format_instant(until)}", until)
        said = one_line(_said(response))
        return Failed(f"{error}: {said}" if said else error, permanent=response.status in _PERMANENT)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _open(self) -> "aiohttp.ClientSession":
        if self._session is not None:
            return self._session
        # In a thread: importing it takes a good part of a second, and the clock must not stand still meanwhile.
        await in_thread(_import_aiohttp, name="import")
        if self._session is None:  # another turn may have been first
            self._session = _session()
        return self._session

    async def _ask(
        self,
        session: "aiohttp.ClientSession",
        method: str,
        url: str,
        json_body: Any,
        headers: Mapping[str, str],
        read_max: int,
    ) -> Response:
        data = None if json_body is None else json.dumps(json_body).encode()
        given = {"Content-Type": "application/json"} if data is not None else {}
        async with session.request(
            method, url, data=data, headers={**self._headers, **given, **headers}, allow_redirects=False
        ) as answer:
            body, is_whole = await _read(answer.content, read_max)
            return Response(
                answer.status, answer.reason or "", answer.headers.get("Retry-After"), bytes(body), is_whole
            )


async def _read(content: "aiohttp.StreamReader", read_max: int) -> tuple[bytearray, bool]:
    body = bytearray()
    async for chunk in content.iter_chunked(_CHUNK):
        body += chunk
        if len(body) >= read_max:
            del body[read_max:]
            return body, content.at_eof()
    return body, True


def _import_aiohttp() -> None:
    import aiohttp  # noqa: F401 - only who sends requests pays for it


def _session() -> "aiohttp.ClientSession":
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True, limit=0),  # how many there are is the engine's business
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),  # and so is how long they take
        auto_decompress=False,  # a packed answer is no JSON to us; we ask for none
    )


def _said(response: Response) -> str:
    """What the answer says about the error: the usual fields, else its text."""
    value = parse_json(response.text[:_CHUNK])
    for _ in range(2):
        if isinstance(value, dict):
            value = value.get("error") or value.get("message") or value.get("detail")
    return value if isinstance(value, str) else response.text[:_CHUNK]


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]  # without the password


def _translated(error: Exception, url: str) -> NoConnection | NoAnswer:
    """What went wrong on the way, in a user's words."""
    import aiohttp

    is_sent = False
    match error:
        case aiohttp.ClientConnectorError(os_error=socket.gaierror()):
            said = "there is no such host; check the name, and the network"
        case aiohttp.ClientSSLError():
            said = f"no secure connection ({error}); check the certificate"
        case aiohttp.ClientConnectorError(os_error=ConnectionRefusedError()):
            said = "connection refused; is it running, and on this port?"
        case aiohttp.ClientConnectorError(os_error=OSError(strerror=reason)):
            said = f"cannot connect ({reason})"
        case aiohttp.InvalidURL():
            said = "this is no web address; write it like https://example.com"
        case aiohttp.ClientPayloadError():
            said, is_sent = "the answer broke off", True
        case aiohttp.ClientOSError() | aiohttp.ServerDisconnectedError():
            said, is_sent = "it closed the connection without an answer", True
        case _:
            said, is_sent = f"{type(error).__name__}: {error}", True
    sentence = one_line(f"{_host(url)}: {said}")
    return NoAnswer(sentence) if is_sent else NoConnection(sentence)
