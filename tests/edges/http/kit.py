"""A real server on a free port of loopback over a real store, and a real client; or a whole daemon as a process."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import aiohttp
from starlette.types import ASGIApp
from yarl import URL

import forking
from access import write_token
from new_store import prepare
from patience import PATIENCE
from wakeful import Wakeful
from wakeful.server.http import Access, Serving, make_app
from wakeful.server.http.connections import Connections
from wakeful.server.http.server import make_server

EVERY: dict[str, Any] = {"schedule": {"type": "every", "every": "2h"}, "command": {"argv": ["true"]}}
MANUAL: dict[str, Any] = {"schedule": {"type": "manual"}, "command": {"argv": ["true"]}}


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: Any
    headers: Mapping[str, str]


class Client:
    """Asks one server."""

    def __init__(self, session: aiohttp.ClientSession, base: str, app: Wakeful) -> None:
        self.session = session
        self.base = base
        self.app = app

    async def ask(self, method: str, path: str, body: Any = None, *, raw: Any = None, **options: Any) -> Answer:
        if body is not None:
            raw = json.dumps(body)
        url = URL(self.base + path, encoded=True)  # as it stands: nothing is put right on the way
        async with self.session.request(method, url, data=raw, **options) as response:
            text = await response.text()
            is_json = "json" in response.headers.get("content-type", "")
            return Answer(response.status, json.loads(text) if is_json else text, response.headers)

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.ask("GET", path, **options)

    async def put(self, slug: str, definition: Any = EVERY, *, query: str = "", **options: Any) -> Answer:
        return await self.ask("PUT", f"/api/schedule/{slug}{query}", definition, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return await self.ask("POST", path, body, **options)


class Served:
    """An HTTP application whose app can be exchanged: building its routes takes longer than most tests of them."""

    free: ClassVar[list["Served"]] = []

    def __init__(self) -> None:
        self.current: Wakeful
        self.body_max = 0
        self.asgi = make_app(
            cast(Wakeful, self), Serving(access=lambda: Access(auth="none"), body_max=lambda: self.body_max)
        )

    def __getattr__(self, name: str) -> Any:
        """As the app itself."""
        return getattr(self.current, name)


@contextmanager
def application(
    app: Wakeful, access: Access | None, body_max: int, connections: Connections | None = None
) -> Iterator[ASGIApp]:
    """The HTTP application of an app. Without access rules it keeps no state, so later tests use it again."""
    if access is not None:
        yield make_app(app, Serving(access=lambda: access, body_max=lambda: body_max, connections=connections))
        return
    served = Served.free.pop() if Served.free else Served()
    served.current, served.body_max = app, body_max
    yield served.asgi
    Served.free.append(served)


@asynccontextmanager
async def served(
    path: Path,
    *,
    store: str | None = None,
    access: Access | None = None,
    body_max: int = 1_048_576,
    timezone: str = "UTC",
    connections: Connections | None = None,
    **settings: Any,
) -> AsyncIterator[Client]:
    """The API of a fresh store, in this process."""
    if store is None:
        prepare(path / "wakeful.db")
    app = Wakeful(store or path / "wakeful.db", timezone=timezone, shutdown_grace="1s", **settings)
    # The protocol is named, or every answer waits 40 ms for an acknowledgement.
    with socket.socket(proto=socket.IPPROTO_TCP) as door, application(app, access, body_max, connections) as asgi:
        door.bind(("127.0.0.1", 0))
        async with app, aiohttp.ClientSession() as session:
            server = make_server(asgi, door_grace=1, connections=connections)
            serving = asyncio.create_task(server.serve(sockets=[door]))
            while not server.started:
                await asyncio.sleep(0.005)
            try:
                yield Client(session, f"http://127.0.0.1:{door.getsockname()[1]}", app)
            finally:
                server.should_exit = True
                await serving


class Daemon(NamedTuple):
    """A daemon that runs as a process of its own."""

    process: forking.Process
    address: str
    home: Path

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end; answers the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def daemon(home: Path, *options: str, environ: Mapping[str, str] | None = None) -> Iterator[Daemon]:
    """A daemon on a free port; ended, by force if need be, when the test is over."""
    process = start(home, *options, environ=environ)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "listening on " in line, line + process.communicate(timeout=PATIENCE)[1]
        yield Daemon(process, line.strip().rpartition(" ")[2], home)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)


def start(home: Path, *options: str, environ: Mapping[str, str] | None = None) -> forking.Process:
    """A daemon as a process, which may refuse to start."""
    write_token(home)
    environment = {**os.environ, **(environ or {})}
    return forking.start("wakeful.server.daemon", str(home), "--port", "0", *options, environment=environment)
