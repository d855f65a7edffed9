"""What a person's command means for the incident of what they commanded."""

from wakeful.core.delivery.incidents import Incident, acknowledged, after_resume
from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import ALARM_INCIDENT
from wakeful.ports.store import Report, Tx


def resume_incident(tx: Tx, name: str) -> None:
    """It was resumed: if it fails again, that is news."""
    known = tx.incidents.lock([name]).get(name)
    if known is not None:
        _put(tx, known, after_resume(known))


def end_incident(tx: Tx, name: str, *, now: Instant) -> None:
    """It was acknowledged, or what it is about was removed: it is over, and that is not reported."""
    known = tx.incidents.lock([name]).get(name)
    if known is None:
        return
    after = acknowledged(known, now)
    _put(tx, known, after)
    if after is not None:
        tx.report(Report("incidents", "closed", {"incident": known.name, "text": known.text, "times": known.times}))


def _put(tx: Tx, before: Incident, after: Incident | None) -> None:
    tx.alarms.remove_many(ALARM_INCIDENT, [before.incident_id])
    if after is None:
        tx.incidents.remove(before.incident_id)
    else:
        tx.incidents.save(after)
