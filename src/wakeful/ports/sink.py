"""The sink port: receives facts about what happened, after the commit.

A fact is a value in the past tense. It is passed on once its transaction is durable, in whole batches, on the event
loop of the writer. A sink returns nothing, and its errors stay inside it, so that no listener can ever delay or change
what is done.

Facts contain ledger rows as they are; `observe.fan_out` resolves `schedule_id` to a slug.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from wakeful.core.run.runs import Attempt, Run
from wakeful.core.time.instants import Duration, Instant
from wakeful.ports.changes import Report
from wakeful.ports.ledger import Mark
from wakeful.ports.store import Store

ScheduleChangeKind: TypeAlias = Literal[
    "created", "edited", "removed", "paused", "resumed", "disabled", "invalid", "done"
]


class RunsClaimed(NamedTuple):
    """Attempts started: these rows are now running, owned by a node."""

    at: Instant
    runs: Sequence[Run]


class RunsWaiting(NamedTuple):
    """Runs wait for something: a lane, a retry, a busy target, a queue, a gate; the reason is on the row."""

    at: Instant
    runs: Sequence[Run]


class RunsClimbed(NamedTuple):
    """Rungs reached while runs continue."""

    at: Instant
    marks: Sequence[Mark]


class AttemptsEnded(NamedTuple):
    """Attempts ended while their runs continue; each run is also reported as waiting."""

    at: Instant
    attempts: Sequence[Attempt]


class RunsSettled(NamedTuple):
    """Runs closed: with an outcome, or with late proof of their result."""

    at: Instant
    runs: Sequence[Run]


class RunsRescued(NamedTuple):
    """Runs of a dead node were taken over; each is also reported as waiting or settled."""

    at: Instant
    runs: Sequence[Run]


class InstantsSkipped(NamedTuple):
    """Rows of instants that were deliberately not run. `instants` are the new ones: a row may grow."""

    at: Instant
    runs: Sequence[Run]
    instants: Sequence[int]


class InstantsMissed(NamedTuple):
    """Rows of instants that were missed."""

    at: Instant
    runs: Sequence[Run]
    instants: Sequence[int]


class RunsVoided(NamedTuple):
    """Rows deleted from the ledger: they lay ahead when the clock went back."""

    at: Instant
    run_ids: Sequence[int]


class ScheduleChange(NamedTuple):
    """The new state of one schedule."""

    schedule_id: int
    kind: ScheduleChangeKind
    version: int
    reason: str | None = None
    slug: str | None = None
    definition: str | None = None  # of a new one, as it is stored


class SchedulesChanged(NamedTuple):
    """Schedules were written, halted, or resumed."""

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
    """This node was declared dead; it enters again as a new one."""

    at: Instant
    node_id: int


class ClockJumped(NamedTuple):
    """Wall and monotonic time diverged: the clock was set (in either direction), or the machine was suspended."""

    at: Instant
    by: Duration


class Ticked(NamedTuple):
    """The engine ticked. `lag` is how late the latest of the claimed runs was."""

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
    reports: Sequence[Report[Any]]  # of one stream


class CommitTimed(NamedTuple):
    """A commit finished: how long its caller waited, and whether it succeeded."""

    at: Instant
    seconds: float
    is_kept: bool


Fact: TypeAlias = (
    RunsClaimed
    | RunsWaiting
    | RunsClimbed
    | AttemptsEnded
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
"""Schedule ids and their slugs, as far as known."""


class Sink(Protocol):
    """Receives facts. Must return immediately, and must not raise."""

    def begin(self, store: Store) -> None:
        """Called once, before any fact: the store in which references of facts can be looked up, read only."""
        ...

    def tell(self, facts: Sequence[Fact]) -> None: ...
