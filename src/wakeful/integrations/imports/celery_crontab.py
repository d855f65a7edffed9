"""Celery's crontab: its fields as sets, and its times.

The date and the day of the week must both match; a time that daylight saving leaves out runs an hour later, a repeated
one runs once.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

from wakeful.core.errors import Invalid
from wakeful.core.time.zones import check_zone
from wakeful.integrations.imports.cron_text import cron_text
from wakeful.integrations.imports.entries import SourceTimes, refuse
from wakeful.integrations.imports.python_source import written
from wakeful.integrations.imports.wall_rules import WallRules

FIELDS: Final = {
    "minute": (0, 59), "hour": (0, 23), "day_of_week": (0, 6), "day_of_month": (1, 31), "month_of_year": (1, 12),
}  # fmt: skip
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TERM: Final = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?", re.ASCII)


def crontab_times(fields: Mapping[str, Any], zone: str) -> tuple[dict[str, Any], SourceTimes]:
    """The schedule and the times of a crontab; its fields are texts, numbers or lists."""
    text = " ".join(f"{name}={fields[name]}" for name in FIELDS if fields.get(name, "*") != "*")
    sets = {name: _set(fields.get(name, "*"), name, *bounds) for name, bounds in FIELDS.items()}
    days, months, weekdays = sets["day_of_month"], sets["month_of_year"], sets["day_of_week"]
    minutes = sets["minute"] if sets["minute"] is not None else set(range(60))
    hours = sets["hour"] if sets["hour"] is not None else set(range(24))

    def matches(at: date) -> bool:
        is_date = (days is None or at.day in days) and (months is None or at.month in months)
        return is_date and (weekdays is None or at.isoweekday() % 7 in weekdays)

    expression = cron_text(minutes, hours, days, months, weekdays, source=text)
    seconds = tuple(sorted(hour * 3600 + minute * 60 for hour in hours for minute in minutes))
    rules = WallRules(checked_zone(zone), matches, seconds, "shift", "once")
    return {"type": "cron", "expression": expression, "timezone": zone}, rules


def checked_zone(zone: str) -> str:
    """The name of a zone that is known here."""
    try:
        return check_zone(zone)
    except Invalid:
        refuse(f"its time zone {zone[:80]!r} is not one that is known here")


def _set(value: Any, name: str, low: int, high: int) -> set[int] | None:
    """The values of a field as Celery reads it; None for all of them."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    if not isinstance(value, str):
        refuse(f"its {name} is {written(value)[:80]}, which is known only when the program runs")
    values: set[int] = set()
    for term in value.split(","):
        values.update(_range(term.strip(), name, low, high))
    return None if values == set(range(low, high + 1)) else values


def _range(term: str, name: str, low: int, high: int) -> Sequence[int]:
    read = _TERM.fullmatch(term)
    if read is None or (read[1] == "*" and read[2]) or (read[3] and read[1] != "*" and not read[2]):
        refuse(f"its {name} '{term[:80]}' is not one that Celery reads")
    if read[1] == "*":
        return range(low, high + 1)[:: int(read[3] or 1) or 1]
    first = _number(read[1], name)
    last = first if read[2] is None else _number(read[2], name)
    if not low <= first <= high or not low <= last <= high:
        refuse(f"its {name} '{term[:80]}' is not between {low} and {high}")
    whole = [*range(first, last + 1)] if first <= last else [*range(first, high + 1), *range(low, last + 1)]
    return whole[:: int(read[3] or 1) or 1]


def _number(text: str, name: str) -> int:
    if text.isdecimal() and len(text) <= 4:
        return int(text)
    names, base = (_MONTHS, 1) if name == "month_of_year" else (_DAYS, 0)
    if text[:3].lower() not in names:
        refuse(f"its {name} '{text[:80]}' is not one that Celery reads")
    return names.index(text[:3].lower()) + base
