"""Described objects as JSON Schema, for OpenAPI."""

from typing import Any

from wakeful.core.description import Field, Object


def schemas_of(*objects: Object[Any]) -> dict[str, dict[str, Any]]:
    """The schemas of these objects and of all objects in them, by name."""
    made: dict[str, dict[str, Any]] = {}
    for described in objects:
        made |= schemas_of(*(inner for field in described for inner in field.kind.inner)) | {
            described.name: schema_of(described)
        }
    return made


def schema_of(described: Object[Any]) -> dict[str, Any]:
    """The schema of one object. Fields that are read back are accepted with any value."""
    return {
        "title": described.name,
        "description": described.says,
        "type": "object",
        "additionalProperties": False,
        "properties": properties_of(described) | {name: {"readOnly": True} for name in described.read_back},
        "required": [field.name for field in described if field.is_required],
    }


def properties_of(described: Object[Any]) -> dict[str, Any]:
    """The properties of an object, by name."""
    return {field.name: _property(field) for field in described}


def _property(field: Field) -> dict[str, Any]:
    schema = dict(field.kind.schema)
    if not field.is_required and schema:
        schema = {"anyOf": [schema, {"type": "null"}]}
    default = {} if field.written_default in (None, "", [], {}) else {"default": field.written_default}
    return {**schema, "description": field.help, **default}
