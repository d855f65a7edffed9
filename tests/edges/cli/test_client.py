"""What answers need not be well, nor be a daemon at all: the command line ends in time and says so."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import Cli, holding
from wakeful.cli import client

EMPTY = json.dumps({"schedules": [], "next": None}).encode()


class Peer(BaseHTTPRequestHandler):
    """Answers as its server was told to, and keeps what it was sent."""

    server: "Answering"

    def do_GET(self) -> None:
        self.server.seen.append(dict(self.headers))
        status, body = self.server.answer(self)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass


class Answering(ThreadingHTTPServer):
    """A server whose answers a test chooses."""

    daemon_threads = True
    seen: list[dict[str, str]]
    status: int = 200
    body: bytes = EMPTY
    token: str | None = None

    def answer(self, asked: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        if self.token is not None and asked.headers["Authorization"] != f"Bearer {self.token}":
            return 401, b'{"detail": "a token is needed here", "errors": []}'
        return self.status, self.body


@contextmanager
def answering(home: Path) -> Iterator[tuple[Cli, Answering]]:
    """A home that is held, and a peer at its address."""
    with Answering(("127.0.0.1", 0), Peer) as server:
        server.seen = []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            with holding(home, f"http://127.0.0.1:{server.server_port}") as cli:
                yield cli, server
        finally:
            server.shutdown()


def test_the_token_of_the_environment_is_sent(tmp_path: Path) -> None:
    """A daemon that needs one gets it; without, the user is told where to put it."""
    with answering(tmp_path) as (cli, server):
        server.token = "from-the-environment"
        assert cli.ask("ls", WAKEFUL_TOKEN="from-the-environment").code == 0
        said = cli.ask("ls")
        assert (said.code, said.out) == (1, "")
        assert "put the daemon's token into WAKEFUL_TOKEN" in said.err


def test_the_token_of_the_settings_is_found(tmp_path: Path) -> None:
    """Who may read the settings needs no variable."""
    (tmp_path / "wakeful.toml").write_text('[server]\ntoken = "from-the-settings"\n')
    with answering(tmp_path) as (cli, server):
        server.token = "from-the-settings"
        assert cli.ask("ls", "-o", "json").code == 0
        assert [seen.get("Authorization") for seen in server.seen] == [None, "Bearer from-the-settings"]


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (200, b"<html>", 1, "is not this daemon: it did not return a JSON object"),
        (200, b"[]", 1, "is not this daemon: it did not return a JSON object"),
        (500, b'{"detail": "internal error"}', 1, "internal error"),
        (500, b"", 1, "the daemon returned 500"),
        (503, b'{"error": "the daemon is starting or stopping"}', 1, "starting or stopping"),
        (400, b'{"detail": "x", "errors": [{"field": "limit", "message": "too many"}, 7]}', 2, "limit: too many"),
        (409, b'{"detail": "\\u001b[2Jbusy"}', 1, "\N{SYMBOL FOR ESCAPE}[2Jbusy"),
    ],
)
def test_answers_that_are_no_success(tmp_path: Path, status: int, body: bytes, code: int, words: str) -> None:
    """Each ends with its exit code and in one line, whatever was sent."""
    with answering(tmp_path) as (cli, server):
        server.status, server.body = status, body
        said = cli.ask("ls")
        assert (said.code, said.out) == (code, "")
        assert said.err.startswith("wakeful: ")
        assert words in said.err


def test_a_daemon_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for ever for one that accepts and says nothing."""
    monkeypatch.setattr(client.Daemon.ask, "__kwdefaults__", {**client.Daemon.ask.__kwdefaults__, "timeout": 0.2})
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        holding(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}") as cli,
    ):
        said = cli.ask("rm", "x")
    assert (said.code, said.out) == (3, "")
    assert "did not respond within 0.2s" in said.err


def test_an_address_where_nobody_listens(tmp_path: Path) -> None:
    """A lock without a door is no daemon."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with holding(tmp_path, f"http://127.0.0.1:{port}") as cli:
        said = cli.ask("ls")
    assert (said.code, said.out) == (3, "")
    assert "no daemon is running" in said.err


def test_a_daemon_that_is_starting(tmp_path: Path) -> None:
    """Its home is held and its door is not open yet."""
    with holding(tmp_path, None) as cli:
        said = cli.ask("ls")
        assert said.code == 3
        assert "is starting" in said.err
        assert "daemon: the daemon" in cli.ask("doctor").out


def test_a_lock_that_nobody_holds_is_not_believed(tmp_path: Path) -> None:
    """What a dead daemon left behind names nobody."""
    with holding(tmp_path, "http://127.0.0.1:1") as cli:
        pass
    said = cli.ask("ls")
    assert said.code == 3
    assert "no daemon is running" in said.err


def test_a_schedule_that_nobody_rings_is_warned_about(tmp_path: Path) -> None:
    """Accepted is not enough: if no process holds the clock, the user learns it at once."""
    view = {"slug": "x", "enabled": True, "schedule": {"type": "manual"}, "next": [], "times": []}
    with answering(tmp_path) as (cli, server):
        health = {"health": "failing", "problems": ["nobody ticks: no process holds the clock"], "errors": []}
        server.answer = lambda asked: (  # type: ignore[method-assign]
            (503, json.dumps(health).encode()) if asked.path == "/healthz" else (200, json.dumps(view).encode())
        )
        said = cli.ask("add", "x", "--manual", "--command", "true", "-o", "json")
    assert said.code == 0
    assert said.err == "wakeful: no schedule fires at the moment: nobody ticks: no process holds the clock\n"
