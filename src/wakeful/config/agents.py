"""`[agents.NAME]`: the targets of prompts, each with the fields its adapter needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import Discriminator, Tag, ValidationInfo, field_validator

from wakeful.config import kinds
from wakeful.config.faults import refusal
from wakeful.config.kinds import setting, unused
from wakeful.config.secrets import Secret
from wakeful.config.table import NamedTables, Table

SESSION: Final = "{session}"
SESSION_ID: Final = "{id}"

ConfirmWithin: TypeAlias = Annotated[int, kinds.duration("1s", "24h")]
SessionsMax: TypeAlias = Annotated[int, kinds.count(1, 10_000)]
AnswerWithin: TypeAlias = Annotated[int, kinds.duration("1s", "24h")]
ModelName: TypeAlias = Annotated[str, kinds.text("name of a model", most=200, example='"some-model"')]

_CONFIRM_SAYS: Final = "how long to wait for activity or a reply after the agent accepted a prompt"
_SESSIONS_SAYS: Final = "how many sessions are kept; the oldest are dropped first"
_ANSWER_SAYS: Final = "timeout of one request; the timeout of the run may end it sooner"
_SYSTEM_SAYS: Final = "the system prompt"
_TOOLS_SAYS: Final = "whether it is offered the self-scheduling tools"
_HEADERS_SAYS: Final = "sent with every request"
_ENV_SAYS: Final = "environment variables for the program; a value may be a secret"
_PASSED_SAYS: Final = "names of additional secret variables that the program needs"

_BUDGET_DAY_SAYS: Final = "maximum cost of its turns per day; when it is reached, its schedules are skipped"
_BUDGET_MONTH_SAYS: Final = "maximum cost of its turns per month"

_WORD: Final = kinds.Kind("text", '"ARGUMENT"', lambda value, _: kinds.plain_text(value, may_be_empty=True))
_VARIABLE: Final = kinds.matching(
    "name of a variable", re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "use letters, digits and _", example='"API_KEY"'
)
PERMISSION: Final = kinds.matching(
    "word", re.compile(r"[A-Za-z][A-Za-z0-9_-]*"), "write one word, as the program names it", example='"plan"'
)
JsonPath: TypeAlias = Annotated[str | tuple[str, ...], kinds.path_in_json()]


class _AgentTable(Table):
    """What all agents have."""

    budget_day: Annotated[float | None, kinds.dollars()] = setting(None, says=_BUDGET_DAY_SAYS)
    budget_month: Annotated[float | None, kinds.dollars("100.00")] = setting(None, says=_BUDGET_MONTH_SAYS)


class EchoAgent(_AgentTable):
    """Replies with the prompt, for a first try."""

    adapter: Literal["echo"] = setting("echo", says="how the agent is reached")
    url: Annotated[str | None, kinds.url()] = setting(None, says="ignored, so that an agent can be switched to echo")
    model: Annotated[str | None, kinds.text(most=200)] = setting(None, says="ignored")
    confirm_within: ConfirmWithin = setting("5m", says="ignored")
    sessions_max: SessionsMax = setting(50, says="ignored")


class SessionsAgent(_AgentTable):
    """An agent server with sessions over HTTP."""

    adapter: Literal["sessions"] = setting(says="how the agent is reached")
    url: Annotated[str, kinds.url()] = setting("http://127.0.0.1:53000", says="base URL of the server")
    model: Annotated[str | None, kinds.text(most=200)] = setting(
        None, says="model of new sessions; default: the server's"
    )
    cwd: Annotated[str | None, kinds.text("folder, on the server", most=4_096)] = setting(
        None, says="working directory of new sessions; default: the server's"
    )
    headers: Annotated[Mapping[str, Secret], kinds.headers()] = setting({}, says=_HEADERS_SAYS)
    answer_within: Annotated[int, kinds.duration("1s", "1h")] = setting(
        "1m", says="timeout of one request; the server responds before its model does"
    )
    history_path: Annotated[
        str | None,
        kinds.naming(SESSION_ID, "path on the server, with {id}", example='"/api/sessions/{id}/events"', begins="/"),
    ] = setting(None, says="path of a session's events on the server; default: history_file, or the usual locations")
    history_file: Annotated[
        str | None,
        kinds.naming(SESSION_ID, "file on this machine, with {id}", example='"~/sessions/{id}/events.jsonl"'),
    ] = setting(
        None,
        says="file where a server on this machine writes a session's events. If neither is set: "
        "`~/.copilot/session-state/{id}/events.jsonl` for a server on this machine, then "
        "`/api/sessions/{id}/events` on the server",
    )
    proves: Literal["finished", "idle", "accepted"] = setting(
        "finished",
        says="what proves success. finished: a reply in the history, or a receipt. idle: if no history can be read, a "
        "session that was busy and is idle again counts too. accepted: an accepted prompt counts",
    )
    confirm_within: ConfirmWithin = setting("5m", says=_CONFIRM_SAYS)
    sessions_max: SessionsMax = setting(50, says=_SESSIONS_SAYS)


class OpenAIAgent(_AgentTable):
    """Any OpenAI-compatible chat endpoint; Wakeful keeps the conversation."""

    adapter: Literal["openai"] = setting(says="how the agent is reached")
    model: ModelName = setting(says="name of the model")
    url: Annotated[str, kinds.url()] = setting("https://api.openai.com/v1", says="base URL, without /chat/completions")
    api_key: Annotated[Secret | None, kinds.secret()] = setting(None, says="sent as a bearer token")
    max_tokens: Annotated[int | None, kinds.count(1, 10_000_000)] = setting(
        None, says="maximum length of the reply; default: the server's"
    )
    system: Annotated[str | None, kinds.text()] = setting(None, says=_SYSTEM_SAYS)
    tools: Annotated[bool, kinds.flag()] = setting(True, says=_TOOLS_SAYS)
    headers: Annotated[Mapping[str, Secret], kinds.headers()] = setting({}, says=_HEADERS_SAYS)
    answer_within: AnswerWithin = setting("10m", says=_ANSWER_SAYS)
    confirm_within: ConfirmWithin = unused("5m")
    sessions_max: SessionsMax = setting(50, says=_SESSIONS_SAYS)


class AnthropicAgent(_AgentTable):
    """Anthropic's messages endpoint; Wakeful keeps the conversation."""

    adapter: Literal["anthropic"] = setting(says="how the agent is reached")
    model: ModelName = setting(says="name of the model")
    api_key: Annotated[Secret, kinds.secret()] = setting(says="sent as x-api-key")
    url: Annotated[str, kinds.url()] = setting("https://api.anthropic.com", says="base URL, without /v1/messages")
    max_tokens: Annotated[int, kinds.count(1, 10_000_000)] = setting(4096, says="maximum length of the reply")
    system: Annotated[str | None, kinds.text()] = setting(None, says=_SYSTEM_SAYS)
    tools: Annotated[bool, kinds.flag()] = setting(True, says=_TOOLS_SAYS)
    headers: Annotated[Mapping[str, Secret], kinds.headers()] = setting({}, says=_HEADERS_SAYS)
    answer_within: AnswerWithin = setting("10m", says=_ANSWER_SAYS)
    confirm_within: ConfirmWithin = unused("5m")
    sessions_max: SessionsMax = setting(50, says=_SESSIONS_SAYS)


class CommandAgent(_AgentTable):
    """A command-line agent, run once for each prompt."""

    adapter: Literal["command"] = setting(says="how the agent is reached")
    argv: Annotated[tuple[str, ...], kinds.argv()] = setting(
        says="program and arguments; {prompt} is replaced; without it the prompt goes to standard input"
    )
    model: Annotated[str | None, kinds.text(most=200)] = setting(None, says="replaces {model} in the arguments")
    cwd: Annotated[Path | None, kinds.folder()] = setting(None, says="working directory; default: the home folder")
    env: Annotated[Mapping[str, str | Secret], kinds.variables()] = setting({}, says=_ENV_SAYS)
    pass_env: Annotated[tuple[str, ...], kinds.listed(_VARIABLE, "list of variable names")] = setting(
        (), says=_PASSED_SAYS
    )
    stdin: Annotated[bool | None, kinds.flag()] = setting(
        None, says="whether the prompt goes to standard input; default: true if argv has no {prompt}"
    )
    format: Literal["text", "json", "jsonl"] | None = setting(
        None, says="output format: text, one JSON value, or one per line; default: detected if a key is set"
    )
    reply_key: JsonPath | None = setting(
        None, says="key of the reply in JSON output; default: the whole output is the reply"
    )
    usage_key: JsonPath | None = setting(
        None, says="keys of the token counts in JSON output; quote keys that contain dots"
    )
    error_key: JsonPath | None = setting(
        None,
        says="key of the error in JSON output; any value except null, false and an empty string is an error",
    )
    session_key: JsonPath | None = setting(None, says="key of the session id in JSON output")
    session_pattern: Annotated[re.Pattern[str] | None, kinds.regex()] = setting(
        None, says="pattern that finds the session id in a line of output"
    )
    resume_argv: Annotated[tuple[str, ...] | None, kinds.argv()] = setting(
        None, says="used instead of argv once a session exists; {session} is replaced by its id"
    )
    lost_pattern: Annotated[re.Pattern[str] | None, kinds.regex(groups=0)] = setting(
        None, says="pattern in the output for an unknown session: the program is run again without one"
    )
    error_pattern: Annotated[re.Pattern[str] | None, kinds.regex(groups=0)] = setting(
        None, says="pattern in the output for a failed turn, whatever the exit code; a group captures the message"
    )
    limit_pattern: Annotated[re.Pattern[str] | None, kinds.regex()] = setting(
        None, says="pattern in the output for an exhausted usage limit; a group captures when it resets"
    )
    confirm_within: ConfirmWithin = unused("5m")
    sessions_max: SessionsMax = unused(50)

    @field_validator("session_pattern")
    @classmethod
    def _one_way(cls, pattern: re.Pattern[str] | None, info: ValidationInfo) -> re.Pattern[str] | None:
        if pattern is not None and info.data.get("session_key") is not None:
            raise refusal("conflicts with session_key; keep one of the two")
        return pattern

    @field_validator("resume_argv")
    @classmethod
    def _resumable(cls, argv: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        if argv is None:
            return None
        if not any(SESSION in word for word in argv):
            raise refusal(f"does not contain the session; put {SESSION} where the id belongs")
        ways = ("session_key", "session_pattern")
        if all(way in info.data and info.data[way] is None for way in ways):
            raise refusal(
                "has no effect: nothing finds the session id; set session_key or session_pattern",
                at=("resume_argv",),
            )
        return argv

    @field_validator("lost_pattern")
    @classmethod
    def _lost_only_if_resumed(cls, pattern: re.Pattern[str] | None, info: ValidationInfo) -> re.Pattern[str] | None:
        if pattern is not None and "resume_argv" in info.data and info.data["resume_argv"] is None:
            raise refusal("has no effect: no session is continued; set resume_argv")
        return pattern


class PresetAgent(_AgentTable):
    """A command-line agent that Wakeful knows how to start and continue, and whose output it can read."""

    adapter: Literal["claude", "codex", "gemini", "opencode", "qwen", "copilot", "aider", "goose", "cursor", "amp"] = (
        setting(says="which program")
    )
    program: Annotated[str | None, kinds.text("name or path of a program", most=4_096)] = setting(
        None, says="default: the program's usual name, looked up on the PATH"
    )
    model: Annotated[str | None, kinds.text(most=200)] = setting(
        None, says="name of the model; default: the program's own"
    )
    permissions: Annotated[str | None, PERMISSION] = setting(
        None, says="what the agent may do without asking, passed to the program's own flag; default: the program's own"
    )
    tools: Annotated[bool, kinds.flag()] = setting(True, says=_TOOLS_SAYS)
    cwd: Annotated[Path | None, kinds.folder()] = setting(None, says="working directory; default: the home folder")
    args: Annotated[tuple[str, ...], kinds.listed(_WORD, "list of strings")] = setting((), says="additional arguments")
    env: Annotated[Mapping[str, str | Secret], kinds.variables()] = setting({}, says=_ENV_SAYS)
    pass_env: Annotated[tuple[str, ...], kinds.listed(_VARIABLE, "list of variable names")] = setting(
        (), says=_PASSED_SAYS
    )


UNPRICED: Final = frozenset({"openai", "anthropic", "codex", "gemini", "qwen", "copilot", "goose", "cursor"})
"""The adapters that report tokens at most: their cost is known only if their model has a price."""

PRESETS: Final = get_args(PresetAgent.model_fields["adapter"].annotation)
"""The adapters that are presets."""


class CallAgent(_AgentTable):
    """A Python function."""

    adapter: Literal["call"] = setting(says="how the agent is reached")
    target: Annotated[str, kinds.call_target()] = setting(says="the function")
    model: Annotated[str | None, kinds.text(most=200)] = setting(
        None, says="passed to the function if it has a model parameter"
    )
    confirm_within: ConfirmWithin = unused("5m")
    sessions_max: SessionsMax = unused(50)


AGENTS: Final = NamedTables(
    by="adapter",
    default="echo",
    models={
        "sessions": SessionsAgent,
        "openai": OpenAIAgent,
        "anthropic": AnthropicAgent,
        "command": CommandAgent,
        "call": CallAgent,
        "echo": EchoAgent,
        **dict.fromkeys(PRESETS, PresetAgent),
    },
)

_PRESET: Final = "preset"


def _adapter(written: Any) -> str | None:
    tag = AGENTS.tag(written)
    return _PRESET if tag in PRESETS else tag


Agent: TypeAlias = Annotated[
    Annotated[SessionsAgent, Tag("sessions")]
    | Annotated[OpenAIAgent, Tag("openai")]
    | Annotated[AnthropicAgent, Tag("anthropic")]
    | Annotated[CommandAgent, Tag("command")]
    | Annotated[PresetAgent, Tag(_PRESET)]
    | Annotated[CallAgent, Tag("call")]
    | Annotated[EchoAgent, Tag("echo")],
    Discriminator(_adapter),
]
