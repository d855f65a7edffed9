"""Incidents that people were alerted about, or that are watched."""

from collections.abc import Sequence

from wakeful.core.delivery.incidents import Incident
from wakeful.core.time.instants import Instant
from wakeful.ports.database import columns_of, insert_one
from wakeful.ports.outbox import ALARM_INCIDENT
from wakeful.ports.table import Rows

_COLUMNS = columns_of(Incident, "incidents")
_NEW = [name for name in Incident._fields if name != "incident_id"]

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

# Insert an incident, unless one with its name is open.
ADD = f"""
{insert_one("incidents", _NEW)}
ON CONFLICT (name) WHERE closed_at IS NULL DO NOTHING RETURNING incident_id
"""

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


class Incidents(Rows[Incident]):
    """The incidents, open and closed."""

    row, table, key, alarm = Incident, "incidents", "incident_id", ALARM_INCIDENT
    is_numbered, time, time_index = True, "closed_at", "incidents_closed"

    def note(self, name: str, text: str, *, at: Instant) -> bool:
        """Record an incident; True if it is new, so people have to be alerted."""
        ((times,),) = self._db.change_returning(RAISE, name=name, text=text, at=at)
        return bool(times == 1)

    def close(self, names: Sequence[str], *, at: Instant) -> list[Incident]:
        """Close these incidents; returns those that were open, as they were before."""
        incidents = sorted(self.lock_open(names).values())
        if incidents:
            self._db.change(CLOSE, at=at, incident_ids=[incident.incident_id for incident in incidents])
        return incidents

    def open(self) -> list[Incident]:
        """Open incidents, oldest first, including watched ones."""
        return sorted(self._made(self._db.rows(OPEN)))

    def lock_open(self, names: Sequence[str]) -> dict[str, Incident]:
        """Open incidents with these names, locked until the transaction ends. A read transaction only reads."""
        return {row.name: row for row in self._made(self._db.rows(OPEN_OF, names=names))}

    def add_unless_open(self, row: Incident) -> int | None:
        """Write a new incident; returns its id, or None if an incident with this name is open."""
        added = self._db.change_returning(ADD, **row._asdict())
        return next((incident_id for (incident_id,) in added), None)

    def last_over(self, name: str, *, now: Instant) -> Incident | None:
        """The last closed incident with this name, ignoring any that ended after `now` (on a wrong clock)."""
        return next(iter(self._made(self._db.rows(LAST_OVER, name=name, now=now))), None)

    def recent(self, *, limit: int) -> list[Incident]:
        """Closed incidents, the last closed first."""
        return self._made(self._db.rows(RECENT, limit=limit))
