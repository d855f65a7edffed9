"""The description of an object that is only returned, made from the types of its class.

The annotation of an attribute says its kind; a string in it is the help text, a `Kind` replaces the inferred one, an
`Named` its name in JSON. An attribute with a default is left out of the JSON while it has that value.
"""

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, replace
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NotRequired,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from wakeful.core.description import COMPONENTS, REQUIRED, Field, Kind, Object, camel
from wakeful.core.time.instants import DAY, SECOND, Instant, format_instant

T = TypeVar("T")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MEMO: Final[dict[type, Object[Any]]] = {}


INTERNAL: Final = object()
"""Marks an attribute that is not part of the JSON."""
BESIDE: Final = object()
"""Marks an attribute whose fields are part of the JSON, beside the others: an object, or a mapping with JSON in it."""


class Named(NamedTuple):
    """The name in JSON, if it is not the attribute's in camel case."""

    name: str


def as_text(at: datetime) -> str:
    """The JSON form of a time."""
    since = at - _EPOCH
    return format_instant(since.days * DAY + since.seconds * SECOND + (since.microseconds + 500) // 1000)


def _unread(*_: object) -> Any:
    raise TypeError("this object is only returned")


def kind(schema: Mapping[str, Any], write: Any = None, words: str = "", *inner: Object[Any]) -> Kind:
    """The kind of a returned field."""
    made = Kind(words, _unread, schema, inner=inner)
    return made if write is None else replace(made, write=write)


_AT: Final = {"type": "string", "format": "date-time", "examples": ["2026-01-30T09:00:00.000Z"]}
TIME: Final = kind(_AT, as_text)
TEXT: Final = kind({"type": "string"})
RUN_ID: Final = kind({"type": "string", "pattern": "^[0-9]{1,18}$", "examples": ["42"]}, str)
CURSOR: Final = kind({"anyOf": [{"type": "string"}, {"type": "null"}]}, lambda id: None if id is None else str(id))
SLUG: Final = kind({"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$", "examples": ["daily-standup"]})
At: TypeAlias = Annotated[Instant, kind(_AT, format_instant)]
TimeText: TypeAlias = Annotated[str, kind(_AT)]
RunId: TypeAlias = Annotated[int, RUN_ID]
RunCursor: TypeAlias = Annotated[int | None, CURSOR]
Slug: TypeAlias = Annotated[str, SLUG]
_PLAIN: Final[Mapping[Any, Kind]] = {
    str: TEXT,
    int: kind({"type": "integer"}),
    float: kind({"type": "number"}),
    bool: kind({"type": "boolean"}),
    datetime: TIME,
    Any: kind({}),
}


def returned(cls: type[T], *, name: str = "", says: str = "", properties: Mapping[str, Any] | None = None) -> Object[T]:
    """The description that the types of a dataclass or named tuple give. `properties` are computed attributes."""
    if cls in _MEMO and not properties and name in ("", _MEMO[cls].name):
        return _MEMO[cls]
    hints = get_type_hints(cls, include_extras=True)
    defaults = _defaults(cls)
    fields: list[Field] = []
    merged = ""
    for attribute, hint in {**hints, **(properties or {})}.items():
        notes = getattr(hint, "__metadata__", ())
        if INTERNAL in notes or not (attribute in defaults or attribute in (properties or {})):
            continue
        if BESIDE in notes and get_origin(hint.__origin__) is Mapping:
            merged = attribute
        elif BESIDE in notes:
            fields += [replace(one, attribute=f"{attribute}.{one.attribute}") for one in returned(hint.__origin__)]
        else:
            fields.append(_field(attribute, hint, defaults.get(attribute, REQUIRED)))
    says = says or inspect.cleandoc(cls.__doc__ or "")
    made = Object(name or cls.__name__, says, fields, cls, merged=merged, is_json=is_typeddict(cls))
    return _MEMO.setdefault(cls, made)


def _defaults(cls: type[Any]) -> dict[str, Any]:
    if dataclasses.is_dataclass(cls):
        return {
            field.name: REQUIRED if field.default is MISSING else field.default
            for field in dataclasses.fields(cls)
            if not field.name.startswith("_")
        }
    if is_typeddict(cls):  # is JSON already
        return {name: REQUIRED if name in cls.__required_keys__ else None for name in cls.__annotations__}
    return {name: cls._field_defaults.get(name, REQUIRED) for name in cls._fields}


def _field(attribute: str, hint: Any, omitted: Any) -> Field:
    hint = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
    notes = hint.__metadata__ if get_origin(hint) is Annotated else ()
    says = next((note for note in notes if isinstance(note, str)), "")
    named = next((note.name for note in notes if isinstance(note, Named)), camel(attribute))
    return Field(kind_of(hint), says, name=named, default=omitted, omitted=omitted, attribute=attribute)


def kind_of(hint: Any) -> Kind:
    """The kind of a type."""
    if get_origin(hint) is Annotated:
        given = next((note for note in hint.__metadata__ if isinstance(note, Kind)), None)
        return given or kind_of(hint.__origin__)
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return kind(
            {"type": "string", **({"enum": list(arguments)} if len(arguments) > 1 else {"const": arguments[0]})}
        )
    if origin in (Union, UnionType):
        (one,) = [argument for argument in arguments if argument is not NoneType]
        return _optional(kind_of(one))
    if origin in (list, tuple, Sequence) or (isinstance(origin, type) and issubclass(origin, Sequence)):
        return _listed(kind_of(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapped(arguments[0], kind_of(arguments[1]))
    inner = returned(hint)
    made = kind_of_object(inner)
    return replace(made, write=TEXT.write) if is_typeddict(hint) else made


def kind_of_object(described: Object[Any]) -> Kind:
    """The kind of an object inside another."""
    return kind({"$ref": COMPONENTS + described.name}, described.write, "", described)


def _optional(one: Kind) -> Kind:
    write = one.write
    is_plain = write is TEXT.write
    return kind(
        {"anyOf": [one.schema, {"type": "null"}]},
        None if is_plain else lambda value: None if value is None else write(value),
        "",
        *one.inner,
    )


def _listed(item: Kind) -> Kind:
    write = list if item.write is TEXT.write else (lambda values, one=item.write: [one(value) for value in values])
    return kind({"type": "array", "items": item.schema}, write, "", *item.inner)


def _mapped(key: Any, value: Kind) -> Kind:
    schema: dict[str, Any] = {"type": "object", "additionalProperties": dict(value.schema) or True}
    if get_origin(key) is Literal:
        schema["propertyNames"] = {"enum": list(get_args(key))}
    if value.write is TEXT.write:
        return kind(schema, dict, "", *value.inner)
    return kind(schema, lambda given, one=value.write: {name: one(v) for name, v in given.items()}, "", *value.inner)


def returned_schemas(*objects: Object[Any]) -> dict[str, dict[str, Any]]:
    """The schemas of these objects and of all objects in them, by name."""
    made: dict[str, dict[str, Any]] = {}
    for described in objects:
        if described.name not in made:
            made[described.name] = schema_of_returned(described)
            made |= returned_schemas(*(inner for field in described for inner in field.kind.inner))
    return made


def schema_of_returned(described: Object[Any]) -> dict[str, Any]:
    """The schema of an object, of which the fields without a default are always present."""
    return {
        "title": described.name,
        **({"description": described.says} if described.says else {}),
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: schema_of_field(field) for field in described},
        **({"required": needed} if (needed := [field.name for field in described if field.is_required]) else {}),
    }


def schema_of_field(field: Field, *, null: bool = False) -> dict[str, Any]:
    """The schema of one field. `null`: of a request, where a default of null is written down."""
    schema = dict(field.kind.schema)
    is_object = "$ref" in schema or any("$ref" in option for option in schema.get("anyOf", ()))
    default: Any = field.omitted if isinstance(field.omitted, str | int | float) else None
    if field.omitted == ():
        default = {} if schema.get("type") == "object" else []
    return {
        **schema,
        **({} if is_object else {"title": field.name.replace("_", " ").title()}),
        **({"description": field.says} if field.says else {}),
        **({} if default is None and not (null and not field.is_required) else {"default": default}),
    }
