"""Lanes that are no longer enforced: the runs parked behind them become due."""

from collections.abc import Callable

from wakeful.ports.store import ALARM_RUN, Tx


def unpark(tx: Tx, is_lifted: Callable[[str], bool], *, before_id: int | None, limit: int) -> int | None:
    """Check `limit` waiting runs, newest first, before an id; returns how far it got, None at the end."""
    waiting = tx.runs.page(outcome="waiting", before_id=before_id, limit=limit)
    ids = sorted(run.run_id for run in waiting if run.lane is not None and is_lifted(run.lane))
    held = tx.runs.lock(ids) if ids else {}
    alarms = tx.alarms.by_refs(ALARM_RUN, sorted(held)) if held else {}
    free = [alarms[ref] for ref in sorted(alarms) if alarms[ref].parked and held[ref].outcome == "waiting"]
    if free:
        tx.alarms.set_many([alarm._replace(parked=0) for alarm in free])
    return waiting[-1].run_id if len(waiting) == limit else None
