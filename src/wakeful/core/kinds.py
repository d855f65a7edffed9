"""The kinds of fields in what users write in JSON: text, numbers, durations, choices, lists, objects."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, get_args

from wakeful.core.description import COMPONENTS, Kind, Object
from wakeful.core.fields import Fields, shown
from wakeful.core.time.instants import Duration, format_duration
from wakeful.core.time.zones import check_zone

DURATION_PATTERN: Final = r"^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$"
DURATION_SCHEMA: Final = {"type": "string", "pattern": DURATION_PATTERN, "examples": ["90s", "30m", "2h"]}
_STRING: Final = {"type": "string"}
_OBJECT: Final = {"type": "object"}
TEXT: Final = Kind("text", Fields.text, _STRING)
FLAG: Final = Kind("true or false", lambda fields, name: fields.flag(name, False), {"type": "boolean"}, control="flag")
OBJECT: Final = Kind("object", Fields.mapping, _OBJECT, dict, "json")
TEXTS: Final = Kind("object of strings", Fields.texts, {**_OBJECT, "additionalProperties": _STRING}, dict, "json")
ANYTHING: Final = Kind("any JSON", Fields.raw, {}, control="json")


def filled(cure: str, *, words: str = "text", control: str = "text") -> Kind:
    """A string that must not be empty."""
    schema = {**_STRING, "minLength": 1}
    return Kind(words, lambda fields, name: fields.filled(name, cure), schema, control=control, cure=cure)


CHANNEL: Final = filled("name a channel, or last", control="channel")
NAME: Final = filled("write a name, or leave it out", words="name")


def whole(least: int, most: int | None = None) -> Kind:
    """A whole number."""
    words = f"whole number, at least {least}" if most is None else f"whole number, {least} to {most}"
    schema = {"type": "integer", "minimum": least, **({} if most is None else {"maximum": most})}
    read = partial(_read_whole, least, most)
    return Kind(words, read, schema, control="number")


def _read_whole(least: int, most: int | None, fields: Fields, name: str) -> int:
    return fields.integer(name, least, least=least, most=most)


def _read_dollars(fields: Fields, name: str) -> float | None:
    value = fields.raw(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= DOLLARS_MAX:
        fields.fail(name, f"{shown(value)} is not an amount; write US dollars above 0 without quotes, like 0.50")
        return None
    return value


DOLLARS_MAX: Final = 1_000_000
DOLLARS: Final = Kind(
    "amount in US dollars",
    _read_dollars,
    {"type": "number", "exclusiveMinimum": 0, "maximum": DOLLARS_MAX, "examples": [0.5]},
    control="number",
)


def duration(least: Duration = 0) -> Kind:
    """A length of time."""
    words = "duration" if least <= 1 else f"duration, at least {format_duration(least)}"
    return Kind(words, lambda fields, name: fields.duration(name, None, least=least), DURATION_SCHEMA, format_duration)


def any_of(words: Iterable[str]) -> str:
    """The alternatives in words, for a table."""
    return " or ".join(f"`{word}`" for word in words)


def listed(items: Mapping[str, Any], *, least: int | None = None, most: int | None = None) -> dict[str, Any]:
    """The schema of a list."""
    limits = {"minItems": least, "maxItems": most}
    return {
        "type": "array",
        "items": dict(items),
        **{name: limit for name, limit in limits.items() if limit is not None},
    }


def choice(*types: Any) -> Kind:
    """One of a `Literal`'s values; None stands for JSON null."""
    options = [word for literal in types for word in (get_args(literal) or (literal,))]
    named = [option for option in options if option is not None]
    return Kind(
        any_of(named), lambda fields, name: fields.choice(name, None, options), {"enum": named}, control="choice"
    )


def parsed(
    words: str,
    parse: Callable[[str, str], Any],
    *,
    cure: str,
    what: str = "a string; ",
    schema: Mapping[str, Any] | None = None,
    control: str = "text",
) -> Kind:
    """A string that a function parses or refuses; the string itself is the value."""

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
    return Kind(
        f"[{inner.name}](#{inner.name.lower()})",
        lambda fields, name: fields.nested(name, inner.read),
        {"$ref": COMPONENTS + inner.name},
        inner.write,
        control="object",
        inner=(inner,),
    )


def names(pattern: re.Pattern[str], refusal: str, *, most: int) -> Kind:
    """A list of strings that match a pattern."""

    def read(fields: Fields, name: str) -> tuple[str, ...]:
        given = fields.raw(name)
        is_list = isinstance(given, list | tuple) and len(given) <= most
        if not is_list or not all(isinstance(item, str) and pattern.fullmatch(item) for item in given):
            fields.fail(name, refusal)
            return ()
        return tuple(dict.fromkeys(given))

    return Kind(f"list of at most {most} names", read, listed({"type": "string"}, most=most), list, control="list")
