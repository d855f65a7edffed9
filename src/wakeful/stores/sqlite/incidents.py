"""Incidents, in SQLite."""

from collections.abc import Sequence
from operator import attrgetter
from sqlite3 import Connection

from wakeful.core.delivery.incidents import Incident
from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import ALARM_INCIDENT
from wakeful.stores.sqlite.due import due_of
from wakeful.stores.sqlite.rows import columns_of, texts, update

_COLUMNS = columns_of(Incident, "incidents")

# Open an incident, or count that it was raised once more.
RAISE = """
INSERT INTO incidents (name, text, opened_at, last_at, times, told_at) VALUES (?, ?, ?, ?, 1, ?)
ON CONFLICT (name) WHERE closed_at IS NULL DO UPDATE SET last_at = excluded.last_at, times = times + 1
RETURNING times
"""

# The open ones of these names.
OPEN_OF = f"""
SELECT {_COLUMNS} FROM json_each(?) AS wanted
CROSS JOIN incidents INDEXED BY incidents_open ON name = wanted.value AND closed_at IS NULL
"""

# Close incidents.
CLOSE = "UPDATE incidents SET closed_at = ? WHERE incident_id = ?"

# The open ones; there are few.
OPEN = f"SELECT {_COLUMNS} FROM incidents INDEXED BY incidents_open WHERE closed_at IS NULL"

# One of them.
GET = f"SELECT {_COLUMNS} FROM incidents WHERE incident_id = ?"

# Insert one, unless one with its name is open.
_NEW = [name for name in Incident._fields if name != "incident_id"]
ADD = f"""
INSERT INTO incidents ({", ".join(_NEW)}) VALUES ({", ".join("?" for _ in _NEW)})
ON CONFLICT (name) WHERE closed_at IS NULL DO NOTHING RETURNING incident_id
"""
_new = attrgetter(*_NEW)

# Update one.
SAVE = update("incidents", key="incident_id", columns=_NEW)

# Delete one that was never reported.
REMOVE = "DELETE FROM incidents WHERE incident_id = ?"

# The last closed one of a name.
LAST_OVER = f"""
SELECT {_COLUMNS} FROM incidents INDEXED BY incidents_over
WHERE name = ? AND closed_at IS NOT NULL AND closed_at <= ? ORDER BY closed_at DESC LIMIT 1
"""

# The closed ones, latest end first.
RECENT = f"""
SELECT {_COLUMNS} FROM incidents INDEXED BY incidents_closed
WHERE closed_at IS NOT NULL ORDER BY closed_at DESC LIMIT ?
"""

# Those whose alarm is due, oldest first.
DUE = due_of(ALARM_INCIDENT, "incidents", "incident_id", _COLUMNS)

# Delete what closed long ago; rows dated by an unset clock are deleted with the next row that has a valid date.
PRUNE = """
DELETE FROM incidents WHERE incident_id IN (
  SELECT incident_id FROM incidents INDEXED BY incidents_closed
  WHERE closed_at IS NOT NULL AND closed_at < :before AND (closed_at >= :since OR EXISTS (
    SELECT 1 FROM incidents AS later INDEXED BY incidents_closed
    WHERE later.closed_at >= :since AND later.closed_at < :before AND later.incident_id > incidents.incident_id
  )) ORDER BY closed_at LIMIT :limit
)
"""


class SqliteIncidents:
    """See `ports.outbox.Incidents`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def note(self, name: str, text: str, *, at: Instant) -> bool:
        (times,) = self._connection.execute(RAISE, (name, text, at, at, at)).fetchone()
        return bool(times == 1)

    def close(self, names: Sequence[str], *, at: Instant) -> list[Incident]:
        incidents = sorted(map(Incident._make, self._connection.execute(OPEN_OF, (texts(names),))))
        self._connection.executemany(CLOSE, [(at, incident.incident_id) for incident in incidents])
        return incidents

    def open(self) -> list[Incident]:
        return sorted(map(Incident._make, self._connection.execute(OPEN)))

    def lock(self, names: Sequence[str]) -> dict[str, Incident]:
        rows = map(Incident._make, self._connection.execute(OPEN_OF, (texts(names),)))
        return {row.name: row for row in rows}

    def get(self, incident_id: int) -> Incident | None:
        row = self._connection.execute(GET, (incident_id,)).fetchone()
        return None if row is None else Incident._make(row)

    def add(self, row: Incident) -> int | None:
        added = self._connection.execute(ADD, _new(row)).fetchone()
        return None if added is None else int(added[0])

    def save(self, row: Incident) -> None:
        self._connection.execute(SAVE, (*_new(row), row.incident_id))

    def remove(self, incident_id: int) -> None:
        self._connection.execute(REMOVE, (incident_id,))

    def last_over(self, name: str, *, now: Instant) -> Incident | None:
        row = self._connection.execute(LAST_OVER, (name, now)).fetchone()
        return None if row is None else Incident._make(row)

    def recent(self, *, limit: int) -> list[Incident]:
        return list(map(Incident._make, self._connection.execute(RECENT, (limit,))))

    def due(self, *, now: Instant, limit: int) -> list[Incident]:
        return list(map(Incident._make, self._connection.execute(DUE, {"now": now, "limit": limit})))

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        return self._connection.execute(PRUNE, {"before": before, "since": since, "limit": limit}).rowcount
