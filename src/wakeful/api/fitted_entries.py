"""The schedules that entries of an import become: with the times of their source, checked against it."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from wakeful.app.import_plan import PlannedEntry
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.time.instants import Duration
from wakeful.core.time.spacing import shortest_gap
from wakeful.core.time.timing import next_n, resolve
from wakeful.core.time.timing_json import read_timing
from wakeful.core.time.timing_words import describe
from wakeful.features.schedules.checks import MINIMUM_INTERVAL
from wakeful.integrations.imports.entries import Context, Entry
from wakeful.integrations.imports.fitting import fit
from wakeful.integrations.imports.runnable import unrunnable

Fitted: TypeAlias = tuple[dict[str, Any], str | None] | Invalid
"""A schedule, and how it differs from the source; or why the entry cannot become a schedule."""
SHOWN: Final = 3


def fit_all(entries: Sequence[Entry], context: Context, is_late: threading.Event) -> list[Fitted]:
    """The schedule of each entry; runs in a thread, which ends early if its caller no longer waits."""
    return [_fitted(entry, context) for entry in entries if not is_late.is_set()]


def _fitted(entry: Entry, context: Context) -> Fitted:
    is_checked = entry.refused is None and entry.draft is None
    missing = unrunnable(entry, context) if is_checked else None
    if entry.times is None:
        return dict(entry.schedule), missing
    try:
        schedule, problem = fit(entry.schedule, entry.times, now=context.now)
        return schedule, missing or problem
    except Invalid as invalid:
        return invalid if missing is None else Invalid(FieldError("", missing))


def with_times(planned: PlannedEntry, fitted: Fitted, context: Context) -> PlannedEntry:
    """A refused entry with its times, if it has some: whatever is wrong with it, the timing can be compared."""
    entry = planned.entry
    if not entry.schedule or isinstance(fitted, Invalid):
        return planned
    try:
        timing = resolve(read_timing(fitted[0]), now=context.now, default_zone=context.zone)
        ours = tuple(next_n(timing, context.now, SHOWN))
        theirs = ours if entry.times is None else tuple(entry.times(context.now, SHOWN))
        return replace(planned, words=describe(timing), source_times=theirs, our_times=ours)
    except Invalid:
        return planned


def too_often(entry: Entry, invalid: Invalid) -> Duration | None:
    """The interval of an entry that is refused for it alone."""
    if not all(error.message.startswith(MINIMUM_INTERVAL) for error in invalid.errors):
        return None
    return shortest_gap(resolve(read_timing(entry.schedule), now=0, default_zone="UTC"))
