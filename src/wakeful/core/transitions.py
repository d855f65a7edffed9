"""How a run's row changes: claimed, climbing, waiting, closed. Each takes a row and answers the next one."""

import json
from typing import Any

from wakeful.core.instants import Duration, Instant
from wakeful.core.runs import PRIORITY_PERSON, PRIORITY_PLANNED, Attempt, Run, RungName, RunKind, Trigger, may_become
from wakeful.core.settlement import Close, Wait


def planned(
    *,
    run_id: int,
    kind: RunKind,
    schedule_id: int,
    version: int,
    planned_at: Instant,
    due_at: Instant,
    trigger: Trigger,
    lane: str | None,
    reason: str | None = None,
) -> Run:
    """A run that its instant, or a person, has brought forth; it has not started."""
    is_manual = trigger == "manual"
    return Run(
        run_id, kind, schedule_id, -run_id if is_manual else planned_at, planned_at, None, 1, due_at, trigger,
        "waiting", reason, None, 0, 0, 0, PRIORITY_PERSON if is_manual else PRIORITY_PLANNED, lane, None, 0, version,
        None, None, None, None, due_at, None, None, None, None, None, None, 0,
    )  # fmt: skip


def claimed(run: Run, *, node_id: int, now: Instant, timeout: Duration, rung: RungName) -> Run:
    """The row under a new owner and a new fence: its next attempt begins."""
    return run._replace(
        outcome="running",
        reason=None,
        rung=rung,
        attempt=run.attempt + 1,
        owner=node_id,
        fence=run.fence + 1,
        started_at=now if run.started_at is None else run.started_at,
        claimed_at=now,
        deadline_at=now + timeout,
        next_attempt_at=None,
        ladder=None,
        process=None,
    )


def climbed(ladder: str | None, rung: RungName, now: Instant) -> str:
    """The ladder with one more rung on it."""
    rungs: dict[str, Any] = {} if ladder is None else json.loads(ladder)
    rungs[rung] = now
    return json.dumps(rungs, separators=(",", ":"))


def waiting(run: Run, wait: Wait) -> Run:
    """The row between two attempts: nobody owns it, and it holds no lane."""
    return _moved(
        run,
        outcome="waiting",
        reason=wait.reason,
        rung=wait.rung,
        crashes=run.crashes + wait.is_crash,
        waits=run.waits + wait.is_busy,
        owner=None,
        due_at=run.due_at,
        deadline_at=None,
        next_attempt_at=wait.until,
        error=wait.error,
        process=None,
    )


def closed(run: Run, close: Close, *, now: Instant, result: str | None) -> Run:
    """The row at its end. A stuck one keeps its owner: whoever looks sees where it hangs."""
    return _moved(
        run,
        outcome=close.outcome,
        reason=close.reason,
        rung=close.rung,
        owner=run.owner if close.stuck else None,
        ended_at=now,
        deadline_at=None,
        next_attempt_at=None,
        error=close.error,
        result=result if result is not None else run.result,
        process=run.process if close.stuck else None,
        stuck=int(close.stuck),
    )


def ended_attempt(run: Run, wait: Wait, *, now: Instant) -> Attempt:
    """The attempt that just ended, for the record, while the run goes on."""
    return Attempt(run.run_id, run.attempt, run.claimed_at, now, wait.attempt_outcome, wait.rung, wait.error, run.owner)


def _moved(run: Run, **changes: Any) -> Run:
    target = changes["outcome"]
    if not may_become(run.outcome, target):
        raise AssertionError(f"run {run.run_id} cannot go from {run.outcome} to {target}")
    return run._replace(**changes)
