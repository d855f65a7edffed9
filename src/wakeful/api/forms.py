"""The fields of definitions, from which the page draws its forms."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from wakeful.api.operation import Noun, Returns, perform
from wakeful.core.description import Field, Object
from wakeful.core.returned import returned
from wakeful.core.schedule.actions import OBJECTS, PROMPT
from wakeful.core.schedule.definition import OPTIONS, SCHEDULE
from wakeful.core.time.timing_json import TIMING_TYPES
from wakeful.core.workflow.definition import CONSUMER, PRODUCER

_SHORT: Final = re.compile(r"\b(api|url)\b", re.IGNORECASE)
Control: TypeAlias = Mapping[str, Any]
"""Of one field, or of the fields of one timing, action or provider."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a schedule: one timing, one action, and options. Timings and actions have a name, a label and fields;
    a field has the name, label, hint, control, placeholder, options (and what each means) and default of its
    control, and the group that it belongs to, if any."""

    timings: Sequence[Control]
    actions: Sequence[Control]
    options: Sequence[Control]
    fields: Annotated[Sequence[str], "all fields of a definition"]


@dataclass(frozen=True, slots=True)
class SlotForm:
    """The form of a quota slot: the fields of each provider."""

    providers: Sequence[Control]


@dataclass(frozen=True, slots=True)
class WorkflowForm:
    """The form of a workflow is JSON; these are the fields that users write, without those that are read back."""

    producer: Sequence[str]
    consumer: Sequence[str]


FORM: Final = returned(Form)


class Forms(Noun):
    """The fields of definitions."""

    @perform(
        "GET /api/forms/schedule",
        "The form of a schedule",
        Returns(FORM, "Every field, with label, help text and default."),
        least="read",
        id="get_schedule_form",
        tag="schedules",
    )
    async def schedule_form(self) -> Form:
        return schedule_form()

    @perform(
        "GET /api/forms/slot",
        "The form of a quota slot",
        Returns(returned(SlotForm), "The fields of each provider."),
        least="read",
        id="get_slot_form",
        tag="schedules",
    )
    async def slot_form(self) -> SlotForm:
        return slot_form()

    @perform(
        "GET /api/forms/workflow",
        "The form of a workflow",
        Returns(returned(WorkflowForm), "The fields of producers and consumers."),
        least="read",
        id="get_workflow_form",
        tag="schedules",
    )
    async def workflow_form(self) -> WorkflowForm:
        return WorkflowForm(list(PRODUCER.names), list(CONSUMER.names))


def schedule_form() -> Form:
    """The form, made from the description of a definition."""
    timings = [
        _part(name, timing.fields, "schedule.{}", timing.fields.only(without=("type",)))
        for name, timing in TIMING_TYPES.items()
        if not timing.alias_of
    ]
    actions = [_part("prompt", PROMPT, "{}", PROMPT)]
    actions += [_part(name, action, f"{name}.{{}}", action) for name, action in OBJECTS.items()]
    options = [control for field in OPTIONS for control in _controls(field)]
    return Form(timings, actions, options, list(SCHEDULE.names))


def slot_form() -> SlotForm:
    """The form of a slot, made from the description of `[slots.NAME]`."""
    from wakeful.config.one_slot import PROVIDERS  # programs that embed Wakeful have no settings

    return SlotForm([_provider(name, described) for name, described in PROVIDERS.items()])


def _provider(name: str, described: Object[Any]) -> dict[str, Any]:
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
