"""The anthropic agent: the messages API."""

from collections.abc import Mapping
from typing import Any, Final

from wakeful.core.run.results import Failed
from wakeful.integrations.agents.chat import CUT, Ask, ChatAgent, ChatSettings, Dialect
from wakeful.integrations.agents.reply import reply_of
from wakeful.ports.agent import Replied, Transcripts
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener

URL: Final = "https://api.anthropic.com"
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
        "messages": ask.messages,
    }
    return {**body, "system": ask.system} if ask.system else body


def _answer(value: Any) -> Replied | Failed:
    content, reason = value.get("content"), value.get("stop_reason")
    if value.get("type") == "error" or not isinstance(content, list):
        return Failed("the response has no content; check that the url points to the messages API")
    if reason == "refusal":
        return Failed("the model refused to answer; change the prompt")
    parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    texts = [part for part in parts if isinstance(part, str)]
    text = "".join(texts)
    if (not texts and reason != "end_turn") or (reason == "max_tokens" and not text.strip()):
        return Failed(f"the model gave no text (stop reason {str(reason)[:50]}); raise max_tokens")
    return Replied(reply_of(text + CUT if reason == "max_tokens" else text))
