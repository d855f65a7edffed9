"""The one HTTP exchange, against a real server: what is read, what is heard of it, what goes wrong."""

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from wakeful.engine.clock import SystemClock
from wakeful.integrations.net.exchange import Exchanges, NoAnswer, NoConnection, Request, is_web_address, within
from wakeful.observe.log import Log
from wakeful.ports.exchange import RequestContext

ABOUT = RequestContext("test-exchange", "report")
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Answers as it is told, and counts how often it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = 0
        self.answer: Answer = self.fine

    async def fine(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=await request.text() or "fine")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        return await self.answer(request)

    def says(self, **given: Any) -> None:
        async def say(request: web.Request) -> web.StreamResponse:
            return web.Response(**given)

        self.answer = say


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path, SystemClock())


@pytest.fixture
async def exchanges(log: Log) -> AsyncIterator[Exchanges]:
    exchanges = Exchanges(SystemClock(), log.exchange)
    yield exchanges
    await exchanges.close()


def heard(log: Log, folder: Path) -> list[dict[str, Any]]:
    assert log.drain()
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]


async def test_an_exchange_is_heard_under_one_flow_id(
    exchanges: Exchanges, server: Server, log: Log, tmp_path: Path
) -> None:
    """A request and its response share an id and the schedule; neither password nor query is in the lines."""
    address = server.url.replace("http://", "http://user:pass1@")
    response = await exchanges.send(Request("POST", f"{address}/jobs?key=pass2", data=b"hello"), ABOUT)
    assert (response.status, response.text) == (200, "hello")
    request, answer = heard(log, tmp_path)
    assert request["flow_id"] == answer["flow_id"]
    assert (request["phase"], answer["phase"]) == ("request", "response")
    assert request["slug"] == answer["slug"] == "report"
    assert request["details"] == {"method": "POST", "url": f"{server.url}/jobs"}
    assert answer["details"] == {"status": 200, "bytes": 5} and answer["duration_ms"] >= 0
    assert "pass" not in json.dumps([request, answer])


async def test_what_fails_is_heard_as_an_error(exchanges: Exchanges, server: Server, log: Log, tmp_path: Path) -> None:
    """Nobody listens there: certain not to have left, and the error line says so in the same words."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(NoConnection, match="connection refused; is the server running") as refused:
            await exchanges.send(Request("GET", f"http://127.0.0.1:{port}/"), ABOUT)
    request, error = heard(log, tmp_path)
    assert (error["phase"], error["level"]) == ("error", "error")
    assert error["flow_id"] == request["flow_id"]
    assert error["details"] == {"error": str(refused.value)}


async def test_a_connection_that_breaks_is_not_tried_again(exchanges: Exchanges, server: Server) -> None:
    """The library repeats a GET by itself; we do not, because a repetition is a policy's decision."""

    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    server.answer = hang_up
    with pytest.raises(NoAnswer, match="closed the connection without a response"):
        await exchanges.send(Request("GET", server.url), ABOUT)
    assert server.asked == 1


async def test_one_that_takes_too_long_is_ended(exchanges: Exchanges, server: Server) -> None:
    """The limit is measured by the clock port; what is not answered by then may have arrived."""

    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.005)

    server.answer = slow
    with pytest.raises(NoAnswer, match=r"no answer within 0\.2 s"):
        await exchanges.send(Request("GET", server.url, read_max=1 << 50, keep_max=100), ABOUT, limit=200)


async def test_an_answer_is_read_up_to_a_limit_also_when_it_is_packed(exchanges: Exchanges, server: Server) -> None:
    """What unpacks to more than is wanted is read as far as the limit, and known not to be whole."""
    server.says(body=gzip.compress(b"x" * 10_000_000), headers={"Content-Encoding": "gzip"})
    response = await exchanges.send(Request("GET", server.url, read_max=1_000), ABOUT)
    assert response.text == "x" * 1_000 and not response.is_whole
    server.says(body=gzip.compress(b'{"a": 1}'), headers={"Content-Encoding": "gzip"})
    response = await exchanges.send(Request("GET", server.url, read_max=100), ABOUT)
    assert await response.json() == {"a": 1} and response.is_whole


async def test_a_redirect_is_an_answer_unless_it_may_be_followed(exchanges: Exchanges, server: Server) -> None:
    """A redirected POST would become a GET, and that would look like success."""

    async def send_on(request: web.Request) -> web.StreamResponse:
        return (
            web.Response(status=302, headers={"Location": "/"}) if request.path == "/old" else web.Response(text="new")
        )

    server.answer = send_on
    assert (await exchanges.send(Request("POST", f"{server.url}/old"), ABOUT)).status == 302
    followed = await exchanges.send(Request("GET", f"{server.url}/old", redirects_max=1), ABOUT)
    assert followed.text == "new"
    server.says(status=302, headers={"Location": "/"})
    with pytest.raises(NoAnswer, match="redirected more than 3 times; write the final address"):
        await exchanges.send(Request("GET", server.url, redirects_max=3), ABOUT)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"error": {"message": "no such key"}}', "no such key"),
        ('{"detail": "too long"}', "too long"),
        ("<p>plain\n trouble</p>", "<p>plain trouble</p>"),
        ("", ""),
    ],
)
async def test_what_an_answer_says_of_an_error(exchanges: Exchanges, server: Server, body: str, said: str) -> None:
    """The usual fields of JSON, else the text, in one line."""
    server.says(status=500, text=body)
    response = await exchanges.send(Request("GET", server.url), ABOUT)
    assert (response.line, response.said()) == ("HTTP 500 Internal Server Error", said)


async def test_when_to_come_back(exchanges: Exchanges, server: Server) -> None:
    """Only an answer that means "later" is asked when."""
    server.says(status=429, headers={"Retry-After": "30"})
    assert (await exchanges.send(Request("GET", server.url), ABOUT)).retry_at(1_000) == 31_000
    server.says(status=500, headers={"Retry-After": "30"})
    assert (await exchanges.send(Request("GET", server.url), ABOUT)).retry_at(1_000) is None


@pytest.mark.parametrize("url", ["", "ftp://a", "http://", "http://a b", "http://a:0", "http://[", "/x"])
def test_what_is_no_web_address(url: str) -> None:
    """Refused before anything is sent."""
    assert not is_web_address(url) and is_web_address("https://example.com:8443/v1")


async def test_a_wait_that_is_thrown_away_awaits_nothing_more() -> None:
    """As when a loop ends with it: its work is told to end, and nobody complains."""
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = within(SystemClock(), 60_000, work())
    waiting.send(None)
    await asyncio.sleep(0)
    waiting.close()
    await asyncio.wait_for(ended.wait(), 10)
