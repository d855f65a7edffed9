"""The sink port: what happened, told after it was committed.

A fact is a value in the past tense. It is told once its transaction is durable, whole batches at a time, on the event
loop of whoever wrote. Telling is the last thing that happens to a fact: a sink answers nothing, and whatever goes wrong
in it stays in it, so nothing that listens can ever hold up or change what is done.

Facts carry ledger rows as they are; `schedule_id` leads to a slug (`telemetry.fan_out` knows the way).
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Duration, Instant
from wakeful.ports.store import Mark, Report, Store

ScheduleChangeKind: TypeAlias = Literal[
    "created", "edited", "removed", "paused", "resumed", "disabled", "invalid", "done"
]


class RunsClaimed(NamedTuple):
    """Attempts began: these rows are now running, owned by a node."""

    at: Instant
    runs: Sequence[Run]


class RunsWaiting(NamedTuple):
    """Runs wait for something: a lane, a retry, a busy target, a queue, a gate; the reason is on the row."""

    at: Instant
    runs: Sequence[Run]


class RunsClimbed(NamedTuple):
    """Rungs reached while runs go on."""

    at: Instant
    marks: Sequence[Mark]


class RunsSettled(NamedTuple):
    """Runs closed: with an outcome, or with late proof of what they were."""

    at: Instant
    runs: Sequence[Run]


class RunsRescued(NamedTuple):
    """Runs of a node that is gone were taken over; each is also told as waiting or settled."""

    at: Instant
    runs: Sequence[Run]


class InstantsSkipped(NamedTuple):
    """Rows of instants that did not run on purpose. `instants` are those that are new: a row may grow."""

    at: Instant
    runs: Sequence[Run]
    instants: Sequence[int]


class InstantsMissed(NamedTuple):
    """Rows of instants that went by unseen."""

    at: Instant
    runs: Sequence[Run]
    instants: Sequence[int]


class RunsVoided(NamedTuple):
    """Rows taken out of the ledger again: they lay ahead when the clock came back."""

    at: Instant
    run_ids: Sequence[int]


class ScheduleChange(NamedTuple):
    """How one schedule stands now."""

    schedule_id: int
    kind: ScheduleChangeKind
    version: int
    reason: str | None = None
    slug: str | None = None


class SchedulesChanged(NamedTuple):
    """Schedules were written, halted, or let go on."""

    at: Instant
    changes: Sequence[ScheduleChange]


class NodeEntered(NamedTuple):
    """A process took the clock and ticks."""

    at: Instant
    node_id: int
    name: str
    host: str
    pid: int


class NodeLeft(NamedTuple):
    """A node's lease was given up, or taken from it."""

    at: Instant
    node_ids: Sequence[int]


class LeaseLost(NamedTuple):
    """This very node was taken for dead; it begins anew."""

    at: Instant
    node_id: int


class ClockJumped(NamedTuple):
    """Wall and monotonic time drifted apart: a step of the clock (either way) or a suspended machine."""

    at: Instant
    by: Duration


class Ticked(NamedTuple):
    """The engine looked once. `lag` is how late the latest of the runs it claimed was."""

    at: Instant
    lag: Duration
    claimed: int
    running: int


class Alerted(NamedTuple):
    """Something a person should know."""

    at: Instant
    incident: str
    text: str


class Reported(NamedTuple):
    """What a feature reported with its commit."""

    at: Instant
    reports: Sequence[Report]  # of one stream


class CommitTimed(NamedTuple):
    """A commit was answered: how long its caller waited for it, and whether it was kept."""

    at: Instant
    seconds: float
    is_kept: bool


Fact: TypeAlias = (
    RunsClaimed
    | RunsWaiting
    | RunsClimbed
    | RunsSettled
    | RunsRescued
    | InstantsSkipped
    | InstantsMissed
    | RunsVoided
    | SchedulesChanged
    | NodeEntered
    | NodeLeft
    | LeaseLost
    | ClockJumped
    | Ticked
    | Alerted
    | Reported
    | CommitTimed
)

Slugs: TypeAlias = Mapping[int, str]
"""Schedule ids and their slugs, as far as they are known."""


class Sink(Protocol):
    """Takes facts. Must answer at once, and must not raise."""

    def begin(self, store: Store) -> None:
        """Called once, before any fact: where to look up what facts refer to. Only ever read from it."""
        ...

    def tell(self, facts: Sequence[Fact]) -> None: ...
