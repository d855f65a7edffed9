"""The common part of chat agents: one POST per turn, with the transcript kept by us.

A model behind such an endpoint keeps no state. The conversation is read from the transcript and sent again with each
turn, bounded; an ephemeral session has no transcript. A turn is stored under its idempotency key, so an attempt after a
crash finds the model's reply and does not pay for it twice. Heartbeat turns without a reply are not stored: a month of
them would be sent with every beat.

The model may call our tools (`ports.agent.Toolbox`); it is then asked again with their results, for a bounded number of
rounds. An endpoint that refuses a request with tools is asked without them from then on.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from wakeful.core.heartbeat.acknowledgement import judge
from wakeful.core.run.results import Failed, Throttled
from wakeful.core.run.runs import RungName
from wakeful.core.run.traces import trace_header
from wakeful.core.run.usage import Usage, added, usage_of
from wakeful.core.time.instants import MINUTE, Duration
from wakeful.integrations.actions.cancellation import remote
from wakeful.integrations.actions.reply import reply_of
from wakeful.integrations.agents.client import Client
from wakeful.integrations.agents.one_shot import OneShot
from wakeful.integrations.agents.reply import marked
from wakeful.integrations.agents.transcripts import Transcripts, TranscriptTurn
from wakeful.integrations.net.exchange import NoAnswer, NoConnection, NoRoom, Response, is_web_address
from wakeful.ports.action import CannotBegin, Fire, Ladder, NeverReceived
from wakeful.ports.agent import Answer, Exchange, Fate, Replied, ToolSpec, Turn
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener, RequestContext

ROUNDS_MAX: Final = 8
"""How often the model may call tools in one turn."""
CALLS_MAX: Final = 8
"""How many tools it may call in one round."""
TOOL_RESULT_MAX: Final = 64 * 1024
TOOLS_REFUSED: Final = frozenset({400, 404, 422, 501})
"""Statuses returned by endpoints that do not support tools, among others."""
PERHAPS_PAID: Final = frozenset({502, 504})
"""Statuses returned by a gateway that does not know what became of the request. Model APIs do not bill other errors."""

CUT: Final = "\n[truncated at the token limit]"
"""Appended to a reply that the model could not finish."""


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """How a chat endpoint is reached."""

    url: str
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    system: str | None = None
    max_tokens: int | None = None
    has_tools: bool = True  # whether the model is offered the tools of the turn
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    answer_within: Duration = 10 * MINUTE  # for one request; the run's own timeout may end it sooner


class ToolCall(NamedTuple):
    """A call that the model asked for."""

    call_id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """The model called tools instead of replying."""

    message: Any  # its message, as it has to be repeated
    calls: Sequence[ToolCall]
    usage: Usage | None = None


class Round(NamedTuple):
    """A round of tool calls, with their results in order."""

    asked: ToolCalls
    results: Sequence[str]


class Ask(NamedTuple):
    """A request, in no particular dialect."""

    model: str
    system: str | None
    max_tokens: int | None
    earlier: Sequence[TranscriptTurn]
    prompt: str
    tools: Sequence[ToolSpec] = ()
    rounds: Sequence[Round] = ()
    is_last: bool = False  # no further calls: it has to reply now

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation, in the form that both dialects share."""
        said = [
            message
            for turn in self.earlier
            for message in ({"role": "user", "content": turn.prompt}, {"role": "assistant", "content": turn.reply})
            if message["content"]  # some endpoints refuse an empty one
        ]
        return [*said, {"role": "user", "content": self.prompt}]


class Dialect(NamedTuple):
    """The protocol of one family of endpoints."""

    path: str
    headers: Callable[[str | None], Mapping[str, str]]  # of the key
    body: Callable[[Ask], dict[str, Any]]
    answer: Callable[[Any], Replied | Failed | ToolCalls]  # of the JSON that came back


class ChatAgent:
    """An agent behind a chat endpoint."""

    proves: RungName = "finished"
    knows: Mapping[str, type] = {"model": str, "system": str, "maxTokens": int}

    def __init__(
        self,
        dialect: Dialect,
        settings: ChatSettings,
        clock: Clock,
        transcripts: Transcripts,
        listener: ExchangeListener | None = None,
    ) -> None:
        self._dialect = dialect
        self._settings = settings
        self._transcripts = transcripts
        self._has_tools = settings.has_tools  # until the endpoint refuses them
        self._client = Client(clock, settings.url, {**dialect.headers(settings.api_key), **settings.headers}, listener)

    def check(self, config: Mapping[str, Any]) -> str | None:
        if not is_web_address(self._settings.url):
            return f"its url '{self._settings.url}' is not a web address; write it like https://example.com/v1"
        if not (config.get("model") or self._settings.model):
            return "no model is configured; set model for the agent, or sessionConfig.model"
        if config.get("maxTokens") is not None and config["maxTokens"] < 1:
            return f"sessionConfig.maxTokens is {config['maxTokens']}; write 1 or more"
        return None

    def begin(self, turn: Turn) -> Exchange:
        async def send(ladder: Ladder) -> Answer:
            return await self._send(turn, ladder)

        return OneShot(send)

    async def ask(self, turn: Turn) -> Fate:
        session_id = turn.session_id or _new_session(turn.fire)
        for past_turn in await self._transcripts.read(session_id) if turn.is_persistent else ():
            if past_turn.key == turn.fire.idempotency_key:
                return Replied(reply_of(past_turn.reply), session_id)
        return NeverReceived()  # it may have run and cost money, but it had no other effect

    async def close(self) -> None:
        await self._client.close()

    async def _send(self, turn: Turn, ladder: Ladder) -> Answer:
        fire = turn.fire
        session_id = (turn.session_id or _new_session(fire)) if turn.is_persistent else None
        earlier = await self._transcripts.read(session_id) if session_id is not None else ()
        for past_turn in earlier:
            if past_turn.key == fire.idempotency_key:
                return Replied(reply_of(past_turn.reply), session_id)
        prompt = marked(turn.prompt, fire.slug)
        await ladder.climb("sent")
        answer = await self._converse(self._ask(turn, earlier, prompt), turn)
        if not isinstance(answer, Replied) or session_id is None:
            return answer
        spoken = _worth_keeping(turn, prompt, answer.text or "")
        problem = None if spoken is None else await self._remember(session_id, spoken)
        return Replied(answer.text, session_id, answer.usage, problem)

    def _ask(self, turn: Turn, earlier: Sequence[TranscriptTurn], prompt: str) -> Ask:
        settings, config = self._settings, turn.config
        return Ask(
            config.get("model") or settings.model or "",
            config.get("system") or settings.system,
            config.get("maxTokens") or settings.max_tokens,
            earlier,
            prompt,
        )

    async def _converse(self, ask: Ask, turn: Turn) -> Answer:
        """Ask until the model replies, performing the tools it calls."""
        toolbox = turn.toolbox if self._has_tools else None
        if toolbox is None:
            return _only_reply(await self._post(ask, turn.fire))
        usage: Usage | None = None
        ask = ask._replace(tools=toolbox.tools())
        for number in range(ROUNDS_MAX + 1):
            answer = await self._post(ask._replace(is_last=number == ROUNDS_MAX), turn.fire)
            if isinstance(answer, _ToolsRefused):
                plain = await self._post(ask._replace(tools=()), turn.fire)
                self._has_tools = not isinstance(plain, Replied)
                return _only_reply(plain) if isinstance(plain, Replied) else _refused_twice(answer.failed, plain)
            if not isinstance(answer, ToolCalls):
                if isinstance(answer, Replied | Failed | Throttled):  # earlier rounds were paid for
                    return replace(answer, usage=added(usage, answer.usage))
                return answer
            usage = added(usage, answer.usage)
            called = replace(answer, calls=answer.calls[:CALLS_MAX])
            results = [
                (await toolbox.call(turn.fire, call.name, call.arguments))[:TOOL_RESULT_MAX] for call in called.calls
            ]
            ask = ask._replace(rounds=(*ask.rounds, Round(called, results)))
        return Failed(f"the model called tools {ROUNDS_MAX} times without a reply; change the prompt", usage=usage)

    async def _post(self, ask: Ask, fire: Fire) -> "Answer | ToolCalls | _ToolsRefused":
        key = fire.idempotency_key if not ask.rounds else f"{fire.idempotency_key}-{len(ask.rounds)}"
        headers = {"Idempotency-Key": key, **trace_header(fire.traceparent)}
        try:
            with remote():
                response = await self._client.request(
                    "POST",
                    self._dialect.path,
                    RequestContext("agent-message", fire.slug),
                    json_body=self._dialect.body(ask),
                    headers=headers,
                    limit=self._settings.answer_within,
                )
        except NoRoom as error:
            if not ask.rounds:
                raise CannotBegin(str(error)) from None
            return Failed(str(error))
        except NoConnection as error:  # nothing was sent, so nothing is charged
            return Failed(str(error), rung=None if ask.rounds else "claimed")
        except NoAnswer as error:
            return Failed(str(error))
        if not response.is_ok:
            failed = self._client.failure(response)
            if isinstance(failed, Failed) and not ask.rounds:
                failed = replace(failed, is_refused=response.status not in PERHAPS_PAID)
            may_be_tools = bool(ask.tools) and not ask.rounds and response.status in TOOLS_REFUSED
            return _ToolsRefused(failed) if may_be_tools else failed
        return await self._read(response, ask.model)

    async def _read(self, response: Response, model: str) -> Replied | Failed | ToolCalls:
        if not response.is_whole:
            return Failed(f"the response is longer than {response.body.size} bytes; ask for less, or set max_tokens")
        value = await response.json()
        if not isinstance(value, dict):
            return Failed("the response is not a JSON object; check that the url points to a chat endpoint")
        answer, used = self._dialect.answer(value), usage_of(value.get("usage"))
        # A refusal costs tokens as well. The model is the one that was asked for: prices are listed by that name.
        return answer if used is None else replace(answer, usage=_of_model(used, model))

    async def _remember(self, session_id: str, spoken: TranscriptTurn) -> str | None:
        try:
            await self._transcripts.add(session_id, spoken)
        except OSError as error:  # a full disk does not invalidate the model's reply
            return f"the transcript could not be kept ({error.strerror}); the agent will not remember this turn"
        return None


class _ToolsRefused(NamedTuple):
    """The endpoint refused a request with tools, perhaps because of them."""

    failed: Failed | Throttled


def _refused_twice(first: Failed | Throttled, second: "Answer | ToolCalls | _ToolsRefused") -> Answer:
    """The first error, with what the second request cost."""
    if isinstance(second, _ToolsRefused):
        second = second.failed
    used = getattr(second, "usage", None)
    if isinstance(first, Throttled):
        return replace(first, usage=used)
    is_free = isinstance(second, Throttled) or (
        isinstance(second, Failed) and (second.is_refused or second.rung == "claimed")
    )
    return replace(first, usage=used, is_refused=first.is_refused and is_free)


def _only_reply(answer: "Answer | ToolCalls | _ToolsRefused") -> Answer:
    """The reply; without tools there are no calls."""
    if isinstance(answer, ToolCalls):
        return Failed("the model called a tool, and none was offered; change the prompt")
    return answer.failed if isinstance(answer, _ToolsRefused) else answer


def _worth_keeping(turn: Turn, prompt: str, reply: str) -> TranscriptTurn | None:
    """The transcript entry of a turn; None if it is not kept."""
    key, memory = turn.fire.idempotency_key, turn.memory
    if memory is None:
        return TranscriptTurn(key, prompt, reply)
    is_silent = judge(reply, memory.silence).text is None
    return None if is_silent else TranscriptTurn(key, marked(memory.text, turn.fire.slug), reply)


def _of_model(used: Usage, model: str) -> Usage:
    return {"model": model, **used}


def _new_session(fire: Fire) -> str:
    """A session id derived from the run's key, so that another attempt of the run finds the same session."""
    return f"{fire.slug}-{hashlib.sha256(fire.idempotency_key.encode()).hexdigest()[:12]}"
