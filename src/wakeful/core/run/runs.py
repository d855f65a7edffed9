"""The run: one row of the ledger.

Theory of operation
-------------------
A run represents one planned instant, one manual request, or (with `instants` above one) a stretch of instants that were
settled together. It is written when its instant is decided, before anything starts, and its key
(schedule, occurrence) is unique: this makes an instant happen only once (L2).

A run climbs a ladder of rungs, claimed → sent → accepted → started → finished, and ends in one outcome. Its attempts
share the run's idempotency key; the current attempt is stored on the run itself, earlier ones are `Attempt` rows. The
fence grows with every claim: settling requires the fence of the claim, so a late result of a node that lost its lease
changes nothing (L6).

Rows are named tuples in the order of the table's columns: they are read from and written to the database as they are.
"""

import json
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.time.instants import Instant

Outcome: TypeAlias = Literal[
    "running", "waiting", "succeeded", "failed", "timedOut", "unconfirmed", "unknown", "cancelled", "skipped", "missed"
]
RungName: TypeAlias = Literal["claimed", "sent", "accepted", "started", "finished"]
Trigger: TypeAlias = Literal["schedule", "catchUp", "manual", "wake", "backfill", "replay"]
RunKind: TypeAlias = str

OPEN: Final[frozenset[Outcome]] = frozenset({"running", "waiting"})
NOT_RUN: Final[frozenset[Outcome]] = frozenset({"skipped", "missed"})
ERRORS: Final[frozenset[Outcome]] = frozenset({"failed", "timedOut", "unconfirmed", "unknown"})
RUNGS: Final[tuple[RungName, ...]] = ("claimed", "sent", "accepted", "started", "finished")

# From each outcome, the outcomes a run may move to. A run that waits for another component, or for a sign of what it
# sent, succeeds or stays unconfirmed without another attempt. A run that was claimed is missed only if it never began
# (`transitions.never_begun`). `unknown` and `unconfirmed` are closed, but late proof may turn them into what really
# happened; the others are final.
TRANSITIONS: Final[dict[Outcome, frozenset[Outcome]]] = {
    "waiting": frozenset(
        {"running", "succeeded", "skipped", "failed", "unconfirmed", "unknown", "cancelled", "missed"}
    ),
    "running": frozenset(
        {"waiting", "succeeded", "failed", "timedOut", "unconfirmed", "unknown", "cancelled", "skipped", "missed"}
    ),
    "unconfirmed": frozenset({"succeeded", "failed"}),
    "unknown": frozenset({"succeeded", "failed", "timedOut", "cancelled"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
    "timedOut": frozenset(),
    "cancelled": frozenset(),
    "skipped": frozenset(),
    "missed": frozenset(),
}

# Priority 0: a person is waiting. Priority 1: planned work. Priority 2: past instants that are run on request.
PRIORITY_PERSON: Final = 0
PRIORITY_PLANNED: Final = 1
PRIORITY_BACKFILL: Final = 2
PRIORITIES: Final = (PRIORITY_PERSON, PRIORITY_PLANNED, PRIORITY_BACKFILL)

OUTSIDE_PLAN: Final[frozenset[Trigger]] = frozenset({"manual", "backfill", "replay"})


class Run(NamedTuple):
    """One row of the ledger, in the order of its columns."""

    run_id: int
    kind: RunKind
    schedule_id: int
    occurrence: int  # the planned instant; negative and unique (`unplanned`) for a manual run
    planned_at: Instant
    planned_until: Instant | None  # the last instant of a stretch
    instants: int  # how many it covers: above one it is a stretch, `count` in JSON
    due_at: Instant
    trigger: Trigger
    outcome: Outcome
    reason: str | None
    rung: RungName | None
    attempt: int
    crashes: int
    waits: int  # how many times the target was busy
    priority: int
    lane: str | None
    owner: int | None  # the node incarnation that holds it; of a closed run, the one that held it last
    fence: int
    version: int  # of the definition it started with
    started_at: Instant | None  # first claim
    claimed_at: Instant | None  # claim of the current attempt
    ended_at: Instant | None
    deadline_at: Instant | None
    next_attempt_at: Instant | None
    error: str | None
    result: str | None  # JSON: reply, output, usage
    ladder: str | None  # JSON: when each rung of the current attempt was reached
    blocked_by: int | None
    process: str | None  # JSON: host, pid and start time of the current attempt's process
    definition: str | None  # a copy, made when the schedule was edited or deleted while the run was open
    stuck: int  # 1: closed without proof of its end; still holds its lane, its schedule and its share of capacity
    run_on: str | None = None  # the labels of which a node needs one to begin it (`core.schedule.labels`)

    @property
    def is_open(self) -> bool:
        return self.outcome in OPEN


class Attempt(NamedTuple):
    """An attempt that ended without closing its run."""

    run_id: int
    attempt: int
    claimed_at: Instant | None
    ended_at: Instant
    outcome: str  # failed | timedOut | busy | throttled | quota | crashed | interrupted
    rung: RungName | None
    error: str | None
    owner: int | None


def unplanned(run_id: int, at: Instant) -> int:
    """The occurrence of an unplanned run. It is part of the idempotency key, so it must not repeat when a store that
    lost its last minutes assigns the same id again: the time makes it unique."""
    return -(run_id << 32 | at & 0xFFFF_FFFF)


def idempotency_key(store_id: str, run: Run) -> str:
    """The key that all attempts of a run share. It tells the instants of all schedules of all stores apart."""
    return occurrence_key(store_id, run.schedule_id, run.occurrence)


def occurrence_key(store_id: str, schedule_id: int, occurrence: int) -> str:
    """The idempotency key of the run with this key."""
    return f"{store_id}-{schedule_id}-{occurrence}"


def may_become(outcome: Outcome, target: Outcome) -> bool:
    """Whether the transition table allows this change."""
    return target in TRANSITIONS[outcome]


def rung_index(rung: RungName | None) -> int:
    """The position of a rung; -1 for None, and for a rung of a newer release that this one does not know."""
    return _RUNG_INDEX.get(rung, -1)


def reached_by(run: Run, earlier: Iterable[Attempt]) -> RungName | None:
    """The highest rung that any attempt of a run reached, for readers. Decisions use the rung of their own attempt: a
    later one may end before it gets as far, and what it was given up for says nothing about the earlier ones."""
    ladder: dict[RungName, Instant] = {} if run.ladder is None else json.loads(run.ladder)
    return max((run.rung, *ladder, *(attempt.rung for attempt in earlier)), key=rung_index)


_RUNG_INDEX: Final[dict[RungName | None, int]] = {rung: index for index, rung in enumerate(RUNGS)}


def stretch(
    *,
    run_id: int,
    kind: RunKind,
    schedule_id: int,
    version: int,
    first: Instant,
    last: Instant,
    instants: int,
    outcome: Outcome,
    reason: str,
    now: Instant,
    blocked_by: int | None = None,
) -> Run:
    """A ledger row for instants that did not run."""
    return Run(
        run_id,
        kind,
        schedule_id,
        first,
        first,
        last if instants > 1 else None,
        instants,
        first,
        "schedule",
        outcome,
        reason,
        None,
        0,
        0,
        0,
        PRIORITY_PLANNED,
        None,
        None,
        0,
        version,
        None,
        None,
        now,
        None,
        None,
        None,
        None,
        None,
        blocked_by,
        None,
        None,
        0,
        None,
    )
