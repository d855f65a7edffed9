"""Timings as a definition writes them in JSON.

Theory of operation: one table describes for each `type` its fields and builds its value. Every error is collected
instead of stopping at the first, so that one `Invalid` lists them all. Whether an instant lies in the past is not
decided here: a stored definition must stay readable after its time has come (`timing.is_past` is for the command that
accepts it).

What is written is what was read: the alias (`interval`, `at`), the text of durations and instants. Only a missing zone
is added, by its name. A missing anchor is not part of the definition: its grid is stored as `anchoredAt`, in the stored
form only, so that reading it back needs neither the clock nor the current settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

from wakeful.core.description import COMPONENTS, Field, Kind, Object
from wakeful.core.errors import Invalid, refuse
from wakeful.core.fields import Fields
from wakeful.core.kinds import DURATION_SCHEMA, ZONE, choice, filled, listed, parsed
from wakeful.core.time.cron import InGap, InRepeat, parse_cron
from wakeful.core.time.instants import (
    INSTANT_MAX,
    MINUTE,
    Duration,
    Instant,
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
)
from wakeful.core.time.timing import AfterReset, Cron, Every, Manual, Once, Times, Timing, resolved
from wakeful.core.time.timing_builders import check_times
from wakeful.core.time.zones import check_zone

ANCHORED_AT: Final = "anchoredAt"


def read_timing(data: object, field: str = "schedule") -> Timing:
    """The timing a definition describes; what it leaves open (zone, anchor) stays open.

    All errors are raised in one `Invalid`."""
    if not isinstance(data, Mapping):
        refuse(field, f"{data!r} is not an object; write for example {{'type': 'cron', 'expression': '0 9 * * *'}}")
    kind = data.get("type")
    timing_type = TIMING_TYPES.get(kind) if isinstance(kind, str) else None
    if timing_type is None:
        problem = "is missing" if kind is None else f"{kind!r} is not a kind of schedule"
        refuse(f"{field}.type", f"{problem}; write one of {', '.join(TIMING_TYPES)}")
    fields = Fields(data, f"{field}.")
    for name in data:
        if name not in timing_type.fields.names and name not in timing_type.stored:
            cure = f"{kind} has {', '.join(timing_type.fields.names)}"
            fields.fail(str(name), f"is not a field of this kind of schedule; {cure}")
    values = timing_type.fields.given(fields)
    if ANCHORED_AT in timing_type.stored and ANCHORED_AT in data and values["anchor"] is None:
        values["anchor"] = INSTANT.read(fields, ANCHORED_AT)
    if fields.errors:
        raise Invalid(*fields.errors)
    return timing_type.build(data, values)


def timing_to_store(timing: Timing) -> dict[str, Any]:
    """The timing as written, plus the anchor it got if none was written."""
    written = timing_to_json(timing)
    if isinstance(timing, Every) and timing.anchor is not None and timing.anchor_written is None:
        written[ANCHORED_AT] = format_instant(timing.anchor)
    return written


def timing_to_json(timing: Timing) -> dict[str, Any]:
    """The timing as written, with the zone filled in."""
    match timing:
        case Once(at, timezone, kind, written):
            return {"type": kind, "at": written or format_instant(resolved(at)), **_zone(timezone)}
        case Every(every, _, timezone, kind, written, anchor_written):
            spelt: dict[str, Any] = {"intervalMinutes": _minutes(every)}
            if kind != "interval":
                spelt = {"every": written or format_duration(every)}
            anchored = {} if anchor_written is None else {"anchor": anchor_written}
            return {"type": kind, **spelt, **anchored, **_zone(timezone)}
        case Cron(expression, timezone, in_gap, in_repeat):
            spelt = {} if in_gap is None else {"inGap": in_gap}
            spelt |= {} if in_repeat is None else {"inRepeat": in_repeat}
            return {"type": "cron", "expression": expression, **_zone(timezone), **spelt}
        case Times(times, timezone):
            return {"type": "times", "times": list(times), **_zone(timezone)}
        case AfterReset(slot, offset):
            return {"type": "afterReset", "slot": slot, "offsetMinutes": _minutes(offset)}
        case Manual():
            return {"type": "manual"}
        case _:
            assert_never(timing)


def _zone(timezone: str | None) -> dict[str, str]:
    return {} if timezone is None else {"timezone": timezone}


def _minutes(length: Duration) -> int | float:
    return length / MINUTE if length % MINUTE else length // MINUTE


# The kinds of fields


def _parse_every(text: str, place: str) -> None:
    if parse_duration(text, place) == 0:
        refuse(place, f"'{text}' is not an interval; write more than zero, e.g. 30m")


def _read_instant(fields: Fields, name: str) -> Instant | None:
    text = fields.take(name, str, None, f"a string; {INSTANT.cure}")
    if text is None:
        return None
    zone = fields.data.get("timezone")
    # If the zone next to it is refused, a second error about a missing offset would mislead.
    return fields.read(name, lambda _: parse_instant(text, _zone_or_utc(zone), fields.place(name)))


def _zone_or_utc(zone: Any) -> str | None:
    try:
        return zone if zone is None else check_zone(zone) if isinstance(zone, str) else "UTC"
    except Invalid:
        return "UTC"


def _minutes_kind(least: int, cure: str) -> Kind:
    bound, limit = ("more than zero", "exclusiveMinimum") if least else ("zero or more", "minimum")

    def read(fields: Fields, name: str) -> Duration | None:
        value = fields.raw(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            fields.fail(name, f"{value!r} is not a number of minutes; {cure}")
        elif not least <= value * MINUTE <= INSTANT_MAX or value * MINUTE % 1:
            fields.fail(name, f"{value} is not a usable number of minutes; write {bound}, e.g. 30")
        else:
            return int(value * MINUTE)
        return None

    return Kind(
        f"number of minutes, {bound}", read, {"type": "number", limit: 0}, _minutes, control="number", cure=cure
    )


def _read_times(fields: Fields, name: str) -> tuple[str, ...]:
    listed = fields.raw(name)
    if not isinstance(listed, list | tuple):
        fields.fail(name, f"{listed!r} is not a list; {_TIMES.cure}")
        return ()
    fields.read(name, lambda _: check_times(listed, fields.place(name)))
    return tuple(listed)


INSTANT: Final = Kind(
    "date and time",
    _read_instant,
    {"type": "string", "examples": ["2026-01-30T09:00:00+01:00"]},
    format_instant,
    cure="write an instant such as '2026-01-30T09:00:00Z'",
)
_TIMES: Final = Kind(
    "list of times of day",
    _read_times,
    listed({"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}$"}, least=1),
    list,
    control="list",
    cure="write a list such as ['09:00', '18:00']",
)
_EVERY: Final = parsed(
    "duration, more than zero", _parse_every, cure="write a duration such as '2h'", schema=DURATION_SCHEMA
)
_CRON: Final = parsed("cron expression", parse_cron, cure="write five fields such as '0 9 * * 1-5'")
_SLOT: Final = filled("write the name of a quota slot", control="slot")
_INTERVAL: Final = _minutes_kind(1, "write a number such as 60")
_OFFSET: Final = _minutes_kind(0, "write a number such as 1")
_ZONE: Final = Field(ZONE, "time zone", "Time zone", name="timezone", default=None, usual="the default time zone")
_ANCHOR: Final = Field(
    INSTANT,
    "starting point of the interval",
    example="2026-01-30T09:00:00Z",
    name="anchor",
    default=None,
    usual="the time it is written",
)
_AT: Final = Field(
    INSTANT, "when to run, with an offset or together with a time zone", example="2026-01-30T09:00", name="at"
)


_IN_GAP: Final = Field(
    choice(InGap, None),
    "times that daylight saving leaves out: run once right after, or skip",
    "When the clocks go forward",
    name="inGap",
    default=None,
    usual="run if the expression names hours",
)
_IN_REPEAT: Final = Field(
    choice(InRepeat, None),
    "times that daylight saving repeats: run once or twice",
    "When the clocks go back",
    name="inRepeat",
    default=None,
    usual="once if the expression names hours and minutes",
)


# The types


@dataclass(frozen=True, slots=True)
class TimingType:
    """One `type` of a schedule. The fields in `stored` are not for people."""

    fields: Object[Any]
    build: Callable[[Mapping[str, Any], Mapping[str, Any]], Timing]  # from the JSON and the values that were read
    stored: tuple[str, ...] = ()
    alias_of: str = ""


def _type(types: str, label: str, says: str, *fields: Field, **more: Any) -> TimingType:
    name, kind = types.split()[0], Field(choice(*types.split()), "the kind of timing", name="type")
    return TimingType(Object(name[0].upper() + name[1:], says, [kind, *fields], dict, label=label), **more)


def _once(data: Mapping[str, Any], values: Mapping[str, Any]) -> Timing:
    return Once(values["at"], timezone=data.get("timezone"), kind=data["type"], written=data["at"])


def _every(data: Mapping[str, Any], values: Mapping[str, Any]) -> Timing:
    length = values.get("intervalMinutes") or parse_duration(data["every"])
    return Every(
        length, values.get("anchor"), data.get("timezone"), data["type"], data.get("every"), data.get("anchor")
    )


_GRID: Final = {"build": _every, "stored": (ANCHORED_AT,)}
_ONCE: Final = _type("once at", "Once", "Once.", _AT, _ZONE, build=_once)
TIMING_TYPES: Final[Mapping[str, TimingType]] = {
    "cron": _type(
        "cron",
        "Cron",
        "By a cron expression of five fields, or six with seconds.",
        Field(_CRON, "minute, hour, day of the month, month, weekday", example="0 9 * * 1-5", name="expression"),
        *(_ZONE, _IN_GAP, _IN_REPEAT),
        build=lambda _, values: Cron(values["expression"], values["timezone"], values["inGap"], values["inRepeat"]),
    ),
    "every": _type(
        "every",
        "Every",
        "At a fixed interval, aligned to an anchor.",
        Field(_EVERY, "the interval, e.g. 90s, 30m, 2h, 1d", "Interval", "2h", name="every"),
        *(_ANCHOR, _ZONE),
        **_GRID,
    ),
    "interval": _type(
        "interval",
        "Interval",
        "Every given number of minutes.",
        Field(_INTERVAL, "the interval", example="60", name="intervalMinutes"),
        *(_ANCHOR, _ZONE),
        **_GRID,
        alias_of="every",
    ),
    "once": _ONCE,
    "at": replace(_ONCE, alias_of="once"),
    "times": _type(
        "times",
        "Times of day",
        "At times of day.",
        Field(_TIMES, "times of day", example="09:00, 18:00", name="times"),
        _ZONE,
        build=lambda _, values: Times(values["times"], values["timezone"]),
    ),
    "afterReset": _type(
        "afterReset",
        "After a quota reset",
        "After the reset of a quota slot.",
        Field(_SLOT, "the quota slot", example="main", name="slot"),
        Field(_OFFSET, "how long after the reset", "Minutes after", "1", name="offsetMinutes", default=0),
        build=lambda _, values: AfterReset(values["slot"], values["offsetMinutes"]),
    ),
    "manual": _type("manual", "Only on request", "Only on request.", build=lambda _, _values: Manual()),
}


def timing_kind(*, without: tuple[str, ...] = (), is_text: bool = False) -> Kind:
    """The kind of a `schedule` field; `is_text`: also a string, which the reader turns into an object."""
    types = {name: timing.fields for name, timing in TIMING_TYPES.items() if name not in without}
    refs = {name: COMPONENTS + fields.name for name, fields in types.items()}
    schema: dict[str, Any] = {
        "oneOf": [{"$ref": ref} for ref in dict.fromkeys(refs.values())],
        "discriminator": {"propertyName": "type", "mapping": refs},
    }
    if is_text:
        schema = {"anyOf": [schema, {"type": "string", "examples": ["weekdays at 9:00", "every 2h"]}]}

    def read(fields: Fields, name: str) -> Timing | None:
        return fields.read(name, lambda value: read_timing(value, fields.place(name)))

    words = "[timing](#timings), or [text](#timings-in-words)" if is_text else "[timing](#timings)"
    return Kind(words, read, schema, timing_to_json, "timing", inner=tuple(types.values()))
