"""Timings as a definition writes them in JSON.

Theory of operation: one table defines for each `type` its reader, its required and its optional fields. A reader takes
its values from a `_Fields`, which collects every error instead of stopping at the first and returns None for invalid
values, so that one `Invalid` lists them all. Whether an instant lies in the past is not decided here: a stored
definition must stay readable after its time has come (`timing.is_past` is for the command that accepts it).

What is written is what was read: the alias (`interval`, `at`), the text of durations and instants. Only a missing zone
is added, by its name. A missing anchor is not part of the definition: its grid is stored as `anchoredAt`, in the stored
form only, so that reading it back needs neither the clock nor the current settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, assert_never

from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.time.cron import parse_cron
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

_T = TypeVar("_T")

ANCHORED_AT: Final = "anchoredAt"


def read_timing(data: object, *, field: str = "schedule") -> Timing:
    """The timing a definition describes; what it leaves open (zone, anchor) stays open.

    All errors are raised in one `Invalid`."""
    if not isinstance(data, Mapping):
        refuse(field, f"{data!r} is not an object; write for example {{'type': 'cron', 'expression': '0 9 * * *'}}")
    kind = data.get("type")
    shape = _SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        problem = "is missing" if kind is None else f"{kind!r} is not a kind of schedule"
        refuse(f"{field}.type", f"{problem}; write one of {', '.join(_SHAPES)}")
    fields = _Fields(data, field)
    fields.check_names(shape)
    timing = shape.read(fields)
    if fields.errors or timing is None:
        raise Invalid(*fields.errors)
    return timing


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
        case Cron(expression, timezone):
            return {"type": "cron", "expression": expression, **_zone(timezone)}
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


@dataclass(slots=True)
class _Fields:
    """The fields of one definition while it is read, and the errors so far."""

    data: Mapping[Any, Any]
    name: str
    errors: list[FieldError] = field(default_factory=list)

    def check_names(self, shape: _Shape) -> None:
        allowed = ("type", *shape.required, *shape.optional)
        for name in self.data:
            if name not in allowed and name not in shape.stored:
                cure = f"{self.data['type']} has {', '.join(allowed)}"
                self.fault(str(name), f"is not a field of this kind of schedule; {cure}")
        for name in shape.required:
            if self.data.get(name) is None:
                self.fault(name, f"is missing; write {_EXAMPLES[name]}")

    def fault(self, name: str, message: str) -> None:
        self.errors.append(FieldError(f"{self.name}.{name}", message))

    def text(self, name: str, check: Callable[[str, str], _T]) -> tuple[str, _T] | tuple[None, None]:
        """A text field and its parsed value; None if missing (the shape decides whether it may be)."""
        value = self.data.get(name)
        if value is None:
            return None, None
        if not isinstance(value, str):
            self.fault(name, f"{value!r} is not text; write {_EXAMPLES[name]}")
            return None, None
        try:
            return value, check(value, f"{self.name}.{name}")
        except Invalid as invalid:
            self.errors += invalid.errors
            return None, None

    def minutes(self, name: str, least: int) -> int | None:
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault(name, f"{value!r} is not a number of minutes; write {_EXAMPLES[name]}")
        elif not least <= value * MINUTE <= INSTANT_MAX or value * MINUTE % 1:
            bound = "more than zero" if least else "zero or more"
            self.fault(name, f"{value} is not a usable number of minutes; write {bound}, e.g. 30")
        else:
            return int(value * MINUTE)
        return None

    def zone(self) -> str | None:
        return self.text("timezone", check_zone)[0]

    def instant(self, name: str, zone: str | None) -> tuple[str, Instant] | tuple[None, None]:
        if zone is None and "timezone" in self.data and self.data["timezone"] is not None:
            # The zone next to it was refused already; a second error about a missing offset would mislead.
            zone = "UTC"
        return self.text(name, lambda text, place: parse_instant(text, zone, place))


def _read_once(fields: _Fields) -> Timing | None:
    zone = fields.zone()
    written, at = fields.instant("at", zone)
    return None if at is None else Once(at, timezone=zone, kind=fields.data["type"], written=written)


def _read_every(fields: _Fields) -> Timing | None:
    written, length = fields.text("every", parse_duration)
    if length == 0:
        fields.fault("every", f"'{written}' is not a distance between two runs; write more than zero, e.g. 30m")
    anchored = _read_anchor(fields, length or 1, "every", written)
    return None if length is None else anchored


def _read_interval(fields: _Fields) -> Timing | None:
    length = fields.minutes("intervalMinutes", least=1)
    anchored = _read_anchor(fields, length or 1, "interval", None)
    return None if length is None else anchored


def _read_anchor(fields: _Fields, length: Duration, kind: str, written: str | None) -> Every:
    zone = fields.zone()
    anchor_written, anchor = fields.instant("anchor", zone)
    if anchor is None:
        _, anchor = fields.instant(ANCHORED_AT, zone)
    return Every(length, anchor, zone, kind, written, anchor_written)


def _read_cron(fields: _Fields) -> Timing | None:
    expression, _ = fields.text("expression", parse_cron)
    zone = fields.zone()
    return None if expression is None else Cron(expression, zone)


def _read_times(fields: _Fields) -> Timing | None:
    zone, listed = fields.zone(), fields.data.get("times")
    if listed is None:
        return None
    if not isinstance(listed, list | tuple):
        fields.fault("times", f"{listed!r} is not a list; write {_EXAMPLES['times']}")
        return None
    try:
        check_times(tuple(listed), f"{fields.name}.times")
    except Invalid as invalid:
        fields.errors += invalid.errors
    return Times(tuple(listed), zone)


def _read_after_reset(fields: _Fields) -> Timing | None:
    slot, _ = fields.text("slot", _check_slot)
    offset = fields.minutes("offsetMinutes", least=0)
    return None if slot is None else AfterReset(slot, offset or 0)


def _check_slot(slot: str, place: str) -> None:
    if not slot.strip():
        refuse(place, "is empty; write the name of a quota slot")


def _read_manual(_fields: _Fields) -> Timing | None:
    return Manual()


@dataclass(frozen=True, slots=True)
class _Shape:
    """One `type` of the definition: its reader, the required fields, the optional ones, and those only stored."""

    read: Callable[[_Fields], Timing | None]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()


_SHAPES: Final = {
    "cron": _Shape(_read_cron, ("expression",), ("timezone",)),
    "every": _Shape(_read_every, ("every",), ("anchor", "timezone"), (ANCHORED_AT,)),
    "interval": _Shape(_read_interval, ("intervalMinutes",), ("anchor", "timezone"), (ANCHORED_AT,)),
    "once": _Shape(_read_once, ("at",), ("timezone",)),
    "at": _Shape(_read_once, ("at",), ("timezone",)),
    "times": _Shape(_read_times, ("times",), ("timezone",)),
    "afterReset": _Shape(_read_after_reset, ("slot",), ("offsetMinutes",)),
    "manual": _Shape(_read_manual),
}

_EXAMPLES: Final = {
    "expression": "five fields such as '0 9 * * 1-5'",
    "timezone": "an IANA zone such as 'Europe/Berlin'",
    "every": "a duration such as '2h'",
    "anchor": "an instant such as '2026-01-30T09:00:00Z'",
    ANCHORED_AT: "an instant such as '2026-01-30T09:00:00Z'",
    "at": "an instant such as '2026-01-30T09:00:00Z'",
    "intervalMinutes": "a number such as 60",
    "offsetMinutes": "a number such as 1",
    "times": "a list such as ['09:00', '18:00']",
    "slot": "the name of a quota slot",
}
