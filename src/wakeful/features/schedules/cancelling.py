"""Cancel: end a run that is running or waiting, whatever owns it.

A waiting run is closed by the command itself. For a running one the command records the request; the node that owns the
run sees it (`engine.engine.Engine`) and ends the attempt, and settling takes the request into account. If that node
dies first, the rescue does (`core.run.settlement.with_cancel_request`).
"""

from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.results import Cancelled
from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant
from wakeful.engine.cancels import CancelRequest, Cancels
from wakeful.engine.settling import conclude
from wakeful.ports import events
from wakeful.ports.event_data import CancelRequested
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.store import Report, Tx


def cancel(tx: Tx, run_id: int, *, hooks: EngineHooks, now: Instant, by: str = "") -> None:
    """Cancel a run. A run that has ended is refused, unless it was cancelled."""
    row = next(iter(tx.runs.page(before_id=run_id + 1, limit=1)), None)
    if row is None or row.run_id != run_id:
        raise NotFound(f"there is no run {run_id}")
    keeper = hooks.keepers[row.kind]
    locked = keeper.lock(tx, [row])
    run = tx.runs.lock([run_id]).get(run_id)
    if run is None:
        raise NotFound(f"there is no run {run_id}")
    if run.outcome == "cancelled":
        return
    if not run.is_open:
        stuck = "; part of it could not be stopped" if run.stuck else ""
        raise Conflict(f"run {run_id} has already ended: {run.outcome}{stuck}")
    _refuse_awaited(tx, run)
    tx[Cancels].add_first(CancelRequest(run_id, now, by))
    tx.report(Report(events.RUN_CANCEL_REQUESTED, CancelRequested(run_id, by)))
    if run.outcome == "waiting":
        conclude(tx, hooks, keeper, locked, [(run, Cancelled())], now=now)


def _refuse_awaited(tx: Tx, run: Run) -> None:
    """A workflow run that waits for a person's decision is not cancelled: the decision ends it."""
    own = tx[HandlerRunDetails].among([run.run_id]).get(run.run_id)
    if run.outcome == "waiting" and own is not None and own.awaits is not None:
        raise Conflict(f"run {run.run_id} waits for a decision; resolve it, or resume its workflow")
