"""A TOML text read as far as it can be, with the place of everything in it and every fault of its writing.

tomllib stops at the first mistake. The commonest ones, though, spoil a single line (`every = 30m`, `timezone =
Asia/Shanghai`: a text without quotes), and a person who made one has often made several. Such a line is taken out and
the rest is read again, so that all of them and the faults of the values are reported together. Where a mistake may
reach further (an open quote, an open bracket), nothing behind it can be trusted, and reading ends.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import Any, Final

from wakeful.config.faults import LocatedError
from wakeful.config.places import DEPTH_MAX, Path, Places, dotted, find_places

SPOILT_MAX: Final = 20
"""More broken lines than this, and it is not a settings file."""

_POSITION: Final = re.compile(r"(?s)(.*) \(at (?:line (\d+), column (\d+)|end of document)\)")
_BARE_PAIR: Final = re.compile(r"""\s*[A-Za-z0-9_.-]+\s*(?:=\s*(?P<value>[^"'\[\]{}#\n]*?))?\s*(?:#.*)?""")
_UNQUOTED: Final = re.compile(r"[^\W\d][\w/.:+-]*|\d+[\w:.+-]*[a-zA-Z]\w*|\d\d?:\d\d")
_CURES: Final = (
    ("Invalid value", "there is no value TOML knows here; write one, texts in quotes, and close every [ and {"),
    ("Expected newline", "something stands after the value"),
    ("Expected '='", "a key has no value; write key = value"),
    ("Invalid statement", "a line begins with something that is not a key; write key = value, or # before a comment"),
    ("Invalid initial character", "a key is missing or begins with a wrong character; put unusual keys in quotes"),
    ("Expected ']", "a table's header is not closed; write it like [server]"),
    ("Unterminated string", "a text is not closed; add the quote at its end"),
    ("Illegal character '\\n'", "a text is not closed on its line; add the quote at its end"),
    ("Illegal character", "a character is not allowed in a text; remove it, or write it as \\uXXXX"),
    ("Found invalid character", "a control character is not allowed here; remove it"),
    ("Expected \"'''\"", "a text that began with ''' is not closed; add ''' at its end"),
    ("Expected", 'a text is not closed; add the quote (or """) at its end'),
    ("Unescaped '\\", "a \\ in double quotes begins an escape; write \\\\, or put the text in single quotes"),
    ("Invalid hex value", "an escape needs its digits: \\uXXXX or \\UXXXXXXXX"),
    ("Escaped character is not", "an escape names no character; write another \\uXXXX"),
    ("Unclosed array", "a list is not closed; add ] at its end, commas between its items, quotes around texts"),
    ("Unclosed inline table", "a table in braces is not closed; add } at its end, and commas between its pairs"),
    ("Invalid date", "there is no such date or time; if a text is meant, put it in quotes"),
    ("Cannot declare", "a table is there twice; keep one"),
    ("Cannot overwrite", "a key is there twice; keep one"),
    ("Duplicate inline", "a key is there twice in the braces; keep one"),
    ("Cannot redefine", "a table is there twice, once by dotted keys; keep one"),
    ("Cannot mutate", "a table in braces or a list cannot be added to; write all of it in one place"),
)


@dataclass(frozen=True, slots=True)
class Document:
    """What a text says, where, and what is wrong with its writing.

    If `is_whole` is False only `faults` mean anything. `spoilt` are the keys of lines that were taken out.
    """

    data: dict[str, Any]
    places: Places
    faults: tuple[LocatedError, ...] = ()
    spoilt: frozenset[Path] = field(default_factory=frozenset)
    is_whole: bool = True


def read_document(text: str) -> Document:
    """Read a TOML text; never raises."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    places = find_places(text)
    if places.too_deep is not None:
        deep = LocatedError("", f"is nested deeper than {DEPTH_MAX} levels; make it flatter", places.too_deep)
        return Document({}, places, (deep,), is_whole=False)
    faults: dict[int, LocatedError] = {}
    spoilt: set[Path] = set()
    while True:
        try:
            return Document(tomllib.loads(text), places, tuple(faults.values()), frozenset(spoilt))
        except (ValueError, RecursionError) as error:
            fault, may_go_on = _fault(error, text, places)
        faults[fault.line or 1] = fault
        if not may_go_on or len(faults) > SPOILT_MAX:
            faults.update({again.line or 1: again for again in _twice(places, fault)})
            return Document({}, places, tuple(faults.values()), is_whole=False)
        spoilt.add(places.at_line(fault.line or 1))
        lines = text.split("\n")
        lines[(fault.line or 1) - 1] = "#"
        text = "\n".join(lines)


def _fault(error: Exception, text: str, places: Places) -> tuple[LocatedError, bool]:
    """The mistake tomllib stopped at, and whether it spoils no more than its line."""
    if isinstance(error, tomllib.TOMLDecodeError):
        message, line, column = _position(error, places)
        cure = _cure(message, _line(text, line))
    else:  # a number of thousands of digits, which Python refuses to read; it does not say where
        line, column = _longest_number(text)
        cure = "a number has too many digits; write a smaller one"
    path = places.at_line(line)
    fault = LocatedError(dotted(path), cure, line, column)
    return fault, bool(path) and _BARE_PAIR.fullmatch(_line(text, line)) is not None and "twice" not in cure


def _twice(places: Places, last: LocatedError) -> list[LocatedError]:
    """What is written twice, as far as the text can be trusted: all of it, if that is what reading ended at."""
    is_whole = "twice" in last.message
    return [
        LocatedError(dotted(twice.path), f"is there twice, first in line {twice.first}; keep one", twice.again)
        for twice in places.twice
        if is_whole or twice.again < (last.line or 1)
    ]


def _line(text: str, number: int) -> str:
    return text.split("\n")[number - 1]


def _position(error: tomllib.TOMLDecodeError, places: Places) -> tuple[str, int, int | None]:
    found = _POSITION.fullmatch(str(error))
    if found is None or found[2] is None:
        return (found[1] if found else str(error)), places.last_line, None
    return found[1], int(found[2]), int(found[3])


def _longest_number(text: str) -> tuple[int, int]:
    longest = max(re.finditer(r"[0-9_]+", text), key=lambda found: len(found[0]), default=None)
    start = longest.start() if longest else 0
    return text.count("\n", 0, start) + 1, start - (text.rfind("\n", 0, start) + 1) + 1


def _cure(message: str, line: str) -> str:
    """What tomllib found, in words that say what to do."""
    pair = _BARE_PAIR.fullmatch(line)
    value = (pair["value"] or "") if pair else ""
    if message.startswith(("Invalid value", "Expected newline")) and pair:
        if value in ("True", "False"):
            return f"{value} is written {value.lower()} in TOML"
        if _UNQUOTED.fullmatch(value):  # not quoted in the message: it may be a secret
            return f'is a text without quotes; write {line.partition("=")[0].strip()} = "…"'
        if not value:
            return "has no value; write one after the =, or remove the line"
    for beginning, cure in _CURES:
        if message.startswith(beginning):
            return cure
    return f"TOML cannot read this ({message[:200]}); correct it"
