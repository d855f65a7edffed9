"""All definition fields as command line options: when, what, and how the schedule behaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from wakeful.cli import action_options, timing_options
from wakeful.cli.errors import Fault, Misused
from wakeful.core.description import Object
from wakeful.core.schedule.definition import OPTIONS, SCHEDULE

FIELDS: Final[Mapping[str, str]] = {
    **timing_options.FIELDS,
    **action_options.FIELDS,
    "deliver": "--deliver",
    "deliver.channel": "--deliver",
    "catchUp": "--catch-up",
    "timeout": "--timeout",
    "exclude.dates": "--exclude",
    "exclude.calendar": "--exclude-calendar",
}


def _described(field: str, option: str, **more: Any) -> Callable[..., Any]:
    """An option for a field, with the help text of its description."""
    known = next(known_field for known_field in OPTIONS if known_field.name == field)
    words, says = known.kind.schema.get("enum"), known.says[0].upper() + known.says[1:]
    default = "" if known.written_default is None else f"; default {known.written_default}"
    return click.option(option, type=click.Choice(words) if words else None, help=f"{says}{default}.", **more)


_OPTIONS: Final = (
    click.option(
        "--deliver",
        metavar="CHANNEL",
        multiple=True,
        help="Where the reply goes: a channel, or last (where you were last active). Repeatable.",
    ),
    _described("catchUp", "--catch-up"),
    _described("timeout", "--timeout", metavar="DUR"),
    _described("enabled", "--enabled/--disabled", default=None),
    click.option(
        "--exclude",
        metavar="DATE",
        multiple=True,
        help="Do not run on this day, such as 2026-12-24. Repeatable, or separate days with commas.",
    ),
    click.option(
        "--exclude-calendar",
        metavar="FILE",
        help="Do not run on the days of the events in this .ics file (relative to the home folder).",
    ),
    click.option(
        "--set",
        "changes",
        metavar="FIELD=VALUE",
        multiple=True,
        help="Any other field of the definition, e.g. overlap=queue or retry.times=3. Repeatable.",
    ),
)


def definition_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for all definition fields to a command."""
    for option in reversed((*timing_options.OPTIONS, *action_options.OPTIONS, *_OPTIONS)):
        function = option(function)
    return function


def definition_of(given: Mapping[str, Any], *, is_edit: bool = False) -> dict[str, Any]:
    """The definition fields that were given; raises with all errors together."""
    schedule, faults = timing_options.schedule_of(given, is_edit=is_edit)
    action, more = action_options.action_of(given, is_edit=is_edit)
    faults += more
    fields: dict[str, Any] = dict(action)
    if schedule is not None:
        fields["schedule"] = schedule
    if given["deliver"]:
        addressees = [{"channel": channel} for channel in given["deliver"]]
        fields["deliver"] = addressees if len(addressees) > 1 else addressees[0]
    for name, field in (("catch_up", "catchUp"), ("timeout", "timeout"), ("enabled", "enabled")):
        if given[name] is not None:
            fields[field] = given[name]
    exclude = _exclude_of(given)
    if exclude:
        fields["exclude"] = exclude
    for change in given["changes"]:
        faults += _set(fields, change)
    if faults:
        raise Misused("not accepted", faults)
    return fields


def _exclude_of(given: Mapping[str, Any]) -> dict[str, Any]:
    dates = [day.strip() for text in given["exclude"] for day in text.split(",") if day.strip()]
    calendar = given["exclude_calendar"]
    return {**({"dates": dates} if dates else {}), **({} if calendar is None else {"calendar": calendar})}


def in_options(faults: tuple[Fault, ...], given: Mapping[str, Any]) -> list[Fault]:
    """The daemon's errors with option names in place of field names, where the user gave an option."""
    typed = {timing_options.flag(name) for name, value in given.items() if value not in (None, ())}
    typed |= {"--at"} if given.get("in") is not None else set()
    return [(_option(field, typed), message) for field, message in faults]


def _option(field: str, typed: set[str]) -> str:
    if field == "schedule":
        return next((flag for flag in map(timing_options.flag, timing_options.TIMINGS) if flag in typed), field)
    option = FIELDS.get(field.partition("[")[0])
    return option if option in typed else field


def _set(fields: dict[str, Any], change: str) -> list[Fault]:
    """Apply one `retry.times=3` to the fields."""
    name, equals, text = change.partition("=")
    if not equals or not name.strip():
        return [("--set", f"{change!r} is not FIELD=VALUE; write for example overlap=queue")]
    *path, last = name.strip().split(".")
    inner = fields
    for part in path:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            return [("--set", f"{name!r} is inside {part!r}, which already has a value; give only one of them")]
    inner[last] = value_of(SCHEDULE, name.strip(), text)
    return []


def value_of(described: Object[Any], field: str, text: str) -> Any:
    """Text for a field that is text (`lane=5`), otherwise JSON if it parses (`retry.times=3`); `null` removes."""
    known = described.find(field)
    if known is not None and known.kind.schema.get("type") == "string" and text != "null" and not text.startswith('"'):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
