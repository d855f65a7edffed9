"""What every request passes: host, origin, token, size."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edges.http.kit import EVERY, Client, served
from patience import PATIENCE
from wakeful.server.http import Access, NamedToken
from wakeful.server.http import exchange as lingering
from wakeful.server.http.access import Access as Rules

ROUTES = ("/", "/healthz", "/readyz", "/api/schedule", "/api/runs", "/api/nodes", "/api/openapi.json", "/nowhere")


async def test_a_foreign_host_or_origin_is_turned_away_on_every_route(api: Client) -> None:
    """A name somebody else made point here, and a page somebody else serves."""
    foreign = [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "192.168.1.7"},
        {"Host": "user@127.0.0.1"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "file://"},
        {"Origin": api.base + ".evil.example"},
    ]
    for route in ROUTES:
        for headers in foreign:
            answer = await api.get(route, headers=headers)
            if route in ("/healthz", "/readyz") and "Host" in headers:  # a probe gets the verdict and no more
                assert (answer.status, list(answer.body)) == (200, ["status"]), (route, headers)
            else:
                assert (answer.status, answer.body["status"]) == (403, 403), (route, headers)
    assert (await api.put("job", headers={"Origin": "https://evil.example"})).status == 403
    assert (await api.get("/api/schedule/job")).status == 404


async def test_our_own_names_and_our_own_page_are_welcome(api: Client) -> None:
    """By any name of loopback, through any port: a tunnel may have another."""
    for host in ("localhost", "localhost:9999", "127.0.0.1", "127.0.0.2:80", "[::1]:8377", "LOCALHOST"):
        assert (await api.get("/api/schedule", headers={"Host": host})).status == 200, host
    own = api.base.removeprefix("http://")
    assert (await api.put("job", headers={"Origin": api.base})).status == 201
    assert (await api.get("/api/schedule", headers={"Host": "localhost", "Origin": "http://localhost"})).status == 200
    assert (await api.get("/", headers={"Host": own, "Origin": f"http://{own}"})).status == 200


async def test_a_request_without_a_host_is_turned_away(api: Client) -> None:
    """Whoever does not say whom he means, and whoever says two."""
    for lines in (b"", b"Host: localhost\r\nHost: localhost\r\n"):
        answer = await raw(api, b"GET /api/schedule HTTP/1.1\r\n" + lines + b"Connection: close\r\n\r\n")
        assert b" 403 " in answer.partition(b"\r\n")[0]


async def test_beyond_loopback_a_token_is_needed(tmp_path: Path) -> None:
    """401 without it or with a wrong one; whether it lives anybody may ask, how it is only those with the token."""
    async with served(tmp_path, access=Access("0.0.0.0", tokens=[NamedToken("server", "s3cret-token")])) as api:
        good = {"Authorization": "Bearer s3cret-token"}
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret-token"}):
            for route in ("/api/schedule", "/api/runs", "/api/openapi.json", "/nowhere"):
                answer = await api.get(route, headers=headers)
                assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert (await api.put("job")).status == 401
        assert (await api.get("/api/schedule", headers=good)).status == 200
        assert (await api.get("/api/schedule", headers={"Authorization": "bearer s3cret-token"})).status == 200
        assert (await api.get("/healthz")).body == {"status": "ok"}
        assert "lastTick" in (await api.get("/healthz", headers=good)).body
        assert (await api.get("/", headers=good)).status == 200
        foreign = await api.get("/api/schedule", headers={**good, "Host": "evil.example"})
        assert foreign.status == 403
        assert (await api.get("/api/schedule", headers={**good, "Host": "192.168.1.7:8377"})).status == 200


async def test_only_a_receipt_itself_passes_without_the_token(tmp_path: Path) -> None:
    """Whatever else is called receipt does not: a schedule of that name is written with the token only."""
    async with served(tmp_path, access=Access("0.0.0.0", tokens=[NamedToken("server", "s3cret-tökén")])) as api:
        for path in ("/api/schedule/receipt", "/api/runs/receipt", "/receipt", "/api/runs/1/2/receipt"):
            for method in ("GET", "PUT", "POST", "DELETE"):
                assert (await api.ask(method, path, EVERY)).status == 401, (method, path)
        assert (await api.get("/api/runs/1/receipt")).status == 401
        asked = await api.post("/api/runs/1/receipt?token=x", {"rung": "finished"})
        assert (asked.status, asked.body["error"]) == (401, "the token does not belong to this run")
        assert (await api.get("/api/schedule", headers={"Authorization": "Bearer s3cret-tökén"})).status == 200


def test_a_bind_beyond_loopback_without_a_token_admits_nobody() -> None:
    """Should it ever be made, it is closed."""
    assert Rules("0.0.0.0").caller_of("Bearer ") is None
    assert not Rules("0.0.0.0", "none").is_open
    assert Rules("::1", "none").is_open
    assert not Rules("::1").is_open
    assert "s3cret" not in repr(Rules("0.0.0.0", tokens=[NamedToken("server", "s3cret")]))


async def test_a_body_over_the_limit_is_refused_before_it_is_read(api: Client) -> None:
    """By its length, and where that is not told, as soon as it is too long."""
    head = b"PUT /api/schedule/x HTTP/1.1\r\nHost: localhost\r\n"
    answer = await raw(api, head + b"Content-Length: 1048577\r\n\r\n")
    assert b" 413 " in answer.partition(b"\r\n")[0]
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == 413
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    answer = await raw(api, head + b"Transfer-Encoding: chunked\r\n\r\n" + piece * 17)
    assert b" 413 " in answer.partition(b"\r\n")[0]
    for key in ({}, {"Idempotency-Key": "k"}):
        assert (await api.post("/api/schedule/x/run", raw=endless(2 * 1_048_576), headers=key)).status == 413


async def test_whoever_sends_too_much_is_told_so(api: Client) -> None:
    """Whoever sends all of it before reading the answer gets the answer, not a broken pipe."""
    head = b"PUT /api/schedule/x HTTP/1.1\r\nHost: localhost\r\n"
    body = b"x" * (8 * 1_048_576)
    whole = b"Content-Length: %d\r\n\r\n" % len(body) + body
    pieces = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    for rest in (whole, pieces):
        answer = await asyncio.to_thread(send_all_then_read, api, head + rest)
        assert b" 413 " in answer.partition(b"\r\n")[0]
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == 413


async def test_whoever_never_sends_what_he_announced_is_not_waited_for(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He is answered at once, and after a while the connection ends."""
    monkeypatch.setattr(lingering, "LINGER", 0.2)
    host, _, port = api.base.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"PUT /api/schedule/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048577\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    assert b" 413 " in answer.partition(b"\r\n")[0]
    writer.close()


async def test_a_body_of_just_the_limit_is_read(tmp_path: Path) -> None:
    """The limit itself is allowed, one byte more is not."""
    text = json.dumps(EVERY)
    async with served(tmp_path, body_max=len(text)) as api:
        assert (await api.ask("PUT", "/api/schedule/x", raw=text)).status == 201
        assert (await api.ask("PUT", "/api/schedule/x", raw=text + " ")).status == 413


async def test_what_is_not_json_is_a_400(api: Client) -> None:
    """Whatever it is: never a 500, never a crash of the recursion."""
    deep = 100_000
    bodies = [
        b"", b"   ", b"{", b"nope", b"{'a': 1}", b'{"a": NaN}', b'{"a": Infinity}', b"\xff\xfe\xfd", b"\x00",
        b"[" * deep, b"[" * deep + b"]" * deep, b'{"a":' * deep + b"1" + b"}" * deep, b"[" * 500 + b"]" * 500,
        b"1" * 5_000, b'{"schedule": ' + b"9" * 10_000 + b"}", b'{"prompt": "\\ud800"}', b'{"prompt": "a\\u0000b"}',
        b"null", b"[]", b"1", b'""', b'{"schedule": {"type": ["cron"]}}', b'{"schedule": {"type": {}}, "command": 5}',
    ]  # fmt: skip
    for body in bodies:
        for method in ("PUT", "PATCH"):
            await api.put("job")
            answer = await api.ask(method, "/api/schedule/job", raw=body)
            assert answer.status == 400, (method, body[:40], answer)
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert len(answer.body["error"]) < 5_000


async def test_what_is_not_there_and_what_cannot_be_done_there(api: Client) -> None:
    """404 and 405 have the shape of every other refusal."""
    for path in ("/api", "/api/", "/api/schedule/", "/x", "/api/schedule/a/b/c", "/docs", "/api/../etc/passwd"):
        answer = await api.get(path)
        assert (answer.status, answer.body["status"]) == (404, 404), path
    wrong = await api.ask("DELETE", "/api/runs")
    assert (wrong.status, wrong.headers["Allow"]) == (405, "GET")
    wrong = await api.post("/api/schedule/daily", {})
    assert (wrong.status, wrong.headers["Allow"]) == (405, "DELETE, GET, PATCH, PUT")


async def raw(api: Client, request: bytes) -> bytes:
    """Send bytes as they are, and read one whole answer."""
    host, _, port = api.base.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
            (length,) = re.findall(rb"(?i)^content-length: (\d+)", head, re.M)
            return head + await reader.readexactly(int(length))
    finally:
        writer.close()


def send_all_then_read(api: Client, request: bytes) -> bytes:
    """As the usual clients do: the whole request, then the answer."""
    host, _, port = api.base.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as door:
        door.sendall(request)
        return b"".join(iter(lambda: door.recv(65_536), b""))


async def endless(total: int) -> AsyncIterator[bytes]:
    for _ in range(total // 65_536):
        yield b"x" * 65_536
        await asyncio.sleep(0)
