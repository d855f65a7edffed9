"""Incidents, in PostgreSQL."""

from collections.abc import Sequence
from operator import attrgetter

from wakeful.core.delivery.incidents import Incident
from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import ALARM_INCIDENT
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.due import due_of
from wakeful.stores.postgres.rows import columns_of, fields_of, storable, texts

_COLUMNS = columns_of(Incident, "incidents")

# Open an incident, or count that it was raised once more. If two nodes raise it at the same time, one opens it.
RAISE = """
INSERT INTO incidents (name, text, opened_at, last_at, times, told_at) VALUES ($1, $2, $3, $3, 1, $3)
ON CONFLICT (name) WHERE closed_at IS NULL DO UPDATE SET last_at = excluded.last_at, times = incidents.times + 1
RETURNING times
"""

# The open ones of these names, ordered by name.
LOOK_OPEN_OF = f"SELECT {_COLUMNS} FROM incidents WHERE closed_at IS NULL AND name = ANY($1::text[]) ORDER BY name"

# The same, locked.
OPEN_OF = f"{LOOK_OPEN_OF} FOR UPDATE"

# Close incidents.
CLOSE = "UPDATE incidents SET closed_at = $1 WHERE incident_id = $2"

# The open ones; there are few.
OPEN = f"SELECT {_COLUMNS} FROM incidents WHERE closed_at IS NULL"

# One of them.
GET = f"SELECT {_COLUMNS} FROM incidents WHERE incident_id = $1"

# Insert one, unless one with its name is open.
_NEW = [name for name in fields_of(Incident) if name != "incident_id"]
ADD = f"""
INSERT INTO incidents ({", ".join(_NEW)}) VALUES ({", ".join(f"${place}" for place in range(1, len(_NEW) + 1))})
ON CONFLICT (name) WHERE closed_at IS NULL DO NOTHING RETURNING incident_id
"""
_new = attrgetter(*_NEW)

# Update one.
_CHANGED = ", ".join(f"{name} = ${place}" for place, name in enumerate(_NEW, start=2))
SAVE = f"UPDATE incidents SET {_CHANGED} WHERE incident_id = $1"

# Delete one that was never reported.
REMOVE = "DELETE FROM incidents WHERE incident_id = $1"

# The last closed one of a name.
LAST_OVER = f"""
SELECT {_COLUMNS} FROM incidents WHERE name = $1 AND closed_at <= $2 ORDER BY closed_at DESC LIMIT 1
"""

# The closed ones, latest end first.
RECENT = f"SELECT {_COLUMNS} FROM incidents WHERE closed_at IS NOT NULL ORDER BY closed_at DESC LIMIT $1"

# Those whose alarm is due, oldest first; without and with locks.
LOOK_DUE, DUE = due_of(ALARM_INCIDENT, "incidents", "incident_id", fields_of(Incident))

# Delete what closed long ago; rows dated by an unset clock are deleted with the next row that has a valid date.
PRUNE = """
DELETE FROM incidents WHERE incident_id = ANY(ARRAY(
  SELECT incident_id FROM incidents WHERE closed_at < $1 AND (closed_at >= $3 OR EXISTS (
    SELECT 1 FROM incidents AS later
    WHERE later.closed_at >= $3 AND later.closed_at < $1 AND later.incident_id > incidents.incident_id
  )) ORDER BY closed_at LIMIT $2
))
"""


class PostgresIncidents:
    """See `ports.outbox.Incidents`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def note(self, name: str, text: str, *, at: Instant) -> bool:
        ((times,),) = self._session.change_returning(RAISE, name, text, at)
        return int(times) == 1

    def close(self, names: Sequence[str], *, at: Instant) -> list[Incident]:
        incidents = sorted(map(Incident._make, self._session.rows(OPEN_OF, texts(names))))
        for incident in incidents:
            self._session.change(CLOSE, at, incident.incident_id)
        return incidents

    def open(self) -> list[Incident]:
        return sorted(map(Incident._make, self._session.rows(OPEN)))

    def lock(self, names: Sequence[str]) -> dict[str, Incident]:
        query = LOOK_OPEN_OF if self._session.is_reading else OPEN_OF
        rows = map(Incident._make, self._session.rows(query, texts(names)))
        return {row.name: row for row in rows}

    def get(self, incident_id: int) -> Incident | None:
        rows = self._session.rows(GET, incident_id)
        return Incident._make(rows[0]) if rows else None

    def add(self, row: Incident) -> int | None:
        added = self._session.change_returning(ADD, *_new(row._replace(text=storable(row.text))))
        return int(added[0][0]) if added else None

    def save(self, row: Incident) -> None:
        self._session.change(SAVE, row.incident_id, *_new(row._replace(text=storable(row.text))))

    def remove(self, incident_id: int) -> None:
        self._session.change(REMOVE, incident_id)

    def last_over(self, name: str, *, now: Instant) -> Incident | None:
        rows = self._session.rows(LAST_OVER, name, now)
        return Incident._make(rows[0]) if rows else None

    def recent(self, *, limit: int) -> list[Incident]:
        return list(map(Incident._make, self._session.rows(RECENT, limit)))

    def due(self, *, now: Instant, limit: int) -> list[Incident]:
        query = LOOK_DUE if self._session.is_reading else DUE
        return list(map(Incident._make, self._session.rows(query, now, limit)))

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        return self._session.change(PRUNE, before, limit, since)
