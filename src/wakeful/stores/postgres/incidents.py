"""What people were told is wrong, in PostgreSQL."""

from collections.abc import Sequence

from wakeful.core.instants import Instant
from wakeful.ports.outbox import Incident
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import columns_of, texts

_COLUMNS = columns_of(Incident, "incidents")

# Open an incident, or count that it was raised once more. Of two nodes that raise it at once, one opens it.
RAISE = """
INSERT INTO incidents (name, text, opened_at, last_at, times) VALUES ($1, $2, $3, $3, 1)
ON CONFLICT (name) WHERE closed_at IS NULL DO UPDATE SET last_at = excluded.last_at, times = incidents.times + 1
RETURNING times
"""

# Those of these names that are open, held.
OPEN_OF = f"SELECT {_COLUMNS} FROM incidents WHERE closed_at IS NULL AND name = ANY($1::text[]) FOR UPDATE"

# It is over.
CLOSE = "UPDATE incidents SET closed_at = $1 WHERE incident_id = $2"

# Those that are open; there are as many as things are wrong.
OPEN = f"SELECT {_COLUMNS} FROM incidents WHERE closed_at IS NULL"

# Forget what was over long ago.
PRUNE = """
DELETE FROM incidents WHERE incident_id = ANY(ARRAY(
  SELECT incident_id FROM incidents WHERE closed_at < $1 ORDER BY closed_at LIMIT $2
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
        found = sorted(map(Incident._make, self._session.rows(OPEN_OF, texts(names))))
        for one in found:
            self._session.change(CLOSE, at, one.incident_id)
        return found

    def open(self) -> list[Incident]:
        return sorted(map(Incident._make, self._session.rows(OPEN)))

    def prune(self, *, before: Instant, limit: int) -> int:
        return self._session.change(PRUNE, before, limit)
