"""`maxLateness` while a run waits: whether its first attempt would begin too late.

An outage is the business of the catch-up policy (`core.schedule.cadence`). Here a run is already in the ledger, and
waits: for capacity, for its lane, behind the previous run, for a node with its label. That time counts. Waits that say
when they end do not count, because the run was asked to wait: for a quota, a budget, or the minimum interval after its
check. Lateness then counts from their end. A busy target has been asked, so the first attempt has begun.
"""

from typing import Final

from wakeful.core.run.resources import RESOURCES
from wakeful.core.run.runs import OUTSIDE_PLAN, Run
from wakeful.core.schedule.cadence import Rules, is_too_late
from wakeful.core.schedule.pre_check import CHECKED
from wakeful.core.time.instants import Instant

CAPACITY: Final = "capacity"
LANE: Final = "lane"
QUEUED: Final = "queued"
EXCUSED: Final = frozenset({"quota", "budget", "brake", CHECKED})
"""Reasons of waits that do not count."""
_DATED: Final = EXCUSED | {LANE}
LATE_REASONS: Final = frozenset({CAPACITY, LANE, QUEUED, RESOURCES})
"""What a run waited for that began too late."""


def late_since(run: Run) -> Instant:
    """From when the lateness of a run counts that has not begun: its due time, or the end of a wait that is excused.
    A run that waits for its lane keeps the end of the wait before."""
    if run.next_attempt_at is None or run.reason not in _DATED:
        return run.due_at
    return max(run.due_at, run.next_attempt_at)


def begins_too_late(run: Run, rules: Rules, now: Instant) -> bool:
    """Whether the run must not begin any more: it is planned, was never tried, and waited too long."""
    return run.attempt == 0 and run.trigger not in OUTSIDE_PLAN and is_too_late(rules, now, late_since(run))


def waited_for(run: Run) -> str:
    """What a run waited for last. After a wait that is excused, only capacity was missing."""
    return run.reason if run.reason in (LANE, QUEUED, RESOURCES) else CAPACITY
