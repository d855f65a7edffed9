"""A model server on loopback for the real command-line agents.

It speaks the APIs of `model_wire`, behaves as it is told, and counts the tokens of every answer, so that a test can
compare what an agent reports with what the server counted.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, NamedTuple

from aiohttp import web

from agents.model_wire import (
    Anthropic,
    Counted,
    Dialect,
    Fault,
    Gemini,
    OpenAIChat,
    OpenAIResponses,
    Saying,
    ToolCall,
    json_for,
    tool_call,
)

Manner = Literal["well", "slow", "400", "401", "429", "500", "cut", "limit", "tool"]
REPLY: Final = "All is well today."
# Headers that name the limits of a subscription; on every good answer of Anthropic's API.
_ALLOWED: Final = {
    "anthropic-ratelimit-unified-status": "allowed",
    "anthropic-ratelimit-unified-5h-status": "allowed",
    "anthropic-ratelimit-unified-5h-utilization": "0.25",
    "anthropic-ratelimit-unified-7d-status": "allowed",
    "anthropic-ratelimit-unified-7d-utilization": "0.10",
    "anthropic-ratelimit-unified-representative-claim": "five_hour",
    "anthropic-ratelimit-unified-overage-status": "rejected",
}


class Asked(NamedTuple):
    """One request for an answer."""

    at: float  # epoch seconds
    dialect: str
    model: str
    body: dict[str, Any]
    status: int  # 0: the connection was cut
    counted: Counted | None  # None: no answer was given


class ModelServer:
    """What it was told (`manner`, `slowness`, `reset_at`, `reply`), and what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.manner: Manner = "well"
        self.slowness = 5.0
        self.reset_at = 0  # epoch seconds; with the manner `limit` refuses until then
        self.reply = REPLY
        self.asked: list[Asked] = []
        self.elsewhere: list[str] = []  # what was asked besides models
        self._turn = 0  # where the present turn begins in `asked`

    def new_turn(self) -> None:
        """What is asked from here on belongs to another turn."""
        self._turn = len(self.asked)

    @property
    def of_turn(self) -> list[Asked]:
        return self.asked[self._turn :]

    def counted(self, model: str | None = None) -> Counted:
        """The tokens of this turn, of one model or of all."""
        given = [one.counted for one in self.of_turn if one.counted is not None and model in (None, one.model)]
        return Counted(sum(c.fresh for c in given), sum(c.cached for c in given), sum(c.output for c in given))

    def texts(self) -> str:
        """All that this turn sent, for looking for a text in it."""
        return json.dumps([one.body for one in self.of_turn], ensure_ascii=False)

    def last_part(self) -> Any:
        """The last message of the last request: after a tool call, its result."""
        body = self.asked[-1].body
        return next(body[name][-1] for name in ("messages", "input", "contents") if name in body)

    def application(self) -> web.Application:
        made = web.Application(client_max_size=64 * 2**20)
        for path, dialect in (
            ("/v1/messages", Anthropic()),
            ("/v1/chat/completions", OpenAIChat()),
            ("/v1/responses", OpenAIResponses()),
        ):
            made.router.add_post(path, self._asking(dialect))
        made.router.add_post("/v1/messages/count_tokens", self._count_tokens)
        made.router.add_get("/v1/models", self._models)
        for version in ("v1", "v1beta"):
            made.router.add_post(f"/{version}/models/{{call}}", self._asking(Gemini()))
        made.router.add_route("*", "/{rest:.*}", self._nothing)
        return made

    def _asking(self, dialect: Dialect) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.StreamResponse:
            return await self._answer(request, dialect)

        return answer

    async def _answer(self, request: web.Request, dialect: Dialect) -> web.StreamResponse:
        body = json.loads(await request.read())
        model, _, call = str(request.match_info.get("call", "")).partition(":")
        model = model or str(body.get("model", ""))
        if call == "countTokens":
            return web.json_response({"totalTokens": _tokens(body)})
        manner = self.manner
        fault = self._fault(dialect, manner)
        if fault is not None:
            self.asked.append(Asked(time.time(), dialect.name, model, body, fault.status, None))
            return web.json_response(fault.body, status=fault.status, headers=dict(fault.headers))
        if manner == "slow":
            await asyncio.sleep(self.slowness)
        is_stream = bool(body.get("stream")) or call == "streamGenerateContent"
        saying = self._saying(dialect, model, body)
        cut = manner == "cut"
        self.asked.append(
            Asked(time.time(), dialect.name, model, body, 0 if cut else 200, None if cut else saying.counted)
        )
        if not is_stream and not cut:
            return web.json_response(dialect.whole(saying), headers=_ALLOWED if dialect.name == "anthropic" else {})
        return await self._stream(request, dialect, saying, cut=cut)

    async def _stream(self, request: web.Request, dialect: Dialect, saying: Saying, *, cut: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        if dialect.name == "anthropic":
            response.headers.update(_ALLOWED)
        await response.prepare(request)
        for number, event in enumerate(dialect.stream(saying)):
            if cut and number == 1:
                break
            await response.write(event.encode() if not (cut and dialect.name == "gemini") else b"data: {")
        if cut and request.transport is not None:
            request.transport.abort()
            return response
        await response.write_eof()
        return response

    def _fault(self, dialect: Dialect, manner: Manner) -> Fault | None:
        now = time.time()
        if manner == "limit":
            return dialect.limit(self.reset_at, now) if now < self.reset_at else None
        return dialect.fault(int(manner)) if manner in ("400", "401", "429", "500") else None

    def _saying(self, dialect: Dialect, model: str, body: Mapping[str, Any]) -> Saying:
        tool: ToolCall | None = None
        if self.manner == "tool" and not dialect.has_tool_result(body):
            tool = tool_call(dialect.tools(body))
        sent, number = _tokens(body), len(self.asked) + 1
        counted = Counted(sent - sent // 3, sent // 3, 7 + number)
        text = "" if tool else self.reply
        shape = _wanted_shape(body)
        return Saying(number, model, counted, text if shape is None else json.dumps(json_for(shape)), tool)

    async def _count_tokens(self, request: web.Request) -> web.Response:
        return web.json_response({"input_tokens": _tokens(json.loads(await request.read()))})

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "test-model", "object": "model"}]})

    async def _nothing(self, request: web.Request) -> web.Response:
        self.elsewhere.append(f"{request.method} {request.path}")
        return web.json_response({"error": {"message": "no such path", "type": "not_found_error"}}, status=404)


@asynccontextmanager
async def model_server(server: ModelServer | None = None) -> AsyncIterator[ModelServer]:
    """The server, listening on 127.0.0.1."""
    server = server or ModelServer()
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


def _wanted_shape(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The JSON schema that the answer is to have, if a request to Gemini names one."""
    generation = body.get("generationConfig") or {}
    found: Mapping[str, Any] | None = generation.get("responseJsonSchema") or generation.get("responseSchema")
    return found


def _tokens(body: Mapping[str, Any]) -> int:
    """About as many as a model would count."""
    return len(json.dumps(body)) // 4 + 1
