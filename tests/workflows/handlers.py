"""A handler of workflows behind a real port of loopback: it records what it is asked, and answers as told."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


class Handler:
    """Answers POST by the handler's name and the phase; `answers` holds what to say: a value, or a function of what was
    asked that gives one (or a `web.Response`), or an exception to break off with."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answers: dict[str, Any] = {"produce": {"messages": []}, "prepare": take_all, "mutate": {}, "next": {}}
        self.script: dict[str, list[Any]] = {}
        self.raw: dict[str, list[Any]] = {}  # functions that answer a request themselves
        self.address = ""

    def phases(self, *, is_dry: bool = False) -> list[str]:
        return [one["phase"] for one in self.asked if one["dryRun"] is is_dry]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        data = json.loads(await request.text())
        self.asked.append(data)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if not data["dryRun"] and self.raw.get(data["phase"]):
            answered: web.StreamResponse = await self.raw[data["phase"]].pop(0)(request)
            return answered
        script = [] if data["dryRun"] else self.script.get(data["phase"], [])
        said = script.pop(0) if script else self.answers[data["phase"]]
        if callable(said):
            said = said(data)
        if asyncio.iscoroutine(said):
            said = await said
        if isinstance(said, web.StreamResponse):
            return said
        if said == "break":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return web.json_response(said)


def take_all(data: dict[str, Any]) -> dict[str, Any]:
    """Reserve whatever is shown."""
    listed = [{"topic": topic, "ids": [one["id"] for one in found]} for topic, found in data["messages"].items()]
    return {"reservations": listed, "data": {"n": sum(len(one["ids"]) for one in listed)}}


def says(status: int, text: str = "", **headers: str) -> Callable[[Any], web.Response]:
    """An answer of this status."""
    return lambda _: web.Response(status=status, text=text, headers=headers)


@asynccontextmanager
async def handling() -> AsyncIterator[Handler]:
    """A handler that is reached at `address`."""
    handler = Handler()
    served = web.Application(client_max_size=64 * 1024 * 1024)
    served.router.add_post("/{any:.*}", handler.answer)
    runner = web.AppRunner(served, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    handler.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield handler
    finally:
        await runner.cleanup()


def flow(address: str, **changes: Any) -> dict[str, Any]:
    """`poll` → mail → `digest`, both at this address; producers only when a person asks."""
    http = {"http": {"url": f"{address}/x"}}
    consumer = {"subscribe": ["mail"], "publishes": [], "handler": http, **changes.pop("consumer", {})}
    producer = {"schedule": {"type": "manual"}, "publishes": ["mail"], "handler": http, **changes.pop("producer", {})}
    return {"status": "active", "producers": {"poll": producer}, "consumers": {"digest": consumer}, **changes}
