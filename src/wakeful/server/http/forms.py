"""`/api/forms/schedule`: the fields of a definition, from which the page draws its form."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import JSONResponse, Response

from wakeful.core.description import Entry, Object
from wakeful.core.schedule.actions import OBJECTS, PROMPT
from wakeful.core.schedule.definition import OPTIONS, SCHEDULE
from wakeful.core.time.timing_json import TIMING_TYPES
from wakeful.server.http.shapes import Shape, answer, problems


class Control(Shape):
    """One control of a form."""

    name: Annotated[str, Field(description="path of the field, such as `retry.times`")]
    label: str
    hint: str
    control: Literal[
        "text", "area", "number", "choice", "flag", "list", "words", "json", "zone", "recipients", "session"
    ]
    placeholder: str
    options: list[str]
    default: Any
    required: bool


class Part(Shape):
    """The controls of one kind of timing or action."""

    name: str
    label: str
    fields: list[Control]


class Form(Shape):
    """The form of a schedule: one timing, one action, and options."""

    timings: list[Part]
    actions: list[Part]
    options: list[Control]
    fields: Annotated[list[str], Field(description="all fields of a definition")]


def schedule_form() -> dict[str, Any]:
    """The form, made from the description of a definition."""
    timings = [
        _part(name, one.fields, "schedule.{}", (entry for entry in one.fields if entry.name != "type"))
        for name, one in TIMING_TYPES.items()
        if not one.alias_of
    ]
    actions = [_part("prompt", PROMPT, "{}", PROMPT)]
    actions += [_part(name, one, f"{name}.{{}}", one) for name, one in OBJECTS.items()]
    options = [control for entry in OPTIONS for control in _controls(entry)]
    return {"timings": timings, "actions": actions, "options": options, "fields": list(SCHEDULE.names)}


def _part(name: str, described: Object[Any], path: str, entries: Iterable[Entry]) -> dict[str, Any]:
    fields = [_control(entry, path.format(entry.name)) for entry in entries]
    return {"name": name, "label": described.label, "fields": fields}


def _controls(entry: Entry) -> Iterator[dict[str, Any]]:
    """The controls of a field: its own, or those of the object that it is."""
    if entry.kind.control == "object or false":
        yield {**_control(entry, entry.name), "control": "choice", "options": ["false"], "default": None}
    if not entry.kind.control.startswith("object"):
        yield _control(entry, entry.name)
        return
    for described in entry.kind.inner:
        yield from (_control(inner, f"{entry.name}.{inner.name}", is_optional=True) for inner in described)


def _control(entry: Entry, name: str, *, is_optional: bool = False) -> dict[str, Any]:
    field, schema, default = entry.field, entry.kind.schema, entry.written_default
    words = schema.get("enum", schema.get("examples", [])) if entry.kind.control == "choice" else []
    usual = field.example or field.usual or ("" if default in (None, {}, []) else str(default))
    return {
        "name": name,
        "label": entry.label,
        "hint": field.says.replace("`", ""),
        "control": entry.kind.control,
        "placeholder": usual.replace("`", ""),
        "options": list(words),
        "default": default,
        "required": entry.is_required and not is_optional,
    }


def routes() -> APIRouter:
    """The route; it needs no app."""
    router = APIRouter(prefix="/api/forms", tags=["schedules"])

    @router.get(
        "/schedule",
        summary="The form of a schedule",
        responses={200: answer(Form, "Every field, with label, help text and default."), **problems()},
    )
    async def get_schedule_form() -> Response:
        return JSONResponse(schedule_form())

    return router
