"""Claims: the runs that a node owns, in batches of equal decisions.

A batch is one decision about many instants: the same definition under any slug, lane and timeout, the same instant,
what it performs, and what comes after it. A claim is one run of it, with its lane and its timeout. It stays the same
object while its attempt is performed and until it is settled, and it makes its row and its job when something asks for
them: most runs start, succeed and are settled without. A run that was decided by itself is a batch of one, which brings
its row and its job.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from wakeful.core.run.results import Ending
from wakeful.core.run.runs import PRIORITY_PLANNED, Run, RungName, RunKind, Trigger
from wakeful.core.run.transitions import planned, started
from wakeful.core.schedule.policies import OnCrash
from wakeful.core.time.instants import Duration, Instant
from wakeful.ports.action import Fire

if TYPE_CHECKING:
    from wakeful.ports.handlers import Job

Why: TypeAlias = Literal["deadline", "shutdown", "fenced", "cancel"]
"""Why an attempt is ended before it ends by itself."""

FIRST_FENCE: Final = 1


class Batch:
    """What runs that were claimed together have in common."""

    __slots__ = (
        "claimed_at", "claims", "due_at", "fence", "is_first", "is_plain", "job_of", "kind", "next_at",
        "next_due_at", "node_id", "on_crash", "planned_at", "priority", "rung", "spec", "trigger", "version", "waiting",
    )  # fmt: skip

    kind: RunKind
    version: int
    planned_at: Instant
    due_at: Instant
    trigger: Trigger
    priority: int
    fence: int
    is_first: bool  # the first attempt of a planned instant, by the definition that the schedule has
    is_plain: bool  # these runs were decided together (`core.schedule.plain`); False: it is a batch of one
    claims: "list[Claim]"  # those that start, until they do
    # Of runs that were decided together:
    next_at: Instant | None  # of their schedules; None: this was the last instant
    next_due_at: Instant | None
    spec: object
    on_crash: OnCrash
    job_of: "Callable[[Claim], Job]"
    waiting: "Sequence[Claim]"  # those whose lane is held
    node_id: int  # these three are known when they are claimed
    claimed_at: Instant
    rung: RungName

    @classmethod
    def plain(
        cls,
        *,
        kind: RunKind,
        version: int,
        planned_at: Instant,
        due_at: Instant,
        next_at: Instant | None,
        next_due_at: Instant | None,
        spec: object,
        on_crash: OnCrash,
        job_of: "Callable[[Claim], Job]",
    ) -> "Batch":
        """Instants on time that were decided together, not written yet. Its claims are added afterwards."""
        batch = cls()
        batch.kind, batch.version, batch.planned_at, batch.due_at = kind, version, planned_at, due_at
        batch.trigger, batch.priority, batch.fence = "schedule", PRIORITY_PLANNED, FIRST_FENCE
        batch.is_first, batch.is_plain = True, True
        batch.claims, batch.waiting = [], ()
        batch.next_at, batch.next_due_at, batch.spec = next_at, next_due_at, spec
        batch.on_crash, batch.job_of = on_crash, job_of
        return batch

    @classmethod
    def of_one(cls, run: Run) -> "Batch":
        """A run that was decided by itself, as it was claimed."""
        batch = cls()
        batch.kind, batch.version, batch.planned_at, batch.due_at = run.kind, run.version, run.planned_at, run.due_at
        batch.trigger, batch.priority, batch.fence = run.trigger, run.priority, run.fence
        batch.is_first = run.attempt == 1 and run.trigger == "schedule" and run.definition is None
        batch.is_plain = False
        return batch

    def put_apart(self, parked: "set[int]") -> None:
        """The lanes of these runs are held: they wait, and do not start."""
        self.waiting = [claim for claim in self.claims if claim.run_id in parked]
        self.claims = [claim for claim in self.claims if claim.run_id not in parked]


class Deadline:
    """When attempts have to end that began together. `left` counts those that it still concerns."""

    __slots__ = ("at", "left")

    def __init__(self, at: int, left: int) -> None:
        self.at = at  # monotonic
        self.left = left


class Claim:
    """A run that this node owns, and its attempt: perform its job, or settle its ending immediately."""

    __slots__ = (
        "_job", "_run", "batch", "compiled", "deadline", "is_stuck", "lane", "run_id", "schedule_id", "task", "timeout",
        "why",
    )  # fmt: skip

    def __init__(
        self,
        run_id: int,
        schedule_id: int,
        batch: Batch,
        lane: str | None,
        timeout: Duration,
        compiled: Any = None,
        run: Run | None = None,
        job: "Job | Ending | None" = None,
    ) -> None:
        self.run_id = run_id
        self.schedule_id = schedule_id
        self.batch = batch
        self.lane = lane
        self.timeout = timeout
        self.compiled = compiled  # its definition, for the feature that made the batch
        self._run = run
        self._job = job
        # Of its attempt:
        self.task: asyncio.Task[None] | None = None
        self.deadline: Deadline | None = None
        self.why: Why | None = None
        self.is_stuck = False

    @classmethod
    def of(cls, run: Run, job: "Job | Ending", timeout: Duration) -> "Claim":
        """A run that was decided by itself, as it was claimed."""
        return cls(run.run_id, run.schedule_id, Batch.of_one(run), run.lane, timeout, None, run, job)

    @property
    def run(self) -> Run:
        """Its row, as it was claimed."""
        if self._run is None:
            batch = self.batch
            self._run = started(
                run_id=self.run_id,
                kind=batch.kind,
                schedule_id=self.schedule_id,
                version=batch.version,
                planned_at=batch.planned_at,
                due_at=batch.due_at,
                lane=self.lane,
                node_id=batch.node_id,
                now=batch.claimed_at,
                timeout=self.timeout,
                rung=batch.rung,
            )
        return self._run

    @property
    def parked(self) -> Run:
        """Its row, if it waits for its lane instead."""
        batch = self.batch
        return planned(
            run_id=self.run_id,
            kind=batch.kind,
            schedule_id=self.schedule_id,
            version=batch.version,
            planned_at=batch.planned_at,
            due_at=batch.due_at,
            trigger=batch.trigger,
            lane=self.lane,
            reason="lane",
        )

    @property
    def job(self) -> "Job | Ending":
        """What to perform, or how it ended before it began."""
        if self._job is None:
            self._job = self.batch.job_of(self)
        return self._job

    def fire(self) -> Fire:
        """The attempt, as the target sees it."""
        return self.performed.fire

    @property
    def performed(self) -> "Job":
        """Its job, of a claim that is performed."""
        job: Any = self.job  # not an ending: those are settled before anything is performed
        return job  # type: ignore[no-any-return]
