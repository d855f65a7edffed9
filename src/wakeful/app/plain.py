"""Values of the standard library in what a program passes as options, in the text that definitions have for them."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from pathlib import PurePath
from typing import Any

from wakeful.core.time.instants import format_duration, format_instant
from wakeful.core.time.timing_builders import as_duration, as_instant, as_time_of_day, as_zone


def plain(value: Any, field: str) -> Any:
    """The value with durations, times, zones and paths as text, also inside mappings and lists."""
    match value:
        case str() | int() | float() | None:
            return value
        case timedelta():
            return format_duration(as_duration(value, field))
        case datetime():
            return value.isoformat() if value.tzinfo is None else format_instant(as_instant(value, field))
        case date():
            return value.isoformat()
        case time():
            return as_time_of_day(value)
        case tzinfo():
            return as_zone(value, field)
        case PurePath():
            return str(value)
        case Mapping():
            return {name: plain(inner, f"{field}.{name}") for name, inner in value.items()}
        case list() | tuple():
            return [plain(inner, f"{field}[{index}]") for index, inner in enumerate(value)]
        case _:
            return value


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Each option with its name as the field. A timing is left to `timing_of`: a timedelta is none."""
    return {
        name: value if name == "schedule" and not isinstance(value, Mapping) else plain(value, name)
        for name, value in options.items()
    }
