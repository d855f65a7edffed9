"""Runs that start as they are written. Most do, so the store leaves out the columns that are constant in such rows."""

from wakeful.core.run.runs import Run


def is_just_started(row: Run) -> bool:
    """Whether every column that a store's `ADD_STARTED` leaves out has the value that the statement assumes."""
    return (
        row.outcome == "running"
        and row.attempt == 1
        and row.fence == 1
        and row.instants == 1
        and row.crashes == 0
        and row.waits == 0
        and row.stuck == 0
        and row.planned_until is None
        and row.reason is None
        and row.ended_at is None
        and row.next_attempt_at is None
        and row.error is None
        and row.result is None
        and row.ladder is None
        and row.blocked_by is None
        and row.process is None
        and row.definition is None
    )
