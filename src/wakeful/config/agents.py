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

_CONFIRM_SAYS: Final = "how long the agent may show neither a sign of life nor an answer after it accepted a prompt"
_SESSIONS_SAYS: Final = "how many sessions are kept; the oldest go first"
_ANSWER_SAYS: Final = "how long one request may take; the timeout of a run may end it sooner"
_SYSTEM_SAYS: Final = "the system prompt"
_HEADERS_SAYS: Final = "sent with every request"
_ENV_SAYS: Final = "added to its environment; a value is a secret if it is written as one"
_PASSED_SAYS: Final = "further variables with secrets that the program needs"

_WORD: Final = kinds.Kind("text", '"ARGUMENT"', lambda value, _: kinds.plain_text(value, may_be_empty=True))
_VARIABLE: Final = kinds.matching(
    "name of a variable", re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "use letters, digits and _", example='"API_KEY"'
)
PERMISSION: Final = kinds.matching(
    "word", re.compile(r"[A-Za-z][A-Za-z0-9_-]*"), "write one word, as the program names it", example='"plan"'
)
JsonPath: TypeAlias = Annotated[str | tuple[str, ...], kinds.path_in_json()]


class EchoAgent(Table):
    """Answers with the prompt, for a first try."""

    adapter: Literal["echo"] = setting("echo", says="how the agent is reached")
    url: Annotated[str | None, kinds.url()] = setting(None, says="not used; may stay when an agent is switched to echo")
    model: Annotated[str | None, kinds.text(most=200)] = setting(None, says="not used; may stay as well")
    confirm_within: ConfirmWithin = setting("5m", says="not used; may stay as well")
    sessions_max: SessionsMax = setting(50, says="not used; may stay as well")


class SessionsAgent(Table):
    """An agent server with sessions over HTTP."""

    adapter: Literal["sessions"] = setting(says="how the agent is reached")
    url: Annotated[str, kinds.url()] = setting("http://127.0.0.1:53000", says="where the server listens")
    model: Annotated[str | None, kinds.text(most=200)] = setting(
        None, says="the model of new sessions; unset: the server's"
    )
    cwd: Annotated[str | None, kinds.text("folder, on the server", most=4_096)] = setting(
        None, says="the folder of new sessions; unset: the server's"
    )
    headers: Annotated[Mapping[str, Secret], kinds.headers()] = setting({}, says=_HEADERS_SAYS)
    answer_within: Annotated[int, kinds.duration("1s", "1h")] = setting(
        "1m", says="how long a request may take: the server answers before its model does"
    )
    history_path: Annotated[
        str | None,
        kinds.naming(SESSION_ID, "path on the server, with {id}", example='"/api/sessions/{id}/events"', begins="/"),
    ] = setting(None, says="where the server offers the events of a session; unset: history_file, or the usual places")
    history_file: Annotated[
        str | None,
        kinds.naming(SESSION_ID, "file on this machine, with {id}", example='"~/sessions/{id}/events.jsonl"'),
    ] = setting(
        None,
        says="where a server on this machine writes them. Neither is set: `~/.copilot/session-state/{id}/events.jsonl` "
        "for a server on this machine, then `/api/sessions/{id}/events` on the server",
    )
    proves: Literal["finished", "idle", "accepted"] = setting(
        "finished",
        says="finished: an answer in the history, or a receipt. idle: where no history can be read, busy and then idle "
        "is success too. accepted: being accepted is success, and nothing more is looked at",
    )
    confirm_within: ConfirmWithin = setting("5m", says=_CONFIRM_SAYS)
    sessions_max: SessionsMax = setting(50, says=_SESSIONS_SAYS)


class OpenAIAgent(Table):
    """Any chat endpoint that speaks OpenAI's protocol; the conversation is kept here."""

    adapter: Literal["openai"] = setting(says="how the agent is reached")
    model: ModelName = setting(says="the model to ask")
    url: Annotated[str, kinds.url()] = setting("https://api.openai.com/v1", says="the address before /chat/completions")
    api_key: Annotated[Secret | None, kinds.secret()] = setting(None, says="sent as a bearer token")
    max_tokens: Annotated[int | None, kinds.count(1, 10_000_000)] = setting(
        None, says="the longest answer; unset: theirs"
    )
    system: Annotated[str | None, kinds.text()] = setting(None, says=_SYSTEM_SAYS)
    headers: Annotated[Mapping[str, Secret], kinds.headers()] = setting({}, says=_HEADERS_SAYS)
    answer_within: AnswerWithin = setting("10m", says=_ANSWER_SAYS)
    confirm_within: ConfirmWithin = unused("5m")
    sessions_max: SessionsMax = setting(50, says=_SESSIONS_SAYS)


class AnthropicAgent(Table):
    """Anthropic's messages endpoint; the conversation is kept here."""

    adapter: Literal["anthropic"] = setting(says="how the agent is reached")
    model: ModelName = setting(says="the model to ask")
    api_key: Annotated[Secret, kinds.secret()] = setting(says="sent as x-api-key")
    url: Annotated[str, kinds.url()] = setting("https://api.anthropic.com", says="the address before /v1/messages")
    max_tokens: Annotated[int, kinds.count(1, 10_000_000)] = setting(4096, says="the longest answer")
    system: Annotated[str | None, kinds.text()] = setting(None, says=_SYSTEM_SAYS)
    headers: Annotated[Mapping[str, Secret], kinds.headers()] = setting({}, says=_HEADERS_SAYS)
    answer_within: AnswerWithin = setting("10m", says=_ANSWER_SAYS)
    confirm_within: ConfirmWithin = unused("5m")
    sessions_max: SessionsMax = setting(50, says=_SESSIONS_SAYS)


class CommandAgent(Table):
    """A command-line agent, run once for each prompt."""

    adapter: Literal["command"] = setting(says="how the agent is reached")
    argv: Annotated[tuple[str, ...], kinds.argv()] = setting(
        says="the program and its arguments; {prompt} is replaced, without it the prompt goes to its input"
    )
    model: Annotated[str | None, kinds.text(most=200)] = setting(None, says="replaces {model} in the arguments")
    cwd: Annotated[Path | None, kinds.folder()] = setting(None, says="where it runs; unset: the home folder")
    env: Annotated[Mapping[str, str | Secret], kinds.variables()] = setting({}, says=_ENV_SAYS)
    pass_env: Annotated[tuple[str, ...], kinds.listed(_VARIABLE, "list of names of variables")] = setting(
        (), says=_PASSED_SAYS
    )
    stdin: Annotated[bool | None, kinds.flag()] = setting(
        None, says="whether the prompt goes to its input; unset: if argv has no {prompt}"
    )
    format: Literal["text", "json", "jsonl"] | None = setting(
        None, says="what it prints: text, one JSON value, or one on each line; unset: found out if a key is set"
    )
    reply_key: JsonPath | None = setting(
        None, says="where the reply stands in its output, if that is JSON; unset: all of the output is the reply"
    )
    usage_key: JsonPath | None = setting(
        None, says="where the tokens it used stand in its output, if that is JSON; a key with dots stands in quotes"
    )
    error_key: JsonPath | None = setting(
        None,
        says="where an error stands in its output, if that is JSON; anything but null, false and an empty text is one",
    )
    session_key: JsonPath | None = setting(None, says="where the session's id stands in its output, if that is JSON")
    session_pattern: Annotated[re.Pattern[str] | None, kinds.regex()] = setting(
        None, says="finds the session's id in a line of its output"
    )
    resume_argv: Annotated[tuple[str, ...] | None, kinds.argv()] = setting(
        None, says="used instead of argv once a session is known; {session} is replaced by its id"
    )
    lost_pattern: Annotated[re.Pattern[str] | None, kinds.regex(groups=0)] = setting(
        None, says="found in its output when it does not know a session any more: it is run once more without"
    )
    error_pattern: Annotated[re.Pattern[str] | None, kinds.regex(groups=0)] = setting(
        None, says="found in its output when the turn failed, whatever its exit code; a group is the message"
    )
    limit_pattern: Annotated[re.Pattern[str] | None, kinds.regex()] = setting(
        None, says="found in its output when a usage limit is used up; its group says when the limit resets"
    )
    confirm_within: ConfirmWithin = unused("5m")
    sessions_max: SessionsMax = unused(50)

    @field_validator("session_pattern")
    @classmethod
    def _one_way(cls, found: re.Pattern[str] | None, info: ValidationInfo) -> re.Pattern[str] | None:
        if found is not None and info.data.get("session_key") is not None:
            raise refusal("stands beside session_key; keep one of the two")
        return found

    @field_validator("resume_argv")
    @classmethod
    def _resumable(cls, found: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        if found is None:
            return None
        if not any(SESSION in word for word in found):
            raise refusal(f"does not say which session; put {SESSION} where the id belongs")
        ways = ("session_key", "session_pattern")
        if all(way in info.data and info.data[way] is None for way in ways):
            raise refusal(
                "can never be used: nothing finds the session's id; set session_key or session_pattern",
                at=("resume_argv",),
            )
        return found

    @field_validator("lost_pattern")
    @classmethod
    def _lost_only_if_resumed(cls, found: re.Pattern[str] | None, info: ValidationInfo) -> re.Pattern[str] | None:
        if found is not None and "resume_argv" in info.data and info.data["resume_argv"] is None:
            raise refusal("can never be used: no session is gone on with; set resume_argv")
        return found


class PresetAgent(Table):
    """A command-line agent that Wakeful knows: how to start it, continue its sessions and read its output."""

    adapter: Literal["claude", "codex", "gemini", "opencode", "qwen", "copilot", "aider", "goose", "cursor", "amp"] = (
        setting(says="which program")
    )
    program: Annotated[str | None, kinds.text("name or path of a program", most=4_096)] = setting(
        None, says="unset: the program's usual name, looked for on the PATH"
    )
    model: Annotated[str | None, kinds.text(most=200)] = setting(
        None, says="the model to ask; unset: the program's own"
    )
    permissions: Annotated[str | None, PERMISSION] = setting(
        None, says="what it may do without asking, handed to the program's own flag; unset: the program's own"
    )
    cwd: Annotated[Path | None, kinds.folder()] = setting(None, says="where it runs; unset: the home folder")
    args: Annotated[tuple[str, ...], kinds.listed(_WORD, "list of texts")] = setting((), says="further arguments")
    env: Annotated[Mapping[str, str | Secret], kinds.variables()] = setting({}, says=_ENV_SAYS)
    pass_env: Annotated[tuple[str, ...], kinds.listed(_VARIABLE, "list of names of variables")] = setting(
        (), says=_PASSED_SAYS
    )


PRESETS: Final = get_args(PresetAgent.model_fields["adapter"].annotation)
"""The adapters that are presets."""


class CallAgent(Table):
    """A Python function."""

    adapter: Literal["call"] = setting(says="how the agent is reached")
    target: Annotated[str, kinds.call_target()] = setting(says="the function")
    model: Annotated[str | None, kinds.text(most=200)] = setting(
        None, says="passed to the function, if it takes a model"
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
