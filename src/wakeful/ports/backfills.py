"""The port to backfills: past instants that are run on request, one after another, outside the plan."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from wakeful.core.time.instants import Instant

ALARM_BACKFILL: Final = "backfill"

BackfillState: TypeAlias = Literal["active", "stopped", "done"]
BackfillTrigger: TypeAlias = Literal["backfill", "replay"]


class Backfill(NamedTuple):
    """A request to run past instants of one schedule, in the order of its columns."""

    backfill_id: int  # 0: not written yet
    schedule_id: int
    trigger: BackfillTrigger
    instants: str  # JSON: the instants, oldest first
    cursor: int  # how many of them have a run
    open_run_id: int | None  # the run of the last one
    state: BackfillState
    requested_by: str
    created_at: Instant
    ended_at: Instant | None


class BackfilledRun(NamedTuple):
    """A run of a past instant, in the order of its columns."""

    run_id: int
    schedule_id: int
    planned_at: Instant
    replay_of: int | None


class Backfills(Protocol):
    """Backfills and their runs."""

    def add(self, row: Backfill) -> int:
        """Write a backfill; returns its id."""
        ...

    def lock_active(self, schedule_id: int) -> list[Backfill]:
        """A schedule's unfinished backfills, locked, oldest first."""
        ...

    def open_runs(self) -> int:
        """How many backfilled runs are running or waiting."""
        ...

    def active(self) -> list[int]:
        """The ids of unfinished backfills."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Backfill]:
        """Backfills whose alarm is due, locked; those another node has locked are left out."""
        ...

    def save(self, row: Backfill) -> None:
        """Write the whole row. The caller holds its lock."""
        ...

    def add_run(self, row: BackfilledRun) -> None: ...

    def of_runs(self, run_ids: Sequence[int]) -> dict[int, BackfilledRun]:
        """The backfilled ones among these runs, by run id."""
        ...

    def runs_between(self, schedule_id: int, *, first: Instant, last: Instant) -> list[BackfilledRun]:
        """A schedule's backfilled runs for instants in [first, last]."""
        ...

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` requests that ended before `before`, except those before `since`, and as many records of
        runs that the ledger no longer has; returns the larger number."""
        ...
