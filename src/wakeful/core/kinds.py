"""The kinds of fields in what users write in JSON: text, numbers, durations, choices, lists, objects."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from wakeful.core.description import COMPONENTS, Kind, Object
from wakeful.core.fields import Fields
from wakeful.core.time.instants import Duration, format_duration
from wakeful.core.time.zones import check_zone

DURATION_PATTERN: Final = r"^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$"
TEXT: Final = Kind("text", Fields.text, {"type": "string"})
FLAG: Final = Kind("true or false", lambda fields, name: fields.flag(name, False), {"type": "boolean"}, control="flag")
OBJECT: Final = Kind("object", Fields.mapping, {"type": "object"}, dict, control="json")
TEXTS: Final = Kind(
    "object of strings",
    Fields.texts,
    {"type": "object", "additionalProperties": {"type": "string"}},
    dict,
    control="json",
)
ANYTHING: Final = Kind("any JSON", Fields.raw, {}, control="json")


def filled(cure: str, *, words: str = "text", control: str = "text") -> Kind:
    """A text that must not be empty."""
    return Kind(
        words,
        lambda fields, name: fields.filled(name, cure),
        {"type": "string", "minLength": 1},
        control=control,
        cure=cure,
    )


NAME: Final = filled("write a name, or leave it out", words="name")


def whole(least: int, most: int | None = None) -> Kind:
    """A whole number."""
    limit = {} if most is None else {"maximum": most}
    words = f"whole number, at least {least}" if most is None else f"whole number, {least} to {most}"
    return Kind(
        words,
        lambda fields, name: fields.integer(name, least, least=least, most=most),
        {"type": "integer", "minimum": least, **limit},
        control="number",
    )


def duration(least: Duration = 0) -> Kind:
    """A length of time."""
    schema = {"type": "string", "pattern": DURATION_PATTERN, "examples": ["90s", "30m", "2h"]}
    words = "duration" if least <= 1 else f"duration, at least {format_duration(least)}"
    return Kind(words, lambda fields, name: fields.duration(name, None, least=least), schema, format_duration)


def choice(*options: str | None) -> Kind:
    """One of a few words; None stands for JSON null."""
    named = [option for option in options if option is not None]
    return Kind(
        " or ".join(f"`{option}`" for option in named),
        lambda fields, name: fields.choice(name, None, options),
        {"enum": named},
        control="choice",
    )


def parsed(
    words: str,
    parse: Callable[[str, str], Any],
    *,
    cure: str,
    what: str = "text; ",
    schema: Mapping[str, Any] | None = None,
    control: str = "text",
) -> Kind:
    """A text that a function parses or refuses; the text itself is the value."""

    def read(fields: Fields, name: str) -> str | None:
        text = fields.take(name, str, None, f"{what}{cure}")
        if text is not None:
            fields.read(name, lambda value: parse(value, fields.place(name)))
        return text

    return Kind(words, read, {"type": "string", **(schema or {})}, control=control, cure=cure)


ZONE: Final = parsed(
    "IANA time zone",
    check_zone,
    cure="write an IANA zone such as 'Europe/Berlin'",
    schema={"examples": ["Asia/Shanghai"]},
    control="zone",
)


def nested(inner: Object[Any]) -> Kind:
    """An object."""
    return Kind(
        f"[{inner.name}](#{inner.name.lower()})",
        lambda fields, name: fields.nested(name, inner.read),
        {"$ref": COMPONENTS + inner.name},
        inner.write,
        control="object",
        inner=(inner,),
    )


def names(words: str, pattern: re.Pattern[str], refusal: str, *, most: int | None = None) -> Kind:
    """A list of texts that match a pattern."""

    def read(fields: Fields, name: str) -> tuple[str, ...]:
        given = fields.raw(name)
        is_list = isinstance(given, list | tuple) and (most is None or len(given) <= most)
        if not is_list or not all(isinstance(one, str) and pattern.fullmatch(one) for one in given):
            fields.fail(name, refusal)
            return ()
        return tuple(dict.fromkeys(given))

    limit = {} if most is None else {"maxItems": most}
    return Kind(words, read, {"type": "array", "items": {"type": "string"}, **limit}, list, control="list")
