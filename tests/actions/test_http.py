"""The http action, against a real server."""

import asyncio
import gzip
import json
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from email.utils import formatdate
from typing import Any

import pytest
from aiohttp import web

from patience import PATIENCE
from wakeful.core.run.results import Done, Failed, Throttled
from wakeful.core.schedule.actions import OUTPUT_MAX, Http
from wakeful.core.time.instants import Duration, Instant
from wakeful.integrations.actions.http import READ_MAX, HttpAction
from wakeful.integrations.net.exchange import RETRY_AFTER_MAX, retry_after
from wakeful.ports.action import FencedOff, Fire
from wakeful.ports.clock import Moment

NOW: Instant = 1_769_763_600_000
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class StandingClock:
    """It is always the same time."""

    def read(self) -> Moment:
        return Moment(NOW, 0)

    async def sleep(self, duration: Duration) -> None:
        raise NotImplementedError

    async def wait(self, bell: asyncio.Event, duration: Duration) -> bool:
        raise NotImplementedError


class Server:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.answer: Answer = self.echo
        self.requests: list[web.Request] = []
        self.bodies: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.text())
        return await self.answer(request)

    async def echo(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=await request.text())

    def says(self, **answer: Any) -> None:
        async def say(request: web.Request) -> web.StreamResponse:
            return web.Response(**answer)

        self.answer = say


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    app = web.Application(client_max_size=8 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()


@pytest.fixture
async def action() -> AsyncIterator[HttpAction]:
    action = HttpAction(StandingClock())
    yield action
    await action.close()


async def test_a_request(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """The target gets the method, the headers, the key and the run; its answer is the output."""
    spec = Http("PUT", server.url + "/jobs/1?x=ä", {"X-Mine": "yes", "idempotency-key": "forged"}, "plain text ü")
    assert await action.perform(spec, fire, ladder) == Done(output="plain text ü")
    request = server.requests[0]
    assert (request.method, request.path, request.query["x"]) == ("PUT", "/jobs/1", "ä")
    assert request.headers.getall("Idempotency-Key") == ["report-key-1"]
    assert request.headers["X-Wakeful-Run"] == "42"
    assert request.headers["X-Wakeful-Attempt"] == str(fire.attempt)
    assert request.headers["X-Mine"] == "yes"
    assert request.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert ladder.rungs == ["sent"]


async def test_a_json_body(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """A body that is not text travels as JSON, under the type the definition names, if it names one."""
    body = {"a": [1, None], "ü": True}
    await action.perform(Http("POST", server.url, body=body), fire, ladder)
    await action.perform(Http("POST", server.url, {"content-type": "application/x+json"}, body), fire, ladder)
    assert [json.loads(text) for text in server.bodies] == [body, body]
    types = [request.headers.getall("Content-Type") for request in server.requests]
    assert types == [["application/json"], ["application/x+json"]]


async def test_no_body(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """A request without a body has none."""
    assert await action.perform(Http("GET", server.url), fire, ladder) == Done(output="")
    assert "Content-Type" not in server.requests[0].headers


@pytest.mark.parametrize("status", [400, 401, 404, 409, 429, 500, 503])
async def test_failures(action: HttpAction, server: Server, fire: Fire, ladder: Any, status: int) -> None:
    """Any other status fails, with what the target said; whether it is tried again is for the schedule to say."""
    server.says(status=status, text="the reason\nin two lines")
    result = await action.perform(Http("POST", server.url), fire, ladder)
    assert isinstance(result, Failed) and not result.permanent
    assert result.error.startswith(f"HTTP {status} ") and result.error.endswith(": the reason in two lines")
    assert result.output == "the reason\nin two lines"


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "delay"), [("120", 120_000), (formatdate((NOW + 90_000) / 1000, usegmt=True), 90_000)]
)
async def test_retry_after(
    action: HttpAction, server: Server, fire: Fire, ladder: Any, status: int, header: str, delay: Duration
) -> None:
    """A target that names a time to come back, in either form, is throttling, not failing."""
    server.says(status=status, headers={"Retry-After": header})
    result = await action.perform(Http("POST", server.url), fire, ladder)
    assert isinstance(result, Throttled) and result.until == NOW + delay


@pytest.mark.parametrize(
    ("header", "until"),
    [
        (None, None),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("0", NOW),
        (" 5 ", NOW + 5000),
        ("Wed, 21 Oct 2015 07:28:00 GMT", NOW),
        ("9" * 400, NOW + RETRY_AFTER_MAX),
        ("Fri, 31 Dec 9999 23:59:59 GMT", NOW + RETRY_AFTER_MAX),
    ],
)
def test_retry_after_header(header: str | None, until: Instant | None) -> None:
    """What cannot be understood is ignored, what is past means now, and nobody is sent away for more than a day."""
    assert retry_after(header, NOW) == until


async def test_redirects(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """Five redirects are followed, a sixth is a failure."""

    async def redirect(request: web.Request) -> web.StreamResponse:
        left = int(request.path[1:])
        if left == 0:
            return web.Response(text="here")
        raise web.HTTPFound(f"/{left - 1}")

    server.answer = redirect
    assert await action.perform(Http("GET", server.url + "/5"), fire, ladder) == Done(output="here")
    result = await action.perform(Http("GET", server.url + "/6"), fire, ladder)
    assert isinstance(result, Failed) and "redirected more than 5 times" in result.error


async def test_no_cookies(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """What a target sets in one request is not sent with the next, which may be another schedule's."""
    server.says(headers={"Set-Cookie": "session=secret"})
    await action.perform(Http("GET", server.url), fire, ladder)
    await action.perform(Http("GET", server.url), fire, ladder)
    assert "Cookie" not in server.requests[1].headers


async def test_an_endless_body(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """A body without end is read up to a limit, and little of it is kept."""

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with pytest.raises(ConnectionError):
            while True:
                await response.write(b"x" * 65536)
        return response

    server.answer = endless
    async with asyncio.timeout(PATIENCE):
        result = await action.perform(Http("GET", server.url), fire, ladder)
    assert isinstance(result, Done) and result.output is not None
    assert "truncated: reading stopped" in result.output and len(result.output) < OUTPUT_MAX + 200


async def test_a_dripping_body_is_dropped_at_the_deadline(
    action: HttpAction, server: Server, fire: Fire, ladder: Any
) -> None:
    """A byte now and then for ever: the one who waits decides how long, and nothing is left of the request."""
    dripped, dropped = asyncio.Event(), asyncio.Event()

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x")
                dripped.set()
                await asyncio.sleep(0.01)
        finally:
            dropped.set()

    server.answer = drip
    task = asyncio.create_task(action.perform(Http("GET", server.url), fire, ladder))
    async with asyncio.timeout(PATIENCE):
        await dripped.wait()
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await dropped.wait()


async def test_a_long_body_is_read_to_its_end(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """A target that streams more than is kept can finish; the head and the tail are kept."""
    server.says(text="begin" + "x" * 1_000_000 + "end")
    result = await action.perform(Http("GET", server.url), fire, ladder)
    assert isinstance(result, Done) and result.output is not None
    assert result.output.startswith("beginx") and result.output.endswith("xend")


async def test_a_gzip_bomb(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """A small body that unpacks to a gigabyte is unpacked only as far as the limit, in bounded memory."""
    bomb = gzip.compress(bytes(64 * 1024 * 1024), 9)
    bomb = bomb * 16  # members follow one another; the first alone is past the limit
    server.says(body=bomb, headers={"Content-Encoding": "gzip"})
    await action.perform(Http("GET", server.url), fire, ladder)  # everything imported before memory is measured
    tracemalloc.start()
    try:
        result = await action.perform(Http("GET", server.url), fire, ladder)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(result, Done) and result.output is not None
    assert len(result.output) < OUTPUT_MAX + 200
    assert peak < len(bomb) + 4 * 1024 * 1024 < READ_MAX


async def test_a_packed_body(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """A packed body is unpacked to its last byte, and a broken one does no harm."""
    text = "".join(f"line {n}\n" for n in range(5000))
    server.says(body=gzip.compress(text.encode()), headers={"Content-Encoding": "gzip"})
    assert await action.perform(Http("GET", server.url), fire, ladder) == Done(output=text)
    server.says(body=b"not gzip", headers={"Content-Encoding": "gzip"})
    result = await action.perform(Http("GET", server.url), fire, ladder)
    assert result == Done(output="[cannot be unpacked]")


async def test_charsets(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """A body is read in the charset it names, if there is such a one."""
    for charset, body, text in [("latin-1", b"\xe4", "ä"), ("no-such", b"\xc3\xa4", "ä"), ("base64", b"a", "a")]:
        server.says(body=body, headers={"Content-Type": f"text/plain; charset={charset}"})
        assert await action.perform(Http("GET", server.url), fire, ladder) == Done(output=text)


async def test_connection_refused(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """Nobody there is said so, with the address and without the password."""
    result = await action.perform(Http("GET", "http://me:secret@127.0.0.1:1/x"), fire, ladder)
    assert isinstance(result, Failed) and not result.permanent
    assert result.error == "127.0.0.1:1: connection refused; is the server running on this port?"


async def test_no_such_host(action: HttpAction, fire: Fire, ladder: Any) -> None:
    """A name that leads nowhere is said so."""
    result = await action.perform(Http("GET", "http://no-such-host.invalid/"), fire, ladder)
    assert isinstance(result, Failed) and "there is no such host" in result.error


async def test_no_tls(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """A target that does not speak TLS is said so."""
    result = await action.perform(Http("GET", server.url.replace("http:", "https:")), fire, ladder)
    assert isinstance(result, Failed) and "no secure connection" in result.error


@pytest.mark.parametrize(
    ("bytes_sent", "says"),
    [
        (b"", "closed the connection"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "broke during the response"),
    ],
)
async def test_a_broken_connection(action: HttpAction, fire: Fire, ladder: Any, bytes_sent: bytes, says: str) -> None:
    """A connection that ends before the answer does is a failure, sent once: the library does not try again."""
    asked = 0

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(bytes_sent)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as raw:
        port = raw.sockets[0].getsockname()[1]
        result = await action.perform(Http("GET", f"http://127.0.0.1:{port}/"), fire, ladder)
    assert isinstance(result, Failed) and says in result.error
    assert asked == 1


async def test_nonsense_instead_of_http(action: HttpAction, fire: Fire, ladder: Any) -> None:
    """An answer that is not HTTP is a failure."""

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x00\x01 what?\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as raw:
        port = raw.sockets[0].getsockname()[1]
        result = await action.perform(Http("GET", f"http://127.0.0.1:{port}/"), fire, ladder)
    assert isinstance(result, Failed) and not result.permanent


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (Http("GET", "ftp://example.com/"), "start it with http"),
        (Http("GET", "example.com"), "start it with http"),
        (Http("GET", "http:///path"), "has no host"),
        (Http("GET", "http://a b/"), "spaces"),
        (Http("GET", "http://host:99999/"), "cannot be read"),
        (Http("GET", "http://[::1/"), "cannot be read"),
        (Http("GE T", "http://host/"), "method"),
        (Http("GET", "http://host/", {"X-A": "a\r\nX-B: b"}), "several lines"),
        (Http("GET", "http://host/", {"X A": "a"}), "header name"),
        (Http("GET", "http://host/", body={"when": {1, 2}}), "JSON"),
    ],
)
async def test_what_cannot_be_sent(action: HttpAction, fire: Fire, ladder: Any, spec: Http, says: str) -> None:
    """A request that makes no sense is found by the check, fails for good, and nothing is sent."""
    result = await action.perform(spec, fire, ladder)
    assert isinstance(result, Failed) and result.permanent and says in result.error
    assert action.check(spec) == result.error
    assert ladder.rungs == []


async def test_fenced_off(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """A run that was taken from us sends nothing."""
    ladder.refuses["sent"] = FencedOff("taken")
    with pytest.raises(FencedOff):
        await action.perform(Http("GET", server.url), fire, ladder)
    assert server.requests == []


async def test_cancelled(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """Cancelled, the request is dropped at once, and the next one works."""
    asked = asyncio.Event()

    async def hang(request: web.Request) -> web.StreamResponse:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    server.answer = hang
    task = asyncio.create_task(action.perform(Http("GET", server.url), fire, ladder))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.answer = server.echo
    assert await action.perform(Http("POST", server.url, body="again"), fire, ladder) == Done(output="again")


async def test_used_again_after_close(action: HttpAction, server: Server, fire: Fire, ladder: Any) -> None:
    """Closing twice is harmless, and an action that was closed opens again."""
    await action.close()
    await action.perform(Http("GET", server.url), fire, ladder)
    await action.close()
    await action.close()
    assert await action.perform(Http("GET", server.url), fire, ladder) == Done(output="")


def test_importing_the_actions_does_not_import_aiohttp() -> None:
    """Who never sends a request does not pay for the library."""
    script = "import sys; from wakeful.integrations.actions import call, http; print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
