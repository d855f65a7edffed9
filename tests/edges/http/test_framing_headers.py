"""Headers of requests that only the connection may set: refused when written, left out of what was stored before."""

import asyncio
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from edges.http.kit import served
from wakeful.core.http_headers import MANAGED
from workflows.handlers import flow, handling

BODY = {"text": "all of it"}
FRAMING = ["Content-Length", "transfer-encoding", "Connection"]


@contextmanager
def target() -> Iterator[tuple[str, list[bytes]]]:
    """A server that keeps every byte it is sent, and answers 200."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)

        def answer() -> None:
            try:
                while True:
                    connection, _ = listening.accept()
                    with connection:
                        connection.settimeout(2)
                        data = b""
                        while not data.endswith(b'all of it"}') and (piece := _received(connection)):
                            data += piece
                        heard.append(data)
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
            except OSError:
                return  # the test is over

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/in", heard
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(30)


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65_536)
    except TimeoutError:
        return b""


def _request(url: str, headers: dict[str, str]) -> dict[str, Any]:
    return {"schedule": {"type": "manual"}, "http": {"url": url, "headers": headers, "body": BODY}}


@pytest.mark.parametrize("name", [*sorted(MANAGED), "Content-Length"])
async def test_a_header_of_the_connection_is_refused_when_written(tmp_path: Path, name: str) -> None:
    """In a schedule, in its check, and in the handler of a workflow; the error names it, and the cure."""
    async with served(tmp_path) as api:
        http = {"url": "http://127.0.0.1:9/in", "headers": {name: "5"}}
        check = {"schedule": {"type": "manual"}, "prompt": "work", "check": {"http": http}}
        poll = {"schedule": {"type": "manual"}, "publishes": [], "handler": {"http": http}}
        flow = {"producers": {"poll": poll}}
        for path, body in (
            ("/api/schedule/one", _request(http["url"], http["headers"])),
            ("/api/schedule/two", check),
            ("/api/workflows/flow", flow),
        ):
            refused = await api.ask("PUT", path, body)
            assert refused.status == 400, (path, refused.body)
            assert f"header '{name}' is set by the connection itself; remove it" in str(refused.body)


@pytest.mark.parametrize(
    ("host", "is_accepted"),
    [
        ("example.com", True), ("example.com:8080", True), ("[::1]:80", True), ("127.0.0.1", True),
        ("a, b", False), ("http://example.com", False), ("", False), ("a b", False), ("example.com:99999", False),
    ],
)  # fmt: skip
async def test_one_valid_host_is_accepted_and_sent(tmp_path: Path, host: str, is_accepted: bool) -> None:
    """For virtual hosts; anything else is refused with its value."""
    async with served(tmp_path) as api:
        with target() as (url, heard):
            written = await api.ask("PUT", "/api/schedule/one", _request(url, {"Host": host}))
            assert (written.status == 201) is is_accepted, written.body
            if not is_accepted:
                assert "is not a host" in str(written.body)
                return
            ran = await api.post("/api/schedule/one/run?wait=true")
            assert ran.body["outcome"] == "succeeded"
            assert heard[0].lower().count(b"host:") == 1 and f"Host: {host}".encode() in heard[0]


def _store_framing(home: Path, table: str) -> None:
    """As 0.2 accepted them."""
    stored = ", ".join(f'"{name}":"3"' for name in FRAMING)
    changed = f"UPDATE {table} SET definition = replace(definition, '{{\"X-Mark\"', '{{' || ? || ',\"X-Mark\"')"
    with closing(sqlite3.connect(home / "wakeful.db")) as store, store:
        assert store.execute(changed, [stored]).rowcount == 1


async def test_what_was_stored_keeps_running_without_them(tmp_path: Path) -> None:
    """The whole body arrives, once, and a finding names schedule and headers."""
    with target() as (url, heard):
        async with served(tmp_path) as api:
            await api.ask("PUT", "/api/schedule/one", _request(url, {"X-Mark": "kept"}))
        _store_framing(tmp_path, "schedules")
        async with served(tmp_path, store=f"sqlite:///{tmp_path / 'wakeful.db'}") as api:
            assert "Connection" in (await api.get("/api/schedule/one")).body["http"]["headers"]
            ran = await api.post("/api/schedule/one/run?wait=true")
            assert ran.body["outcome"] == "succeeded", ran.body
            found = [finding for finding in (await api.app.system.health()).findings if finding.name == "headers"]
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert body == b'{"text": "all of it"}'
    assert head.lower().count(b"content-length:") == 1 and f"Content-Length: {len(body)}".encode() in head
    assert b"transfer-encoding" not in head.lower() and b"X-Mark: kept" in head
    assert [(finding.level, finding.sentence) for finding in found] == [
        (
            "warn",
            "one is sent without the headers Connection, Content-Length, transfer-encoding of its definition: "
            "the connection sets them",
        )
    ]


async def test_a_stored_workflow_keeps_running_without_them(tmp_path: Path) -> None:
    """Its handlers get every request as a whole, and a finding names the workflow."""
    async with handling() as handler:
        http = {"http": {"url": f"{handler.address}/x", "headers": {"X-Mark": "kept"}}}
        async with served(tmp_path) as api:
            body = flow(handler.address, consumer={"handler": http})
            assert (await api.ask("PUT", "/api/workflows/inbox", body)).status == 201
        _store_framing(tmp_path, "workflows")
        handler.headers.clear()
        async with served(tmp_path, store=f"sqlite:///{tmp_path / 'wakeful.db'}") as api:
            await api.post("/api/workflows/inbox/topics/mail/messages", {"id": "a", "payload": 1})
            for _ in range(3000):
                view = (await api.get("/api/workflows/inbox")).body
                if view["topics"]["mail"]["consumed"] or view["error"]:
                    break
                await asyncio.sleep(0.02)
            assert (view["error"], view["topics"]["mail"]["consumed"]) == (None, 1)
            found = [finding for finding in (await api.app.system.health()).findings if finding.name == "headers"]
    assert handler.headers and {sent["x-mark"] for sent in handler.headers} == {"kept"}
    assert "3" not in {sent["content-length"] for sent in handler.headers}
    assert not any("transfer-encoding" in sent for sent in handler.headers)
    assert [(finding.slugs, finding.cure) for finding in found] == [(["inbox"], "remove them from the workflow")]
