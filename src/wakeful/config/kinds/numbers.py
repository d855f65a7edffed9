"""The kinds of settings that are switches, numbers, durations and sizes."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from wakeful.config.faults import refusal
from wakeful.config.kinds.reading import kind_of_value, shown
from wakeful.core.description import Kind
from wakeful.core.errors import Invalid
from wakeful.core.kinds import DURATION_SCHEMA
from wakeful.core.time.instants import format_duration, parse_duration

_UNITS: Final = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_SIZE: Final = re.compile(r"(\d{1,15})\s*([KMG]i?B|B)?", re.IGNORECASE | re.ASCII)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise refusal(f"{shown(value)} is not true or false; write one of them without quotes")
    return value


FLAG: Final = kind_of_value("true or false", "true", _flag, {"type": "boolean"})


def count(least: int, most: int) -> Kind:
    def value_of(value: Any) -> int:
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            raise refusal(f"{shown(value)} is not a whole number; write it without a decimal point")
        if not isinstance(value, int) or isinstance(value, bool):
            raise refusal(f"{shown(value)} is not a whole number; write one from {least} to {most}, without quotes")
        if value < least:
            raise refusal(f"{shown(value)} is too small; give at least {least}")
        if value > most:
            raise refusal(f"{shown(value)} is too large; give at most {most}")
        return value

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return kind_of_value(f"whole number, {least} to {most}", str(least), value_of, schema)


def amount(least: float, most: float, words: str, example: str) -> Kind:
    """A number that may have a fraction."""

    def value_of(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise refusal(f"{shown(value)} is not a number; write {words} without quotes, like {example}")
        if not least <= value <= most:
            raise refusal(f"{shown(value)} is out of range; write {words} from {least:g} to {most:g}")
        return float(value)

    return kind_of_value(words, example, value_of, {"type": "number", "minimum": least, "maximum": most})


def dollars(example: str = "5.00", *, least: float = 0.000001) -> Kind:
    """An amount of money."""
    return amount(least, 1_000_000, "an amount in US dollars", example)


def duration(least: str, most: str) -> Kind:
    low, high = parse_duration(least), parse_duration(most)

    def value_of(value: Any) -> int:
        if not isinstance(value, str):
            raise refusal(f'{shown(value)} is not a duration; write it in quotes with its unit, like "90s" or "30m"')
        try:
            ms = parse_duration(value)
        except Invalid:
            raise
        except ValueError:  # more digits than Python is willing to parse
            raise refusal(f"{shown(value)} is too long; give at most {most}") from None
        if ms < low:
            raise refusal(f"{shown(value)} is too short; give at least {least}")
        if ms > high:
            raise refusal(f"{shown(value)} is too long; give at most {most}")
        return ms

    example = f'"{format_duration(max(low, 60_000))}"'
    return kind_of_value(f"duration, {least} to {most}", example, value_of, DURATION_SCHEMA, format_duration)


def size(least: str, most: str) -> Kind:
    low, high = _bytes(least), _bytes(most)

    def value_of(value: Any) -> int:
        amount = _bytes(value)
        if amount is None:
            raise refusal(f'{shown(value)} is not a size; write it in quotes with its unit, like "64KiB" or "1MiB"')
        if low is not None and amount < low:
            raise refusal(f"{shown(value)} is too small; give at least {least}")
        if high is not None and amount > high:
            raise refusal(f"{shown(value)} is too large; give at most {most}")
        return amount

    return kind_of_value(f"size, {least} to {most}", '"1MiB"', value_of)


def _bytes(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(match[1]) * _UNITS[(match[2] or "").lower()] if match else None
