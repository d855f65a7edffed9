"""Checks that our timing has the source's times: the next hundred, and those around clock changes."""

from collections.abc import Mapping
from itertools import product
from typing import Any, Final

from wakeful.core.time.instants import DAY, HOUR, SECOND, Instant, format_instant
from wakeful.core.time.timing import Cron, Timing, next_n, resolve
from wakeful.core.time.timing_json import read_timing
from wakeful.core.time.zones import segment_at
from wakeful.integrations.imports.entries import SourceTimes

COMPARED: Final = 100
_FEW: Final = 24
_AHEAD: Final = 800 * DAY


def fit(schedule: Mapping[str, Any], times: SourceTimes, *, now: Instant) -> tuple[dict[str, Any], str | None]:
    """The schedule, with the source's daylight saving rules if they differ from ours, and how it still differs."""
    first_problem: str | None = None
    for rules in _variants(schedule):
        candidate = {**schedule, **rules}
        problem = difference(_timing(candidate, now), times, now=now)
        if problem is None:
            return candidate, None
        first_problem = first_problem or problem
    return dict(schedule), first_problem


def difference(timing: Timing, times: SourceTimes, *, now: Instant) -> str | None:
    """The first difference between the two, in words."""
    for start, count in _starts(timing, now):
        ours, theirs = next_n(timing, start, count), tuple(times(start, count))
        for mine, other in zip(ours, theirs, strict=False):
            if mine != other:
                return f"its times differ: {format_instant(other)} in the source, {format_instant(mine)} here"
        if len(ours) != len(theirs):
            return (
                f"after {format_instant(start)} the source has {len(theirs)} times, and here there would be {len(ours)}"
            )
    return None


def _variants(schedule: Mapping[str, Any]) -> list[dict[str, str]]:
    if schedule.get("type") != "cron":
        return [{}]
    gaps: list[dict[str, str]] = [{}, {"inGap": "skip"}, {"inGap": "run"}]
    repeats: list[dict[str, str]] = [{}, {"inRepeat": "once"}, {"inRepeat": "twice"}]
    return [{**gap, **repeat} for gap, repeat in product(gaps, repeats)]


def _timing(schedule: Mapping[str, Any], now: Instant) -> Timing:
    return resolve(read_timing(schedule), now=now, default_zone="UTC")


def _starts(timing: Timing, now: Instant) -> list[tuple[Instant, int]]:
    """Now, and shortly before each clock change within about two years."""
    starts = [(now, COMPARED)]
    if not isinstance(timing, Cron) or timing.timezone is None:
        return starts
    at = now
    while (end := segment_at(timing.timezone, at // SECOND).end * SECOND) < now + _AHEAD:
        starts.append((end - 6 * HOUR, _FEW))
        at = end
    return starts
