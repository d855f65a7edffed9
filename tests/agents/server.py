"""Servers for the tests of agents, on 127.0.0.1: one that keeps sessions, one that answers chats.

Both do as they are told, and remember everything they were asked.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Manner = Literal["works", "lies", "errors", "hurries"]


class Asked(NamedTuple):
    """One request that a server got."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]


@dataclass
class Session:
    """A session of the server."""

    session_id: str
    made_with: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    is_busy: bool = False
    dispatch: "asyncio.Task[None] | None" = None


class AgentServer:
    """Speaks the sessions protocol.

    It may be told: how its agent works (`manner`), what the next messages are answered with instead (`statuses`), which
    routes it has, which raw answer a route gives (`raw`), and to hold its agent back (`gate`) or its answers
    (`answers`).
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.sessions: dict[str, Session] = {}
        self.manner: Manner = "works"
        self.statuses: list[int] = []
        self.headers: dict[str, str] = {}
        self.reply: Any = "all is well"
        self.missing: set[str] = set()  # messages, state, list, events, cancel, sessions
        self.raw: dict[str, Handler] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.answers = asyncio.Event()
        self.answers.set()
        self.has_keys = True
        self.marks_text = False
        self.state_says_busy = True
        self.is_deaf = False  # to being cancelled
        self.at_work = self.at_work_max = 0
        self._count = 0

    def add(self, session_id: str, **made_with: Any) -> Session:
        session = self.sessions[session_id] = Session(session_id, made_with)
        return session

    def paths(self, method: str) -> list[str]:
        return [one.path for one in self.asked if one.method == method]

    def messages(self) -> list[Asked]:
        return [one for one in self.asked if one.path.endswith("/messages")]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        body = json.loads(text) if text else None
        self.asked.append(Asked(request.method, request.path, body, dict(request.headers)))
        await self.answers.wait()
        parts = request.path.strip("/").split("/")[1:]  # without `api`
        route = self._route(request.method, parts)
        if route in self.raw:
            return await self.raw[route](request)
        if route in self.missing or route == "":
            return web.json_response({"error": "no such route"}, status=404)
        if route in ("list", "sessions"):
            return self._list() if route == "list" else self._make(body or {})
        session = self.sessions.get(parts[1])
        if session is None:
            return web.json_response({"error": "Session not found"}, status=404)
        return await getattr(self, f"_{route}")(session, body)

    @staticmethod
    def _route(method: str, parts: list[str]) -> str:
        match method, parts:
            case "GET", ["sessions"]:
                return "list"
            case "POST", ["sessions"]:
                return "sessions"
            case "DELETE", ["sessions", _]:
                return "delete"
            case _, ["sessions", _, name]:
                return name
        return ""

    def _list(self) -> web.Response:
        listed = [
            {
                "sessionId": one.session_id,
                "isBusy": one.is_busy,
                "description": one.made_with.get("description"),
                "createdAt": f"2026-01-01T00:00:{number:02}Z",
            }
            for number, one in enumerate(self.sessions.values())
        ]
        return web.json_response({"grouped": {"/home/me": listed}, "models": [{"id": "some-model"}]})

    def _make(self, body: dict[str, Any]) -> web.Response:
        self._count += 1
        session = self.add(f"session-{self._count}", **body)
        return web.json_response({"sessionId": session.session_id, "cwd": "/", "model": body.get("model")})

    async def _messages(self, session: Session, body: dict[str, Any]) -> web.Response:
        if self.statuses:
            status = self.statuses.pop(0)
            return web.json_response({"error": f"told to say {status}"}, status=status, headers=self.headers)
        if session.is_busy:
            return web.json_response({"error": "Session is busy", "code": "SESSION_BUSY"}, status=409)
        if self.manner != "lies":
            session.is_busy = self.manner != "hurries"
            session.dispatch = asyncio.create_task(self._dispatch(session, body))
        return web.json_response({"ok": True, "sessionId": session.session_id})

    async def _dispatch(self, session: Session, body: dict[str, Any]) -> None:
        text = f"[scheduler:{body['scheduleSlug']}] {body['prompt']}" if self.marks_text else body["prompt"]
        asked = {"type": "user.message", "data": {"content": text}}
        session.events.append({**asked, "correlationId": body["correlationId"]} if self.has_keys else asked)
        self.at_work += 1
        self.at_work_max = max(self.at_work_max, self.at_work)
        try:
            await self.gate.wait()
        finally:
            self.at_work -= 1
        if self.manner == "errors":
            session.events.append({"type": "session.error", "data": {"message": "the model is out of order"}})
        else:
            session.events += [
                {"type": "assistant.message", "data": {"content": ""}},
                {"type": "tool.execution_start", "data": {}},
                {"type": "assistant.usage", "data": {"inputTokens": 10, "outputTokens": 3, "model": "x"}},
                {"type": "assistant.message", "data": {"content": self.reply}},
                {"type": "session.idle", "data": {}},
            ]
        session.is_busy = False

    async def _state(self, session: Session, _: Any) -> web.Response:
        said: dict[str, Any] = {"sessionId": session.session_id, "status": "idle", "isActive": True}
        return web.json_response({**said, "isBusy": session.is_busy} if self.state_says_busy else said)

    async def _events(self, session: Session, _: Any) -> web.Response:
        return web.json_response({"events": session.events})

    async def _cancel(self, session: Session, _: Any) -> web.Response:
        if self.is_deaf:
            return web.json_response({"ok": True})
        if session.dispatch is not None:
            session.dispatch.cancel()
        session.is_busy = False
        return web.json_response({"ok": True})

    async def _delete(self, session: Session, _: Any) -> web.Response:
        if session.is_busy:
            return web.json_response({"error": "busy"}, status=400)
        del self.sessions[session.session_id]
        return web.json_response({"ok": True})

    def close(self) -> None:
        self.answers.set()
        for session in self.sessions.values():
            if session.dispatch is not None:
                session.dispatch.cancel()


class ChatServer:
    """Answers every POST as it is told."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.answer: Handler = self.nothing

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(Asked(request.method, request.path, await request.json(), dict(request.headers)))
        return await self.answer(request)

    async def nothing(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({})

    def says(self, value: Any, **answer: Any) -> None:
        """Answer with this JSON."""
        self.answer = constant(lambda: web.json_response(value, **answer))

    def close(self) -> None: ...


def constant(make: Callable[[], web.StreamResponse]) -> Handler:
    """The same answer, whatever is asked."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return make()

    return answer


async def endless(request: web.Request) -> web.StreamResponse:
    """An answer that never ends, as fast as it is read."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    try:
        while True:
            await response.write(b'{"events": [' + b" " * 65_536)
    except (ConnectionError, asyncio.CancelledError):
        return response


async def broken_off(request: web.Request) -> web.StreamResponse:
    """Half an answer, and then the connection is gone."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"events"')
    assert request.transport is not None
    request.transport.close()
    return response


async def hangs_up(request: web.Request) -> web.StreamResponse:
    """No answer at all."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()


@asynccontextmanager
async def serving(server: Any) -> AsyncIterator[Any]:
    """The server, listening on a free port."""
    app = web.Application(client_max_size=32 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        server.close()
        await runner.cleanup()
