"""A receiver on 127.0.0.1 that answers as it is told, and remembers everything it got."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias

from aiohttp import web

Manner: TypeAlias = Callable[["Got"], Awaitable[web.StreamResponse] | web.StreamResponse]


class Got(NamedTuple):
    """One request."""

    path: str
    body: Any
    headers: dict[str, str]


class Receiver:
    """`script` holds how the next requests are answered, `usual` how all others are."""

    def __init__(self) -> None:
        self.url = ""
        self.got: list[Got] = []
        self.script: list[Manner] = []
        self.usual: Manner = lambda _: web.json_response({"ok": True, "result": []})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        got = Got(request.path, json.loads(text) if text else None, dict(request.headers))
        self.got.append(got)
        manner = self.script.pop(0) if self.script else self.usual
        answer = manner(got)
        return await answer if isinstance(answer, Awaitable) else answer


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver that listens."""
    receiver = Receiver()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        await runner.cleanup()


def status(code: int, body: Any = None, **headers: str) -> Manner:
    """Answer with this status."""
    spelt = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: web.json_response(body, status=code, headers=spelt)


def hangs(seconds: float) -> Manner:
    """Answer too late."""

    async def late(_: Got) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return web.Response()

    return late
