"""Plans in the store: schedules as they were written, where each stands, and the alarms that will ring.

The cadence row is the lock of a schedule; whoever writes an alarm holds the lock of what it rings.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import Duration, Instant

ALARM_SCHEDULE: Final = "schedule"

ALARM_RUN: Final = "run"

# What ringing an alarm changes of a cadence, and what settling a run does: the hot path writes no more than that.
PLANNED_COLUMNS: Final = (
    "planned_through", "next_at", "backoff_until", "catch_up_until", "open_run_id", "queued_run_id", "last_row_id",
)  # fmt: skip

SETTLED_COLUMNS: Final = (
    "state", "state_reason", "state_at", "backoff_until", "open_run_id", "queued_run_id", "consecutive_errors",
    "last_run_at", "last_outcome", "last_error", "last_success_at", "session_id", "trouble",
)  # fmt: skip


class Alarm(NamedTuple):
    """A row that will ring: for a schedule its next instant, for a waiting run its next attempt."""

    kind: str
    ref: int  # the id of what it rings
    due_at: Instant | None  # None: it rests until someone touches it
    priority: int
    lane: str | None
    parked: int  # 1: due, but its lane is held; freeing the lane unparks one


class Schedule(NamedTuple):
    """What a person wrote. Where the schedule stands is its cadence."""

    schedule_id: int
    slug: str
    definition: str  # JSON, canonical
    version: int
    is_zoned: int  # 1: its instants depend on a time zone's rules
    created_at: Instant
    updated_at: Instant
    deleted_at: Instant | None


class NewSchedule(NamedTuple):
    """A schedule about to be written; the store gives it its id."""

    slug: str
    definition: str
    is_zoned: int
    created_at: Instant


class Schedules(Protocol):
    """Definitions."""

    def add_many(self, rows: Sequence[NewSchedule]) -> list[int | None]:
        """Write new schedules; answers each one's id, or None where the slug is taken."""
        ...

    def by_slugs(self, slugs: Sequence[str]) -> dict[str, Schedule]:
        """The living schedules of these slugs, definitions included."""
        ...

    def by_ids(self, schedule_ids: Iterable[int]) -> dict[int, Schedule]:
        """Schedules by id, deleted ones included."""
        ...

    def save_many(self, rows: Sequence[Schedule]) -> None:
        """Write changed definitions, or `deleted_at`, back. The caller holds the cadences."""
        ...

    def page(self, *, after: str | None, limit: int, contains: str | None = None) -> list[Schedule]:
        """Living schedules in slug order after a slug; `contains` keeps slugs with this text in them."""
        ...

    def amiss(self, *, after: str | None, limit: int) -> list[Schedule]:
        """Of these, those that are paused, disabled, invalid or failing: found without a walk."""
        ...

    def zoned(self, *, after_id: int, limit: int) -> list[Schedule]:
        """Living schedules whose instants depend on a zone, in id order."""
        ...

    def after_reset(self, *, after_id: int, limit: int) -> list[Schedule]:
        """Living schedules that may wait for the reset of a quota slot, in id order: those that mention the kind."""
        ...

    def naming_slot(self, *, after_id: int, limit: int) -> list[Schedule]:
        """Living schedules that may name a quota slot, in id order: those whose definition mentions one."""
        ...

    def removed_by_slug(self, slug: str, *, limit: int) -> list[Schedule]:
        """Removed schedules that had this slug, the newest first."""
        ...

    def count(self) -> int:
        """How many live."""
        ...


class Cadences(Protocol):
    """Where schedules stand."""

    def add_many(self, rows: Sequence[Cadence]) -> None: ...

    def lock(self, schedule_ids: Iterable[int]) -> dict[int, Cadence]:
        """Read these cadences and hold them until the transaction ends. In a read, just read."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Cadence]:
        """Cadences whose alarm is due, oldest due first, held; those another node holds are left out."""
        ...

    def save_many(self, rows: Sequence[Cadence]) -> None:
        """Write changed rows back whole. The caller holds them."""
        ...

    def save_planned(self, rows: Sequence[Cadence]) -> None:
        """Write back what ringing changes (`PLANNED_COLUMNS`); the rest is as it was read."""
        ...

    def save_settled(self, rows: Sequence[Cadence]) -> None:
        """Write back what settling changes (`SETTLED_COLUMNS`); the rest is as it was read."""
        ...

    def ahead_of(self, now: Instant, *, after_id: int, limit: int) -> list[Cadence]:
        """Cadences planned beyond `now` (the clock came back) after a schedule id, held, in id order."""
        ...


class Alarms(Protocol):
    """What will ring."""

    def set_many(self, rows: Sequence[Alarm]) -> None:
        """Write alarms, new or known, by (kind, ref)."""
        ...

    def move_many(self, kind: str, moves: Sequence[tuple[int, Instant | None]]) -> None:
        """Give alarms of one kind that are there (ref → due time) another due time."""
        ...

    def remove_many(self, kind: str, refs: Sequence[int]) -> None: ...

    def by_refs(self, kind: str, refs: Sequence[int]) -> dict[int, Alarm]: ...

    def due_kinds(self, *, now: Instant) -> set[str]:
        """The kinds of which something not parked is due."""
        ...

    def next_due_at(self, *, besides: Sequence[str] = ()) -> Instant | None:
        """The earliest due time of anything not parked; alarms of the kinds `besides` names are left out."""
        ...

    def hold_off_first(self, kind: str, *, now: Instant, until: Instant) -> int | None:
        """Let the alarm of a kind that is first in line by now ring later; answers whose it is, None if none is due."""
        ...

    def shift_waiting(self, *, by: Duration, beyond: Instant) -> int:
        """Bring run alarms due after `beyond`, and parked ones, nearer by `by`: their clock was ahead."""
        ...
