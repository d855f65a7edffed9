"""The definition of a workflow, as its owner wrote it: producers, consumers, and their handlers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from wakeful.core.description import COMPONENTS, Field, Kind, Object, described
from wakeful.core.fields import Fields, shown
from wakeful.core.kinds import FLAG, choice, duration, listed, nested
from wakeful.core.schedule.actions import OBJECTS, Command, Http
from wakeful.core.schedule.definition import SLUG
from wakeful.core.time.instants import MINUTE, Duration
from wakeful.core.time.timing import AfterReset, Timing
from wakeful.core.time.timing_json import timing_kind
from wakeful.core.workflow.rows import Status

NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
STATUSES: Final[tuple[Status, ...]] = ("draft", "ready", "active", "paused")
STOPPED: Final = "stopped"
"""What a workflow with an error reads back as. Written back, it leaves the status as it is."""
HANDLERS_MAX: Final = 100
PHASE_TIMEOUT: Final[Duration] = 5 * MINUTE
"""The default time limit of one phase of a handler."""


@dataclass(frozen=True, slots=True)
class Python:
    """A handler that is a Python function; only the process that loads it can call it."""

    target: str  # for people: module and name


Answerer: TypeAlias = Http | Command | Python


def faulty_name(name: str, what: str) -> str | None:
    """The error in the name of a handler or a topic, with the cure; None if it is valid."""
    if NAME_PATTERN.fullmatch(name):
        return None
    return f"{shown(name)} is not a valid {what} name; use letters, digits, '.', '_' and '-', at most 64"


def _read_answerer(fields: Fields) -> Answerer | None:
    kinds = (*HANDLERS, "python") if fields.is_stored else tuple(HANDLERS)
    fields.refuse_unknown(kinds)
    given = [kind for kind in kinds if fields.has(kind)]
    if len(given) != 1:
        fields.fail(given[-1] if given else "http", f"give exactly one of {', '.join(kinds)}")
        return None
    (kind,) = given
    return Python(fields.text(kind)) if kind == "python" else fields.nested(kind, HANDLERS[kind].read)


def _write_answerer(answerer: Answerer) -> dict[str, Any]:
    if isinstance(answerer, Python):
        return {"python": answerer.target}
    kind = type(answerer).__name__.lower()
    return {kind: HANDLERS[kind].write(answerer)}


def _read_timing(fields: Fields, name: str) -> Timing | None:
    timing: Timing | None = _TIMING.read(fields, name)
    if isinstance(timing, AfterReset):
        fields.fail(name, "a producer cannot follow a quota slot; use every, cron, times, once or manual")
    return timing


def _read_topics(fields: Fields, name: str) -> tuple[str, ...]:
    listed = fields.raw(name)
    if not isinstance(listed, list | tuple) or not all(isinstance(item, str) for item in listed):
        fields.fail(name, f'{shown(listed)} is not a list of strings; write for example ["mail"]')
        return ()
    for wrong in filter(None, (faulty_name(item, "topic") for item in listed)):
        fields.fail(name, wrong)
    return tuple(dict.fromkeys(listed))


_HTTP, _COMMAND = OBJECTS["http"].only("url", "headers"), OBJECTS["command"].only("argv", "cwd", "env")
# The method, the body and the input are set by Wakeful.
HANDLERS: Final[Mapping[str, Object[Any]]] = {
    "http": Object("HttpHandler", "Called with a POST.", _HTTP, partial(Http, "POST")),
    "command": Object("CommandHandler", "Reads a request on stdin, writes a response to stdout.", _COMMAND, Command),
}


def _choice(name: str, says: str, kind: str) -> Object[Any]:
    return Object(name, says, [Field(nested(HANDLERS[kind]), HANDLERS[kind].says, name=kind)], dict)


_CHOICES: Final = (
    _choice("OverHttp", "A handler at a URL.", "http"),
    _choice("ByCommand", "A handler that is a program.", "command"),
)
_ANSWERER: Final = Kind(
    "[OverHttp](#overhttp) or [ByCommand](#bycommand)",
    lambda fields, name: fields.nested(name, _read_answerer),
    {"anyOf": [{"$ref": COMPONENTS + choice.name} for choice in _CHOICES]},
    _write_answerer,
    inner=_CHOICES,
)
_TIMING: Final = timing_kind(without=("afterReset",))
_NO_TIMING: Final = 'missing; say when, for example {"type": "every", "every": "5m"}'
_NO_HANDLER: Final = 'missing; name a handler, for example {"http": {"url": "http://127.0.0.1:9100/poll"}}'
_TOPIC: Final = {"type": "string", "pattern": f"^{NAME_PATTERN.pattern}$", "examples": ["mail"]}
_TOPICS: Final = Kind("list of topics", _read_topics, listed(_TOPIC), list)
_SOME: Final = replace(_TOPICS, schema=listed(_TOPIC, least=1))
_HANDLER: Final = Field(_ANSWERER, "what is called", name="handler", missing=_NO_HANDLER)
_PUBLISHES: Final = Field(_TOPICS, "topics it publishes to", default=())
_TIMEOUT: Final = Field(duration(1), "how long one call may take")


@dataclass(frozen=True, slots=True)
class Producer:
    """Checks something outside on its own schedule, and publishes what it finds."""

    name: str
    timing: Annotated[
        Timing, Field(replace(_TIMING, read=_read_timing), "when it runs", name="schedule", missing=_NO_TIMING)
    ]
    publishes: Annotated[tuple[str, ...], _PUBLISHES]
    answerer: Annotated[Answerer, _HANDLER]
    timeout: Annotated[Duration, _TIMEOUT] = PHASE_TIMEOUT


@dataclass(frozen=True, slots=True)
class Consumer:
    """Takes messages, performs at most one side effect with them, and publishes the result."""

    name: str
    subscribe: Annotated[tuple[str, ...], Field(_SOME, "topics it reads", missing="is empty; name the topics it reads")]
    publishes: Annotated[tuple[str, ...], _PUBLISHES]
    answerer: Annotated[Answerer, _HANDLER]
    mutates: Annotated[bool, Field(FLAG, "whether it has a side effect", name="mutate")] = True
    timeout: Annotated[Duration, _TIMEOUT] = PHASE_TIMEOUT


Handling: TypeAlias = Producer | Consumer


@dataclass(frozen=True, slots=True)
class WorkflowDefinition:
    """Everything its owner decides about a workflow; its status (running or not) is not part of it."""

    name: str
    producers: tuple[Producer, ...] = ()
    consumers: tuple[Consumer, ...] = ()

    @property
    def handlers(self) -> tuple[Handling, ...]:
        return (*self.producers, *self.consumers)

    @property
    def topics(self) -> dict[str, list[str]]:
        """Every topic that is read, with its consumers."""
        readers: dict[str, list[str]] = {}
        for consumer in self.consumers:
            for topic in consumer.subscribe:
                readers.setdefault(topic, []).append(consumer.name)
        return readers


PRODUCER: Final = described(
    Producer,
    says="Publishes messages on its own schedule.",
    read_back=("nextRun", "queued", "lastRun", "state", "heldUntil", "lastError"),
)
CONSUMER: Final = described(
    Consumer,
    says="Consumes messages.",
    read_back=("wakeAt", "dirty", "lastRun", "state", "messages", "heldUntil", "lastError"),
)


def _handlers(kind: Object[Any]) -> Kind:
    """The handlers of one kind by name, in the order of the definition."""

    def read(fields: Fields, field: str) -> tuple[Any, ...]:
        handlers: list[Any] = []
        fields.nested(field, partial(_read_handlers, kind, handlers))
        return tuple(handlers)

    return Kind(
        f"object of [{kind.name}](#{kind.name.lower()})s by name",
        read,
        {"type": "object", "additionalProperties": {"$ref": COMPONENTS + kind.name}},
        lambda handlers: {handler.name: kind.write(handler) for handler in handlers},
        control="json",
        inner=(kind,),
    )


def _read_handlers(kind: Object[Any], handlers: list[Any], fields: Fields) -> None:
    for name in list(fields.data)[: HANDLERS_MAX + 1]:
        wrong = faulty_name(name, "handler")
        if wrong is not None:
            fields.fail(name[:80], wrong)
        handler = fields.nested(name, partial(kind.read, name=name))
        if handler is not None:
            handlers.append(handler)


WORKFLOW: Final[Object[WorkflowDefinition]] = Object(
    "WorkflowDefinition",
    "A workflow definition; read-only fields are ignored.",
    [
        Field(SLUG, "its name", name="id", default="", usual="the one in the path"),
        Field(choice(*STATUSES), "whether it runs", name="status", default=None, usual="unchanged; active if new"),
        Field(_handlers(PRODUCER), "handlers that publish", name="producers", default=()),
        Field(_handlers(CONSUMER), "handlers that consume", name="consumers", default=()),
    ],
    WorkflowDefinition,
    read_back=(
        "error", "errorAt", "version", "origin", "createdAt", "updatedAt", "topics", "openRun", "session", "nextRun",
        "limitedUntil",
    ),
)  # fmt: skip
