"""State changes of a run's row: claimed, climbing, waiting, closed. Each function takes a row and returns the next."""

import json
from typing import Any

from wakeful.core.run.runs import (
    OUTSIDE_PLAN,
    PRIORITY_BACKFILL,
    PRIORITY_PERSON,
    PRIORITY_PLANNED,
    Attempt,
    Outcome,
    Run,
    RungName,
    RunKind,
    Trigger,
    may_become,
    unplanned,
)
from wakeful.core.run.settlement import Close, Wait
from wakeful.core.time.instants import Duration, Instant


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
    run_on: str | None = None,
) -> Run:
    """A run created by its instant or by a person; it has not started."""
    is_manual = trigger == "manual"
    occurrence = unplanned(run_id, planned_at if is_manual else due_at) if trigger in OUTSIDE_PLAN else planned_at
    priority = PRIORITY_PERSON if is_manual else PRIORITY_BACKFILL if trigger in OUTSIDE_PLAN else PRIORITY_PLANNED
    return Run._make((
        run_id, kind, schedule_id, occurrence, planned_at, None, 1, due_at, trigger,
        "waiting", reason, None, 0, 0, 0, priority, lane, None, 0, version,
        None, None, None, None, due_at, None, None, None, None, None, None, 0, run_on,
    ))  # fmt: skip


def started(
    *,
    run_id: int,
    kind: RunKind,
    schedule_id: int,
    version: int,
    planned_at: Instant,
    due_at: Instant,
    lane: str | None,
    node_id: int,
    now: Instant,
    timeout: Duration,
    rung: RungName,
) -> Run:
    """A run created by its instant that starts at once: what `planned` and then `claimed` make of it."""
    return Run._make((
        run_id, kind, schedule_id, planned_at, planned_at, None, 1, due_at, "schedule",
        "running", None, rung, 1, 0, 0, PRIORITY_PLANNED, lane, node_id, 1, version,
        now, now, None, now + timeout, None, None, None, None, None, None, None, 0, None,
    ))  # fmt: skip


def claimed(run: Run, *, node_id: int, now: Instant, timeout: Duration, rung: RungName) -> Run:
    """The row under a new owner and a new fence, as its next attempt starts."""
    # Unpacked and rebuilt by position: this is on the hot path, and a third of the cost of `_replace`.
    (
        run_id, kind, schedule_id, occurrence, planned_at, planned_until, instants, due_at, trigger, outcome, _reason,
        _rung, attempt, crashes, waits, priority, lane, _owner, fence, version, started_at, _claimed_at, ended_at,
        _deadline_at, _next_attempt_at, error, result, _ladder, blocked_by, _process, definition, stuck, run_on,
    ) = run  # fmt: skip
    _must_be_allowed(run_id, outcome, "running")
    return Run._make((
        run_id, kind, schedule_id, occurrence, planned_at, planned_until, instants, due_at, trigger, "running", None,
        rung, attempt + 1, crashes, waits, priority, lane, node_id, fence + 1, version,
        now if started_at is None else started_at, now, ended_at, now + timeout, None, error, result, None, blocked_by,
        None, definition, stuck, run_on,
    ))  # fmt: skip


def unclaimed(run: Run, *, until: Instant, reason: str, error: str | None) -> Run:
    """The row of a run that was claimed in this transaction and may not start after all: it waits, as if it had not
    been claimed."""
    attempt = run.attempt - 1
    return run._replace(
        outcome="waiting",
        reason=reason,
        rung=None,
        attempt=attempt,
        owner=None,
        started_at=None if attempt == 0 else run.started_at,
        claimed_at=None,
        deadline_at=None,
        next_attempt_at=until,
        error=error if run.error is None or attempt == 0 else run.error,
    )


def climbed(ladder: str | None, rung: RungName, now: Instant) -> str:
    """The ladder with one more rung."""
    rungs: dict[str, Any] = {} if ladder is None else json.loads(ladder)
    rungs[rung] = now
    return json.dumps(rungs, separators=(",", ":"))


def waiting(run: Run, wait: Wait, *, result: str | None = None) -> Run:
    """The row between two attempts: without an owner, and without a lane."""
    _must_be_allowed(run.run_id, run.outcome, "waiting")
    return run._replace(
        outcome="waiting",
        reason=wait.reason,
        rung=wait.rung,
        attempt=run.attempt if wait.is_attempt else run.attempt - 1,
        lane=wait.lane or run.lane,
        started_at=run.started_at if wait.is_attempt or run.attempt > 1 else None,
        crashes=run.crashes + wait.is_crash,
        waits=run.waits + wait.is_busy,
        owner=None,
        deadline_at=None,
        next_attempt_at=wait.until,
        error=wait.error,
        result=run.result if result is None else result,
        process=None,
    )


def closed(run: Run, close: Close, *, now: Instant, result: str | None) -> Run:
    """The row at its end. It keeps its owner, which shows where it ran, or where it hangs if it is stuck."""
    (
        run_id, kind, schedule_id, occurrence, planned_at, planned_until, instants, due_at, trigger, was, _reason,
        _rung, attempt, crashes, waits, priority, lane, owner, fence, version, started_at, claimed_at, _ended_at,
        _deadline_at, _next_attempt_at, _error, kept, ladder, blocked_by, process, definition, was_stuck, run_on,
    ) = run  # fmt: skip
    outcome, rung, error, reason, is_stuck, *_ = close
    if not (was_stuck and outcome == was):  # a run that is no longer stuck may stay unknown
        _must_be_allowed(run_id, was, outcome)
    return Run._make((
        run_id, kind, schedule_id, occurrence, planned_at, planned_until, instants, due_at, trigger, outcome, reason,
        rung, attempt, crashes, waits, priority, lane, owner, fence, version, started_at, claimed_at, now, None, None,
        error, kept if result is None else result, ladder, blocked_by, process if is_stuck else None, definition,
        int(is_stuck), run_on,
    ))  # fmt: skip


def never_begun(run: Run, close: Close, *, now: Instant) -> Run:
    """The row of a run that was claimed and did not begin: it is missed or skipped, as if it had not been claimed. What
    could not begin may have been claimed as started, as direct calls are."""
    if run.attempt != 1 or (close.has_begun and run.rung != "claimed"):
        raise AssertionError(f"run {run.run_id} has begun, so it cannot be missed")
    row = closed(run, close._replace(rung=None), now=now, result=None)
    return row._replace(attempt=0, started_at=None, claimed_at=None)


def ended_attempt(run: Run, wait: Wait, *, now: Instant) -> Attempt:
    """The attempt that just ended, for the record, while the run continues."""
    return Attempt(run.run_id, run.attempt, run.claimed_at, now, wait.attempt_outcome, wait.rung, wait.error, run.owner)


def _must_be_allowed(run_id: int, outcome: Outcome, target: Outcome) -> None:
    if not may_become(outcome, target):
        raise AssertionError(f"run {run_id} cannot go from {outcome} to {target}")
