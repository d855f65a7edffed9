"""The options of `add` and `edit` that describe a timing, and the `schedule` field they set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from wakeful.cli.errors import Fault, Misused

TIMINGS: Final = ("when", "cron", "every", "at", "in", "times", "after_reset", "manual")
WORDS: Final = "--when, --cron, --every, --at, --in, --times, --after-reset and --manual"
# The field of the schedule behind each option.
_FIELDS: Final[Mapping[str, str]] = {
    "cron": "expression",
    "every": "every",
    "anchor": "anchor",
    "at": "at",
    "times": "times",
    "tz": "timezone",
    "after_reset": "slot",
    "offset": "offsetMinutes",
}
_COMPANIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "tz": ("when", "cron", "times", "at", "every"),
    "anchor": ("every",),
    "offset": ("after_reset",),
}
OPTIONS: Final = (
    click.option(
        "--when", metavar="TEXT", help="In words: 'weekdays at 9:00', 'every 2h', 'in 20m', 'tomorrow at 9:00'."
    ),
    click.option("--cron", metavar="EXPR", help="Five or six cron fields, e.g. '0 9 * * 1-5'."),
    click.option("--every", metavar="DUR", help="A fixed interval: 90s, 30m, 2h, 1d."),
    click.option("--at", metavar="T", help="Once: 'tomorrow 9:00', 'monday 9:00', 9:00, or 2026-01-30T09:00:00+01:00."),
    click.option("--in", "in", metavar="DUR", help="Once, this long from now."),
    click.option("--times", metavar="HH:MM,…", help="Daily at these times, e.g. 09:00,18:00."),
    click.option("--after-reset", metavar="SLOT", help="After each reset of this quota slot."),
    click.option("--manual", is_flag=True, default=None, help="Only on request."),
    click.option("--tz", metavar="ZONE", help="Time zone of --cron, --times and --at, e.g. Europe/Berlin."),
    click.option("--anchor", metavar="T", help="Starting point of --every."),
    click.option("--offset", metavar="DUR", help="Delay after the reset."),
)


def schedule_of(given: Mapping[str, Any], *, is_edit: bool = False) -> tuple[dict[str, Any] | None, list[Fault]]:
    """The `schedule` that these options set (None if none was given), and what is wrong with them.

    An edit may give a dependent option alone: `--tz` for a schedule that already has a cron expression.
    """
    chosen = [name for name in TIMINGS if given[name] is not None]
    if len(chosen) > 1:
        words = " and ".join(map(flag, chosen))
        return None, [(flag(chosen[-1]), f"{words} cannot be combined; give exactly one of {WORDS}")]
    faults = _lonely(given, chosen, is_edit)
    if not chosen and not is_edit:
        return None, faults
    try:
        return (_schedule(chosen[0], given) if chosen else _dependent_fields(given, None) or None), faults
    except Misused as misused:
        return None, [*faults, *misused.faults]


def flag(name: str) -> str:
    """The option as it is typed."""
    return f"--{name.replace('_', '-')}"


FIELDS: Final[Mapping[str, str]] = {f"schedule.{field}": flag(name) for name, field in _FIELDS.items()}
"""The option of each field, so that errors can name it."""


def _lonely(given: Mapping[str, Any], chosen: list[str], is_edit: bool) -> list[Fault]:
    """Errors for options given without the one they depend on."""
    return [
        (flag(name), f"only works with {' or '.join(map(flag, owners))}; add it, or leave this out")
        for name, owners in _COMPANIONS.items()
        if given[name] is not None and not set(owners) & set(chosen) and (chosen or not is_edit)
    ]


def _dependent_fields(given: Mapping[str, Any], chosen: str | None) -> dict[str, Any]:
    """The fields of the options that go with the chosen one."""
    return {
        _FIELDS[name]: _minutes(given[name]) if name == "offset" else given[name]
        for name, owners in _COMPANIONS.items()
        if given[name] is not None and (chosen is None or chosen in owners)
    }


def _schedule(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    value = given[name]
    match name:
        case "when":
            return _when(value, given["tz"])
        case "at":
            return _at(value, given)
        case "in":
            return _in(value)
        case "manual":
            return {"type": "manual"}
        case "times":
            value = [part.strip() for part in value.split(",") if part.strip()]
    kind = "afterReset" if name == "after_reset" else name
    return {"type": kind, _FIELDS[name]: value, **_dependent_fields(given, name)}


def _when(value: str, zone: str | None) -> dict[str, Any]:
    """Read `--when` on the client, where the typist's zone is known."""
    from wakeful.cli import times
    from wakeful.core.errors import Invalid
    from wakeful.core.time.timing_json import timing_to_json
    from wakeful.core.time.when import read_when

    now = int(times.now().timestamp() * 1000)
    try:
        timing = read_when(value, now=now, default_zone=times.user_zone()[0], timezone=zone, field="--when")
    except Invalid as invalid:
        raise Misused("not accepted", [(error.field, error.message) for error in invalid.errors]) from invalid
    return timing_to_json(timing)


def _at(value: str, given: Mapping[str, Any]) -> dict[str, Any]:
    from wakeful.cli import time_options as moments

    if value.strip().startswith("+"):
        return _in(value.strip()[1:])
    wall = moments.upcoming_wall_in(value, given["tz"], "--at")
    if wall is not None:
        return {"type": "once", "at": wall.text, "timezone": wall.zone}
    if given["tz"] is None:
        try:
            moments.instant(value, "--at")
        except Misused as misused:
            raise Misused(str(misused), [(name, _with_words(words)) for name, words in misused.faults]) from misused
    return {"type": "once", "at": value, **_dependent_fields(given, "at")}


def _with_words(words: str) -> str:
    from wakeful.cli.times import user_zone

    if "has no offset" in words:
        return f"{words}, or --tz {user_zone()[0]}"
    return f"{words}, or 'tomorrow 9:00'" if "is not a date and time" in words else words


def _in(value: str) -> dict[str, Any]:
    from wakeful.cli import time_options as moments

    moments.duration(value, "--in")  # a time is refused: that is for --at
    return {"type": "once", "at": moments.ahead(value, "--in")}


def _minutes(text: str) -> int | float:
    from wakeful.cli.time_options import duration

    length = duration(text, "--offset")
    return length / 60_000 if length % 60_000 else length // 60_000
