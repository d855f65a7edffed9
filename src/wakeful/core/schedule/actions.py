"""Actions as values: what a schedule does when it fires. Adapters perform them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from wakeful.core.description import Field, Kind, Object, described
from wakeful.core.fields import Fields, shown
from wakeful.core.heartbeat.acknowledgement import AckRules
from wakeful.core.kinds import (
    ANYTHING,
    FLAG,
    NAME,
    OBJECT,
    TEXT,
    TEXTS,
    any_of,
    choice,
    filled,
    listed,
    names,
    nested,
    whole,
)

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


def _read_address(fields: Fields, name: str) -> "str | EnvName":
    """A URL without a password, or the variable that holds one."""
    given = fields.raw(name)
    if isinstance(given, Mapping):
        known = given.get("env")
        if set(given) != {"env"} or not isinstance(known, str) or not VARIABLE_PATTERN.fullmatch(known):
            fields.fail(name, f"{shown(given)} does not name a variable; {_ADDRESS_CURE}")
            return ""
        return EnvName(known)
    url = fields.filled(name, _ADDRESS_CURE)
    fault = url_fault(url) if url.strip() else None
    if fault is not None:
        fields.fail(name, fault)
    return url


def url_fault(url: str) -> str | None:
    """What is wrong with the address of a broker or backend, without its value: it may contain a password."""
    try:
        parts = urlsplit(url)
        has_password, is_url = parts.password is not None, bool(parts.scheme and (parts.netloc or parts.path))
    except ValueError:
        return f"is not a URL; {_ADDRESS_CURE}"
    if has_password:
        return f"contains a password, and definitions are readable; {_ADDRESS_CURE}"
    return None if is_url else f"is not a URL; {_ADDRESS_CURE}"


def _read_list(fields: Fields, name: str) -> tuple[Any, ...]:
    given = fields.raw(name)
    if not isinstance(given, list):
        fields.fail(name, f'{shown(given)} is not a list; write [1, "two"]')
        return ()
    return tuple(given)


def _read_method(fields: Fields, name: str) -> str:
    method = fields.text(name, "POST").upper()
    if method not in METHODS:
        fields.fail(name, f"{shown(method)} is not one of {', '.join(METHODS)}")
    return method


_ADDRESS_CURE: Final = 'write redis://host:6379/0, or {"env": "NAME"} for a variable of the daemon that holds the URL'
ARGV_REFUSAL: Final = 'must be a list of strings starting with the program, for example ["make", "report"]'
_NO_FLEET: Final = 'missing; write {"broker": "redis://127.0.0.1:6379/0", "task": "reports.build"}'
_ARGV_SAYS: Final = "the program and its arguments; no shell is used; for pipes, write sh -c '…'"
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
    cwd: Annotated[str | None, Field(TEXT, "its working directory", "Folder", usual="that of the daemon")] = None
    env: Annotated[Mapping[str, str], Field(TEXTS, "additional environment variables", "Environment")] = field(
        default_factory=dict
    )
    stdin: Annotated[str | None, Field(replace(TEXT, control="area"), "text for its standard input", "Input")] = None
    output_max: Annotated[int, Field(whole(0), "how many bytes of its output are kept", "Output kept")] = OUTPUT_MAX
    pass_env: Annotated[
        tuple[str, ...],
        Field(_VARIABLES, "variables to pass on although they look like secrets", "Pass variables", "GH_TOKEN"),
    ] = ()


@dataclass(frozen=True, slots=True)
class Http:
    """An HTTP request; any 2xx is success."""

    method: Annotated[str, Field(_METHOD, "the HTTP method", default="POST")]
    url: Annotated[str, Field(_URL, "where it is sent", "URL", "http://127.0.0.1:9000/in")]
    headers: Annotated[
        Mapping[str, str],
        Field(TEXTS, "additional headers, without those that the connection sets, such as `Content-Length`"),
    ] = field(default_factory=dict)
    body: Annotated[Any, Field(ANYTHING, "the body: a string is sent as is, anything else as JSON", usual="none")] = (
        None
    )
    receipt: Annotated[bool, Field(FLAG, "wait until the target posts its receipt", "Wait for a receipt")] = False


@dataclass(frozen=True, slots=True)
class Memory:
    """What Wakeful's own transcript keeps of a turn: this text instead of the prompt, and nothing if the reply is
    silent."""

    text: str
    silence: AckRules


@dataclass(frozen=True, slots=True)
class Prompt:
    """An agent's turn."""

    text: Annotated[
        str, Field(_PROMPT, "the prompt for the agent", example="Summarise yesterday's commits", name="prompt")
    ]
    agent: Annotated[str, Field(replace(TEXT, control="agent"), "the agent, for a prompt")] = "default"
    session_config: Annotated[
        Mapping[str, Any], Field(replace(OBJECT, control="session"), _SESSION_SAYS, "Session options")
    ] = field(default_factory=dict)
    memory: Memory | None = None  # None: the prompt and the reply, unchanged


@dataclass(frozen=True, slots=True)
class Event:
    """A system event for the heartbeat."""

    text: Annotated[str, Field(_EVENT, "text for the next heartbeat turn")]
    context_key: Annotated[str | None, Field(TEXT, "a later event with the same key replaces this one")] = None


@dataclass(frozen=True, slots=True)
class EnvName:
    """A value that is in the daemon's environment, not in the definition."""

    name: str


Address: TypeAlias = str | EnvName


def _write_address(address: Address) -> Any:
    return {"env": address.name} if isinstance(address, EnvName) else address


_ADDRESS: Final = Kind(
    'URL, or `{"env": "NAME"}`',
    _read_address,
    {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"env": {"type": "string"}}, "required": ["env"]}]},
    _write_address,
    cure=_ADDRESS_CURE,
)
_TASK: Final = filled("write the name of a registered task, like reports.build")
_LIST: Final = Kind("list of any JSON", _read_list, listed({}), list, control="json")


@dataclass(frozen=True, slots=True)
class Celery:
    """A task for a fleet of Celery workers."""

    broker: Annotated[Address, Field(_ADDRESS, "the workers' broker", "Broker", "redis://127.0.0.1:6379/0")]
    task: Annotated[str, Field(_TASK, "the name of the task", "Task", "reports.build")]
    backend: Annotated[Address | None, Field(_ADDRESS, "the result backend, where the result is read", "Backend")] = (
        None
    )
    args: Annotated[tuple[Any, ...], Field(_LIST, "positional arguments", "Arguments")] = ()
    kwargs: Annotated[Mapping[str, Any], Field(OBJECT, "keyword arguments", "Keyword arguments")] = field(
        default_factory=dict
    )
    queue: Annotated[str | None, Field(NAME, "the queue it is sent to", usual="celery")] = None
    receipt: Annotated[bool, Field(FLAG, "wait until the task posts its receipt", "Wait for a receipt")] = False


CELERY: Final = described(Celery, label="Celery task", says="A task for Celery workers.")


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A run handed over to a fleet of workers."""

    celery: Annotated[
        Celery, Field(replace(nested(CELERY), control="json"), "a Celery task", "Celery task", missing=_NO_FLEET)
    ]


ActionSpec: TypeAlias = Call | Command | Http | Prompt | Event | Dispatch

PROMPT: Final = described(Prompt, label="Prompt an agent", says="Send a prompt to an agent.")
OBJECTS: Final[Mapping[str, Object[Any]]] = {
    "command": described(Command, label="Run a command", says="Run a program."),
    "http": described(Http, label="Send a request", says="Send an HTTP request."),
    "call": described(Call, label="Call Python", says="Call a Python function."),
    "dispatch": described(Dispatch, label="Hand over to workers", says="Hand the run over to workers."),
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
