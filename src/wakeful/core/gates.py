"""Gates: whether a run may start now.

A gate looks at a run about to be claimed and admits it, defers it, or skips it with a reason. Gates are asked in
order, inside the claiming transaction; the first that does not admit decides.
"""

from dataclasses import dataclass
from typing import TypeAlias

from wakeful.core.active_hours import ActiveHours, is_active
from wakeful.core.instants import Instant


@dataclass(frozen=True, slots=True)
class Admit:
    """The run may start."""


@dataclass(frozen=True, slots=True)
class Defer:
    """The run waits, and is asked again then."""

    until: Instant
    reason: str


@dataclass(frozen=True, slots=True)
class Skip:
    """The run will not happen."""

    reason: str


Decision: TypeAlias = Admit | Defer | Skip
ADMIT = Admit()


def by_active_hours(hours: ActiveHours, planned_at: Instant) -> Decision:
    """An instant outside the active hours is skipped: it belongs to a time the user asked to be left alone."""
    return ADMIT if is_active(hours, planned_at) else Skip("outside active hours")
