"""Plans in the store: schedules as written, the state of each, and the alarms that will ring.

The cadence row is the lock of a schedule; writing an alarm requires the lock of what it rings.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import Duration, Instant

ALARM_SCHEDULE: Final = "schedule"

ALARM_RUN: Final = "run"

# The columns of a cadence that ringing an alarm changes, and those that settling a run changes: the hot path writes
# no others.
PLANNED_COLUMNS: Final = (
    "planned_through", "next_at", "backoff_until", "catch_up_until", "open_run_id", "queued_run_id", "last_row_id",
)  # fmt: skip

SETTLED_COLUMNS: Final = (
    "state", "state_reason", "state_at", "backoff_until", "open_run_id", "queued_run_id", "consecutive_errors",
    "last_run_at", "last_outcome", "last_error", "last_success_at", "session_id", "trouble",
)  # fmt: skip


# The columns that differ between the cadences of new schedules.
BEGUN_COLUMNS: Final = ("version", "state", "state_reason", "state_at", "planned_through", "next_at")


class Alarm(NamedTuple):
    """A row that will ring: the next instant of a schedule, the next attempt of a waiting run."""

    kind: str
    ref: int  # the id of its subject
    due_at: Instant | None  # None: inactive until something sets it
    priority: int
    lane: str | None
    parked: int  # 1: due, but its lane is held; freeing the lane unparks one
    run_on: str | None = None  # the labels of which a node needs one to ring it (`core.schedule.labels`)


def run_alarm(run: Run, due_at: Instant | None, *, parked: int = 0) -> Alarm:
    """The alarm of a waiting run."""
    return Alarm(ALARM_RUN, run.run_id, due_at, run.priority, run.lane, parked, run.run_on)


class Schedule(NamedTuple):
    """What a person wrote. The state of the schedule is its cadence."""

    schedule_id: int
    slug: str
    definition: str  # JSON, canonical
    version: int
    is_zoned: int  # 1: its instants depend on a time zone's rules
    created_at: Instant
    updated_at: Instant
    deleted_at: Instant | None


class NewSchedule(NamedTuple):
    """A schedule about to be written; the store assigns its id."""

    slug: str
    definition: str
    is_zoned: int
    created_at: Instant


class Beginning(NamedTuple):
    """New schedules that start in the same way."""

    cadence: Cadence  # of one of them
    due_at: Instant | None  # of their alarms
    schedule_ids: Sequence[int]
    run_on: str | None = None  # of their alarms


class Cadences(Protocol):
    """The states of schedules."""

    def add_many(self, rows: Sequence[Cadence]) -> None:
        """Write whole rows."""
        ...

    def begin_many(self, beginnings: Sequence[Beginning]) -> None:
        """Write the cadences and the alarms of new schedules. The cadences are as `core.schedule.cadence.begin` makes
        them: nothing has run."""
        ...

    def lock(self, schedule_ids: Iterable[int]) -> dict[int, Cadence]:
        """Read these cadences and lock them until the transaction ends. A read transaction only reads."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Cadence]:
        """Cadences whose alarm is due, oldest first, locked; those another node has locked are left out."""
        ...

    def save_many(self, rows: Sequence[Cadence], *, turned: Sequence[Cadence] = ()) -> None:
        """Write whole rows. The caller holds their locks. `turned` are those that were halted or resumed, or whose
        pause ends at another time (`core.schedule.cadence.is_turned`); listeners hear of these."""
        ...

    def save_planned(self, rows: Sequence[Cadence]) -> None:
        """Write the columns that ringing changes (`PLANNED_COLUMNS`); the others are as they were read."""
        ...

    def save_settled(self, rows: Sequence[Cadence], *, turned: Sequence[Cadence] = ()) -> None:
        """Write the columns that settling changes (`SETTLED_COLUMNS`); the others are as they were read. `turned` as
        for `save_many`."""
        ...

    def ahead_of(self, now: Instant, *, after_id: int, limit: int) -> list[Cadence]:
        """Cadences planned beyond `now` (after the clock went back) after a schedule id, locked, in id order."""
        ...


class Alarms(Protocol):
    """The alarms that will ring."""

    def set_many(self, rows: Sequence[Alarm]) -> None:
        """Write alarms, new or existing, by (kind, ref)."""
        ...

    def move_many(self, kind: str, moves: Sequence[tuple[int, Instant | None]]) -> None:
        """Set the due time of existing alarms of one kind (ref → due time)."""
        ...

    def remove_many(self, kind: str, refs: Sequence[int]) -> None: ...

    def by_refs(self, kind: str, refs: Sequence[int]) -> dict[int, Alarm]: ...

    def due_kinds(self, *, now: Instant) -> set[str]:
        """The kinds that have a due alarm which is not parked."""
        ...

    def next_due_at(self, *, besides: Sequence[str] = ()) -> Instant | None:
        """The earliest due time of any alarm that is not parked, except those of the kinds in `besides`."""
        ...

    def hold_off_first(self, kind: str, *, now: Instant, until: Instant) -> int | None:
        """Postpone the first due alarm of a kind; returns its ref, or None if none is due."""
        ...

    def shift_waiting(self, *, by: Duration, beyond: Instant, now: Instant) -> int:
        """Bring run alarms forward by `by` whose clock was ahead: those due after `beyond`, parked ones, and those of
        runs whose instant lies after `now`."""
        ...
