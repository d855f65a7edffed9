"""Manages the runs of producers and consumers: what to perform, and what a result means for the workflow."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from wakeful.core.run.results import Ending
from wakeful.core.run.runs import Run, RunKind
from wakeful.core.run.settlement import Close
from wakeful.core.schedule.gates import Defer, Leave, Skip
from wakeful.core.time.instants import HOUR, MINUTE, Duration, Instant
from wakeful.core.workflow.definition import Handling, Producer
from wakeful.core.workflow.rows import HandlerRun, Workflow
from wakeful.features.workflows.compiled import Broken, Compilations
from wakeful.features.workflows.handler_action import HandlerSpec
from wakeful.features.workflows.loading import deferred
from wakeful.features.workflows.settling import settle_run
from wakeful.features.workflows.state import read_flows, save_flows
from wakeful.ports.action import Fire
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.handlers import PERSONS_COMMAND, Job, RunAgent, Settled
from wakeful.ports.store import Tx
from wakeful.ports.workflows import StoredWorkflows

GRACE: Final = MINUTE
"""Extra time for an attempt beyond the limits of its phases, which the action enforces itself."""


class Locked(NamedTuple):
    """The locked workflows of some runs, and the progress of the runs."""

    workflows: Mapping[int, Workflow]
    runs: Mapping[int, HandlerRun]


class HandlerRuns:
    """Manages the runs of one kind of handler."""

    admits_without_locks = True

    def __init__(
        self,
        kind: RunKind,
        compilations: Compilations,
        is_here: Callable[[str, Handling], bool],
        *,
        left_for: Duration,
        store_id: str,
    ) -> None:
        self._is_here = is_here  # whether this process has the functions of a workflow's handler
        self._left_for = left_for  # how long other runs are left alone, for the processes that have them
        self.kind = kind
        self._compilations = compilations
        self._store_id = store_id

    def lock(self, tx: Tx, runs: Sequence[Run]) -> Locked:
        run_ids = [run.run_id for run in runs]
        workflows = tx[StoredWorkflows].lock({own.workflow_id for own in tx[HandlerRunDetails].among(run_ids).values()})
        return Locked(
            workflows, tx[HandlerRunDetails].among(run_ids)
        )  # read again: they may have changed before we held the lock

    def admit(self, tx: Tx, runs: Sequence[Run], *, now: Instant) -> list[Job | Defer | Skip | Leave | str]:
        paused = Defer(now + HOUR, "paused")  # pausing stops its alarm; this run was claimed just before
        return [
            paused
            if workflow is not None and workflow.status != "active" and workflow.deleted_at is None
            else self._held_back(run, self._job(run, own, workflow), now)
            for run, own, workflow in _with_owners(tx, runs)
        ]

    def jobs(self, tx: Tx, runs: Sequence[Run]) -> list[Job | str]:
        return [self._job(*owned) for owned in _with_owners(tx, runs)]

    def settle(self, tx: Tx, locked: Locked, ended: Sequence[tuple[Run, Ending]], *, now: Instant) -> list[Settled]:
        before = read_flows(tx, locked.workflows.values())
        after = dict(before)
        settled: list[Settled] = []
        rows: list[HandlerRun] = []
        for run, ending in ended:
            own = locked.runs.get(run.run_id)
            if own is None:  # its owner is no longer known
                settled.append(Settled(Close("failed", run.rung, "its workflow was removed", "removed")))
                continue
            flow = after[own.workflow_id]
            fate = settle_run(tx, flow, own, run, ending, self._compilations.of(flow.workflow), now=now)
            after[own.workflow_id] = fate.flow
            settled.append(fate.settled)
            rows.append(fate.run)
        if rows:
            tx[HandlerRunDetails].save_many(sorted(rows))
        save_flows(tx, [(before[key], after[key]) for key in before], now)
        return settled

    def agent_of(self, tx: Tx, run: Run) -> RunAgent:
        return PERSONS_COMMAND

    def _held_back(self, run: Run, job: Job | str, now: Instant) -> Job | Defer | Leave | str:
        """The job, or a wait if only another process has its functions. First that one gets the chance to take it: a
        node whose clock is a little ahead would always be the first to defer it."""
        spec = job.spec if isinstance(job, Job) else None
        if not isinstance(spec, HandlerSpec) or self._is_here(spec.workflow, spec.handler):
            return job
        due_at = run.due_at if run.next_attempt_at is None else run.next_attempt_at
        return Leave() if now - due_at < self._left_for else deferred(run, now)

    def _job(self, run: Run, own: HandlerRun | None, workflow: Workflow | None) -> Job | str:
        if own is None or workflow is None or workflow.deleted_at is not None:
            return "its workflow was removed"
        known = self._compilations.of(workflow)
        if isinstance(known, Broken):
            return f"its definition cannot be read: {known.reason}"
        handler = known.handlers.get(own.handler)
        if handler is None or isinstance(handler, Producer) is not (own.kind == "producer"):
            return f"version {workflow.version} of the workflow no longer has a {own.kind} '{own.handler}'"
        # A fresh prepare may choose other messages, so its side effect is a different one with a different key.
        key = f"{self._store_id}-{run.run_id}-{own.prepares + (own.phase == 'preparing')}"
        fire = Fire.of(run, f"workflow:{workflow.name}", key)
        spec = HandlerSpec(workflow.workflow_id, workflow.name, handler, own.phase)
        return Job(spec, fire, _timeout(handler), "unknown")


def _with_owners(tx: Tx, runs: Sequence[Run]) -> list[tuple[Run, HandlerRun | None, Workflow | None]]:
    known = tx[HandlerRunDetails].among([run.run_id for run in runs])
    workflows = tx[StoredWorkflows].among({own.workflow_id for own in known.values()})
    owned = [(run, known.get(run.run_id)) for run in runs]
    return [(run, own, None if own is None else workflows.get(own.workflow_id)) for run, own in owned]


def _timeout(handler: Handling) -> int:
    phases = 1 if isinstance(handler, Producer) else 3
    return phases * handler.timeout + GRACE
