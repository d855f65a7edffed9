"""The conditions and constants of the plain path, the same in both databases."""

from typing import Any, Final

from wakeful.core.schedule.plain import SUCCESS
from wakeful.ports.claims import Batch

EVER: Final = -1
"""Before any due time."""

CLEAR: Final = (
    "state = 'active' AND next_at IS NOT NULL AND open_run_id IS NULL AND queued_run_id IS NULL"
    " AND backoff_until IS NULL AND catch_up_until IS NULL AND ran_through <= planned_through"
)
"""Whether a cadence is clear."""

IN_ORDER: Final = (
    "state = 'active' AND queued_run_id IS NULL AND backoff_until IS NULL"
    " AND catch_up_until IS NULL AND consecutive_errors = 0 AND trouble = 0 AND ran_through <= planned_through"
)
"""Whether a success changes only a cadence's last run, and whether it is done."""

CLOSED: Final = f"outcome = '{SUCCESS.outcome}', rung = '{SUCCESS.rung}', deadline_at = NULL"
"""What a success sets in the run, besides its end."""

FREED: Final = (
    f"open_run_id = NULL, last_error = NULL, last_outcome = '{SUCCESS.outcome}',"
    " last_run_at = (SELECT started_at FROM runs WHERE run_id = open_run_id)"
)
DONE: Final = f"{FREED}, state = 'done', state_reason = NULL"
"""What a success sets in the cadence, besides its end; and in one without a next instant."""

START_COLUMNS: Final = (
    "run_id", "kind", "schedule_id", "occurrence", "planned_at", "due_at", "trigger", "rung", "priority", "lane",
    "owner", "version", "started_at", "claimed_at", "deadline_at",
)  # fmt: skip
START_CONSTANTS: Final = {
    "instants": "1",
    "outcome": "'running'",
    "attempt": "1",
    "crashes": "0",
    "waits": "0",
    "fence": "1",
    "stuck": "0",
}
"""A run that starts as it is written: the columns that differ, those that do not, and the others are NULL."""


def rows_of(batch: Batch) -> list[tuple[Any, ...]]:
    """The rows of the runs of a batch that start, as `START_COLUMNS`."""
    kind, at, due_at, trigger, rung = batch.kind, batch.planned_at, batch.due_at, batch.trigger, batch.rung
    priority, node_id, version, now = batch.priority, batch.node_id, batch.version, batch.claimed_at
    return [
        (claim.run_id, kind, claim.schedule_id, at, at, due_at, trigger, rung, priority, claim.lane, node_id, version,
         now, now, now + claim.timeout)
        for claim in batch.claims
    ]  # fmt: skip
