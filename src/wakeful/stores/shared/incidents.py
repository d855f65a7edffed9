"""Incidents."""

from collections.abc import Sequence

from wakeful.core.delivery.incidents import Incident
from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import ALARM_INCIDENT
from wakeful.stores.shared.database import Database, Table, insert_one
from wakeful.stores.shared.queries import due_of, old_of

_INCIDENTS = Table("incidents", Incident, key=("incident_id",))
_COLUMNS = _INCIDENTS.columns

# Open an incident, or count that it was raised once more. If two nodes raise it at the same time, one opens it.
RAISE = """
INSERT INTO incidents (name, text, opened_at, last_at, times, told_at) VALUES (:name, :text, :at, :at, 1, :at)
ON CONFLICT (name) WHERE closed_at IS NULL DO UPDATE SET last_at = excluded.last_at, times = incidents.times + 1
RETURNING times
"""

# Open incidents with these names, ordered by name, locked.
OPEN_OF = f"""
SELECT {_COLUMNS} FROM incidents INDEXED BY incidents_open WHERE closed_at IS NULL AND name IN :names
ORDER BY name FOR UPDATE
"""

# Close incidents.
CLOSE = "UPDATE incidents SET closed_at = :at WHERE incident_id IN :incident_ids"

# Open incidents; there are few.
OPEN = f"SELECT {_COLUMNS} FROM incidents INDEXED BY incidents_open WHERE closed_at IS NULL"

# One incident.
GET = f"SELECT {_COLUMNS} FROM incidents WHERE incident_id = :incident_id"

# Insert an incident, unless one with its name is open.
ADD = f"""
{insert_one("incidents", _INCIDENTS.changing)}
ON CONFLICT (name) WHERE closed_at IS NULL DO NOTHING RETURNING incident_id
"""

# Delete incidents that were never reported, or are old.
REMOVE = "DELETE FROM incidents WHERE incident_id IN :incident_ids"

# The last closed incident with a name.
LAST_OVER = f"""
SELECT {_COLUMNS} FROM incidents INDEXED BY incidents_over
WHERE name = :name AND closed_at IS NOT NULL AND closed_at <= :now ORDER BY closed_at DESC LIMIT 1
"""

# Closed incidents, the last closed first.
RECENT = f"""
SELECT {_COLUMNS} FROM incidents INDEXED BY incidents_closed
WHERE closed_at IS NOT NULL ORDER BY closed_at DESC LIMIT :limit
"""

# Incidents whose alarm is due, oldest first, locked.
DUE = due_of(ALARM_INCIDENT, _INCIDENTS)

# Incidents that closed long ago.
OLD = old_of("incidents", key="incident_id", dated="closed_at", index="incidents_closed")


class SharedIncidents:
    """See `ports.outbox.Incidents`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def note(self, name: str, text: str, *, at: Instant) -> bool:
        ((times,),) = self._db.change_returning(RAISE, name=name, text=text, at=at)
        return bool(times == 1)

    def close(self, names: Sequence[str], *, at: Instant) -> list[Incident]:
        incidents = sorted(self.lock(names).values())
        if incidents:
            self._db.change(CLOSE, at=at, incident_ids=[incident.incident_id for incident in incidents])
        return incidents

    def open(self) -> list[Incident]:
        return sorted(map(Incident._make, self._db.rows(OPEN)))

    def lock(self, names: Sequence[str]) -> dict[str, Incident]:
        rows = map(Incident._make, self._db.rows(OPEN_OF, names=names))
        return {row.name: row for row in rows}

    def get(self, incident_id: int) -> Incident | None:
        return next(map(Incident._make, self._db.rows(GET, incident_id=incident_id)), None)

    def add(self, row: Incident) -> int | None:
        added = self._db.change_returning(ADD, **row._asdict())
        return next((incident_id for (incident_id,) in added), None)

    def save(self, row: Incident) -> None:
        self._db.update(_INCIDENTS, [row])

    def remove(self, incident_id: int) -> None:
        self._db.change(REMOVE, incident_ids=[incident_id])

    def last_over(self, name: str, *, now: Instant) -> Incident | None:
        return next(map(Incident._make, self._db.rows(LAST_OVER, name=name, now=now)), None)

    def recent(self, *, limit: int) -> list[Incident]:
        return list(map(Incident._make, self._db.rows(RECENT, limit=limit)))

    def due(self, *, now: Instant, limit: int) -> list[Incident]:
        return list(map(Incident._make, self._db.rows(DUE, now=now, limit=limit)))

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        old = [incident_id for (incident_id,) in self._db.rows(OLD, before=before, since=since, limit=limit)]
        return self._db.change(REMOVE, incident_ids=old) if old else 0
