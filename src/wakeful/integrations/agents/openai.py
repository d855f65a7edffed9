"""The openai agent: any endpoint that speaks OpenAI's chat completions."""

import json
from collections.abc import Mapping
from typing import Any

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
from wakeful.integrations.system.text import one_line
from wakeful.ports.agent import Replied
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener


def openai_agent(
    settings: ChatSettings, clock: Clock, transcripts: Transcripts, listener: ExchangeListener | None = None
) -> ChatAgent:
    """An agent behind `{url}/chat/completions`."""
    return ChatAgent(Dialect("/chat/completions", _headers, _body, _answer), settings, clock, transcripts, listener)


def _headers(api_key: str | None) -> Mapping[str, str]:
    return {} if api_key is None else {"Authorization": f"Bearer {api_key}"}


def _body(ask: Ask) -> dict[str, Any]:
    system = [{"role": "system", "content": ask.system}] if ask.system else []
    rounds = [message for tool_round in ask.rounds for message in _round(tool_round)]
    body: dict[str, Any] = {"model": ask.model, "messages": [*system, *ask.messages, *rounds]}
    if ask.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": tool.name, "description": tool.says, "parameters": tool.schema}}
            for tool in ask.tools
        ]
        body |= {"tool_choice": "none"} if ask.is_last else {}
    return body if ask.max_tokens is None else {**body, "max_tokens": ask.max_tokens}


def _round(tool_round: Round) -> list[dict[str, Any]]:
    """A round of tool calls and their results, as messages."""
    results = [
        {"role": "tool", "tool_call_id": call.call_id, "content": result}
        for call, result in zip(tool_round.asked.calls, tool_round.results, strict=True)
    ]
    return [tool_round.asked.message, *results]


def _calls(message: dict[str, Any]) -> ToolCalls | None:
    """The tools that the model calls."""
    called = message.get("tool_calls")
    if not isinstance(called, list) or not called:
        return None
    calls, kept = [], []
    for call in called[:CALLS_MAX]:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(call.get("id"), str):
            continue
        try:
            arguments = json.loads(function.get("arguments") or "{}")
        except (TypeError, ValueError):
            arguments = None  # refused by the tool, with what to write
        calls.append(ToolCall(call["id"], str(function.get("name")), arguments))
        kept.append(call)
    if not calls:
        return None
    said = {"role": "assistant", "content": message.get("content"), "tool_calls": kept}
    return ToolCalls(said, calls)


def _answer(value: Any) -> Replied | Failed | ToolCalls:
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Failed("the response has no message; check that the url points to a chat endpoint")
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        return Failed("the provider's content filter stopped the answer; change the prompt")
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        return Failed(f"the model refused: {one_line(message['refusal'])}")
    calls = _calls(message)
    if calls is not None:
        return calls
    text = _text(message.get("content"))
    if text is None or (reason == "length" and not text.strip()):
        return Failed(f"the model gave no text (finish reason {str(reason)[:50]}); raise max_tokens, or remove tools")
    return Replied(reply_of(text + CUT if reason == "length" else text))


def _text(content: Any) -> str | None:
    """The content: text, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if texts else None
