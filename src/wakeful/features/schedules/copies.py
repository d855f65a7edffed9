"""Stores copies of a definition on ledger rows before it changes."""

from wakeful.core.schedule.cadence import Cadence
from wakeful.ports.store import Tx


def leave_copies(tx: Tx, cadence: Cadence, text: str) -> None:
    """A run ends under the definition it started with, so open runs get a copy before it changes. So does the newest
    row, because after the clock is set back the timing of its gap is needed."""
    kept = {*open_ids(cadence), *([cadence.last_row_id] if cadence.last_row_id is not None else [])}
    rows = [
        run
        for run in tx.runs.lock(sorted(kept)).values()
        if run.definition is None and (run.is_open or run.version == cadence.version)
    ]
    if rows:
        tx.runs.annotate_many(sorted(run._replace(definition=text) for run in rows))


def open_ids(cadence: Cadence) -> list[int]:
    """The open runs of a schedule."""
    return sorted(run_id for run_id in (cadence.open_run_id, cadence.queued_run_id) if run_id is not None)
