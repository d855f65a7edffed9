"""The ledger in the store: runs and their attempts, the lanes they hold, the nodes that perform them.

The run row is the lock of a run, the lane row the lock of a lane.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from wakeful.core.run.runs import OPEN, Outcome, RungName, Trigger
from wakeful.core.time.instants import Instant

# The columns that closing a run changes, besides clearing deadline, next attempt, process and stuck.
CLOSED_COLUMNS: Final = ("outcome", "reason", "rung", "ended_at", "error", "result")

# The columns that claiming a run changes, besides clearing reason, next attempt, ladder and process.
CLAIMED_COLUMNS: Final = (
    "outcome", "rung", "attempt", "owner", "fence", "started_at", "claimed_at", "deadline_at",
)  # fmt: skip


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
