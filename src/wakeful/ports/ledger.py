"""The ledger in the store: runs and their attempts, the lanes they hold, the nodes that perform them.

The run row is the lock of a run, the lane row the lock of a lane.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from wakeful.core.run.runs import OPEN, Attempt, Outcome, Run, RungName, Trigger
from wakeful.core.time.instants import INSTANT_MAX, Duration, Instant

# The columns that closing a run changes, besides clearing deadline, next attempt, process and stuck.
CLOSED_COLUMNS: Final = ("outcome", "reason", "rung", "ended_at", "error", "result")

# The columns that claiming a run changes, besides clearing reason, next attempt, ladder and process.
CLAIMED_COLUMNS: Final = (
    "outcome", "rung", "attempt", "owner", "fence", "started_at", "claimed_at", "deadline_at",
)  # fmt: skip


class Node(NamedTuple):
    """One incarnation of a process that ticks."""

    node_id: int
    name: str
    host: str
    pid: int
    started_at: Instant
    lease_until: Instant
    last_tick_at: Instant
    lag: Duration
    running: int
    capacity: int
    voided_at: Instant | None  # it lost its lease; everything it still writes is fenced off
    terms: str = ""  # a hash of the settings that all nodes must share; empty if unknown
    labels: str = ""  # separated by spaces (`core.schedule.labels`)
    labels_at: Instant = 0  # since when it has these
    release: str | None = None  # None: 0.2


class RunGlance(NamedTuple):
    """The columns of a run that charts need, without large ones; many are read together."""

    run_id: int
    schedule_id: int
    planned_at: Instant
    planned_until: Instant | None
    instants: int
    started_at: Instant | None
    ended_at: Instant | None
    trigger: Trigger
    outcome: Outcome
    reason: str | None
    error: str | None

    @property
    def is_open(self) -> bool:
        return self.outcome in OPEN


class Mark(NamedTuple):
    """A rung reached while the run continues."""

    run_id: int
    fence: int
    rung: RungName
    ladder: str
    process: str | None


class GapSummary(NamedTuple):
    """The instants of one owner that became due while no node ticked."""

    schedule_id: int
    missed: int  # instants that did not run
    caught_up: int  # runs that made up for them


class Runs(Protocol):
    """The ledger."""

    def last_id(self) -> int:
        """The id of the newest row; 0 if there is none."""
        ...

    def fallen(self, *, after_id: int, since: Instant, until: Instant) -> list[GapSummary]:
        """Missed and caught-up instants between two times, in rows written after an id, by owner."""
        ...

    def reserve_ids(self, n: int) -> list[int]:
        """Ids for n new runs, ascending."""
        ...

    def add_many(self, rows: Sequence[Run]) -> None:
        """Write new ledger rows; an existing occurrence is an error."""
        ...

    def due(
        self, *, now: Instant, limit: int, manual_max: int | None = None, after: Instant | None = None
    ) -> list[Run]:
        """Waiting runs whose alarm is due, manual ones first (at most `manual_max`), then by due time; locked, without
        those locked elsewhere. With `after`, only planned ones that are due later than that and need no lane."""
        ...

    def held(self, node_id: int, fences: Mapping[int, int]) -> dict[int, Run]:
        """Of these runs (id → fence), those that this node still runs under that fence, locked."""
        ...

    def lock(self, run_ids: Sequence[int]) -> dict[int, Run]:
        """Read these runs and lock them. A read transaction only reads."""
        ...

    def save_many(self, rows: Sequence[Run], *, grown: Sequence[int] | None = None) -> None:
        """Write whole rows whose state changed. The caller holds their locks. For gaps that were extended or shortened,
        `grown` is how many instants each covers more than before."""
        ...

    def annotate_many(self, rows: Sequence[Run]) -> None:
        """Write whole rows whose state is the same, such as with a copy of a definition: no listener hears of it."""
        ...

    def close_many(self, rows: Sequence[Run]) -> None:
        """Write runs that closed and are not stuck: only the columns that closing changes. The caller holds their
        locks."""
        ...

    def mark_many(self, node_id: int, marks: Sequence[Mark]) -> list[bool]:
        """Record the rungs reached; False for a run that is no longer held under that fence."""
        ...

    def of_nodes(self, node_ids: Sequence[int], *, limit: int) -> list[Run]:
        """Runs (running, or stuck) owned by these nodes, locked, in id order."""
        ...

    def add_attempts(self, rows: Sequence[Attempt]) -> None: ...

    def attempts(self, run_ids: Sequence[int]) -> dict[int, list[Attempt]]: ...

    def taken(self, schedule_id: int, *, after: Instant, until: Instant) -> frozenset[Instant]:
        """Planned instants in (after, until] that have a row, including runs given up before their first attempt."""
        ...

    def gaps_ahead(self, schedule_id: int, *, after: Instant) -> list[Run]:
        """Skipped or missed rows that reach beyond `after`, locked."""
        ...

    def kept_definition(self, schedule_id: int, version: int) -> str | None:
        """The text of an earlier version of a schedule, if one of its rows of that version has a copy."""
        ...

    def remove_many(self, run_ids: Sequence[int]) -> None:
        """Delete rows that lie ahead after the clock went back."""
        ...

    def page(
        self,
        *,
        schedule_id: int | None = None,
        before_id: int | None = None,
        limit: int,
        outcome: Outcome | None = None,
    ) -> list[Run]:
        """Rows newest first, of one schedule or of all, before a run id."""
        ...

    def latest(self, schedule_ids: Sequence[int], *, limit: int) -> dict[int, list[RunGlance]]:
        """The newest rows of each of these schedules, newest first, at most `limit` of each; read only."""
        ...

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` closed rows (with their attempts) due and ended before `before`; returns how many.

        Times before `since` come from a clock that was not set, and say nothing about a row's age."""
        ...


class Lanes(Protocol):
    """One run at a time per lane (L5)."""

    def take_many(self, wanted: Sequence[tuple[str, int]]) -> set[int]:
        """For (lane, run id) in order of preference: the ids that now hold their lane. Never blocks."""
        ...

    def free_many(self, held: Sequence[tuple[str, int]]) -> None:
        """Free the lanes these runs hold, and unpark the best waiting run of each; and of those that need labels, the
        best for each set of labels, so that none of them waits for one that no node can run."""
        ...

    def holders(self) -> dict[str, int]:
        """The run that holds each lane."""
        ...


class Nodes(Protocol):
    """The nodes that tick."""

    def register(self, *, name: str, host: str, pid: int, now: Instant, lease_until: Instant, capacity: int) -> int: ...

    def renew(
        self, node_id: int, *, now: Instant, lease_until: Instant, lag: Duration, running: int, capacity: int
    ) -> bool:
        """Extend the lease; False if the node was voided in the meantime."""
        ...

    def publish(self, node_id: int, *, terms: str, labels: str, now: Instant) -> None:
        """Publish a hash of the settings the node runs with, and its labels."""
        ...

    def hold(self, node_id: int, *, lease_until: Instant = 0) -> bool:
        """Whether the node still has its lease, and until `lease_until` at least; if so, no other node can take it
        before this transaction ends."""
        ...

    def expired(self, *, now: Instant, beyond: Instant = INSTANT_MAX) -> list[Node]:
        """Nodes not voided whose lease expired, or ends after `beyond`, which no live node could have written."""
        ...

    def void(self, node_ids: Sequence[int], *, now: Instant) -> list[int]:
        """Void these nodes; returns those that were not voided before."""
        ...

    def with_leftovers(self) -> list[int]:
        """Voided nodes that still own runs."""
        ...

    def all(self) -> list[Node]: ...

    def names(self, node_ids: Iterable[int]) -> dict[int, str]:
        """The names of these incarnations, by id."""
        ...

    def of_newest_runs(self, schedule_ids: Sequence[int]) -> dict[int, str]:
        """The name of the node of the newest run of each of these schedules."""
        ...

    def prune(self, *, before: Instant) -> None:
        """Delete voided nodes that own nothing."""
        ...
