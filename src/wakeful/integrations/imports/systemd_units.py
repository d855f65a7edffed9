"""Unit files of systemd: their settings by section, and time spans."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wakeful.core.time.instants import MINUTE, SECOND
from wakeful.integrations.imports.entries import LINE_MAX, SourceFile, SourceRefused, refuse

_UNITS: Final[Mapping[str, float]] = {
    "us": 0.001, "ms": 1, "s": SECOND, "sec": SECOND, "second": SECOND, "seconds": SECOND, "": SECOND,
    "m": MINUTE, "min": MINUTE, "minute": MINUTE, "minutes": MINUTE, "h": 60 * MINUTE, "hr": 60 * MINUTE,
    "hour": 60 * MINUTE, "hours": 60 * MINUTE, "d": 1440 * MINUTE, "day": 1440 * MINUTE, "days": 1440 * MINUTE,
    "w": 10080 * MINUTE, "week": 10080 * MINUTE, "weeks": 10080 * MINUTE,
}  # fmt: skip
_SPAN: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)")


@dataclass(slots=True)
class Unit:
    """A unit file: its settings by section, each a list."""

    name: str
    file: SourceFile
    sections: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def all(self, section: str, key: str) -> list[str]:
        return self.sections.get(section, {}).get(key, [])

    def last(self, section: str, key: str, usual: str = "") -> str:
        values = self.all(section, key)
        return values[-1] if values else usual


def parse_unit(file: SourceFile) -> Unit:
    """The settings of a unit file."""
    unit = Unit(Path(file.place).name, file)
    section: dict[str, list[str]] = {}
    lines = file.text.split("\n")
    number = 0
    while number < len(lines):
        start, text = number + 1, lines[number].rstrip("\r")
        while text.endswith("\\") and number + 1 < len(lines):
            number += 1
            text = text[:-1] + " " + lines[number].strip()
        number += 1
        if len(text) > LINE_MAX or "\0" in text:
            raise SourceRefused(file.place, "the line is too long, or binary", start)
        text = text.strip()
        if not text or text[0] in "#;":
            continue
        if text[0] == "[" and text[-1] == "]":
            section = unit.sections.setdefault(text[1:-1], {})
            continue
        key, equals, value = text.partition("=")
        if not equals:
            raise SourceRefused(file.place, f"'{text[:80]}' is neither a section nor a setting", start)
        values = section.setdefault(key.strip(), [])
        values.append(value.strip()) if value.strip() else values.clear()
    return unit


def span(text: str) -> int:
    """A systemd time span in milliseconds."""
    total, at = 0.0, 0
    while at < len(text.strip()):
        read = _SPAN.match(text.strip(), at)
        if read is None or read[2] not in _UNITS:
            refuse(f"'{text[:80]}' is not a time span")
        total += float(read[1]) * _UNITS[read[2]]
        at = read.end()
    return round(total)
