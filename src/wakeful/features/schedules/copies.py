"""Copies of a definition on rows of the ledger, left when it changes."""

from wakeful.core.schedule.cadence import Cadence
from wakeful.ports.store import Tx


def leave_copies(tx: Tx, cadence: Cadence, text: str) -> None:
    """A run ends under the definition it began with: before that changes, open runs get a copy. So does the newest
    row, because a clock that comes back asks by which timing a gap was counted."""
    kept = {*open_ids(cadence), *([cadence.last_row_id] if cadence.last_row_id is not None else [])}
    rows = [
        run
        for run in tx.runs.lock(sorted(kept)).values()
        if run.definition is None and (run.is_open or run.version == cadence.version)
    ]
    if rows:
        tx.runs.save_many(sorted(run._replace(definition=text) for run in rows))


def open_ids(cadence: Cadence) -> list[int]:
    """The runs of a schedule that are not over."""
    return sorted(run_id for run_id in (cadence.open_run_id, cadence.queued_run_id) if run_id is not None)
