"""`[agents.NAME]`: the targets of prompts, each with the fields its adapter needs."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from wakeful.config.kinds import texts
from wakeful.config.kinds.addresses import URL
from wakeful.config.kinds.lists import ARGV, listed
from wakeful.config.kinds.numbers import FLAG, count, dollars, duration
from wakeful.config.kinds.secrets import HEADERS, SECRET, VARIABLES
from wakeful.config.kinds.texts import CALL_TARGET, FOLDER, PATH_IN_JSON, matching, naming, regex
from wakeful.config.plugins import SETTINGS_OF_PLUGIN
from wakeful.config.secrets import Secret
from wakeful.config.table import CHOICE, NamedTables, described_table, setting, unused
from wakeful.core.fields import Fields

SESSION: Final = "{session}"
SESSION_ID: Final = "{id}"

_WITHIN: Final = duration("1s", "24h")
_SESSIONS_MAX: Final = count(1, 10_000)
_WORDS: Final = texts.text(most=200)
_MODEL: Final = texts.text("name of a model", most=200, example='"some-model"')

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

_WORD: Final = texts.text(example='"ARGUMENT"', may_be_empty=True)
_VARIABLE: Final = matching(
    "name of a variable", re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "use letters, digits and _", example='"API_KEY"'
)
_PERMISSION: Final = matching(
    "word", re.compile(r"[A-Za-z][A-Za-z0-9_-]*"), "write one word, as the program names it", example='"plan"'
)
_JSON_PATH: Final = PATH_IN_JSON
JsonPath: TypeAlias = str | tuple[str, ...]
Preset: TypeAlias = Literal[
    "claude", "codex", "gemini", "opencode", "qwen", "copilot", "aider", "goose", "cursor", "amp"
]
PRESETS: Final = get_args(Preset)
"""The adapters that are presets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _AgentTable:
    """What all agents have."""

    budget_day: float | None = setting(dollars(), _BUDGET_DAY_SAYS, None)
    budget_month: float | None = setting(dollars("100.00"), _BUDGET_MONTH_SAYS, None)
    cost_per_run: float | None = setting(
        dollars("0.05", least=0), "cost of a run that reports none and whose model has no price; 0 if it is free", None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoAgent(_AgentTable):
    """Replies with the prompt, for a first try."""

    adapter: Literal["echo"] = setting(CHOICE, "how the agent is reached", "echo")
    url: str | None = setting(URL, "ignored, so that an agent can be switched to echo", None)
    model: str | None = setting(_WORDS, "ignored", None)
    confirm_within: int = setting(_WITHIN, "ignored", "5m")
    sessions_max: int = setting(_SESSIONS_MAX, "ignored", 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsAgent(_AgentTable):
    """An agent server with sessions over HTTP."""

    adapter: Literal["sessions"] = setting(CHOICE, "how the agent is reached")
    url: str = setting(URL, "base URL of the server", "http://127.0.0.1:53000")
    model: str | None = setting(_WORDS, "model of new sessions; default: the server's", None)
    cwd: str | None = setting(
        texts.text("folder, on the server", most=4_096),
        "working directory of new sessions; default: the server's",
        None,
    )
    headers: Mapping[str, Secret] = setting(HEADERS, _HEADERS_SAYS, {})
    answer_within: int = setting(
        duration("1s", "1h"), "timeout of one request; the server responds before its model does", "1m"
    )
    history_path: str | None = setting(
        naming(SESSION_ID, "path on the server, with {id}", example='"/api/sessions/{id}/events"', begins="/"),
        "path of a session's events on the server; default: history_file, or the usual locations",
        None,
    )
    history_file: str | None = setting(
        naming(SESSION_ID, "file on this machine, with {id}", example='"~/sessions/{id}/events.jsonl"'),
        "file where a server on this machine writes a session's events. If neither is set: "
        "`~/.copilot/session-state/{id}/events.jsonl` for a server on this machine, then "
        "`/api/sessions/{id}/events` on the server",
        None,
    )
    proves: Literal["finished", "idle", "accepted"] = setting(
        CHOICE,
        "what proves success. finished: a reply in the history, or a receipt. idle: if no history can be read, a "
        "session that was busy and is idle again counts too. accepted: an accepted prompt counts",
        "finished",
    )
    confirm_within: int = setting(_WITHIN, _CONFIRM_SAYS, "5m")
    sessions_max: int = setting(_SESSIONS_MAX, _SESSIONS_SAYS, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIAgent(_AgentTable):
    """Any OpenAI-compatible chat endpoint; Wakeful keeps the conversation."""

    adapter: Literal["openai"] = setting(CHOICE, "how the agent is reached")
    model: str = setting(_MODEL, "name of the model")
    url: str = setting(URL, "base URL, without /chat/completions", "https://api.openai.com/v1")
    api_key: Secret | None = setting(SECRET, "sent as a bearer token", None)
    max_tokens: int | None = setting(count(1, 10_000_000), "maximum length of the reply; default: the server's", None)
    system: str | None = setting(texts.text(), _SYSTEM_SAYS, None)
    tools: bool = setting(FLAG, _TOOLS_SAYS, True)
    headers: Mapping[str, Secret] = setting(HEADERS, _HEADERS_SAYS, {})
    answer_within: int = setting(_WITHIN, _ANSWER_SAYS, "10m")
    confirm_within: int = unused(_WITHIN, "5m")
    sessions_max: int = setting(_SESSIONS_MAX, _SESSIONS_SAYS, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicAgent(_AgentTable):
    """Anthropic's messages endpoint; Wakeful keeps the conversation."""

    adapter: Literal["anthropic"] = setting(CHOICE, "how the agent is reached")
    model: str = setting(_MODEL, "name of the model")
    api_key: Secret = setting(SECRET, "sent as x-api-key")
    url: str = setting(URL, "base URL, without /v1/messages", "https://api.anthropic.com")
    max_tokens: int = setting(count(1, 10_000_000), "maximum length of the reply", 4096)
    system: str | None = setting(texts.text(), _SYSTEM_SAYS, None)
    tools: bool = setting(FLAG, _TOOLS_SAYS, True)
    headers: Mapping[str, Secret] = setting(HEADERS, _HEADERS_SAYS, {})
    answer_within: int = setting(_WITHIN, _ANSWER_SAYS, "10m")
    confirm_within: int = unused(_WITHIN, "5m")
    sessions_max: int = setting(_SESSIONS_MAX, _SESSIONS_SAYS, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAgent(_AgentTable):
    """A command-line agent, run once for each prompt."""

    adapter: Literal["command"] = setting(CHOICE, "how the agent is reached")
    argv: tuple[str, ...] = setting(
        ARGV, "program and arguments; {prompt} is replaced; without it the prompt goes to standard input"
    )
    model: str | None = setting(_WORDS, "replaces {model} in the arguments", None)
    cwd: Path | None = setting(FOLDER, "working directory; default: the home folder", None)
    env: Mapping[str, str | Secret] = setting(VARIABLES, _ENV_SAYS, {})
    pass_env: tuple[str, ...] = setting(listed(_VARIABLE, "list of variable names"), _PASSED_SAYS, ())
    stdin: bool | None = setting(
        FLAG, "whether the prompt goes to standard input; default: true if argv has no {prompt}", None
    )
    format: Literal["text", "json", "jsonl"] | None = setting(
        CHOICE, "output format: text, one JSON value, or one per line; default: detected if a key is set", None
    )
    reply_key: JsonPath | None = setting(
        _JSON_PATH, "key of the reply in JSON output; default: the whole output is the reply", None
    )
    usage_key: JsonPath | None = setting(
        _JSON_PATH, "keys of the token counts in JSON output; quote keys that contain dots", None
    )
    error_key: JsonPath | None = setting(
        _JSON_PATH,
        "key of the error in JSON output; any value except null, false and an empty string is an error",
        None,
    )
    session_key: JsonPath | None = setting(_JSON_PATH, "key of the session id in JSON output", None)
    session_pattern: re.Pattern[str] | None = setting(
        regex(), "pattern that finds the session id in a line of output", None
    )
    resume_argv: tuple[str, ...] | None = setting(
        ARGV, "used instead of argv once a session exists; {session} is replaced by its id", None
    )
    lost_pattern: re.Pattern[str] | None = setting(
        regex(groups=0), "pattern in the output for an unknown session: the program is run again without one", None
    )
    error_pattern: re.Pattern[str] | None = setting(
        regex(groups=0),
        "pattern in the output for a failed turn, whatever the exit code; a group captures the message",
        None,
    )
    limit_pattern: re.Pattern[str] | None = setting(
        regex(), "pattern in the output for an exhausted usage limit; a group captures when it resets", None
    )
    sandbox: Literal["bubblewrap"] | None = setting(
        CHOICE, "the sandbox that its program runs in; needs bubblewrap on Linux, and cwd", None
    )
    sandbox_write: tuple[Path, ...] = setting(
        listed(FOLDER, "list of folders"), "folders that the program may write to; cwd only if it is listed", ()
    )
    sandbox_network: bool = setting(
        FLAG, "whether the program in the sandbox has a network; without one it reaches not even this machine", True
    )
    confirm_within: int = unused(_WITHIN, "5m")
    sessions_max: int = unused(_SESSIONS_MAX, 50)


def _check_command(fields: Fields, given: Mapping[str, Any]) -> None:
    _check_session(fields, given)
    _check_sandbox(fields, given)


def _check_sandbox(fields: Fields, given: Mapping[str, Any]) -> None:
    """What belongs to a sandbox needs one, and it needs a folder: the usual one, the home folder, is hidden."""
    if given.get("sandbox") is not None:
        if given.get("cwd") is None and "cwd" in given:
            fields.fail("cwd", "is needed with a sandbox, which hides the home folder; name the folder it works in")
        return
    for name, usual in (("sandbox_write", ()), ("sandbox_network", True)):
        if given.get(name, usual) != usual:
            fields.fail(name, 'has no effect without a sandbox; add sandbox = "bubblewrap"')


def _check_session(fields: Fields, given: Mapping[str, Any]) -> None:
    """How a session is found and continued."""
    argv, ways = given.get("resume_argv"), ("session_key", "session_pattern")
    if given.get("session_pattern") is not None and given.get("session_key") is not None:
        fields.fail("session_pattern", "conflicts with session_key; keep one of the two")
    if argv is not None and not any(SESSION in word for word in argv):
        fields.fail("resume_argv", f"does not contain the session; put {SESSION} where the id belongs")
    elif argv is not None and all(way in given and given[way] is None for way in ways):
        fields.fail("resume_argv", "has no effect: nothing finds the session id; set session_key or session_pattern")
    if given.get("lost_pattern") is not None and "resume_argv" in given and argv is None:
        fields.fail("lost_pattern", "has no effect: no session is continued; set resume_argv")


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetAgent(_AgentTable):
    """A command-line agent that Wakeful knows how to start and continue, and whose output it can read."""

    adapter: Preset = setting(CHOICE, "which program")
    program: str | None = setting(
        texts.text("name or path of a program", most=4_096),
        "default: the program's usual name, looked up on the PATH",
        None,
    )
    model: str | None = setting(_WORDS, "name of the model; default: the program's own", None)
    permissions: str | None = setting(
        _PERMISSION,
        "what the agent may do without asking, passed to the program's own flag; default: the program's own",
        None,
    )
    tools: bool = setting(FLAG, _TOOLS_SAYS, True)
    cwd: Path | None = setting(FOLDER, "working directory; default: the home folder", None)
    args: tuple[str, ...] = setting(listed(_WORD, "list of strings"), "additional arguments", ())
    env: Mapping[str, str | Secret] = setting(VARIABLES, _ENV_SAYS, {})
    pass_env: tuple[str, ...] = setting(listed(_VARIABLE, "list of variable names"), _PASSED_SAYS, ())


_ALWAYS: Final = frozenset({"echo", "claude", "opencode", "aider"})
_NEVER: Final = frozenset({"openai", "anthropic", "codex", "gemini", "qwen", "copilot", "goose", "cursor"})


def reports_cost(agent: Agent) -> Literal["always", "maybe", "never"]:
    """Whether an agent's program says what a turn cost. `never`: it reports tokens at most, so its cost is known only
    if its model has a price."""
    if agent.adapter in _NEVER or (isinstance(agent, CommandAgent) and agent.usage_key is None):
        return "never"
    return "always" if agent.adapter in _ALWAYS else "maybe"


_PROVIDERS: Final = {"claude": "anthropic", "codex": "openai", "gemini": "gcp.gemini"}


def provider_of(agent: Agent) -> str:
    """Who provides an agent's model, as OpenTelemetry names it; for programs with any model, the program."""
    if agent.adapter == "call":
        return "python"
    return _PROVIDERS.get(agent.adapter, agent.adapter)


def is_unpriced(agent: Agent, prices: Container[str]) -> bool:
    """Whether the cost of an agent's turns cannot be known, by the settings."""
    return reports_cost(agent) == "never" and agent.cost_per_run is None and agent.model not in prices


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAgent(_AgentTable):
    """A Python function."""

    adapter: Literal["call"] = setting(CHOICE, "how the agent is reached")
    target: str = setting(CALL_TARGET, "the function")
    model: str | None = setting(_WORDS, "passed to the function if it has a model parameter", None)
    confirm_within: int = unused(_WITHIN, "5m")
    sessions_max: int = unused(_SESSIONS_MAX, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginAgent(_AgentTable):
    """An agent of a plugin; it reads the other settings itself."""

    adapter: str = setting(_WORDS, "the kind, as the plugin names it")
    model: str | None = setting(_WORDS, "name of the model, for its price", None)
    settings: Mapping[str, Any] = setting(SETTINGS_OF_PLUGIN, "what the plugin reads", {})


Agent: TypeAlias = (
    SessionsAgent | OpenAIAgent | AnthropicAgent | CommandAgent | CallAgent | EchoAgent | PresetAgent | PluginAgent
)
AGENTS: Final = NamedTables(
    by="adapter",
    default="echo",
    tables={
        "sessions": described_table(SessionsAgent),
        "openai": described_table(OpenAIAgent),
        "anthropic": described_table(AnthropicAgent),
        "command": described_table(CommandAgent, _check_command),
        "call": described_table(CallAgent),
        "echo": described_table(EchoAgent),
        **dict.fromkeys(PRESETS, described_table(PresetAgent)),
    },
    plugin=described_table(PluginAgent),
    group="wakeful.agents",
)


def without_cost(agents: Mapping[str, Agent]) -> str:
    """All agents whose cost cannot be known, and the lines to write."""
    lines = "; ".join(f"[agents.{name}] cost_per_run = 0.05" for name in sorted(agents))
    verb = "report" if len(agents) > 1 else "reports"
    named = ", ".join(sorted(agents))
    models = sorted({str(agent.model) for agent in agents.values() if agent.model})
    prices = "".join(f', or [prices."{model}"]' for model in models)
    return (
        f"the cost of {named} cannot be known: {verb} none, and has no price; write {lines} (US dollars, 0 if free)"
        f'{prices}; or unpriced = "allow" under [budgets]: limits then do not apply to such agents'
    )
