"""Times and durations in options: errors name the option; nothing is guessed."""

from datetime import timedelta, tzinfo
from typing import NamedTuple

from wakeful.cli import day_words, times
from wakeful.cli.errors import Misused
from wakeful.core.errors import Invalid
from wakeful.core.time.instants import format_instant, parse_duration, parse_instant


def instant(text: str, option: str) -> str:
    """A time with an offset, converted to UTC for the daemon."""
    try:
        return format_instant(parse_instant(text, None, option))
    except Invalid as invalid:
        raise _misused(invalid) from invalid


def duration(text: str, option: str) -> int:
    """A duration in milliseconds."""
    try:
        return parse_duration(text, option)
    except Invalid as invalid:
        raise _misused(invalid) from invalid


class Wall(NamedTuple):
    """A local date and time, and the zone it is read in."""

    text: str
    zone: str


def upcoming_wall_in(text: str, zone_name: str | None, option: str) -> Wall | None:
    """A time of day such as `tomorrow 9:00`, read in a zone (default: the user's); None if it is not one."""
    name, zone = _zone(zone_name, option)
    wall = day_words.upcoming_wall(text, times.now(), zone)
    return None if wall is None else Wall(wall, name)


def about(text: str, zone_name: str | None, option: str) -> str:
    """The instant in question: `9:00` is today's in that zone; anything else as for `ago`."""
    name, zone = _zone(zone_name, option)
    wall = day_words.wall_of_today(text, times.now(), zone)
    return ago(text, option) if wall is None else format_instant(parse_instant(wall, name, option))


def ahead(text: str, option: str) -> str:
    """A time, a time of day such as `tomorrow 9:00` in the user's zone, or a duration from now: `2h`."""
    wall = upcoming_wall_in(text, None, option)
    if wall is not None:
        return format_instant(parse_instant(wall.text, wall.zone, option))
    return _from_now(text, option, 1)


def ago(text: str, option: str) -> str:
    """A time, or a duration before now: `7d` is a week ago."""
    return _from_now(text, option, -1)


def _from_now(text: str, option: str, direction: int) -> str:
    try:
        length = parse_duration(text, option)
    except Invalid:
        return _instant_at_least(text, option)
    try:
        at = times.now() + direction * timedelta(milliseconds=length)
    except OverflowError:
        raise Misused(option, [(option, f"'{text}' is out of range; write a shorter duration")]) from None
    return at.isoformat(timespec="milliseconds")[:23] + "Z"


def _instant_at_least(text: str, option: str) -> str:
    """Parse a duration or a time; the error names both forms."""
    try:
        return instant(text, option)
    except Misused as misused:
        misused.faults = tuple((field, f"{message}, or a duration such as 2d") for field, message in misused.faults)
        raise


def _zone(name: str | None, option: str) -> tuple[str, tzinfo]:
    """The zone of that name, or the user's. The daemon refuses a zone unknown to this machine."""
    if name is None:
        return times.user_zone()
    zone = times.zone_named(name)
    if zone is None:
        raise Misused(option, [("--tz", f"'{name}' is not a time zone; write it like Europe/Berlin")])
    return name, zone


def _misused(invalid: Invalid) -> Misused:
    return Misused("not accepted", [(error.field, error.message) for error in invalid.errors])
