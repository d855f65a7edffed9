"""What people were told is wrong, in SQLite."""

from collections.abc import Sequence
from sqlite3 import Connection

from wakeful.core.instants import Instant
from wakeful.ports.outbox import Incident
from wakeful.stores.sqlite.rows import columns_of, texts

_COLUMNS = columns_of(Incident, "incidents")

# Open an incident, or count that it was raised once more.
RAISE = """
INSERT INTO incidents (name, text, opened_at, last_at, times) VALUES (?, ?, ?, ?, 1)
ON CONFLICT (name) WHERE closed_at IS NULL DO UPDATE SET last_at = excluded.last_at, times = times + 1
RETURNING times
"""

# Those of these names that are open.
OPEN_OF = f"""
SELECT {_COLUMNS} FROM json_each(?) AS wanted
CROSS JOIN incidents INDEXED BY incidents_open ON name = wanted.value AND closed_at IS NULL
"""

# It is over.
CLOSE = "UPDATE incidents SET closed_at = ? WHERE incident_id = ?"

# Those that are open; there are as many as things are wrong.
OPEN = f"SELECT {_COLUMNS} FROM incidents INDEXED BY incidents_open WHERE closed_at IS NULL"

# Forget what was over long ago.
PRUNE = """
DELETE FROM incidents WHERE incident_id IN (
  SELECT incident_id FROM incidents INDEXED BY incidents_closed
  WHERE closed_at IS NOT NULL AND closed_at < ? ORDER BY closed_at LIMIT ?
)
"""


class SqliteIncidents:
    """See `ports.outbox.Incidents`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def note(self, name: str, text: str, *, at: Instant) -> bool:
        (times,) = self._connection.execute(RAISE, (name, text, at, at)).fetchone()
        return bool(times == 1)

    def close(self, names: Sequence[str], *, at: Instant) -> list[Incident]:
        found = sorted(map(Incident._make, self._connection.execute(OPEN_OF, (texts(names),))))
        self._connection.executemany(CLOSE, [(at, one.incident_id) for one in found])
        return found

    def open(self) -> list[Incident]:
        return sorted(map(Incident._make, self._connection.execute(OPEN)))

    def prune(self, *, before: Instant, limit: int) -> int:
        return self._connection.execute(PRUNE, (before, limit)).rowcount
