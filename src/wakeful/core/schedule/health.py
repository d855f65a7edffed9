"""Health: the state of a schedule in one word, the same everywhere it is shown.

Theory of operation
-------------------
Health is a function of the stored state and of now; it is not stored itself. The first row that fits decides:

| health  | the schedule                                                                                          |
|---------|-------------------------------------------------------------------------------------------------------|
| off     | is paused, or disabled by a person                                                                    |
| failing | cannot be read; was disabled because of errors; its last closed instant was bad, or its open run is;  |
|         | is done and failed, until a person acknowledges that or removes it; its last manual run failed, until |
|         | the next success or an acknowledgement                                                                |
| off     | is done                                                                                               |
| late    | was due more than a minute ago and has not started, for a reason that is not in `KNOWN_WAITS`; waits  |
|         | for resources is one, although it is watched like a bad one                                           |
| waiting | has a run that waits                                                                                  |
| ok      | everything else                                                                                       |

Failing schedules are also marked in `cadences.trouble`, and late ones follow from the due times of the alarms, so both
are found without reading all schedules.
"""

from typing import Final, Literal, TypeAlias

from wakeful.core.delivery.incidents import BAD
from wakeful.core.run.resources import RESOURCES
from wakeful.core.run.runs import ERRORS, Run
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.schedule.policies import GRACE
from wakeful.core.time.instants import Instant

Health: TypeAlias = Literal["ok", "failing", "late", "waiting", "off"]

TROUBLED: Final[frozenset[Health]] = frozenset({"failing", "late"})

BY_PERSON: Final = "by a person"
"""The reason when a person disabled the schedule."""

KNOWN_WAITS: Final = frozenset({"lane", "queued", "quota", "budget", "approval", "turn", "busy", "throttled", "retry"})
"""Reasons why a run may wait without being late."""


def health_of(
    cadence: Cadence, open_run: Run | None, rings_at: Instant | None, *, is_broken: bool, now: Instant
) -> Health:
    """The health of a schedule; `rings_at` is when its alarm is due."""
    if cadence.state == "paused" or (cadence.state == "disabled" and not is_disabled_by_errors(cadence)):
        return "off"
    if is_broken or cadence.state in ("invalid", "disabled"):
        return "failing"
    if cadence.trouble > BAD or (cadence.trouble == BAD and not _only_lacks_resources(cadence, open_run)):
        return "failing"
    if cadence.state == "done":
        return "off"
    if open_run is None:
        return "late" if rings_at is not None and rings_at < now - GRACE else "ok"
    if open_run.outcome != "waiting":
        return "ok"
    return "late" if _is_late(open_run, now) else "waiting"


def _only_lacks_resources(cadence: Cadence, open_run: Run | None) -> bool:
    """Whether nothing of it failed: its open run only could not begin yet."""
    waits = open_run is not None and open_run.outcome == "waiting" and open_run.reason == RESOURCES
    return waits and open_run is not None and open_run.attempt == 0 and cadence.last_outcome not in ERRORS


def is_disabled_by_errors(cadence: Cadence) -> bool:
    """Whether the engine disabled it. If a person did, the reason says so."""
    return cadence.state == "disabled" and cadence.consecutive_errors > 0 and cadence.state_reason != BY_PERSON


def _is_late(run: Run, now: Instant) -> bool:
    if run.started_at is not None or run.due_at >= now - GRACE:
        return False
    is_overdue = run.next_attempt_at is not None and run.next_attempt_at < now - GRACE
    return run.reason not in KNOWN_WAITS or (is_overdue and run.reason not in ("lane", "queued"))
