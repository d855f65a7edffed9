"""Rows for the conformance suite: valid rows, of which each test names only the fields it is about."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from wakeful.core.run.results import DONE
from wakeful.core.run.runs import Attempt, Run
from wakeful.core.schedule.cadence import Cadence
from wakeful.ports.claims import Batch, Claim
from wakeful.ports.store import ALARM_RUN, ALARM_SCHEDULE, Alarm, NewSchedule, Store, Tx

MakeStore: TypeAlias = Callable[[], Awaitable[Store]]
"""Opens the store of this test. Every call opens the same store, as another process would."""

NOW = 1_800_000_000_000


def a_schedule(slug: str, **changes: Any) -> NewSchedule:
    """A schedule about to be written."""
    return NewSchedule(slug, '{"schedule": {"type": "manual"}}', 0, NOW)._replace(**changes)


def a_cadence(schedule_id: int, **changes: Any) -> Cadence:
    """An active cadence that has decided everything up to now."""
    return Cadence(
        schedule_id, 1, "active", None, NOW, None, NOW, NOW + 1_000, 0,
        None, None, None, None, None, 0, None, None, None, None, None,
    )._replace(**changes)  # fmt: skip


def a_run(run_id: int, **changes: Any) -> Run:
    """A planned run that waits; its instant is NOW plus its id in milliseconds."""
    at = NOW + run_id
    return Run(
        run_id, "schedule", 1, at, at, None, 1, at, "schedule", "waiting", None, None, 0, 0, 0, 1, None, None, 0, 1,
        None, None, None, None, None, None, None, None, None, None, None, 0,
    )._replace(**changes)  # fmt: skip


def running(run_id: int, node_id: int, fence: int = 1, **changes: Any) -> Run:
    """A run that a node holds."""
    held = {"outcome": "running", "owner": node_id, "fence": fence, "attempt": 1, "rung": "claimed"}
    return a_run(run_id, **{**held, "started_at": NOW, "claimed_at": NOW, **changes})


def closed(run_id: int, ended_at: int, **changes: Any) -> Run:
    """A run that succeeded."""
    ended = {"outcome": "succeeded", "rung": "finished", "started_at": NOW, "ended_at": ended_at, "attempt": 1}
    ended["due_at"] = min(NOW + run_id, ended_at)
    return a_run(run_id, **{**ended, **changes})


def a_claim(run: Run) -> Claim:
    """A run that a node holds, as it was claimed."""
    return Claim.of(run, DONE, 0)


def a_batch(*claims: tuple[int, int], **changes: Any) -> Batch:
    """Runs that start together, given as run id and schedule: their instant is NOW, and the next one later."""
    known: dict[str, Any] = {
        "kind": "schedule",
        "version": 1,
        "planned_at": NOW,
        "due_at": NOW,
        "next_at": NOW + 60_000,
        "next_due_at": NOW + 60_000,
        "spec": None,
        "on_crash": "retry",
        "job_of": lambda _: DONE,
    }
    lane, timeout = changes.pop("lane", None), changes.pop("timeout", 9)
    batch = Batch.plain(**{name: changes.pop(name, value) for name, value in known.items()})
    batch.node_id, batch.claimed_at, batch.rung = changes.pop("node_id", 1), NOW, "claimed"
    for name, value in changes.items():
        setattr(batch, name, value)
    batch.claims = [Claim(run_id, schedule_id, batch, lane, timeout) for run_id, schedule_id in claims]
    return batch


def a_gap(run_id: int, first: int, last: int, instants: int, **changes: Any) -> Run:
    """A stretch of instants that did not run."""
    stretch = {"occurrence": first, "planned_at": first, "due_at": first, "instants": instants, "ended_at": NOW}
    until = {"planned_until": last if instants > 1 else None}
    return a_run(run_id, **{"outcome": "missed", "reason": "outage", **stretch, **until, **changes})


def an_attempt(run_id: int, attempt: int, **changes: Any) -> Attempt:
    """An attempt that failed."""
    return Attempt(run_id, attempt, NOW, NOW + 5, "failed", "started", "no", 1)._replace(**changes)


def run_alarm(run_id: int, due_at: int | None = NOW, **changes: Any) -> Alarm:
    """The alarm of a waiting run."""
    return Alarm(ALARM_RUN, run_id, due_at, 1, None, 0)._replace(**changes)


def schedule_alarm(schedule_id: int, due_at: int | None = NOW, **changes: Any) -> Alarm:
    """The alarm of a schedule."""
    return Alarm(ALARM_SCHEDULE, schedule_id, due_at, 1, None, 0)._replace(**changes)


def put_runs(tx: Tx, *rows: Run) -> None:
    """Write ledger rows, after reserving their ids."""
    tx.runs.reserve_ids(max(row.run_id for row in rows))
    tx.runs.add_many(rows)


def put_cadences(tx: Tx, *rows: Cadence) -> None:
    """Write cadences together with their schedules, whose ids match."""
    tx.schedules.add_many([a_schedule(f"s{n:04}") for n in range(1, max(row.schedule_id for row in rows) + 1)])
    tx.cadences.add_many(rows)


def a_node(tx: Tx, **changes: Any) -> int:
    """Register a node with a lease of one minute."""
    known: dict[str, Any] = {"name": "a", "host": "here", "pid": 1, "now": NOW, "lease_until": NOW + 60_000}
    return tx.nodes.register(**{**known, "capacity": 8, **changes})
