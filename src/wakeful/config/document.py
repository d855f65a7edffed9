"""Parse TOML text as far as possible, with the position of every key and every syntax error.

tomllib stops at the first error. The most common ones, though, affect a single line (`every = 30m`, `timezone =
Asia/Shanghai`: a string without quotes), and a person who made one has often made several. Such a line is removed and
the rest is parsed again, so that all of them are reported together with invalid values. Where an error may reach
further (an open quote or bracket), nothing after it can be trusted, and parsing stops.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import Any, Final

from wakeful.config.faults import LocatedError
from wakeful.config.places import DEPTH_MAX, Path, Places, dotted, find_places

SPOILT_MAX: Final = 20
"""A file with more broken lines than this is not a settings file."""

_POSITION: Final = re.compile(r"(?s)(.*) \(at (?:line (\d+), column (\d+)|end of document)\)")
_BARE_PAIR: Final = re.compile(r"""\s*[A-Za-z0-9_.-]+\s*(?:=\s*(?P<value>[^"'\[\]{}#\n]*?))?\s*(?:#.*)?""")
_UNQUOTED: Final = re.compile(r"[^\W\d][\w/.:+-]*|\d+[\w:.+-]*[a-zA-Z]\w*|\d\d?:\d\d")
_CURES: Final = (
    ("Invalid value", "this is not a TOML value; put strings in quotes, and close every [ and {"),
    ("Expected newline", "unexpected text after the value"),
    ("Expected '='", "a key has no value; write key = value"),
    ("Invalid statement", "the line does not start with a key; write key = value, or # before a comment"),
    ("Invalid initial character", "a key is missing or starts with an invalid character; put unusual keys in quotes"),
    ("Expected ']", "the table header is not closed; write it like [server]"),
    ("Unterminated string", "a string is not closed; add the closing quote"),
    ("Illegal character '\\n'", "a string is not closed on its line; add the closing quote"),
    ("Illegal character", "a character is not allowed in a string; remove it, or write it as \\uXXXX"),
    ("Found invalid character", "a control character is not allowed here; remove it"),
    ("Expected \"'''\"", "a string that starts with ''' is not closed; add ''' at its end"),
    ("Expected", 'a string is not closed; add the closing quote (or """)'),
    (
        "Unescaped '\\",
        "a \\ in double quotes starts an escape sequence; write \\\\, or put the string in single quotes",
    ),
    ("Invalid hex value", "an escape sequence needs its digits: \\uXXXX or \\UXXXXXXXX"),
    ("Escaped character is not", "an escape sequence is not a valid character; write another \\uXXXX"),
    ("Unclosed array", "a list is not closed; add ] at its end, commas between its items, quotes around strings"),
    ("Unclosed inline table", "an inline table is not closed; add } at its end, and commas between its pairs"),
    ("Invalid date", "no such date or time; if it is a string, put it in quotes"),
    ("Cannot declare", "a table is defined twice; keep one"),
    ("Cannot overwrite", "a key is defined twice; keep one"),
    ("Duplicate inline", "a key is defined twice in the inline table; keep one"),
    ("Cannot redefine", "a table is defined twice, once by dotted keys; keep one"),
    ("Cannot mutate", "an inline table or a list cannot be extended; write all of it in one place"),
)


@dataclass(frozen=True, slots=True)
class Document:
    """The parsed values, their positions and the syntax errors.

    If `is_whole` is False only `faults` is meaningful. `spoilt` are the keys of removed lines.
    """

    data: dict[str, Any]
    places: Places
    faults: tuple[LocatedError, ...] = ()
    spoilt: frozenset[Path] = field(default_factory=frozenset)
    is_whole: bool = True


def read_document(text: str) -> Document:
    """Read TOML text; never raises."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    places = find_places(text)
    if places.too_deep is not None:
        deep = LocatedError("", f"is nested deeper than {DEPTH_MAX} levels; reduce the nesting", places.too_deep)
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
    """The error tomllib stopped at, and whether it affects only its line."""
    if isinstance(error, tomllib.TOMLDecodeError):
        message, line, column = _position(error, places)
        cure = _cure(message, _line(text, line))
    else:  # a number of thousands of digits, which Python refuses to parse without a position
        line, column = _longest_number(text)
        cure = "a number has too many digits; write a smaller one"
    path = places.at_line(line)
    fault = LocatedError(dotted(path), cure, line, column)
    return fault, bool(path) and _BARE_PAIR.fullmatch(_line(text, line)) is not None and "twice" not in cure


def _twice(places: Places, last: LocatedError) -> list[LocatedError]:
    """Duplicate keys, as far as the text can be trusted: all of it, if parsing stopped at a duplicate."""
    is_whole = "twice" in last.message
    return [
        LocatedError(dotted(twice.path), f"is defined twice, first in line {twice.first}; keep one", twice.again)
        for twice in places.twice
        if is_whole or twice.again < (last.line or 1)
    ]


def _line(text: str, number: int) -> str:
    return text.split("\n")[number - 1]


def _position(error: tomllib.TOMLDecodeError, places: Places) -> tuple[str, int, int | None]:
    match = _POSITION.fullmatch(str(error))
    if match is None or match[2] is None:
        return (match[1] if match else str(error)), places.last_line, None
    return match[1], int(match[2]), int(match[3])


def _longest_number(text: str) -> tuple[int, int]:
    longest = max(re.finditer(r"[0-9_]+", text), key=lambda match: len(match[0]), default=None)
    start = longest.start() if longest else 0
    return text.count("\n", 0, start) + 1, start - (text.rfind("\n", 0, start) + 1) + 1


def _cure(message: str, line: str) -> str:
    """tomllib's error as a message that says what to do."""
    pair = _BARE_PAIR.fullmatch(line)
    value = (pair["value"] or "") if pair else ""
    if message.startswith(("Invalid value", "Expected newline")) and pair:
        if value in ("True", "False"):
            return f"{value} is written {value.lower()} in TOML"
        if _UNQUOTED.fullmatch(value):  # not quoted in the message: it may be a secret
            return f'is a string without quotes; write {line.partition("=")[0].strip()} = "…"'
        if not value:
            return "has no value; write one after the =, or remove the line"
    for beginning, cure in _CURES:
        if message.startswith(beginning):
            return cure
    return f"invalid TOML ({message[:200]}); correct it"
