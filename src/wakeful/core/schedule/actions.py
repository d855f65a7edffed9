"""Actions as values: what a schedule does when it fires. Adapters perform them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from wakeful.core.description import Field, Kind, Object, described
from wakeful.core.fields import Fields, shown
from wakeful.core.heartbeat.acknowledgement import AckRules
from wakeful.core.kinds import ANYTHING, OBJECT, TEXT, TEXTS, any_of, choice, filled, listed, names, whole

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
PASS_ENV_MAX: Final = 100
VARIABLE_PATTERN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
OUTPUT_MAX: Final = 64 * 1024


def _read_argv(fields: Fields, name: str) -> tuple[str, ...]:
    argv = fields.raw(name)
    if not isinstance(argv, list) or not argv or not all(isinstance(part, str) for part in argv) or not argv[0]:
        fields.fail(name, ARGV_REFUSAL)
        return ()
    return tuple(argv)


def _read_url(fields: Fields, name: str) -> str:
    url = fields.filled(name, _URL_CURE)
    if url.strip() and not _is_http(url):
        fields.fail(name, f"{shown(url)} is not an http or https address; {_URL_CURE}")
    return url


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # unbalanced brackets, or a port above 65535
        return False


def _read_method(fields: Fields, name: str) -> str:
    method = fields.text(name, "POST").upper()
    if method not in METHODS:
        fields.fail(name, f"{shown(method)} is not one of {', '.join(METHODS)}")
    return method


ARGV_REFUSAL: Final = 'must be a list of strings starting with the program, for example ["make", "report"]'
_ARGV_SAYS: Final = "the program and its arguments; no shell is used, for pipes write sh -c '…'"
_SESSION_SAYS: Final = 'session options, for a prompt: `{"persistSession": false}` starts a new session each time'
_URL_CURE: Final = "write for example http://127.0.0.1:9000/in"
_URL: Final = Kind("http or https URL", _read_url, {"type": "string"}, cure=_URL_CURE)
_ARGV: Final = Kind("list of strings", _read_argv, listed({"type": "string"}, least=1), list, control="words")
_METHOD: Final = Kind(any_of(METHODS), _read_method, {"type": "string", "examples": list(METHODS)}, control="choice")
_VARIABLES: Final = names(
    VARIABLE_PATTERN,
    f'must be a list of at most {PASS_ENV_MAX} variable names, for example ["GH_TOKEN"]',
    most=PASS_ENV_MAX,
)
_TARGET: Final = filled("name a registered callable or module:function")
_PROMPT: Final = filled("write the prompt for the agent", control="area")
_EVENT: Final = filled("write what the heartbeat should look at", control="area")
Isolate: TypeAlias = Literal["process"]


@dataclass(frozen=True, slots=True)
class Call:
    """A Python callable: a registered name, or `module:function`."""

    target: Annotated[str, Field(_TARGET, "a registered name, or `module:function`", "Function", "module:function")]
    args: Annotated[Mapping[str, Any], Field(OBJECT, "its keyword arguments", "Arguments")] = field(
        default_factory=dict
    )
    isolate: Annotated[Isolate | None, Field(choice(None, Isolate), "`process`: run it in a separate process")] = None


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments; never a shell line."""

    argv: Annotated[tuple[str, ...], Field(_ARGV, _ARGV_SAYS, "Command", "make report", missing=ARGV_REFUSAL)]
    cwd: Annotated[str | None, Field(TEXT, "its working directory", "Folder", usual="the daemon's")] = None
    env: Annotated[Mapping[str, str], Field(TEXTS, "additional environment variables", "Environment")] = field(
        default_factory=dict
    )
    stdin: Annotated[str | None, Field(replace(TEXT, control="area"), "text for its standard input", "Input")] = None
    output_max: Annotated[int, Field(whole(0), "how many bytes of its output are kept", "Output kept")] = OUTPUT_MAX
    pass_env: Annotated[
        tuple[str, ...],
        Field(_VARIABLES, "secret variables that are passed to it anyway", "Pass variables", "GH_TOKEN"),
    ] = ()


@dataclass(frozen=True, slots=True)
class Http:
    """An HTTP request; any 2xx is success."""

    method: Annotated[str, Field(_METHOD, "the HTTP method", default="POST")]
    url: Annotated[str, Field(_URL, "where it is sent", "URL", "http://127.0.0.1:9000/in")]
    headers: Annotated[Mapping[str, str], Field(TEXTS, "additional headers")] = field(default_factory=dict)
    body: Annotated[Any, Field(ANYTHING, "the body: a string is sent as is, anything else as JSON", usual="none")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class Memory:
    """What a transcript of ours keeps of a turn: this text instead of the prompt, and nothing if the reply is
    silent."""

    text: str
    silence: AckRules


@dataclass(frozen=True, slots=True)
class Prompt:
    """A turn of an agent."""

    text: Annotated[
        str, Field(_PROMPT, "the prompt for the agent", example="Summarise yesterday's commits", name="prompt")
    ]
    agent: Annotated[str, Field(TEXT, "the agent, for a prompt")] = "default"
    session_config: Annotated[
        Mapping[str, Any], Field(replace(OBJECT, control="session"), _SESSION_SAYS, "Session options")
    ] = field(default_factory=dict)
    memory: Memory | None = None  # None: the prompt and the reply, unchanged


@dataclass(frozen=True, slots=True)
class Event:
    """A system event for the heartbeat."""

    text: Annotated[str, Field(_EVENT, "text for the next heartbeat turn")]
    context_key: Annotated[str | None, Field(TEXT, "a later event with the same key replaces this one")] = None


ActionSpec: TypeAlias = Call | Command | Http | Prompt | Event

PROMPT: Final = described(Prompt, label="Prompt an agent", says="Send a prompt to an agent.")
OBJECTS: Final[Mapping[str, Object[Any]]] = {
    "command": described(Command, label="Run a command", says="Run a program."),
    "http": described(Http, label="Send a request", says="Send an HTTP request."),
    "call": described(Call, label="Call Python", says="Call a Python function."),
    "event": described(Event, label="Queue an event", says="Queue a system event for the heartbeat."),
}
"""The actions that are objects, by the name of their field."""


def action_to_json(action: ActionSpec, out: dict[str, Any] | None = None, full: bool = False) -> dict[str, Any]:
    """One action under the name of its field."""
    written: dict[str, Any] = {} if out is None else out
    if isinstance(action, Prompt):
        return PROMPT.write(action, written, full)
    name = type(action).__name__.lower()
    written[name] = OBJECTS[name].write(action)
    return written
