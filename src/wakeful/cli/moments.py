"""Times and lengths as they are typed in an option: refused with the option's name, never guessed."""

from datetime import timedelta

from wakeful.cli import times
from wakeful.cli.faults import Misused
from wakeful.core.errors import Invalid
from wakeful.core.instants import format_instant, parse_duration, parse_instant


def instant(text: str, option: str) -> str:
    """A time with its offset, as the daemon takes it: in UTC."""
    try:
        return format_instant(parse_instant(text, None, option))
    except Invalid as invalid:
        raise _misused(invalid) from invalid


def duration(text: str, option: str) -> int:
    """A length in milliseconds."""
    try:
        return parse_duration(text, option)
    except Invalid as invalid:
        raise _misused(invalid) from invalid


def ahead(text: str, option: str) -> str:
    """A time, or a length from now: `2h` is in two hours."""
    return _from_now(text, option, 1)


def ago(text: str, option: str) -> str:
    """A time, or a length before now: `7d` is a week ago."""
    return _from_now(text, option, -1)


def _from_now(text: str, option: str, direction: int) -> str:
    try:
        length = parse_duration(text, option)
    except Invalid:
        return _instant_at_least(text, option)
    try:
        at = times.now() + direction * timedelta(milliseconds=length)
    except OverflowError:
        raise Misused(option, [(option, f"'{text}' is beyond the calendar; write a shorter duration")]) from None
    return at.isoformat(timespec="milliseconds")[:23] + "Z"


def _instant_at_least(text: str, option: str) -> str:
    """What is no length may be a time; if it is neither, both are named."""
    try:
        return instant(text, option)
    except Misused as misused:
        misused.faults = tuple((field, f"{message}, or a length such as 2d") for field, message in misused.faults)
        raise


def _misused(invalid: Invalid) -> Misused:
    return Misused("not accepted", [(one.field, one.message) for one in invalid.errors])
