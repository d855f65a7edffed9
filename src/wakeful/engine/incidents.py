"""How a person's command affects an incident."""

from wakeful.core.delivery.incidents import Incident, acknowledged, after_resume
from wakeful.core.time.instants import Instant
from wakeful.engine.incident_rows import Incidents
from wakeful.ports import events
from wakeful.ports.event_data import IncidentClosed
from wakeful.ports.outbox import ALARM_INCIDENT
from wakeful.ports.store import Report, Tx


def resume_incident(tx: Tx, name: str) -> None:
    """The subject was resumed: another failure is reported as new."""
    known = tx[Incidents].lock_open([name]).get(name)
    if known is not None:
        _put(tx, known, after_resume(known))


def end_incident(tx: Tx, name: str, *, now: Instant) -> None:
    """The incident was acknowledged, or its subject removed: close it without a report."""
    known = tx[Incidents].lock_open([name]).get(name)
    if known is None:
        return
    after = acknowledged(known, now)
    _put(tx, known, after)
    if after is not None:
        tx.report(Report(events.INCIDENT_CLOSED, IncidentClosed(known.name, known.text, known.times)))


def _put(tx: Tx, before: Incident, after: Incident | None) -> None:
    tx.alarms.remove_many(ALARM_INCIDENT, [before.incident_id])
    if after is None:
        tx[Incidents].remove(before.incident_id)
    else:
        tx[Incidents].save(after)
