"""Incidents as shown to people."""

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from wakeful.core.delivery.incidents import Incident
from wakeful.core.refusals import NotFound
from wakeful.core.returned import At, RunId, returned
from wakeful.engine.incident_rows import Incidents
from wakeful.features.delivery.incidents import slug_of
from wakeful.ports.store import Tx

RECENT: Final = 50


@dataclass(frozen=True, slots=True)
class AlertView:
    """An incident: a problem that was reported, or that recurred soon after its end and was only counted."""

    id: str
    incident: Annotated[str, "name: the kind of problem and its subject"]
    slug: Annotated[str | None, "the schedule concerned, if any"]
    text: str
    opened_at: At
    reported_at: Annotated[At | None, "when it was reported; null if it was only counted"]
    last_at: At
    ended_at: Annotated[At | None, "null while it is open"]
    times: Annotated[int, "how often it was observed"]
    reopened: Annotated[int, "how many times in a row it recurred soon after its end"]
    run_id: RunId | None


ALERT: Final = returned(AlertView, name="Alert")


class Alerts(NamedTuple):
    """Incidents, open ones first."""

    alerts: list[AlertView]


ALERTS: Final = returned(Alerts)


def alerts(tx: Tx, *, limit: int = RECENT, is_open: bool = False) -> Alerts:
    """Open incidents, oldest first, then closed ones, latest end first."""
    rows = [row for row in tx[Incidents].open() if row.stage != "watched"]
    if not is_open:
        rows += tx[Incidents].recent(limit=limit)
    return Alerts([_view_of(row, slug_of(tx, row.name)) for row in rows])


def find(tx: Tx, alert_id: str) -> Incident:
    """The open incident with this id."""
    number = int(alert_id) if alert_id.isascii() and alert_id.isdecimal() and len(alert_id) < 19 else 0
    row = tx[Incidents].get(number)
    if row is None or row.stage == "watched" or row.closed_at is not None:
        raise NotFound(f"no open alert has the id {number}; `wakeful alerts` lists them")
    return row


def _view_of(row: Incident, slug: str | None) -> AlertView:
    return AlertView(
        str(row.incident_id),
        row.name,
        slug,
        row.text,
        row.opened_at,
        row.told_at,
        row.last_at,
        row.closed_at,
        row.times,
        row.reopened,
        row.run_id,
    )
