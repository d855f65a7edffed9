"""The text of an alert: the explanation from `why`, the fix, and how to resume what was disabled."""

from typing import Final

from wakeful.app.attention import MAKE_ROOM
from wakeful.core.delivery.incidents import FAILING, Incident
from wakeful.core.run.resources import RESOURCES
from wakeful.core.schedule.health import is_disabled_by_errors
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Once
from wakeful.features.delivery.incident_watch import IncidentText, plainly
from wakeful.features.heartbeat.rules import HEARTBEAT, HeartbeatTerms
from wakeful.features.heartbeat.why import why as why_heartbeat
from wakeful.features.schedules.compiled import Broken, Compiled, read_stored
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.why import why
from wakeful.features.schedules.why_times import shorten
from wakeful.ports.names import names_of
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Schedule, Tx
from wakeful.ports.workflows import StoredWorkflows

LATEST: Final = 3
"""Its open run is among them."""


def explained(
    tx: Tx, incident: Incident, now: Instant, *, terms: Terms, ledger_days: int, heartbeat: HeartbeatTerms
) -> IncidentText:
    """Look up the cause of an incident; the transaction only reads."""
    owner_id = incident.owner_id
    kind, _, name = incident.name.partition(":")
    if kind == "handler":
        return _handler(tx, incident, *name.split("/", 1))
    if kind == "slot":
        return _slot(tx, incident, name)
    if owner_id is None or not incident.name.startswith(f"{FAILING}:"):
        return plainly(tx, incident, now)
    if owner_id > 0:
        schedule = tx.schedules.by_ids([owner_id]).get(owner_id)
        return (
            IncidentText(incident.text, is_off=True)
            if schedule is None
            else _schedule(tx, schedule, incident, now, terms, ledger_days)
        )
    slug = names_of(tx, [owner_id]).get(owner_id)
    if slug != HEARTBEAT:
        return plainly(tx, incident, now)
    sentence, _ = why_heartbeat(tx, heartbeat, at=None, now=now)
    cure = "`wakeful runs heartbeat` lists its turns."
    return IncidentText(_text(incident, sentence, cure), slug)


def _schedule(
    tx: Tx, schedule: Schedule, incident: Incident, now: Instant, terms: Terms, ledger_days: int
) -> IncidentText:
    cadence = tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id]
    slug, state = schedule.slug, cadence.state
    is_by_person = state == "disabled" and not is_disabled_by_errors(cadence)
    if schedule.deleted_at is not None or state == "paused" or is_by_person:
        return IncidentText(incident.text, slug, is_off=True)
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    sentence = why(tx, slug, at=None, now=now, terms=terms, ledger_days=ledger_days).sentence
    latest = tx.runs.latest([schedule.schedule_id], limit=LATEST)[schedule.schedule_id]
    if any(run.outcome == "waiting" and run.reason == RESOURCES for run in latest):
        return IncidentText(f"it cannot begin. {sentence} {MAKE_ROOM}", slug)
    return IncidentText(_text(incident, sentence, _cure(slug, state, compiled)), slug)


def _handler(tx: Tx, incident: Incident, workflow: str, handler: str) -> IncidentText:
    """The text for a handler; a stopped workflow has a separate incident."""
    known = tx[StoredWorkflows].by_names([workflow]).get(workflow)
    is_off = known is None or known.status != "active" or known.error is not None
    again = "It is retried automatically, at least every 10 minutes"
    cure = f"make sure that it can be reached; `wakeful workflows show {workflow}` shows its state"
    return IncidentText(f"{handler} {incident.text}. {again}. To fix it: {cure}.", f"workflow:{workflow}", is_off)


def _slot(tx: Tx, incident: Incident, name: str) -> IncidentText:
    is_off = name not in tx[QuotaSlots].by_names([name])
    cure = f"check its key, address and plan; `wakeful slots resume {name}` retries it immediately"
    return IncidentText(f"{incident.text}. To fix it: {cure}.", f"slot:{name}", is_off)


def _cure(slug: str, state: str, compiled: Compiled | Broken) -> str:
    if state == "invalid" or isinstance(compiled, Broken):
        return f"To fix it: correct the definition with `wakeful edit {slug}`."
    if state == "disabled":
        return f"When the cause is fixed, `wakeful resume {slug}` enables it again."
    definition = compiled.definition
    if isinstance(definition.timing, Once):
        return (
            f"When the cause is fixed, `wakeful run {slug}` runs it again; "
            f"`wakeful alerts ack {slug}` closes this alert without another run."
        )
    see = f"`wakeful runs {slug}` lists its runs"
    if definition.errors_max == 0:
        return f"{see}."
    return (
        f"{see}; after {definition.errors_max} errors in a row it is disabled, and `wakeful resume {slug}` enables it."
    )


def _text(incident: Incident, sentence: str, cure: str) -> str:
    """Mention the error once: if `why` explains something later, the incident's own error comes first."""
    if incident.run_id is None:  # no run of it failed: it cannot be read, or its time was missed
        return f"{incident.text}. {sentence} {cure}"
    count = f"it failed {incident.bad} times in a row" if incident.bad > 1 else "it failed"
    is_quoted = incident.text in sentence or shorten(incident.text) in sentence
    return f"{count if is_quoted else f'{count}: {incident.text}'}. {sentence} {cure}"
