"""`/api/forms/…`: the fields of definitions, from which the page draws its forms."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter
from pydantic import Field as Description
from pydantic.alias_generators import to_camel
from starlette.responses import JSONResponse, Response

from wakeful.config.described import described_table
from wakeful.config.slots import SLOTS
from wakeful.config.table import Table
from wakeful.core.description import Field, Object
from wakeful.core.schedule.actions import OBJECTS, PROMPT
from wakeful.core.schedule.definition import OPTIONS, SCHEDULE
from wakeful.core.time.timing_json import TIMING_TYPES
from wakeful.core.workflow.definition import CONSUMER, PRODUCER
from wakeful.server.http.requests import new_router
from wakeful.server.http.shapes import Shape, answer, problems

_SHORT: Final = re.compile(r"\b(api|url)\b", re.IGNORECASE)


class Form(Shape):
    """The form of a schedule: one timing, one action, and options. Timings and actions have a name, a label and fields;
    a field has the name, label, hint, control, placeholder, options (and what each means) and default of its
    control, and the group that it belongs to, if any."""

    timings: list[dict[str, Any]]
    actions: list[dict[str, Any]]
    options: list[dict[str, Any]]
    fields: Annotated[list[str], Description(description="all fields of a definition")]


class SlotForm(Shape):
    """The form of a quota slot: the fields of each provider."""

    providers: list[dict[str, Any]]


class WorkflowForm(Shape):
    """The form of a workflow is JSON; these are the fields that users write, without those that are read back."""

    producer: list[str]
    consumer: list[str]


def schedule_form() -> dict[str, Any]:
    """The form, made from the description of a definition."""
    timings = [
        _part(name, timing.fields, "schedule.{}", timing.fields.only(without=("type",)))
        for name, timing in TIMING_TYPES.items()
        if not timing.alias_of
    ]
    actions = [_part("prompt", PROMPT, "{}", PROMPT)]
    actions += [_part(name, action, f"{name}.{{}}", action) for name, action in OBJECTS.items()]
    options = [control for field in OPTIONS for control in _controls(field)]
    return {"timings": timings, "actions": actions, "options": options, "fields": list(SCHEDULE.names)}


def slot_form() -> dict[str, Any]:
    """The form of a slot, made from the description of `[slots.NAME]`."""
    return {"providers": [_provider(name, table) for name, table in SLOTS.models.items()]}


def _provider(name: str, table: type[Table]) -> dict[str, Any]:
    described = described_table(name, table, spelt=to_camel)
    controls = [
        {**_control(field, field.name), "label": _setting_label(field), "control": _setting_control(field)}
        for field in described
    ]
    return {
        "name": name,
        "label": described.says.rstrip("."),
        "fields": [control for control in controls if control["name"] != "provider"],
    }


def _setting_label(field: Field) -> str:
    """A setting's name in words: `apiKey` as `API key`."""
    words = field.label.replace("zone", " zone")
    return _SHORT.sub(lambda match: match[0].upper(), words)


def _setting_control(field: Field) -> str:
    """The control of a setting, by its schema."""
    if field.name in ("apiKey", "timezone"):
        return {"apiKey": "secret", "timezone": "zone"}[field.name]
    schema = field.kind.schema
    if schema.get("type") == "array":
        return "words" if field.name.endswith("Argv") else "list"
    return {"integer": "number", "boolean": "flag", "object": "json"}.get(schema.get("type", ""), "text")


def _part(name: str, described: Object[Any], path: str, fields: Iterable[Field]) -> dict[str, Any]:
    controls = [_json_if_object(field, _control(field, path.format(field.name))) for field in fields]
    return {"name": name, "label": described.label, "fields": controls}


def _controls(field: Field) -> Iterator[dict[str, Any]]:
    """A field's controls: its own, or those of its nested object."""
    if field.kind.control == "object or false":
        yield {**_control(field, field.name), "control": "choice", "options": ["false"], "group": field.label}
    if not field.kind.control.startswith("object"):
        yield _control(field, field.name)
        return
    for described in field.kind.inner:
        yield from (_inner_control(inner, f"{field.name}.{inner.name}", field.label) for inner in described)


def _inner_control(field: Field, name: str, group: str) -> dict[str, Any]:
    return _json_if_object(field, {**_control(field, name), "required": False, "group": group})


def _json_if_object(field: Field, control: dict[str, Any]) -> dict[str, Any]:
    """The control; an object inside an action or an option is written as JSON."""
    return {**control, "control": "json"} if field.kind.control.startswith("object") else control


def _control(field: Field, name: str) -> dict[str, Any]:
    schema, default = field.kind.schema, field.written_default
    usual = field.example or field.usual or ("" if default in (None, {}, [], ()) else _word(default))
    return {
        "name": name,
        "label": field.label,
        "hint": field.says.replace("`", ""),
        "control": field.kind.control,
        "placeholder": usual.replace("`", ""),
        "options": schema.get("enum", schema.get("examples", [])) if field.kind.control == "choice" else [],
        "means": dict(field.means),
        "default": default,
        "required": field.is_required,
    }


def _word(default: Any) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)


def routes() -> APIRouter:
    """The route; it needs no app."""
    router = new_router(prefix="/api/forms", tags=["schedules"])

    @router.get(
        "/schedule",
        summary="The form of a schedule",
        responses={200: answer(Form, "Every field, with label, help text and default."), **problems()},
    )
    async def get_schedule_form() -> Response:
        return JSONResponse(schedule_form())

    @router.get(
        "/slot",
        summary="The form of a quota slot",
        responses={200: answer(SlotForm, "The fields of each provider."), **problems()},
    )
    async def get_slot_form() -> Response:
        return JSONResponse(slot_form())

    @router.get(
        "/workflow",
        summary="The form of a workflow",
        responses={200: answer(WorkflowForm, "The fields of producers and consumers."), **problems()},
    )
    async def get_workflow_form() -> Response:
        return JSONResponse({"producer": list(PRODUCER.names), "consumer": list(CONSUMER.names)})

    return router
