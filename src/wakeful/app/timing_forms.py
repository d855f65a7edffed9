"""Timings as a Python program gives them: made by `cron(…)`, `every(…)` and so on, or as text."""

from datetime import date, timedelta
from typing import Any, Final, TypeAlias

from wakeful.core.errors import refuse
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import AfterReset, Cron, Every, Manual, Once, Times, Timing
from wakeful.core.time.when import read_when

GivenTiming: TypeAlias = Timing | str

_KINDS: Final = (Once, Every, Cron, Times, AfterReset, Manual)


def timing_of(given: Any, *, now: Instant, default_zone: str) -> Timing:
    """The timing; text is read like the `schedule` of a definition, as of `now`."""
    if isinstance(given, str):
        return read_when(given, now=now, default_zone=default_zone, field="schedule")
    if not isinstance(given, _KINDS):
        refuse("schedule", f"{_shown(given)} is not a timing; {_cure(given)}")
    return given


def _cure(given: object) -> str:
    match given:
        case timedelta():
            return "write every(…) around it"
        case date():
            return "write once(…) around a datetime"
        case _ if callable(given):
            return "write it as @app.job(every('2h')), with the times in parentheses"
        case _:
            return "write every('2h'), cron('0 9 * * 1-5'), or text such as 'weekdays at 9:00'"


def _shown(given: object) -> str:
    name = getattr(given, "__qualname__", None)
    return repr(given) if name is None else f"the function {name}"
