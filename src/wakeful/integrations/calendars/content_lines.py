"""The content lines of a calendar file (RFC 5545, section 3.1), and the components they belong to."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LINES_MAX: Final = 200_000
_FOLD: Final = re.compile(r"\r?\n[ \t]")
_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_PARAMETER: Final = re.compile(r';([A-Za-z0-9-]+)=((?:"[^"]*"|[^";:,])*(?:,(?:"[^"]*"|[^";:,])*)*)')


class BadCalendar(Exception):
    """A calendar that cannot be read, and why."""


class Property(NamedTuple):
    """One line: `DTSTART;VALUE=DATE:20261224`."""

    name: str
    parameters: dict[str, str]
    value: str


def events_in(text: str) -> Iterator[list[Property]]:
    """The properties of each event, without those of components inside it (alarms)."""
    lines = _FOLD.sub("", text.removeprefix("\ufeff")).splitlines()
    if len(lines) > LINES_MAX:
        raise BadCalendar(f"has more than {LINES_MAX} lines")
    if not lines or lines[0].strip().upper() != "BEGIN:VCALENDAR":
        raise BadCalendar("does not start with BEGIN:VCALENDAR, so it is not a calendar file")
    within: list[str] = []
    event: list[Property] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        entry = _property(line, number)
        if entry.name == "BEGIN":
            within.append(entry.value.strip().upper())
            event = [] if within[-1] == "VEVENT" else event
        elif entry.name == "END":
            if not within or within.pop() != entry.value.strip().upper():
                raise BadCalendar(f"line {number}: {line[:80]!r} ends what did not begin")
            if entry.value.strip().upper() == "VEVENT":
                yield event
        elif within and within[-1] == "VEVENT":
            event.append(entry)
    if within:
        raise BadCalendar(f"ends before END:{within[-1]}")


def _property(line: str, number: int) -> Property:
    name = _NAME.match(line)
    if name is None:
        raise BadCalendar(f"line {number}: {line[:80]!r} is not a property")
    parameters, at = {}, name.end()
    while (parameter := _PARAMETER.match(line, at)) is not None:
        parameters[parameter[1].upper()] = parameter[2].strip('"')
        at = parameter.end()
    if line[at : at + 1] != ":":
        raise BadCalendar(f"line {number}: {line[:80]!r} has no value")
    return Property(name[0].upper(), parameters, line[at + 1 :])
