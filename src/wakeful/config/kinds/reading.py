"""How the kinds of settings read the values in the file.

A kind reads a value from the `Fields` of its table, and reports there what is wrong with it. Its `cure` is an example,
as the file writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from wakeful.config.faults import Refusal
from wakeful.config.secrets import Secret, SecretReader, SecretUrl
from wakeful.core.description import Kind
from wakeful.core.errors import Invalid
from wakeful.core.fields import Fields, shortened
from wakeful.core.fields import shown as shown_plain

T = TypeVar("T")
STRING: Final = {"type": "string"}


class Kinds(Protocol):
    """The kinds of tables that plugins offer."""

    def may_have(self, group: Any, kind: str, /) -> bool: ...
    def kinds(self, group: Any, /) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a value may depend on besides the value."""

    secrets: SecretReader
    agents: frozenset[str] | None = None  # all that the file names; None if there is no file
    is_whole: bool = True  # no line had to be left out
    tables_with: Callable[[str], list[str]] = lambda _: []  # the tables that have a key of this name
    plugins: Kinds | None = None  # the kinds that plugins offer


def reading_of(fields: Fields) -> Reading:
    """The context of fields; a value without one comes from this program, not from a file."""
    context = fields.context
    return context if isinstance(context, Reading) else Reading(SecretReader(Path(), {}))


def taken(fields: Fields, name: str, value_of: Callable[[Any], T]) -> T | None:
    """The value as a function reads it; if the function refuses it, None, and an error of the field."""
    try:
        return value_of(fields.raw(name))
    except Refusal as refused:
        message = str(refused)
    except Invalid as invalid:
        message = invalid.errors[0].message
    fields.fail(name, shortened(message))
    return None


def kind_of_value(
    words: str,
    example: str,
    value_of: Callable[[Any], Any],
    schema: Mapping[str, Any] = STRING,
    write: Callable[[Any], Any] = lambda value: value,
) -> Kind:
    """The kind of a value that needs nothing else to be read."""
    return Kind(words, lambda fields, name: taken(fields, name, value_of), schema, write, cure=example)


def masked(value: Any) -> Any:
    """The value as shown to people."""
    match value:
        case Secret() | SecretUrl():
            return str(value)
        case Mapping():
            return {name: masked(inner) for name, inner in value.items()}
        case tuple() | list():
            return [masked(inner) for inner in value]
        case _:
            return value


def shown(value: Any) -> str:
    """The value as quoted in messages: in TOML syntax, shortened."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return "a table"
        case list():
            return "a list"
        case _:
            return shown_plain(value)
