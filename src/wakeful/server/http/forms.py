"""`/api/forms/schedule`: the fields of a definition, from which the page draws its form."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field as Description
from starlette.responses import JSONResponse, Response

from wakeful.core.description import Field, Object
from wakeful.core.schedule.actions import OBJECTS, PROMPT
from wakeful.core.schedule.definition import OPTIONS, SCHEDULE
from wakeful.core.time.timing_json import TIMING_TYPES
from wakeful.server.http.requests import new_router
from wakeful.server.http.shapes import Shape, answer, problems


class Form(Shape):
    """The form of a schedule: one timing, one action, and options. Timings and actions have a name, a label and fields;
    a field has the name, label, hint, control, placeholder, options and default of its control."""

    timings: list[dict[str, Any]]
    actions: list[dict[str, Any]]
    options: list[dict[str, Any]]
    fields: Annotated[list[str], Description(description="all fields of a definition")]


def schedule_form() -> dict[str, Any]:
    """The form, made from the description of a definition."""
    timings = [
        _part(name, one.fields, "schedule.{}", one.fields.only(without=("type",)))
        for name, one in TIMING_TYPES.items()
        if not one.alias_of
    ]
    actions = [_part("prompt", PROMPT, "{}", PROMPT)]
    actions += [_part(name, one, f"{name}.{{}}", one) for name, one in OBJECTS.items()]
    options = [control for field in OPTIONS for control in _controls(field)]
    return {"timings": timings, "actions": actions, "options": options, "fields": list(SCHEDULE.names)}


def _part(name: str, described: Object[Any], path: str, fields: Iterable[Field]) -> dict[str, Any]:
    controls = [_control(field, path.format(field.name)) for field in fields]
    return {"name": name, "label": described.label, "fields": controls}


def _controls(field: Field) -> Iterator[dict[str, Any]]:
    """The controls of a field: its own, or those of the object that it is."""
    if field.kind.control == "object or false":
        yield {**_control(field, field.name), "control": "choice", "options": ["false"]}
    if not field.kind.control.startswith("object"):
        yield _control(field, field.name)
        return
    for described in field.kind.inner:
        yield from ({**_control(inner, f"{field.name}.{inner.name}"), "required": False} for inner in described)


def _control(field: Field, name: str) -> dict[str, Any]:
    schema, default = field.kind.schema, field.written_default
    usual = field.example or field.usual or ("" if default in (None, {}, []) else str(default))
    return {
        "name": name,
        "label": field.label,
        "hint": field.says.replace("`", ""),
        "control": field.kind.control,
        "placeholder": usual.replace("`", ""),
        "options": schema.get("enum", schema.get("examples", [])) if field.kind.control == "choice" else [],
        "default": default,
        "required": field.is_required,
    }


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

    return router
