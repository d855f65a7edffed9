"""`exclude`, for a schedule or in the settings for all schedules: days on which instants are skipped.

The days are dates, and the days of the events in a calendar file. An event with times excludes every local day it
touches. What a calendar contains is read elsewhere; here it is a value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Annotated, Any, Final, TypeAlias

from wakeful.core.description import Field, Kind, described
from wakeful.core.errors import Invalid, refuse
from wakeful.core.fields import Fields, shown
from wakeful.core.kinds import ZONE, filled, listed, nested
from wakeful.core.time.excluded_days import ExcludedDays, day_number, local_day
from wakeful.core.time.instants import Instant

EXCLUDED: Final = "excluded"
"""The reason of an instant on an excluded day."""

DATES_MAX: Final = 1_000
DAYS_KEPT: Final = 1_024


def parse_date(text: str, field: str) -> date:
    """A day written as `2026-12-24`."""
    try:
        if len(text) != len("2026-12-24"):
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        refuse(field, f"{shown(text)} is not a date; write it like 2026-12-24")


def _is_date(text: str) -> bool:
    try:
        parse_date(text, "")
    except Invalid:
        return False
    return True


def _read_dates(fields: Fields, name: str) -> tuple[str, ...]:
    given = fields.raw(name)
    if not isinstance(given, list | tuple) or len(given) > DATES_MAX:
        fields.fail(name, f'write a list of at most {DATES_MAX} dates, like ["2026-12-24", "2026-12-31"]')
        return ()
    for number, text in enumerate(given):
        if not isinstance(text, str) or not _is_date(text):
            fields.fail(f"{name}[{number}]", f"{shown(text)} is not a date; write it like 2026-12-24")
    return tuple(dict.fromkeys(text for text in given if isinstance(text, str)))


_DATES: Final = Kind(
    f"list of at most {DATES_MAX} dates",
    _read_dates,
    listed({"type": "string", "format": "date"}, most=DATES_MAX),
    list,
    control="list",
)


@dataclass(frozen=True, slots=True)
class Exclude:
    """Days on which it does not run: dates, and the days of the events in a calendar file."""

    dates: Annotated[tuple[str, ...], Field(_DATES, "days", "Not on these days", usual="none")] = ()
    calendar: Annotated[
        str | None,
        Field(
            filled("name an .ics file in the home folder, or leave it out", words="file"),
            "an .ics file, relative to the home folder; the days of its events are excluded",
            "Not on days of this calendar",
            "holidays.ics",
            usual="none",
        ),
    ] = None
    timezone: Annotated[
        str | None,
        Field(
            ZONE,
            "time zone of the days",
            "Time zone of the days",
            usual="the schedule's time zone; without one, the default time zone",
        ),
    ] = None


def _names_some(fields: Fields, exclude: Exclude) -> None:
    if not exclude.dates and exclude.calendar is None:
        fields.fail("dates", 'name days, like {"dates": ["2026-12-24"]}, or a calendar; or leave exclude out')


EXCLUDE: Final = described(Exclude, says=Exclude.__doc__ or "", check=_names_some)
EXCLUDE_KIND: Final = nested(EXCLUDE)


def exclude_from(given: "Exclude | Mapping[str, Any] | None") -> Exclude | None:
    """The value, from the forms Python programs may pass."""
    if given is None or isinstance(given, Exclude):
        return given
    fields = Fields(given, "exclude.")
    exclude = EXCLUDE.read(fields)
    fields.finish()
    return exclude


@dataclass(frozen=True, slots=True, eq=False)
class CalendarDays:
    """The days of a calendar: those of all-day events, and the times [start, end) of the other events."""

    days: frozenset[int] = frozenset()
    times: tuple[tuple[Instant, Instant], ...] = ()


Sources: TypeAlias = tuple[tuple[str, ...], CalendarDays | None]
"""Dates, and a calendar."""


@lru_cache(maxsize=DAYS_KEPT)
def excluded_days(zone: str, *sources: Sources) -> ExcludedDays | None:
    """All excluded days in a zone; None: there are none."""
    days: set[int] = set()
    for dates, calendar in sources:
        days.update(day_number(date.fromisoformat(text)) for text in dates)
        if calendar is not None:
            days |= calendar.days
            for start, end in calendar.times:
                days.update(_touched(zone, start, end))
    return ExcludedDays(zone, tuple(sorted(days))) if days else None


def _touched(zone: str, start: Instant, end: Instant) -> Sequence[int]:
    """The local days of an event with times."""
    first, last = day_number(local_day(zone, start)), day_number(local_day(zone, max(end - 1, start)))
    return range(first, last + 1)


def in_zone(exclude: Exclude, zone: str) -> Exclude:
    """The same exclusion with its zone filled in."""
    return exclude if exclude.timezone is not None else replace(exclude, timezone=zone)
