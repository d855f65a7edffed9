"""The HTTP client: one request, one bounded response, errors with readable messages.

All HTTP requests go through this module: the http action, agents, channels, quota providers. No retries, no cookies, no
keep-alive: retries are a policy decision, a cookie would couple schedules, and a reused connection has often been
closed meanwhile, which would look like the target's error. No redirects unless requested: a redirected POST becomes a
GET, whose response would look like a success.

Timeouts use the clock port, and the listener gets each exchange under its own flow id. A cancelled request leaves
nothing behind on our side; what the target still does with it is unknown.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from wakeful.core.time.instants import DAY, SECOND, Duration, Instant
from wakeful.integrations.net.body import Body
from wakeful.integrations.net.guard import check_literal, public_resolver, public_socket
from wakeful.integrations.net.trouble import NoAnswer, NoConnection, NoRoom, NotAllowed, host, no_answer, translated
from wakeful.integrations.system.text import one_line, parse_json
from wakeful.integrations.system.threads import in_thread
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener, ExchangeStep, RequestContext

if TYPE_CHECKING:
    import aiohttp


__all__ = ["Exchanges", "NoAnswer", "NoConnection", "NoRoom", "NotAllowed", "Request", "Response"]

T = TypeVar("T")

READ_MAX: Final = 1024 * 1024
"""How much of a response is read by default."""

_CHUNK: Final = 64 * 1024
_THREAD_FROM: Final = 256 * 1024  # parsing more than this on the event loop would delay the clock
_COME_BACK: Final = frozenset({429, 503, 529})


class Request(NamedTuple):
    """A request, and how much of the response is wanted."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    data: bytes | None = None
    read_max: int = READ_MAX  # reading stops there, counted after decompression
    keep_max: int | None = None  # its beginning and end are kept up to this; None: everything read
    redirects_max: int = 0
    shown: str | None = None  # the URL shown in the log; None: all but login and query


@dataclass(frozen=True, slots=True)
class Response:
    """A response: its status, and as much of its body as was wanted."""

    status: int
    reason: str
    headers: Mapping[str, str] = field(repr=False)  # names in lower case
    body: Body = field(repr=False)
    charset: str | None = None

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_whole(self) -> bool:
        return self.body.is_whole

    @property
    def text(self) -> str:
        return self.body.text(self.charset)

    @property
    def line(self) -> str:
        """Its status line."""
        return f"HTTP {self.status} {self.reason}".rstrip()

    async def json(self) -> Any:
        """The body as JSON; None if it is not JSON."""
        if self.body.size < _THREAD_FROM:
            return parse_json(self.text)
        return await in_thread(lambda: parse_json(self.text), name="json")

    def said(self) -> str:
        """Its error message in one line: the usual JSON fields, else its text."""
        text = self.text[:_CHUNK]
        value = parse_json(text)
        for _ in range(2):
            if isinstance(value, dict):
                value = value.get("error") or value.get("message") or value.get("detail")
        return one_line(value if isinstance(value, str) else text)

    def retry_at(self, now: Instant) -> Instant | None:
        """The time from its Retry-After header, if any."""
        return retry_after(self.headers.get("retry-after"), now) if self.status in _COME_BACK else None


def is_web_address(url: str) -> bool:
    """Whether the text is an http or https URL."""
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0  # reading the port checks it
    except ValueError:
        return False
    has_blanks = any(char.isspace() or not char.isprintable() for char in url)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and has_port and not has_blanks


async def within(clock: Clock, duration: Duration, work: Coroutine[Any, Any, T]) -> T:
    """The work's result. Raises `TimeoutError` if it takes longer than `duration`, after cancelling it."""
    bell = asyncio.Event()
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda _: bell.set())
    try:
        is_over = await clock.wait(bell, duration)
    except GeneratorExit:  # this coroutine itself is being discarded: nothing can be awaited any more
        task.cancel()
        raise
    except BaseException:
        await _end(task)
        raise
    # After a suspend, both may complete together: a finished result counts.
    if is_over or task.done():
        return task.result()
    await _end(task)
    raise TimeoutError


async def _end(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Exchanges:
    """Sends requests; each adapter owns one and closes it."""

    def __init__(self, clock: Clock, listener: ExchangeListener | None = None, *, is_public_only: bool = False) -> None:
        self._clock = clock
        self._is_public_only = is_public_only  # see `guard`
        self._listener = listener
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request, about: RequestContext, *, limit: Duration | None = None) -> Response:
        """Send a request and read the response, whatever its status, within `limit`.

        Raises `NoConnection` (the target certainly did not get it) and `NoAnswer`, each with a message."""
        session = await self._open()
        step = self._begin(request, about)
        try:
            response = await self._ask(session, request, limit)
        except BaseException as error:
            if step is not None:
                step("error", {"error": str(error) or "cancelled"})
            raise
        if step is not None:
            step("response", {"status": response.status, "bytes": response.body.size})
        return response

    async def prepare(self) -> None:
        """Do in advance what would slow down the first request."""
        await self._open()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _begin(self, request: Request, about: RequestContext) -> ExchangeStep | None:
        if self._listener is None:
            return None
        step = self._listener(about)
        step("request", {"method": request.method, "url": request.shown or _public(request.url)})
        return step

    async def _open(self) -> "aiohttp.ClientSession":
        if self._session is not None:
            return self._session
        # In a thread: importing it takes much of a second, and the clock must not stop meanwhile.
        await in_thread(_import_aiohttp, name="import")
        if self._session is None:  # another exchange may have been first
            self._session = _session(is_public_only=self._is_public_only)
        return self._session

    async def _ask(self, session: "aiohttp.ClientSession", request: Request, limit: Duration | None) -> Response:
        began: list[int] = []
        try:
            if self._is_public_only:
                check_literal(request.url)
            asking = _exchange(session, request, began)
            return await (asking if limit is None else within(self._clock, limit, asking))
        except TimeoutError:
            said = f"no answer within {(limit or 0) / 1000:g} s"
            raise _with_status(no_answer(request.url, said), began) from None
        except Exception as error:
            raise _with_status(translated(error, request.url, request.redirects_max), began) from error


def _with_status(error: NoConnection | NoAnswer, began: Sequence[int]) -> NoConnection | NoAnswer:
    """The error, with the status of a response that broke off."""
    if isinstance(error, NoAnswer) and began:
        error.status = began[-1]
    return error


async def _exchange(session: "aiohttp.ClientSession", request: Request, began: list[int]) -> Response:
    """Send a request; the status goes to `began` before the body is read."""
    async with session.request(
        request.method,
        request.url,
        data=request.data,
        headers=_headers(request.headers),
        allow_redirects=request.redirects_max > 0,
        max_redirects=request.redirects_max + 1,  # the library counts the one it refuses
    ) as answer:
        began.append(answer.status)
        keep_max = request.read_max if request.keep_max is None else request.keep_max
        body = Body(keep_max, request.read_max)
        await body.read(answer.content.iter_chunked(_CHUNK), answer.headers.get("Content-Encoding", "").lower())
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Response(answer.status, answer.reason or "", headers, body, _charset(answer))


def _headers(given: Mapping[str, str]) -> Mapping[str, str]:
    if any(name.lower() == "accept-encoding" for name in given):
        return given
    return {**given, "Accept-Encoding": "identity"}  # compression saves nothing for bodies this small


def _charset(answer: "aiohttp.ClientResponse") -> str | None:
    try:
        return answer.charset
    except ValueError:  # a header that cannot be parsed
        return None


def _public(url: str) -> str:
    """The URL without possible secrets: login and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{host(url)}{parts.path}"


def _import_aiohttp() -> None:
    import aiohttp  # noqa: F401 - imported only when requests are sent


def _session(*, is_public_only: bool) -> "aiohttp.ClientSession":
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            force_close=True,
            limit=0,  # concurrency is limited by the callers
            resolver=public_resolver() if is_public_only else None,
            socket_factory=public_socket if is_public_only else None,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),  # and so are timeouts
        auto_decompress=False,  # decompressed by `Body`, which enforces the limit
        middlewares=(_once,),
    )


async def _once(request: "aiohttp.ClientRequest", send: "aiohttp.ClientHandlerType") -> "aiohttp.ClientResponse":
    """Send the request and, if the connection breaks, raise an error that the library does not retry: it repeats GET,
    PUT and DELETE by itself, and has no option to turn that off."""
    import aiohttp

    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise no_answer(str(request.url), "it closed the connection without a response") from error


RETRY_AFTER_MAX: Final[Duration] = DAY
"""A longer wait is considered a mistake: a header must not stop a schedule."""


def retry_after(header: str | None, now: Instant) -> Instant | None:
    """When to retry; None if the header is missing or invalid."""
    if header is None:
        return None
    text = header.strip()
    until = now + int(text[:12]) * SECOND if text.isascii() and text.isdigit() else _date(text)
    return None if until is None else min(max(until, now), now + RETRY_AFTER_MAX)


def _date(text: str) -> Instant | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return int(aware.timestamp()) * SECOND
