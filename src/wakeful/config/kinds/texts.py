"""The kinds of settings that are words and other text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from wakeful.config.faults import refusal
from wakeful.config.kinds.reading import STRING, kind_of_value, reading_of, shown, taken
from wakeful.core.description import Kind
from wakeful.core.fields import Fields
from wakeful.core.kinds import any_of
from wakeful.core.schedule.labels import LABEL_CURE, is_label

TEXT_MAX: Final = 100_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_MODULE: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def none_of(written: Any, words: tuple[str, ...]) -> str:
    """The refusal of a value that is none of these words."""
    near = get_close_matches(written[:80].lower(), words, n=1) if isinstance(written, str) else []
    hint = f"did you mean '{near[0]}'?" if near else "write one of them"
    return f"{shown(written)} is not one of {', '.join(words)}; {hint}"


def choice(words: tuple[str, ...]) -> Kind:
    """One of these words."""

    def value_of(value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise refusal(none_of(value, words))
        return value

    return kind_of_value(any_of(words), "…", value_of, {"enum": list(words)})


def plain_text(value: Any, most: int = TEXT_MAX, *, may_be_empty: bool = False) -> str:
    """A non-empty string that can be stored and passed to a program."""
    if not isinstance(value, str):
        raise refusal(f"{shown(value)} is not a string; put it in quotes")
    if not may_be_empty and not value.strip():
        raise refusal("is empty; write a value, or remove the line")
    if len(value) > most:
        raise refusal(f"has {len(value)} characters; give at most {most}")
    if "\0" in value:
        raise refusal("contains a NUL character, which cannot be stored; remove it")
    return value


def text(words: str = "text", *, most: int = TEXT_MAX, example: str = '"…"', may_be_empty: bool = False) -> Kind:
    return kind_of_value(words, example, lambda value: plain_text(value, most, may_be_empty=may_be_empty))


def _json_text(value: Any) -> str:
    text = plain_text(value)
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        raise refusal('is not JSON; write it in single quotes, like \'{"model": "…"}\'') from None
    return text


JSON_TEXT: Final = kind_of_value("JSON as a string", "'{…}'", _json_text)


def matching(words: str, pattern: re.Pattern[str], cure: str, *, example: str, most: int = 200) -> Kind:
    def value_of(value: Any) -> str:
        text = plain_text(value, most)
        if not pattern.fullmatch(text):
            raise refusal(f"{shown(text)} is not {words}; {cure}")
        return text

    return kind_of_value(words, example, value_of)


def name(most: int = 64, *, reserved: Mapping[str, str] = MappingProxyType({})) -> Kind:
    """A name that also appears in URLs and log lines; a reserved name is refused with its meaning."""

    def value_of(value: Any) -> str:
        text = plain_text(value, most)
        if not _NAME.fullmatch(text):
            raise refusal(f"{shown(text)} is not a name; use letters, digits, and . _ - after the first")
        if text in reserved:
            raise refusal(f"'{text}' means {reserved[text]}; choose another name")
        return text

    return kind_of_value("a name", "name", value_of)


MODULE: Final = matching(
    "a module", _MODULE, 'write it as import does, like "mypackage.flows"', example='"mypackage.flows"'
)
CALL_TARGET: Final = matching(
    "MODULE:FUNCTION",
    re.compile(rf"{_MODULE.pattern}:{_MODULE.pattern}"),
    'write it like "mypackage.agents:answer"',
    example='"mypackage.agents:answer"',
)


def single_word(most: int) -> Kind:
    return matching("a word", re.compile(r"\S+"), "write it without spaces", example='"WORD"', most=most)


def regex(groups: int = 1) -> Kind:
    """A regular expression; with a group, that is the part that is used."""

    def value_of(value: Any) -> re.Pattern[str]:
        try:
            pattern = re.compile(plain_text(value, 1_000))
        except (re.error, RecursionError, OverflowError) as error:
            raise refusal(f"{shown(value)} is not a regular expression ({error}); correct it") from None
        if groups and pattern.groups != groups:
            raise refusal(
                f"{shown(value)} has {pattern.groups} groups; put (…) around the one part to use, (?:…) elsewhere"
            )
        return pattern

    if not groups:
        return kind_of_value("regular expression", "'no such session'", value_of)
    return kind_of_value("regular expression with one group", "'session: (\\S+)'", value_of)


def naming(place: str, words: str, *, example: str, begins: str = "") -> Kind:
    """A string with a placeholder."""

    def value_of(value: Any) -> str:
        text = plain_text(value, 2_000)
        if place not in text:
            raise refusal(f"{shown(text)} has no placeholder; put {place} where the id belongs")
        if not text.startswith(begins):
            raise refusal(f"{shown(text)} is not a path; start it with {begins}")
        return text

    return kind_of_value(words, example, value_of)


def _label(value: Any) -> str:
    if not is_label(value):
        raise refusal(f"{shown(value)} is not a label; {LABEL_CURE}")
    return str(value)


LABEL: Final = kind_of_value("label", '"gpu"', _label)


def _path_in_json(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, list | tuple):
        return tuple(plain_text(part, 200) for part in value)
    return plain_text(value, 200)


PATH_IN_JSON: Final = kind_of_value("dotted key, or list of keys", '"result"', _path_in_json)
"""A path in JSON: keys separated by dots, or a list of keys."""


def _folder(fields: Fields, name: str) -> Path | None:
    def value_of(value: Any) -> Path:
        try:
            return reading_of(fields).secrets.home / Path(plain_text(value, 4_096)).expanduser()
        except RuntimeError:
            raise refusal(f"{shown(value)} starts with an unknown user's home; write the path in full") from None

    return taken(fields, name, value_of)


FOLDER: Final = Kind("folder, relative to the home folder", _folder, STRING, str, cure='"PATH"')
