"""The kinds of settings that are lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from wakeful.config.kinds.reading import shown
from wakeful.config.kinds.texts import text
from wakeful.core.description import Kind
from wakeful.core.fields import Fields
from wakeful.core.kinds import listed as list_schema

LIST_MAX: Final = 1_000


def listed(item: Kind, words: str, *, least: int = 0, most: int = LIST_MAX, distinct: bool = False) -> Kind:
    """A list; every error of an item names its position."""

    def read(fields: Fields, name: str) -> tuple[Any, ...]:
        written = fields.raw(name)
        if not isinstance(written, list | tuple):
            fields.fail(name, f"{shown(written)} is not a list; write [{item.cure}]")
            return ()
        if not least <= len(written) <= most:
            limit = f"at least {least}" if len(written) < least else f"at most {most}"
            fields.fail(name, f"has {len(written)} items; give {limit}")
            return ()
        elements: list[Any] = []
        inner = fields.beside({f"{name}[{index}]": value for index, value in enumerate(written)})
        for place, value in inner.data.items():
            element = item.read(inner, place)
            if inner.is_faulty(place):
                continue
            if distinct and element in elements:
                inner.fail(place, f"{shown(value)} is listed twice; keep one")
            elements.append(element)
        fields.errors += inner.errors
        return tuple(elements)

    return Kind(words, read, list_schema(item.schema, least=least, most=most), list, cure=f"[{item.cure}]")


_WORDS: Final = listed(
    text(example='"PROGRAM", "ARGUMENT"', may_be_empty=True), "list of strings: a program and its arguments", least=1
)


def _argv(fields: Fields, name: str) -> tuple[str, ...]:
    program: tuple[str, ...] = _WORDS.read(fields, name)
    if program and not program[0].strip() and not fields.is_faulty(name):
        fields.fail(f"{name}[0]", "is empty; write the name of a program")
    return program


ARGV: Final = replace(_WORDS, read=_argv)
