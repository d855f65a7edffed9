"""Cancelled runs of event schedules: the system event that such a run queued is withdrawn with it."""

from dataclasses import replace

from wakeful.core.run.results import Cancelled
from wakeful.core.run.runs import Run
from wakeful.ports.heartbeats import Heartbeats, WaitingEvents
from wakeful.ports.owners import Owners
from wakeful.ports.store import Tx

HEARTBEAT = "heartbeat"


def with_event_withdrawn(tx: Tx, run: Run, ending: Cancelled) -> Cancelled:
    """Withdraw the event of a run that was cancelled, while it waits for a turn or asks what became of its event. If a
    turn may have passed the event to the agent, nothing proves that the run was stopped."""
    if not run.is_open or not _has_raised(tx, run):
        return ending
    owner_id = tx[Owners].find(HEARTBEAT)
    if owner_id is not None:
        tx[Heartbeats].lock([owner_id])
    event = tx[WaitingEvents].of_run(run.run_id)
    if event is not None:
        tx[WaitingEvents].remove_many([event.event_id])
        if event.carried_by is None:
            return ending
    return replace(ending, is_proven=False, is_sent=True)


def _has_raised(tx: Tx, run: Run) -> bool:
    """Whether an earlier attempt queued an event."""
    if run.attempt == 0:
        return False
    return any(attempt.outcome == "accepted" for attempt in tx.runs.attempts([run.run_id]).get(run.run_id, ()))
