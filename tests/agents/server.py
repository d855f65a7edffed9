"""Servers for the tests of agents, on 127.0.0.1: one that keeps sessions, one that answers chats.

Both do as they are told, and remember everything they were asked.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Manner = Literal["works", "lies", "errors", "dies", "mute", "hurries"]
"""It answers; drops the message; ends in an error; ends without a word in its history; ends without an answer; answers
before anybody can see it busy."""


class Asked(NamedTuple):
    """One request that a server got."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]


@dataclass
class Session:
    """A session of the server. Its events are a file: `events.jsonl`, one event a line."""

    session_id: str
    file: Path | None
    made_with: dict[str, Any] = field(default_factory=dict)
    is_busy: bool = False
    slug: str | None = None  # of the schedule that used it last
    dispatch: "asyncio.Task[None] | None" = None
    _events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def events(self) -> tuple[dict[str, Any], ...]:
        return tuple(self._events)

    @events.setter
    def events(self, events: Iterable[dict[str, Any]]) -> None:
        self._events = list(events)
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            text = "".join(json.dumps(event) + "\n" for event in self._events)
            self.file.write_text(text, "utf-8", "replace")

    def say(self, *events: dict[str, Any]) -> None:
        """More happened."""
        self.events = (*self._events, *events)


class AgentServer:
    """Speaks the sessions protocol, and nothing but that: the order of its checks, what its routes return, which fields
    are in its list, and where its history is.

    It returns 200 before its model is called. `state` says idle or inactive, never busy; the list, grouped by folder,
    says which session is busy and for which schedule. There is no route for a history: it is the file
    `~/.copilot/session-state/<id>/events.jsonl`, with the marked text of each message and without correlation ids.

    It may be told: how its agent works (`manner`), what the next messages are answered with instead (`statuses`), which
    routes it lacks (`missing`), which raw answer a route gives (`raw`), and to hold its agent back (`gate`) or its
    answers (`answers`). Some servers do more than the protocol says: put correlation ids into their history
    (`has_keys`), leave the text as it is (`marks_text = False`), say in `state` that they are busy (`state_says_busy`),
    show descriptions in the list (`lists_descriptions`) and have a route for events (`offers_events`). Some do less:
    they write no history (`writes_history = False`), or no terminal events into it (`writes_ends = False`).
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.sessions: dict[str, Session] = {}
        self.manner: Manner = "works"
        self.statuses: list[int] = []
        self.headers: dict[str, str] = {}
        self.reply: Any = "all is well"
        self.missing: set[str] = set()  # messages, state, list, cancel, sessions
        self.raw: dict[str, Handler] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.answers = asyncio.Event()
        self.answers.set()
        self.has_keys = self.offers_events = self.state_says_busy = self.lists_descriptions = False
        self.marks_text = self.writes_history = self.writes_ends = True
        self.is_deaf = False  # to being cancelled
        self.at_work = self.at_work_max = 0
        self._count = 0
        self._home = tempfile.TemporaryDirectory(prefix="agent-server-")

    @property
    def environ(self) -> dict[str, str]:
        """Where its files are, for a process on the same machine."""
        return {"HOME": self._home.name}

    @property
    def history_file(self) -> str:
        return f"{self._home.name}/.copilot/session-state/{{id}}/events.jsonl"

    def add(self, session_id: str, **made_with: Any) -> Session:
        file = Path(self.history_file.replace("{id}", session_id)) if self.writes_history else None
        session = self.sessions[session_id] = Session(session_id, file, made_with)
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
        if route == "messages" and not (body or {}).get("prompt"):
            return web.json_response({"error": "prompt is required"}, status=400)
        if route == "messages" and body.get("fromSession") and not body.get("correlationId"):
            return web.json_response({"error": "correlationId is required with fromSession"}, status=400)
        session = self.sessions.get(parts[1])
        if session is None:
            return web.json_response({"error": "Session not found"}, status=404)
        return await getattr(self, f"_{route}")(session, body)

    def _route(self, method: str, parts: list[str]) -> str:
        match method, parts:
            case "GET", ["sessions"]:
                return "list"
            case "POST", ["sessions"]:
                return "sessions"
            case "DELETE", ["sessions", _]:
                return "delete"
            case "GET", ["sessions", _, "events"]:
                return "events" if self.offers_events else ""
            case ("GET", ["sessions", _, "state" as name]) | ("POST", ["sessions", _, "messages" | "cancel" as name]):
                return name
        return ""

    def _list(self) -> web.Response:
        listed = [
            {
                "sessionId": one.session_id,
                "cwd": one.made_with.get("cwd", "/home/me"),
                "model": one.made_with.get("model"),
                "isBusy": one.is_busy,
                "isUnobserved": False,
                "scheduleSlug": one.slug,
                "scheduleNextRun": None,
                **({"description": one.made_with.get("description")} if self.lists_descriptions else {}),
            }
            for one in self.sessions.values()
        ]
        return web.json_response({"grouped": {"/home/me": listed}, "models": [{"id": "some-model"}]})

    def _make(self, body: dict[str, Any]) -> web.Response:
        self._count += 1
        session = self.add(f"session-{self._count}", **body)
        return web.json_response({"sessionId": session.session_id, "cwd": "/home/me", "model": body.get("model")})

    async def _messages(self, session: Session, body: dict[str, Any]) -> web.Response:
        if self.statuses:
            status = self.statuses.pop(0)
            return web.json_response({"error": f"told to say {status}"}, status=status, headers=self.headers)
        if session.is_busy:
            return web.json_response({"error": "Session is busy", "code": "SESSION_BUSY"}, status=409)
        session.slug = body.get("scheduleSlug") or session.slug
        if self.manner != "lies":
            session.is_busy = self.manner != "hurries"
            session.dispatch = asyncio.create_task(self._dispatch(session, body))
        return web.json_response({"ok": True, "sessionId": session.session_id})

    async def _dispatch(self, session: Session, body: dict[str, Any]) -> None:
        is_marked = self.marks_text and body.get("source") == "scheduler"
        text = f"[scheduler:{body['scheduleSlug']}] {body['prompt']}" if is_marked else body["prompt"]
        key = {"correlationId": body["correlationId"]} if self.has_keys else {}
        session.say({"type": "user.message", "data": {"content": text}, **key})
        self.at_work += 1
        self.at_work_max = max(self.at_work_max, self.at_work)
        try:
            await self.gate.wait()
        finally:
            self.at_work -= 1
        end = {"type": "session.idle", "data": {}, **key}
        if self.manner == "errors":
            end = {"type": "session.error", "data": {"message": "the model is out of order"}, **key}
        elif self.manner not in ("dies", "mute"):
            session.say(
                {"type": "assistant.message", "data": {"content": "", "toolRequests": [{"name": "look"}]}},
                {"type": "tool.execution_start", "data": {}},
                {"type": "tool.execution_complete", "data": {}},
                {"type": "assistant.usage", "data": {"inputTokens": 10, "outputTokens": 3, "model": "x"}},
                {"type": "assistant.message", "data": {"content": self.reply}},
            )
        if self.writes_ends and self.manner != "dies":
            session.say(end)
        session.is_busy = False

    async def _state(self, session: Session, _: Any) -> web.Response:
        said: dict[str, Any] = {
            "sessionId": session.session_id,
            "status": "idle",
            "cwd": "/home/me",
            "model": session.made_with.get("model"),
            "isActive": True,
        }
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
        self._home.cleanup()


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
