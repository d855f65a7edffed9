"""The anthropic agent: the messages API."""

from collections.abc import Mapping
from typing import Any, Final

from wakeful.core.run.results import Failed
from wakeful.integrations.actions.reply import reply_of
from wakeful.integrations.agents.chat import (
    CALLS_MAX,
    CUT,
    Ask,
    ChatAgent,
    ChatSettings,
    Dialect,
    Round,
    ToolCall,
    ToolCalls,
)
from wakeful.integrations.agents.transcripts import Transcripts
from wakeful.ports.agent import Replied
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener

VERSION: Final = "2023-06-01"
TOKENS_MAX: Final = 4096
"""This API requires a limit."""


def anthropic_agent(
    settings: ChatSettings, clock: Clock, transcripts: Transcripts, listener: ExchangeListener | None = None
) -> ChatAgent:
    """An agent behind `{url}/v1/messages`."""
    return ChatAgent(Dialect("/v1/messages", _headers, _body, _answer), settings, clock, transcripts, listener)


def _headers(api_key: str | None) -> Mapping[str, str]:
    version = {"anthropic-version": VERSION}
    return version if api_key is None else {**version, "x-api-key": api_key}


def _body(ask: Ask) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": ask.model,
        "max_tokens": ask.max_tokens or TOKENS_MAX,
        "messages": [*ask.messages, *(message for tool_round in ask.rounds for message in _round(tool_round))],
    }
    if ask.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.says, "input_schema": tool.schema} for tool in ask.tools
        ]
        body |= {"tool_choice": {"type": "none"}} if ask.is_last else {}
    return {**body, "system": ask.system} if ask.system else body


def _round(tool_round: Round) -> list[dict[str, Any]]:
    """A round of tool calls and their results, as messages."""
    results = [
        {"type": "tool_result", "tool_use_id": call.call_id, "content": result}
        for call, result in zip(tool_round.asked.calls, tool_round.results, strict=True)
    ]
    return [tool_round.asked.message, {"role": "user", "content": results}]


def _calls(content: list[Any]) -> ToolCalls | None:
    """The tools that the model calls."""
    uses = [part for part in content if isinstance(part, dict) and part.get("type") == "tool_use"][:CALLS_MAX]
    calls = [ToolCall(str(part.get("id")), str(part.get("name")), part.get("input")) for part in uses]
    texts = [part for part in content if isinstance(part, dict) and part.get("type") == "text" and part.get("text")]
    return ToolCalls({"role": "assistant", "content": [*texts, *uses]}, calls) if calls else None


def _answer(value: Any) -> Replied | Failed | ToolCalls:
    content, reason = value.get("content"), value.get("stop_reason")
    if value.get("type") == "error" or not isinstance(content, list):
        return Failed("the response has no content; check that the url points to the messages API")
    if reason == "refusal":
        return Failed("the model refused to answer; change the prompt")
    calls = _calls(content)
    if calls is not None:
        return calls
    parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    texts = [part for part in parts if isinstance(part, str)]
    text = "".join(texts)
    if (not texts and reason != "end_turn") or (reason == "max_tokens" and not text.strip()):
        return Failed(f"the model gave no text (stop reason {str(reason)[:50]}); raise max_tokens")
    return Replied(reply_of(text + CUT if reason == "max_tokens" else text))
