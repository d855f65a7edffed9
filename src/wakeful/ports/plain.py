"""The plain path (`core.schedule.plain`) in the store: narrow statements where no decision is needed.

A cadence is clear if it is active, plans a next instant, has no open or queued run, no backoff and no backlog, and no
instant beyond its boundary has run.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant
from wakeful.ports.claims import Batch, Claim

NO_RESULTS: Final[Mapping[int, str]] = MappingProxyType({})
NO_LANES: Final[Mapping[str, int]] = MappingProxyType({})


class DueSchedule(NamedTuple):
    """A schedule whose alarm is due, locked."""

    schedule_id: int
    version: int
    next_at: Instant | None
    due_at: Instant
    is_clear: int


class PlainPath(Protocol):
    """Described in the module docstring."""

    def due(self, *, now: Instant, limit: int, after: Instant | None = None) -> list[DueSchedule]:
        """Schedules whose alarm is due (with `after`: later than that), oldest first, locked; those another node has
        locked are left out."""
        ...

    def start(self, batches: Sequence[Batch]) -> None:
        """Move the cadences of these batches and their alarms, and write the runs that start as they are written:
        first attempt, first fence, nothing reported yet. The run ids of a batch follow each other. The caller holds the
        locks, and writes the runs that wait."""
        ...

    def settle(
        self, node_id: int, ended: Sequence[Claim], *, now: Instant, results: Mapping[int, str] = NO_RESULTS
    ) -> set[int]:
        """Close these runs, as they were claimed, as plain successes (`core.schedule.plain.SUCCESS`), some of them with
        a result (by run id), and free their schedules; those without a next instant are done. Returns the ids of the
        runs it closed.

        It leaves a run alone that this node no longer holds under its fence, that changed since its claim, or whose
        schedule is not in order (not active, errors or trouble, another run open or queued). It locks
        the cadences of all of them, then the runs; cadences of other runs must be locked already."""
        ...

    def successors(self, held: Mapping[str, int], *, now: Instant) -> list[Run] | None:
        """The first waiting run of each of these lanes, given with the runs that hold them and have ended. Locks the
        lanes and the successors.

        None if the lanes must be freed and the due runs compared instead (`Lanes.free_many`, `Runs.due`): another
        waiting run is due, a run that needs a label waits for one of the lanes, or a lane cannot be passed on because
        another run holds it, or because its first run is locked or not due."""
        ...

    def claim(self, runs: Sequence[Run], passed_on: Mapping[str, int] = NO_LANES) -> None:
        """Write runs that waited as they were claimed, and remove their alarms. The caller got them, locked, from
        `Runs.due`; or from `successors`, with the lanes that are passed on and the ended runs that hold them. Each of
        these goes to the run that is in it, or becomes free."""
        ...
