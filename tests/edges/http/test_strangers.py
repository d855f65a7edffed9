"""What clients without a token may use of the daemon: a budget, and nothing that changes what happens to others."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from edges.http.kit import Client, served
from edges.http.test_access import ADMIN, TOKENS, bearer
from patience import PATIENCE
from wakeful.server.http import Access
from wakeful.server.http.connections import ConnectionLimits, Connections, limits_within
from wakeful.server.http.middleware import STRANGERS_BODY_MAX
from wakeful.server.http.places import Places
from wakeful.server.http.server import HEADERS_MAX, PIPELINE_MAX

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def counted(total: int, per_peer: int, **more: object) -> Connections:
    return Connections(lambda: time.monotonic_ns() // 1_000_000, limits=ConnectionLimits(total, per_peer), **more)  # type: ignore[arg-type]


@asynccontextmanager
async def guarded(path: Path, connections: Connections | None = None, **access: object) -> AsyncIterator[Client]:
    rules = Access(tokens=TOKENS, own_tokens=frozenset({ADMIN}), **access)  # type: ignore[arg-type]
    async with served(path, access=rules, connections=connections) as api:
        yield api


async def dialled(api: Client) -> Streams:
    host, _, port = api.base.removeprefix("http://").rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def told(api: Client, sent: bytes) -> bytes:
    """Everything that is returned for these bytes until the connection is closed."""
    reader, writer = await dialled(api)
    writer.write(sent)
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE)
    except ConnectionResetError:
        return b"reset"
    finally:
        writer.close()


async def is_closed(streams: Streams) -> bool:
    """Whether the server closes it; waits for that."""
    try:
        return await asyncio.wait_for(streams[0].read(), PATIENCE) == b""
    except ConnectionResetError:
        return True


HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"X: a\r\n" * (HEADERS_MAX + 1),
        HEAD + b"X: a\r\n" * 20_000,
        HEAD + b"X: " + b"a" * 66_000,
        HEAD + b"X: " + b"a" * 66_000 + b"\r\n\r\n",
        HEAD + b"".join(b"X%d: %s\r\n" % (n, b"a" * 1_000) for n in range(70)) + b"\r\n",
        b"GET /" + b"a" * 66_000,
    ],
    ids=["headers", "endless", "value", "whole value", "together", "path"],
)
async def test_a_head_that_is_too_large_is_refused(api: Client, sent: bytes) -> None:
    """38 MB of headers ended the daemon. Now nothing of it is kept, and the sentence says how much is too much."""
    answer = await told(api, sent)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    assert json.loads(body)["error"] == (
        "the head of the request is larger than 65536 bytes, or has more than 100 headers; send less"
    )


async def test_trailers_without_end_close_the_connection(api: Client) -> None:
    """Headers after a chunked body count like those before it."""
    _, writer = await dialled(api)
    writer.write(b"POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    with pytest.raises(ConnectionError):
        for _ in range(500):
            writer.write(b"X: a\r\n" * 10_000)
            await asyncio.wait_for(writer.drain(), PATIENCE)
    writer.close()


async def test_a_head_within_the_limits_is_served(api: Client) -> None:
    """Also if it arrives together with a large body, or byte by byte."""
    many = b"".join(b"X%d: %s\r\n" % (n, b"a" * 600) for n in range(98))
    assert (await told(api, HEAD + many + b"Connection: close\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    body = json.dumps({"schedule": {"type": "manual"}, "command": {"argv": ["cat"], "stdin": "a" * 200_000}}).encode()
    put = b"PUT /api/schedule/big HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    assert (await told(api, put % len(body) + body)).startswith(b"HTTP/1.1 201 ")
    chunked = put.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked")
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (body[:100_000], body[100_000:]))
    assert (await told(api, chunked + pieces + b"0\r\n\r\n")).startswith(b"HTTP/1.1 200 ")


async def test_requests_sent_far_ahead_close_the_connection(api: Client) -> None:
    """Each takes memory until the responses before it are complete."""
    one = b"GET /api/schedule HTTP/1.1\r\nHost: localhost\r\n\r\n"
    few = await told(api, one * (PIPELINE_MAX - 1) + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert few.count(b"HTTP/1.1 200 ") == PIPELINE_MAX
    many = await told(api, one * 5_000)
    assert many.count(b"HTTP/1.1 200 ") < 2 * PIPELINE_MAX


async def test_the_oldest_half_open_connection_makes_room(tmp_path: Path) -> None:
    """Who connects now gets in, however many connections of the same address wait without a token."""
    connections = counted(100, 3)
    async with guarded(tmp_path, connections) as api:
        held = []
        for _ in range(3):
            held.append(await dialled(api))
            held[-1][1].write(HEAD)
        assert (await api.get("/api/schedule", headers=bearer(ADMIN))).status == 200
        assert await is_closed(held[0])
        assert (found := connections.turned_away()) is not None
        assert (found.number, found.peer) == (1, "127.0.0.1")
        for _, writer in held:
            writer.close()


async def test_an_authenticated_connection_is_never_closed(tmp_path: Path) -> None:
    """A stranger who opens connections does not end the streams and the requests of others."""
    connections = counted(6, 3)
    async with guarded(tmp_path, connections) as api:
        known = await dialled(api)
        ask = b"GET /api/schedule HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % ADMIN.encode()
        known[1].write(ask)
        await known[0].readuntil(b"\r\n\r\n")
        held = [await dialled(api) for _ in range(20)]
        assert all([await is_closed(streams) for streams in held[:17]])
        known[1].write(ask)
        assert b"200" in await asyncio.wait_for(known[0].readuntil(b"\r\n\r\n"), PATIENCE)
        for _, writer in (*held, known):
            writer.close()


async def test_at_the_limit_in_all_the_oldest_stranger_goes(tmp_path: Path) -> None:
    """Whatever its address is."""
    connections = counted(2, 2)
    async with guarded(tmp_path, connections) as api:
        held = [await dialled(api) for _ in range(2)]
        assert (await api.get("/healthz")).status == 200
        assert await is_closed(held[0])
        for _, writer in held:
            writer.close()


def test_most_descriptors_are_kept_for_others() -> None:
    """The socket in the home, the store and the programs of runs need them."""
    assert limits_within(256) == ConnectionLimits(64, 32)
    assert limits_within(1_000_000) == ConnectionLimits(1_024, 512)
    assert limits_within(10).total == 16


async def test_behind_a_proxy_the_forwarded_address_is_the_peer(tmp_path: Path) -> None:
    """Its connections carry the requests of many, so requests without a token are counted by address."""
    connections = counted(100, 2, trusts=lambda peer: peer == "127.0.0.1")
    async with guarded(tmp_path, connections, trusted_proxies=("127.0.0.1",)) as api:
        for _ in range(2):
            assert connections.begins("203.0.113.7")  # two requests that do not end
        forwarded = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": "localhost"}
        answer = await api.get("/healthz", headers=forwarded)
        assert answer.status == 429
        assert "from this address" in answer.body["error"]
        other = {**forwarded, "X-Forwarded-For": "203.0.113.8"}
        assert (await api.get("/healthz", headers=other)).status == 200
        held = [await dialled(api) for _ in range(10)]  # the proxy itself is no peer
        assert (await api.get("/healthz", headers=other)).status == 200
        assert connections._of_peer["127.0.0.1"] >= 10
        for _, writer in held:
            writer.close()
        connections.ends("203.0.113.7")
        assert (await api.get("/healthz", headers=forwarded)).status == 200


async def test_the_body_of_a_stranger_is_small(tmp_path: Path) -> None:
    """A login is a few bytes; a megabyte from each of a thousand connections would be a gigabyte."""
    async with guarded(tmp_path) as api:
        long = {"code": "a" * 100_000}
        assert (await api.post("/login", long)).status == 413
        manual = {"schedule": {"type": "manual"}, "command": {"argv": ["cat"], "stdin": "a" * 100_000}}
        assert (await api.put("long", manual, headers=bearer(ADMIN))).status == 201


@pytest.mark.parametrize("length", [1_000, 100_000], ids=["accepted", "refused"])
async def test_bodies_that_never_arrive_take_no_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """Requests that wait for theirs, or whose rest is thrown away, do not make others wait."""
    monkeypatch.setattr("wakeful.server.http.middleware.Places", partial(Places, 2, kept_for=PATIENCE))
    monkeypatch.setattr("wakeful.server.http.exchange.LINGER", PATIENCE)
    async with guarded(tmp_path) as api:
        held = [await dialled(api) for _ in range(5)]
        for reader, writer in held:
            head = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{" % length
            writer.write(head)
            if length > STRANGERS_BODY_MAX:
                assert b"413" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        async with asyncio.timeout(PATIENCE / 2):
            assert (await api.get("/api/schedule", headers=bearer(ADMIN))).status == 200
            assert (await api.post("/login", {"token": ADMIN})).status == 204
        for _, writer in held:
            writer.close()


async def test_wrong_tokens_of_receipts_are_counted(tmp_path: Path) -> None:
    """Ten in a minute, then 429; a wrong one is neither parsed nor kept under its key."""
    async with guarded(tmp_path) as api:
        answers = [(await api.post("/api/runs/1/receipt?token=guess", {"rung": "finished"})).status for _ in range(12)]
        assert answers == [401] * 10 + [429] * 2
        keyed = await api.post("/api/hooks/door", {"text": "x"}, headers={"Idempotency-Key": "k"})
        assert keyed.status == 429
        assert (await api.get("/api/schedule", headers=bearer(ADMIN))).status == 200
        assert (await api.get("/api/schedule", headers=bearer("guess"))).status == 401  # counted apart


async def test_wrong_logins_are_counted(tmp_path: Path) -> None:
    """Like wrong tokens; on loopback a valid one is still accepted."""
    async with guarded(tmp_path) as api:
        answers = [(await api.post("/login", {"code": "guess"})).status for _ in range(11)]
        assert answers == [401] * 10 + [429]
        assert (await api.post("/login", {"token": ADMIN})).status == 204


async def test_clients_that_hang_up_leave_no_traceback(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Ten of them were ten tracebacks in the log, and a stranger can do it for as long as the disk has room."""
    async with guarded(tmp_path) as api:
        with caplog.at_level(logging.DEBUG):
            for _ in range(5):
                _, writer = await dialled(api)
                writer.write(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
                await writer.drain()
                writer.close()
                await writer.wait_closed()
                assert (await api.get("/healthz")).status == 200
            for _ in range(5):
                assert b"400" in await told(api, b"\0\0\0\r\n\r\n")
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
