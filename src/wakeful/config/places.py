"""The line of each key in TOML text.

tomllib returns values without positions, so the text is scanned a second time only for the positions of its keys. The
scanner knows just enough TOML to tell keys from the content of strings, and accepts any input: on text that is not
TOML it may find wrong positions or none, but it always ends, in linear time. It also detects the two inputs that
tomllib cannot handle: keys of very many parts (quadratic time) and very deep nesting.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

DEPTH_MAX: Final = 32
"""More levels than any settings file needs: nested tables, nested lists, parts of a dotted key."""

_SPACE: Final = re.compile(r"[ \t]*")
_BLANK: Final = re.compile(r"(?:[ \t\n\r]+|#[^\n]*)*+")
_LINE_END: Final = re.compile(r"[^\n]*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE: Final = re.compile(r"[^,\]}#\n]*")
_LONG: Final = (
    re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}', re.DOTALL),
    re.compile(r"'''(?:[^']|'(?!''))*+'{3,5}", re.DOTALL),
)
_SHORT: Final = (
    re.compile(r'"(?:[^"\\\n]|\\[^\n])*+"'),
    re.compile(r"'[^'\n]*'"),
)


@dataclass(frozen=True, slots=True)
class DuplicateKey:
    """A key or a table that is defined twice."""

    path: Path
    first: int
    again: int


@dataclass(frozen=True, slots=True)
class Places:
    """The line of every key, the duplicates, and the line of the first value nested too deeply."""

    lines: Mapping[Path, int]
    twice: tuple[DuplicateKey, ...]
    too_deep: int | None

    def line_of(self, path: Path) -> int:
        """The line of the path, or of its nearest ancestor in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    @property
    def last_line(self) -> int:
        """The line of the last key: where an unclosed value must have started."""
        return max(self.lines.values(), default=1)

    def at_line(self, line: int) -> Path:
        """The path defined on the line; None if the line is only part of a value."""
        return max((path for path, number in self.lines.items() if number == line), key=len, default=())


def dotted(path: Path) -> str:
    """The path in dotted form: `slots.main.times[1]`."""
    parts = []
    for part in path:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        elif len(part) <= 80:
            parts.append("." + (part if _BARE_KEY.fullmatch(part) else json.dumps(part, ensure_ascii=False)))
        else:
            parts.append(f".{json.dumps(part[:80], ensure_ascii=False)}…")
    return "".join(parts).removeprefix(".")


def find_places(text: str) -> Places:
    """Walk the text."""
    walk = _Walk(text)
    try:
        walk.document()
    except _TooDeep:
        return Places(walk.lines, tuple(walk.twice), walk.line)
    return Places(walk.lines, tuple(walk.twice), None)


class _TooDeep(Exception):
    """Nesting beyond the limit; scanning stops."""


class _Walk:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._arrays: dict[Path, int] = {}
        self._written: dict[Path, int] = {}
        self.lines: dict[Path, int] = {}
        self.twice: list[DuplicateKey] = []

    @property
    def line(self) -> int:
        return bisect_right(self._starts, self._at)

    def document(self) -> None:
        table: Path = ()
        while self._skip(_BLANK) < len(self._text):
            if self._peek() == "[":
                table = self._header()
            else:
                self._pair(table, 0)
            self._skip(_LINE_END)

    def _header(self) -> Path:
        line, is_array = self.line, self._text.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        self._skip(_SPACE)
        key = self._key()
        path: Path = ()
        for index, part in enumerate(key):
            path += (part,)
            self.lines.setdefault(path, line)
            is_last = index == len(key) - 1
            if is_last and is_array:
                self._arrays[path] = self._arrays.get(path, -1) + 1
            if path in self._arrays:
                path += (self._arrays[path],)
                self.lines.setdefault(path, line)
        if not is_array:
            self._note(path, line)
        return path

    def _pair(self, table: Path, depth: int) -> bool:
        """Read a `key = value` pair; False if there is none."""
        line = self.line
        key = self._key()
        if not key:
            return False
        path = table
        for part in key:
            path += (part,)
            self.lines.setdefault(path, line)
        self.lines[path] = line  # where its value is, rather than where it was first mentioned
        self._note(path, line)
        self._skip(_SPACE)
        if self._peek() != "=":
            return False
        self._at += 1
        self._skip(_SPACE)
        self._value(path, depth)
        return True

    def _note(self, path: Path, line: int) -> None:
        if path in self._written:
            self.twice.append(DuplicateKey(path, self._written[path], line))
        self._written.setdefault(path, line)

    def _key(self) -> list[str]:
        parts: list[str] = []
        while True:
            part = self._key_part()
            if part is None:
                return parts
            parts.append(part)
            if len(parts) > DEPTH_MAX:
                raise _TooDeep
            self._skip(_SPACE)
            if self._peek() != ".":
                return parts
            self._at += 1
            self._skip(_SPACE)

    def _key_part(self) -> str | None:
        start = self._at
        if self._peek() in ("'", '"'):
            if not self._quoted():
                return None
            return _unquoted(self._text[start : self._at])
        if self._skip(_BARE_KEY) == start:
            return None
        return self._text[start : self._at]

    def _value(self, path: Path, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise _TooDeep
        match self._peek():
            case "[":
                self._list(path, depth)
            case "{":
                self._inline_table(path, depth)
            case "'" | '"' as quote:
                if not self._quoted():
                    is_long = self._text.startswith(quote * 3, self._at)
                    self._at = len(self._text) if is_long else self._skip(_LINE_END)
            case _:
                self._skip(_BARE_VALUE)

    def _list(self, path: Path, depth: int) -> None:
        self._at += 1
        index = 0
        while self._skip(_BLANK) < len(self._text) and self._peek() != "]":
            start = self._at
            self.lines[(*path, index)] = self.line
            self._value((*path, index), depth + 1)
            self._skip(_BLANK)
            if self._peek() == ",":
                self._at += 1
            elif self._at == start:
                return  # not a list after all
            index += 1
        self._at += 1

    def _inline_table(self, path: Path, depth: int) -> None:
        self._at += 1
        while self._skip(_BLANK) < len(self._text) and self._peek() != "}":
            if not self._pair(path, depth + 1):
                return
            self._skip(_BLANK)
            if self._peek() == ",":
                self._at += 1
        self._at += 1

    def _quoted(self) -> bool:
        is_long = self._text.startswith(('"""', "'''"), self._at)
        for pattern in _LONG if is_long else _SHORT:
            if match := pattern.match(self._text, self._at):
                self._at = match.end()
                return True
        return False

    def _skip(self, pattern: re.Pattern[str]) -> int:
        """Skip what the pattern matches; returns the new position."""
        if match := pattern.match(self._text, self._at):
            self._at = match.end()
        return self._at

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]


def _unquoted(key: str) -> str:
    """A quoted key, as tomllib reads it."""
    if "\\" not in key:
        return key[1:-1]
    try:
        return str(tomllib.loads(f"key = {key}")["key"])
    except ValueError:
        return key[1:-1]
