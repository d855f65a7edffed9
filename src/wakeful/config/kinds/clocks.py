"""The kinds of settings that are times of day, dates and time zones."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any, Final

from wakeful.config.faults import refusal
from wakeful.config.kinds.reading import kind_of_value, shown
from wakeful.config.kinds.texts import plain_text
from wakeful.core.description import Kind
from wakeful.core.schedule.exclude import parse_date
from wakeful.core.time.active_hours import parse_time_of_day
from wakeful.core.time.zones import check_zone


def _zone(value: Any) -> str:
    text = plain_text(value, 100)
    return text if text == "local" else check_zone(text)


def _day(value: Any) -> str:
    text = str(value) if isinstance(value, date) and not isinstance(value, datetime) else plain_text(value, 100)
    return parse_date(text, "dates").isoformat()


def time_of_day(last: str = "23:59") -> Kind:
    """A time from 00:00 to this one; 24:00 is the end of a day."""

    def value_of(value: Any) -> str:
        if isinstance(value, time):
            raise refusal(f'{shown(value)} is not a string; write it in quotes, like "{value:%H:%M}"')
        text = plain_text(value, 100)
        parse_time_of_day(text, "time", end=last == "24:00")
        return text

    return kind_of_value(f"time of day, 00:00 to {last}", '"09:00"', value_of)


ZONE: Final = kind_of_value("IANA time zone or local", '"Europe/Berlin"', _zone)
DAY: Final = kind_of_value("date", '"2026-12-24"', _day)
