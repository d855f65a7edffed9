"""Described objects as JSON Schema, for OpenAPI."""

from typing import Any

from wakeful.core.description import Entry, Object


def schemas_of(*objects: Object[Any]) -> dict[str, dict[str, Any]]:
    """The schemas of these objects and of all objects in them, by name."""
    made: dict[str, dict[str, Any]] = {}
    for one in objects:
        made |= schemas_of(*(inner for entry in one for inner in entry.kind.inner)) | {one.name: schema_of(one)}
    return made


def schema_of(described: Object[Any]) -> dict[str, Any]:
    """The schema of one object. Fields that are read back are accepted with any value."""
    return {
        "title": described.name,
        "description": described.says,
        "type": "object",
        "additionalProperties": False,
        "properties": properties_of(described) | {name: {} for name in described.read_back},
        "required": [entry.name for entry in described if entry.is_required],
    }


def properties_of(described: Object[Any]) -> dict[str, Any]:
    """The properties of an object, by name."""
    return {entry.name: _property(entry) for entry in described}


def _property(entry: Entry) -> dict[str, Any]:
    schema = dict(entry.kind.schema)
    if not entry.is_required and schema:
        schema = {"anyOf": [schema, {"type": "null"}]}
    default = {} if entry.written_default in (None, "") else {"default": entry.written_default}
    return {**schema, "description": entry.field.says, **default}
