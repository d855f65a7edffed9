"""A calendar as text (RFC 5545): times in UTC, so that every program shows them in its own zone, with daylight
saving."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from wakeful.core.time.instants import Instant, format_instant
from wakeful.features.schedules.calendar_entries import Entries, Entry

LINE_MAX: Final = 75
"""Octets of a line, without its end."""
_ESCAPED: Final = {"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"}
_SPECIAL: Final = re.compile(r"[\\;,\n]")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NOT_IN_UID: Final = re.compile(r"[^A-Za-z0-9._-]")


def calendar_text(entries: Entries, *, now: Instant, store_id: str) -> str:
    """The whole file."""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Wakeful//Wakeful//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        "X-WR-CALNAME:Wakeful",
        f"X-WR-CALDESC:{_text(_described(entries))}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
        "X-PUBLISHED-TTL:PT1H",
        *(line for entry in entries.entries for line in _event(entry, now, store_id)),
        "END:VCALENDAR",
    ]
    return "".join(f"{folded}\r\n" for line in lines for folded in _folded(line))


def _described(entries: Entries) -> str:
    more = "; later runs do not fit" if entries.is_cut else ""
    return f"What Wakeful will run until {format_instant(entries.until)}{more}"


def _event(entry: Entry, now: Instant, store_id: str) -> Iterator[str]:
    yield "BEGIN:VEVENT"
    yield f"UID:{_NOT_IN_UID.sub('-', entry.uid)}@{store_id}.wakeful"
    yield f"DTSTAMP:{_time(now)}"
    yield f"DTSTART:{_time(entry.starts_at)}"
    yield f"DTEND:{_time(entry.ends_at)}"
    yield f"SUMMARY:{_text(entry.title)}"
    yield f"DESCRIPTION:{_text(entry.details)}"
    yield "TRANSP:TRANSPARENT"
    yield "END:VEVENT"


def _time(at: Instant) -> str:
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y%m%dT%H%M%SZ")


def _text(text: str) -> str:
    return _SPECIAL.sub(lambda match: _ESCAPED[match[0]], _CONTROL.sub(" ", text))


def _folded(line: str) -> Iterator[str]:
    """The line in parts of at most 75 octets; all but the first start with a space. No character is divided."""
    if len(line) <= LINE_MAX and line.isascii():
        yield line
        return
    part = ""
    for character in line:
        if len((part + character).encode()) > LINE_MAX:
            yield part
            part = " "
        part += character
    yield part
