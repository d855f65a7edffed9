"""Incidents as shown to people."""

from dataclasses import dataclass
from typing import Any, Final

from wakeful.core.delivery.incidents import Incident
from wakeful.core.refusals import NotFound
from wakeful.core.time.instants import format_instant, format_optional
from wakeful.features.delivery.incidents import slug_of
from wakeful.ports.store import Tx

RECENT: Final = 50


@dataclass(frozen=True, slots=True)
class AlertView:
    """One incident, reported or only counted."""

    row: Incident
    slug: str | None

    def to_json(self) -> dict[str, Any]:
        row = self.row
        return {
            "id": str(row.incident_id),
            "incident": row.name,
            "slug": self.slug,
            "text": row.text,
            "openedAt": format_instant(row.opened_at),
            "reportedAt": format_optional(row.told_at),
            "lastAt": format_instant(row.last_at),
            "endedAt": format_optional(row.closed_at),
            "times": row.times,
            "reopened": row.reopened,
            "runId": None if row.run_id is None else str(row.run_id),
        }


def alerts(tx: Tx, *, limit: int = RECENT, is_open: bool = False) -> list[AlertView]:
    """Open incidents, oldest first, then closed ones, latest end first."""
    rows = [row for row in tx.incidents.open() if row.stage != "watched"]
    if not is_open:
        rows += tx.incidents.recent(limit=limit)
    return [AlertView(row, slug_of(tx, row.name)) for row in rows]


def find(tx: Tx, incident_id: int) -> Incident:
    """The open incident with this id."""
    row = tx.incidents.get(incident_id)
    if row is None or row.stage == "watched" or row.closed_at is not None:
        raise NotFound(f"no open alert has the id {incident_id}; `wakeful alerts` lists them")
    return row
