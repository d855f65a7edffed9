"""The ledger in the store: runs and their attempts, the lanes they hold, the nodes that perform them.

The run row is the lock of a run, the lane row the lock of a lane.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from wakeful.core.run.runs import Attempt, Outcome, Run, RungName
from wakeful.core.time.instants import INSTANT_MAX, Duration, Instant

# What closing a run changes, besides giving up owner, deadline, next attempt, process and being stuck.
CLOSED_COLUMNS: Final = ("outcome", "reason", "rung", "ended_at", "error", "result")

# What a run may carry at length, and whoever only looks over many does not need.
LONG_COLUMNS: Final = ("result", "ladder", "definition")


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
    voided_at: Instant | None  # it lost its lease; whatever it still says is fenced off
    terms: str = ""  # a hash of the settings that all nodes must share; empty: not known


class Mark(NamedTuple):
    """A rung reached while the run goes on."""

    run_id: int
    fence: int
    rung: RungName
    ladder: str
    process: str | None


class LedgerCounts(NamedTuple):
    """What the ledger holds of one schedule since some time."""

    by_outcome: Mapping[Outcome, int]  # in instants: a stretch counts as many as it covers
    durations: Sequence[Duration]  # of closed runs that started, newest first, bounded
    last_outcomes: Sequence[Outcome]  # of closed runs that started, newest first, bounded
    tokens: int | None = None  # of all runs that told; None: none did
    cost: float | None = None  # in US dollars, likewise


class GapSummary(NamedTuple):
    """What of one owner of runs came due while no node ticked."""

    schedule_id: int
    missed: int  # instants that did not run
    caught_up: int  # runs that made up for it


class Runs(Protocol):
    """The ledger."""

    def last_id(self) -> int:
        """The id of the newest row; 0: there is none."""
        ...

    def fallen(self, *, after_id: int, since: Instant, until: Instant) -> list[GapSummary]:
        """What was missed or caught up of instants between two times, in rows written after an id, by owner."""
        ...

    def reserve_ids(self, n: int) -> list[int]:
        """Ids for n new runs, ascending."""
        ...

    def add_many(self, rows: Sequence[Run]) -> None:
        """Write new ledger rows; an occurrence already there is an error."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Run]:
        """Waiting runs whose alarm is due, persons first, then by due time, held; others' are left out."""
        ...

    def held(self, node_id: int, claimed: Mapping[int, Run]) -> dict[int, Run]:
        """Of these runs, as they were claimed, those still running under this node and fence: as they are now, held.

        A row that nobody touched since its claim may be answered by the very object given."""
        ...

    def lock(self, run_ids: Sequence[int]) -> dict[int, Run]:
        """Read these runs and hold them. In a read, just read."""
        ...

    def save_many(self, rows: Sequence[Run]) -> None:
        """Write changed rows back whole. The caller holds them."""
        ...

    def close_many(self, rows: Sequence[Run]) -> None:
        """Write back runs that closed and are not stuck: only what closing changes. The caller holds them."""
        ...

    def mark_many(self, node_id: int, marks: Sequence[Mark]) -> list[bool]:
        """Record rungs reached; False where the run is no longer held under that fence."""
        ...

    def of_nodes(self, node_ids: Sequence[int], *, limit: int) -> list[Run]:
        """Runs (running, or stuck) owned by these nodes, held, in id order."""
        ...

    def add_attempts(self, rows: Sequence[Attempt]) -> None: ...

    def attempts(self, run_ids: Sequence[int]) -> dict[int, list[Attempt]]: ...

    def taken(self, schedule_id: int, *, after: Instant, until: Instant) -> frozenset[Instant]:
        """Planned instants in (after, until] that have a row, a run given up before its first attempt included."""
        ...

    def gaps_ahead(self, schedule_id: int, *, after: Instant) -> list[Run]:
        """Skipped or missed rows that reach beyond `after`, held."""
        ...

    def kept_definition(self, schedule_id: int, version: int) -> str | None:
        """The text of an earlier version of a schedule, if one of its rows of that version carries a copy."""
        ...

    def remove_many(self, run_ids: Sequence[int]) -> None:
        """Void rows that lie ahead after the clock came back."""
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

    def latest(self, schedule_ids: Sequence[int], *, limit: int) -> dict[int, list[Run]]:
        """The newest rows of each of these schedules, newest first, `limit` of each at most: only looked at.

        What a row may carry at length (its result, its ladder, a copy of a definition) is left out."""
        ...

    def tallied(self, schedule_id: int, *, since: Instant, limit: int) -> LedgerCounts:
        """Counts and durations for statistics; `limit` bounds the durations."""
        ...

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` closed rows (with their attempts) that were due and ended before; returns how many.

        Times before `since` are those of a clock that was not set, and say nothing of a row's age."""
        ...


class Lanes(Protocol):
    """One at a time per lane (L5)."""

    def take_many(self, wanted: Sequence[tuple[str, int]]) -> set[int]:
        """For (lane, run id) in order of preference: the ids that now hold their lane. Never waits."""
        ...

    def free_many(self, held: Sequence[tuple[str, int]]) -> None:
        """Free lanes these runs hold, and unpark the best waiting run of each."""
        ...

    def holders(self) -> dict[str, int]:
        """Who holds what."""
        ...


class Nodes(Protocol):
    """Who ticks."""

    def register(self, *, name: str, host: str, pid: int, now: Instant, lease_until: Instant, capacity: int) -> int: ...

    def renew(
        self, node_id: int, *, now: Instant, lease_until: Instant, lag: Duration, running: int, capacity: int
    ) -> bool:
        """Push the lease out; False when the node was voided meanwhile."""
        ...

    def publish(self, node_id: int, *, terms: str) -> None:
        """Say by which settings it works, as a hash."""
        ...

    def hold(self, node_id: int, *, lease_until: Instant = 0) -> bool:
        """Whether the node still has its lease, at least until then; if so, nobody takes it before this transaction
        ends."""
        ...

    def expired(self, *, now: Instant, beyond: Instant = INSTANT_MAX) -> list[Node]:
        """Nodes not voided whose lease is over, or ends after `beyond`: no living node could have written that."""
        ...

    def void(self, node_ids: Sequence[int], *, now: Instant) -> list[int]:
        """Take their leases; answers those that were not yet voided."""
        ...

    def with_leftovers(self) -> list[int]:
        """Voided nodes that still own runs."""
        ...

    def all(self) -> list[Node]: ...

    def prune(self, *, before: Instant) -> None:
        """Forget voided nodes that own nothing."""
        ...
