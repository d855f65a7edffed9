"""Workflows as JSON: one shape for request bodies, files and the store. Reading collects every error."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import Fields, check_plain, shown
from wakeful.core.schedule.actions import Command, Http
from wakeful.core.schedule.definition import SLUG_PATTERN
from wakeful.core.schedule.definition_json import ACTION_READERS, action_to_json
from wakeful.core.time.instants import Duration, Instant, format_duration
from wakeful.core.time.spacing import clamped
from wakeful.core.time.timing import AfterReset, Every, Timing, resolve
from wakeful.core.time.timing_json import read_timing, timing_to_json, timing_to_store
from wakeful.core.workflow.definition import (
    HANDLERS_MAX,
    PHASE_TIMEOUT,
    Answerer,
    Consumer,
    Handling,
    Producer,
    Python,
    WorkflowDefinition,
    faulty_name,
)
from wakeful.core.workflow.rows import Status
from wakeful.core.workflow.rules import unsubscribed

T = TypeVar("T", Producer, Consumer)

STATUSES: Final[tuple[Status, ...]] = ("draft", "ready", "active", "paused")
WRITTEN: Final = ("id", "status", "producers", "consumers")
READ_BACK: Final = (
    "error", "errorAt", "version", "origin", "createdAt", "updatedAt", "topics", "openRun", "session", "nextRun",
    "limitedUntil",
)  # fmt: skip
PRODUCER: Final = ("schedule", "publishes", "handler", "timeout")
PRODUCER_READ_BACK: Final = ("nextRun", "queued", "lastRun", "state", "heldUntil", "lastError")
CONSUMER: Final = ("subscribe", "publishes", "handler", "mutate", "timeout")
CONSUMER_READ_BACK: Final = ("wakeAt", "dirty", "lastRun", "state", "messages", "heldUntil", "lastError")
_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def workflow_from_json(data: Any, *, name: str | None = None) -> tuple[WorkflowDefinition, Status | None]:
    """A workflow as a person wrote it, and the status it requests, if any; `name` is the one in the path."""
    check_plain(data)
    definition = _read(data, name, allows_python=False)
    return definition, Fields(data).choice("status", None, STATUSES)


def decode_workflow(text: str) -> WorkflowDefinition:
    """Read a stored workflow."""
    return _read(json.loads(text), None, allows_python=True)


def encode_workflow(definition: WorkflowDefinition) -> str:
    """The canonical text that is stored, including the anchors of intervals that were written without one."""
    return _encode(workflow_to_json(definition, timing_to_store))


def workflow_to_json(
    definition: WorkflowDefinition, write_timing: Callable[[Timing], dict[str, Any]] = timing_to_json
) -> dict[str, Any]:
    """The workflow as written, with the zones filled in."""
    return {
        "id": definition.name,
        "producers": {handler.name: handler_to_json(handler, write_timing) for handler in definition.producers},
        "consumers": {handler.name: handler_to_json(handler, write_timing) for handler in definition.consumers},
    }


def handler_to_json(
    handler: Handling, write_timing: Callable[[Timing], dict[str, Any]] = timing_to_json
) -> dict[str, Any]:
    """One producer or consumer."""
    out: dict[str, Any] = {}
    match handler:
        case Producer(timing=timing):
            out["schedule"] = write_timing(timing)
        case Consumer(subscribe=subscribe):
            out["subscribe"] = list(subscribe)
    out["publishes"] = list(handler.publishes)
    out["handler"] = _answerer_to_json(handler.answerer)
    if isinstance(handler, Consumer) and not handler.mutates:
        out["mutate"] = False
    if handler.timeout != PHASE_TIMEOUT:
        out["timeout"] = format_duration(handler.timeout)
    return out


def resolved(
    definition: WorkflowDefinition, known: WorkflowDefinition | None, *, now: Instant, default_zone: str
) -> WorkflowDefinition:
    """With zones and anchors filled in. A missing anchor keeps its value as long as the interval does, so that writing
    the same workflow again changes nothing."""
    anchors = {producer.name: producer.timing for producer in known.producers} if known is not None else {}

    def fill(producer: Producer) -> Producer:
        timing, before = producer.timing, anchors.get(producer.name)
        if isinstance(timing, Every) and timing.anchor is None and isinstance(before, Every):
            anchored = resolve(timing, now=before.anchor or now, default_zone=default_zone)
            timing = anchored if timing.every == before.every else timing
        filled: Timing = resolve(timing, now=now, default_zone=default_zone)
        return Producer(producer.name, filled, producer.publishes, producer.answerer, producer.timeout)

    return WorkflowDefinition(definition.name, tuple(map(fill, definition.producers)), definition.consumers)


def clamped_workflow(definition: WorkflowDefinition, every_min: Duration) -> tuple[WorkflowDefinition, tuple[str, ...]]:
    """With the interval of every producer raised to the minimum, and the warnings for its writer."""
    warnings: list[str] = []

    def clamp(producer: Producer) -> Producer:
        timing, warning = clamped(producer.timing, every_min)
        if warning is None:
            return producer
        warnings.append(f"producers.{producer.name}.schedule.every: {warning}")
        return replace(producer, timing=timing)

    producers = tuple(map(clamp, definition.producers))
    if not warnings:
        return definition, ()
    return WorkflowDefinition(definition.name, producers, definition.consumers), tuple(warnings)


def check_workflow(definition: WorkflowDefinition) -> None:
    """Refuse what cannot work as a whole: topics without a consumer, duplicate names."""
    errors = [
        FieldError(f"consumers.{consumer.name}.subscribe", "is empty; name the topics it reads")
        for consumer in definition.consumers
        if not consumer.subscribe
    ]
    readers = definition.topics
    for handler in definition.handlers:
        kind = "producers" if isinstance(handler, Producer) else "consumers"
        errors += [
            FieldError(f"{kind}.{handler.name}.publishes", f"no consumer reads '{topic}'; subscribe one to it")
            for topic in unsubscribed(handler.publishes, readers)
        ]
    twice = {handler.name for handler in definition.producers} & {handler.name for handler in definition.consumers}
    errors += [FieldError(f"consumers.{name}", "is also the name of a producer; rename one") for name in twice]
    if not definition.handlers:
        errors.append(FieldError("producers", "there are no producers and no consumers; add some"))
    if len(definition.handlers) > HANDLERS_MAX:
        errors.append(FieldError("producers", f"there are more than {HANDLERS_MAX} handlers; split the workflow"))
    if errors:
        raise Invalid(*errors)


def _read(data: Any, name: str | None, *, allows_python: bool) -> WorkflowDefinition:
    if not isinstance(data, Mapping):
        raise Invalid(FieldError("", "a workflow is a JSON object; write {…}"))
    fields = Fields(data)
    fields.refuse_unknown((*WRITTEN, *READ_BACK))
    written = fields.text("id", name or "")
    if not SLUG_PATTERN.fullmatch(written):
        fields.fail("id", f"{shown(written)} is not a name; use a-z, 0-9, '.', '_' and '-', at most 64")
    elif name is not None and written != name:
        fields.fail("id", f"{shown(written)} does not match {shown(name)} in the path; leave it out or make them equal")
    fields.choice("status", None, STATUSES)
    producers = _each(fields, "producers", lambda inside, name: _producer(inside, name, allows_python))
    consumers = _each(fields, "consumers", lambda inside, name: _consumer(inside, name, allows_python))
    fields.finish()
    definition = WorkflowDefinition(written, producers, consumers)
    check_workflow(definition)
    return definition


def _each(fields: Fields, kind: str, reader: Callable[[Fields, str], T]) -> tuple[T, ...]:
    """The handlers of one kind by name, in the order of the definition."""
    handlers: list[T] = []

    def read_one(inside: Fields, name: str) -> None:
        wrong = faulty_name(name, "handler")
        if wrong is not None:
            inside.fail(name[:80], wrong)
        handler = inside.nested(name, lambda inner: reader(inner, name))
        if handler is not None:
            handlers.append(handler)

    def read(inside: Fields) -> None:
        for name in list(fields.mapping(kind))[: HANDLERS_MAX + 1]:
            read_one(inside, name)

    if fields.has(kind):
        fields.nested(kind, read)
    return tuple(handlers)


def _producer(fields: Fields, name: str, allows_python: bool) -> Producer:
    fields.refuse_unknown((*PRODUCER, *PRODUCER_READ_BACK))
    timing: Timing | None = None
    if not fields.has("schedule"):
        fields.fail("schedule", 'missing; say when, for example {"type": "every", "every": "5m"}')
    else:
        timing = fields.read("schedule", read_timing)
    if isinstance(timing, AfterReset):
        fields.fail("schedule", "a producer cannot follow a quota slot; use every, cron, times, once or manual")
    answerer = _answerer(fields, allows_python)
    timeout = fields.duration("timeout", PHASE_TIMEOUT, least=1) or PHASE_TIMEOUT
    publishes = _names(fields, "publishes", "topic")
    fields.finish()
    if timing is None or answerer is None:  # finish() has raised; this is for the type checker
        raise Invalid(FieldError("schedule", "missing"))
    return Producer(name, timing, publishes, answerer, timeout)


def _consumer(fields: Fields, name: str, allows_python: bool) -> Consumer:
    fields.refuse_unknown((*CONSUMER, *CONSUMER_READ_BACK))
    answerer = _answerer(fields, allows_python)
    subscribe = _names(fields, "subscribe", "topic")
    publishes = _names(fields, "publishes", "topic")
    timeout = fields.duration("timeout", PHASE_TIMEOUT, least=1) or PHASE_TIMEOUT
    mutates = fields.flag("mutate", True)
    fields.finish()
    if answerer is None:  # finish() has raised; this is for the type checker
        raise Invalid(FieldError("handler", "missing"))
    return Consumer(name, subscribe, publishes, answerer, mutates, timeout)


def _names(fields: Fields, field: str, what: str) -> tuple[str, ...]:
    listed = fields.raw(field)
    if listed is None:
        return ()
    if not isinstance(listed, list | tuple) or not all(isinstance(item, str) for item in listed):
        fields.fail(field, f'{shown(listed)} is not a list of texts; write for example ["mail"]')
        return ()
    for wrong in filter(None, (faulty_name(item, what) for item in listed)):
        fields.fail(field, wrong)
    return tuple(dict.fromkeys(listed))


def _answerer(fields: Fields, allows_python: bool) -> Answerer | None:
    if not fields.has("handler"):
        fields.fail("handler", 'missing; name a handler, for example {"http": {"url": "http://127.0.0.1:9100/poll"}}')
        return None
    return fields.nested("handler", lambda inner: _read_answerer(inner, allows_python))


def _read_answerer(fields: Fields, allows_python: bool) -> Answerer | None:
    kinds = ("http", "command", "python") if allows_python else ("http", "command")
    fields.refuse_unknown(kinds)
    given = [kind for kind in kinds if fields.has(kind)]
    if len(given) != 1:
        fields.fail(given[-1] if given else "http", f"give exactly one of {', '.join(kinds)}")
        return None
    (kind,) = given
    if kind == "python":
        return Python(fields.text("python"))
    answerer = fields.nested(kind, lambda inner: _outside(inner, kind))
    return answerer if isinstance(answerer, Http | Command) else None


def _outside(fields: Fields, kind: str) -> object:
    """A URL or a program. The method, the body and the input are set by Wakeful."""
    fields.refuse_unknown(("url", "headers") if kind == "http" else ("argv", "cwd", "env"))
    return ACTION_READERS[kind](fields)


def _answerer_to_json(answerer: Answerer) -> dict[str, Any]:
    match answerer:
        case Python(target):
            return {"python": target}
        case Http(url=url, headers=headers):
            return {"http": {"url": url, **({"headers": dict(headers)} if headers else {})}}
        case Command():
            return action_to_json(answerer)
