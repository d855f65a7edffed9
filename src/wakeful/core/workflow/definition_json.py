"""Workflows as JSON: one shape for request bodies, files and the store. Reading collects every error."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import Fields, check_plain, shown
from wakeful.core.slug import SLUG_PATTERN
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.time.spacing import clamped
from wakeful.core.time.timing import Every, Timing, resolve
from wakeful.core.time.timing_json import timing_to_json, timing_to_store
from wakeful.core.workflow.definition import (
    CONSUMER,
    HANDLERS_MAX,
    PRODUCER,
    STATUSES,
    STOPPED,
    WORKFLOW,
    Handling,
    Producer,
    WorkflowDefinition,
)
from wakeful.core.workflow.rows import Status
from wakeful.core.workflow.rules import unsubscribed

_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_HANDLERS: Final = WORKFLOW.only("producers", "consumers")


def workflow_from_json(data: Any, *, name: str | None = None) -> tuple[WorkflowDefinition, Status | None]:
    """A workflow as a person wrote it, and the status it requests, if any; `name` is the one in the path."""
    check_plain(data)
    definition = _read(data, name, is_stored=False)
    return definition, None if data.get("status") == STOPPED else Fields(data).choice("status", None, STATUSES)


def decode_workflow(text: str) -> WorkflowDefinition:
    """Read a stored workflow."""
    return _read(json.loads(text), None, is_stored=True)


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
    if isinstance(handler, Producer):
        return PRODUCER.write(handler) | {"schedule": write_timing(handler.timing)}
    return CONSUMER.write(handler)


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


def _read(data: Any, name: str | None, *, is_stored: bool) -> WorkflowDefinition:
    if not isinstance(data, Mapping):
        raise Invalid(FieldError("", "a workflow is a JSON object; write {…}"))
    fields = Fields(data, is_stored=is_stored)
    fields.refuse_unknown(WORKFLOW.known)
    written = fields.text("id", name or "")
    if not SLUG_PATTERN.fullmatch(written):
        fields.fail("id", f"{shown(written)} is not a name; use a-z, 0-9, '.', '_' and '-', at most 64")
    elif name is not None and written != name:
        fields.fail("id", f"{shown(written)} does not match {shown(name)} in the path; leave it out or make them equal")
    fields.choice("status", None, (*STATUSES, STOPPED))
    handlers = _HANDLERS.given(fields)
    fields.finish()
    definition = WorkflowDefinition(written, **handlers)
    check_workflow(definition)
    return definition
