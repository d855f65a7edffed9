"""The wire shapes of four model APIs: Anthropic Messages, OpenAI Chat and Responses, Gemini.

Each dialect knows how to read a request and how to write an answer, a tool call and an error the way the vendor does.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

SHELL_TOOLS: Final = ("Bash", "bash", "shell", "shell_command", "exec_command", "run_shell_command", "local_shell")
MADE_BY_TOOL: Final = "made-by-the-agent.txt"
WORDS: Final = {
    400: "the request is malformed",
    401: "invalid API key",
    429: "too many requests",
    500: "internal error",
}


class Counted(NamedTuple):
    """Tokens of one answer. `fresh` and `cached` add up to what was sent."""

    fresh: int
    cached: int
    output: int


class ToolCall(NamedTuple):
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Saying:
    """What the model says: a text, or a call of a tool."""

    number: int
    model: str
    counted: Counted
    text: str = ""
    tool: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """An error as the vendor sends it."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


class Dialect(Protocol):
    name: str

    def tools(self, body: Mapping[str, Any]) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """Name and JSON schema of each tool that the request offers."""
        ...

    def has_tool_result(self, body: Mapping[str, Any]) -> bool:
        """Whether the last message is the result of a tool."""
        ...

    def whole(self, saying: Saying) -> dict[str, Any]: ...

    def stream(self, saying: Saying) -> Iterator[str]:
        """Server-sent events, each as its text."""
        ...

    def fault(self, status: int) -> Fault: ...

    def limit(self, reset_at: int, now: float) -> Fault:
        """A usage limit that ends at `reset_at` (epoch seconds)."""
        ...


class Anthropic:
    name = "anthropic"

    def tools(self, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        return [(one["name"], one.get("input_schema", {})) for one in body.get("tools", []) if "name" in one]

    def has_tool_result(self, body: Mapping[str, Any]) -> bool:
        content = body["messages"][-1]["content"]
        return isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)

    def whole(self, saying: Saying) -> dict[str, Any]:
        return {
            **self._message(saying),
            "content": [self._block(saying)],
            "stop_reason": "end_turn" if saying.tool is None else "tool_use",
            "usage": self._usage(saying.counted),
        }

    def stream(self, saying: Saying) -> Iterator[str]:
        started = {**self._message(saying), "content": [], "usage": {**self._usage(saying.counted), "output_tokens": 1}}
        yield _event("message_start", {"message": started})
        if saying.tool is None:
            begun: dict[str, Any] = {"type": "text", "text": ""}
            delta: dict[str, Any] = {"type": "text_delta", "text": saying.text}
        else:
            begun = {**self._block(saying), "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(saying.tool.arguments)}
        yield _event("content_block_start", {"index": 0, "content_block": begun})
        yield _event("content_block_delta", {"index": 0, "delta": delta})
        yield _event("content_block_stop", {"index": 0})
        stop = {"stop_reason": "end_turn" if saying.tool is None else "tool_use", "stop_sequence": None}
        yield _event("message_delta", {"delta": stop, "usage": {"output_tokens": saying.counted.output}})
        yield _event("message_stop", {})

    def fault(self, status: int) -> Fault:
        kinds = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 500: "api_error"}
        return Fault(status, self._error(kinds[status], WORDS[status]), _retry_after(status))

    def limit(self, reset_at: int, now: float) -> Fault:
        headers = {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": str(reset_at),
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-overage-status": "rejected",
            "anthropic-ratelimit-unified-overage-disabled-reason": "org_level_disabled",
            "anthropic-ratelimit-unified-5h-status": "rejected",
            "anthropic-ratelimit-unified-5h-reset": str(reset_at),
            "anthropic-ratelimit-unified-5h-utilization": "1.0",
            "anthropic-ratelimit-unified-7d-status": "allowed",
            "anthropic-ratelimit-unified-7d-reset": str(reset_at + 86_400),
            "anthropic-ratelimit-unified-7d-utilization": "0.4",
            "x-should-retry": "false",
        }
        words = "This request would exceed your account's rate limit. Please try again later."
        return Fault(429, self._error("rate_limit_error", words), headers)

    @staticmethod
    def _message(saying: Saying) -> dict[str, Any]:
        said = {"id": f"msg_{saying.number:04}", "type": "message", "role": "assistant", "model": saying.model}
        return {**said, "stop_reason": None, "stop_sequence": None}

    @staticmethod
    def _block(saying: Saying) -> dict[str, Any]:
        if saying.tool is None:
            return {"type": "text", "text": saying.text}
        name, arguments = saying.tool
        return {"type": "tool_use", "id": f"toolu_{saying.number:04}", "name": name, "input": arguments}

    @staticmethod
    def _usage(counted: Counted) -> dict[str, int]:
        return {
            "input_tokens": counted.fresh,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": counted.cached,
            "output_tokens": counted.output,
        }

    @staticmethod
    def _error(kind: str, words: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_0001"}


class OpenAIChat:
    name = "chat"

    def tools(self, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        offered = [one["function"] for one in body.get("tools") or [] if one.get("type") == "function"]
        return [(one["name"], one.get("parameters", {})) for one in offered]

    def has_tool_result(self, body: Mapping[str, Any]) -> bool:
        return bool(body["messages"][-1].get("role") == "tool")

    def whole(self, saying: Saying) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": saying.text if saying.tool is None else None}
        if saying.tool is not None:
            message["tool_calls"] = [self._call(saying)]
        choice = {"index": 0, "message": message, "finish_reason": self._reason(saying)}
        return {**self._head(saying, "chat.completion"), "choices": [choice], "usage": _openai_usage(saying.counted)}

    def stream(self, saying: Saying) -> Iterator[str]:
        head = self._head(saying, "chat.completion.chunk")
        delta: dict[str, Any] = {"role": "assistant", "content": saying.text if saying.tool is None else None}
        if saying.tool is not None:
            delta["tool_calls"] = [{"index": 0, **self._call(saying)}]
        yield _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield _data({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": self._reason(saying)}]})
        yield _data({**head, "choices": [], "usage": _openai_usage(saying.counted)})
        yield "data: [DONE]\n\n"

    def fault(self, status: int) -> Fault:
        return _openai_fault(status)

    def limit(self, reset_at: int, now: float) -> Fault:
        seconds = max(1, round(reset_at - now))
        words = f"Rate limit reached for requests. Please try again in {seconds}s."
        error = {"message": words, "type": "requests", "param": None, "code": "rate_limit_exceeded"}
        return Fault(429, {"error": error}, {"Retry-After": str(seconds), "x-ratelimit-reset-requests": f"{seconds}s"})

    @staticmethod
    def _head(saying: Saying, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{saying.number}", "object": kind, "created": 1_790_000_000, "model": saying.model}

    @staticmethod
    def _call(saying: Saying) -> dict[str, Any]:
        assert saying.tool is not None
        function = {"name": saying.tool.name, "arguments": json.dumps(saying.tool.arguments)}
        return {"id": f"call_{saying.number}", "type": "function", "function": function}

    @staticmethod
    def _reason(saying: Saying) -> str:
        return "stop" if saying.tool is None else "tool_calls"


class OpenAIResponses:
    name = "responses"

    def tools(self, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        offered = [one for one in body.get("tools", []) if "name" in one]
        plain = [(one["name"], one.get("parameters", {})) for one in offered if one.get("type") != "namespace"]
        grouped = [
            (f"{one['name']}::{tool['name']}", tool.get("parameters", {}))
            for one in offered
            for tool in one.get("tools", [])
        ]
        return [*plain, *grouped]

    def has_tool_result(self, body: Mapping[str, Any]) -> bool:
        given = body.get("input")
        return isinstance(given, list) and bool(given) and given[-1].get("type") == "function_call_output"

    def whole(self, saying: Saying) -> dict[str, Any]:
        return {
            "id": f"resp_{saying.number}",
            "object": "response",
            "status": "completed",
            "model": saying.model,
            "output": [self._item(saying)],
            "usage": {
                "input_tokens": saying.counted.fresh + saying.counted.cached,
                "input_tokens_details": {"cached_tokens": saying.counted.cached},
                "output_tokens": saying.counted.output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": sum(saying.counted),
            },
        }

    def stream(self, saying: Saying) -> Iterator[str]:
        whole, item = self.whole(saying), self._item(saying)
        yield _event("response.created", {"response": {**whole, "status": "in_progress", "output": [], "usage": None}})
        yield _event("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress"}})
        if saying.tool is None:
            place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            yield _event("response.output_text.delta", {**place, "delta": saying.text})
        yield _event("response.output_item.done", {"output_index": 0, "item": item})
        yield _event("response.completed", {"response": whole})

    def fault(self, status: int) -> Fault:
        return _openai_fault(status)

    def limit(self, reset_at: int, now: float) -> Fault:
        error = {
            "type": "usage_limit_reached",
            "message": "The usage limit has been reached",
            "plan_type": "plus",
            "resets_at": reset_at,
            "resets_in_seconds": max(1, round(reset_at - now)),
        }
        headers = {
            "x-codex-primary-used-percent": "100",
            "x-codex-primary-window-minutes": "300",
            "x-codex-primary-reset-at": str(reset_at),
            "x-codex-secondary-used-percent": "40",
            "x-codex-secondary-window-minutes": "10080",
            "x-codex-secondary-reset-at": str(reset_at + 86_400),
        }
        return Fault(429, {"error": error}, headers)

    @staticmethod
    def _item(saying: Saying) -> dict[str, Any]:
        if saying.tool is None:
            content = [{"type": "output_text", "text": saying.text, "annotations": []}]
            said = {"id": f"msg_{saying.number}", "type": "message", "role": "assistant", "status": "completed"}
            return {**said, "content": content}
        name, arguments = saying.tool
        called = {"id": f"fc_{saying.number}", "type": "function_call", "call_id": f"call_{saying.number}"}
        group, _, plain = name.rpartition("::")
        if group:  # codex offers the tools of a server as a group
            called, name = {**called, "namespace": group}, plain
        return {**called, "name": name, "arguments": json.dumps(arguments), "status": "completed"}


class Gemini:
    name = "gemini"

    def tools(self, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        declared = [one for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])]
        return [(one["name"], one.get("parametersJsonSchema") or one.get("parameters") or {}) for one in declared]

    def has_tool_result(self, body: Mapping[str, Any]) -> bool:
        return any("functionResponse" in part for part in body["contents"][-1]["parts"])

    def whole(self, saying: Saying) -> dict[str, Any]:
        part: dict[str, Any] = {"text": saying.text}
        if saying.tool is not None:
            part = {"functionCall": {"name": saying.tool.name, "args": saying.tool.arguments}}
        return {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": saying.counted.fresh + saying.counted.cached,
                "cachedContentTokenCount": saying.counted.cached,
                "candidatesTokenCount": saying.counted.output,
                "totalTokenCount": sum(saying.counted),
            },
            "modelVersion": saying.model,
            "responseId": f"response-{saying.number}",
        }

    def stream(self, saying: Saying) -> Iterator[str]:
        yield _data(self.whole(saying))

    def fault(self, status: int) -> Fault:
        names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}
        details = [self._retry_info("1s")] if status == 429 else []
        return Fault(status, self._error(status, WORDS[status], names[status], details), _retry_after(status))

    def limit(self, reset_at: int, now: float) -> Fault:
        seconds = max(1, round(reset_at - now))
        words = f"You exceeded your current quota. Please retry in {seconds}s."
        failure = {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "50"}],
        }
        details = [failure, self._retry_info(f"{seconds}s")]
        return Fault(429, self._error(429, words, "RESOURCE_EXHAUSTED", details), {"Retry-After": str(seconds)})

    @staticmethod
    def _retry_info(delay: str) -> dict[str, str]:
        return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}

    @staticmethod
    def _error(status: int, words: str, name: str, details: list[Any]) -> dict[str, Any]:
        return {"error": {"code": status, "message": words, "status": name, "details": details}}


def tool_call(offered: Sequence[tuple[str, Mapping[str, Any]]]) -> ToolCall | None:
    """A call of the shell tool among these, that would make a file; None: there is none."""
    schemas = dict(offered)
    for name in SHELL_TOOLS:
        if name in schemas:
            properties = schemas[name].get("properties", {})
            required = schemas[name].get("required", [])
            return ToolCall(name, {key: _value(key, properties.get(key, {})) for key in required})
    return None


def _value(name: str, schema: Mapping[str, Any]) -> Any:
    if name in ("command", "cmd", "script"):
        line = f"echo made > {MADE_BY_TOOL}"
        return ["bash", "-c", line] if schema.get("type") == "array" else line
    match schema.get("type"):
        case "boolean":
            return False
        case "integer" | "number":
            return 1
        case _:
            return schema["enum"][0] if "enum" in schema else "make a file"


def json_for(schema: Mapping[str, Any]) -> Any:
    """The smallest value that a JSON schema accepts; gemini's model router asks for one."""
    match str(schema.get("type", "")).lower():
        case "object":
            return {name: json_for(one) for name, one in schema.get("properties", {}).items()}
        case "array":
            return []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return schema["enum"][0] if "enum" in schema else "simple"


def _openai_usage(counted: Counted) -> dict[str, Any]:
    return {
        "prompt_tokens": counted.fresh + counted.cached,
        "completion_tokens": counted.output,
        "total_tokens": sum(counted),
        "prompt_tokens_details": {"cached_tokens": counted.cached},
    }


def _openai_fault(status: int) -> Fault:
    kinds = {400: "invalid_request_error", 401: "invalid_request_error", 429: "requests", 500: "server_error"}
    codes = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
    error = {"message": WORDS[status], "type": kinds[status], "param": None, "code": codes.get(status)}
    return Fault(status, {"error": error}, _retry_after(status))


def _retry_after(status: int) -> dict[str, str]:
    return {"Retry-After": "1"} if status == 429 else {}


def _event(name: str, value: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps({'type': name, **value})}\n\n"


def _data(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"
