"""System events, in PostgreSQL. Writers hold the lock of the heartbeat, or of the turn's run."""

from collections.abc import Iterable

from wakeful.ports.store import NewEvent, SystemEvent
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import columns_of, ids, storable

_COLUMNS = columns_of(SystemEvent, "system_events")

# The event with a key, locked. (Events without one are never replaced.)
BY_KEY = f"SELECT {_COLUMNS} FROM system_events WHERE context_key = $1 FOR UPDATE"

# Insert an event.
ADD = f"""
INSERT INTO system_events (context_key, source, text, raised_at, slug, run_id, revision)
VALUES ($1, $2, $3, $4, $5, $6, 1) RETURNING {_COLUMNS}
"""

# Replace the older event with the same key.
REPLACE = f"""
UPDATE system_events SET source = $2, text = $3, raised_at = $4, slug = $5, run_id = $6, revision = revision + 1
WHERE context_key = $1 RETURNING {_COLUMNS}
"""

# All waiting events, oldest first.
ALL = f"SELECT {_COLUMNS} FROM system_events ORDER BY raised_at, event_id"

# The event that a run waits for.
OF_RUN = f"SELECT {_COLUMNS} FROM system_events WHERE run_id = $1 ORDER BY event_id LIMIT 1"

# Mark all waiting events as passed to the agent by this run. In one statement: what is marked is what is returned.
CARRY = f"""
WITH waiting AS (SELECT event_id FROM system_events ORDER BY event_id FOR UPDATE)
UPDATE system_events SET carried_by = $1, carried_revision = revision
WHERE event_id IN (SELECT event_id FROM waiting) RETURNING {_COLUMNS}
"""

# The events this run passed to the agent, except those replaced since.
CARRIED = f"""
SELECT {_COLUMNS} FROM system_events WHERE carried_by = $1 AND carried_revision = revision ORDER BY raised_at, event_id
"""

# Delete events.
REMOVE = "DELETE FROM system_events WHERE event_id = ANY($1::bigint[])"


class PostgresSystemEvents:
    """See `ports.store.SystemEvents`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def put(self, new: NewEvent) -> tuple[SystemEvent, SystemEvent | None]:
        new = NewEvent._make(storable(value) if isinstance(value, str) else value for value in new)
        found = [] if new.context_key is None else self._session.rows(BY_KEY, new.context_key)
        (row,) = self._session.rows(REPLACE if found else ADD, *new)
        return SystemEvent._make(row), SystemEvent._make(found[0]) if found else None

    def all(self) -> list[SystemEvent]:
        return list(map(SystemEvent._make, self._session.rows(ALL)))

    def of_run(self, run_id: int) -> SystemEvent | None:
        found = self._session.rows(OF_RUN, run_id)
        return SystemEvent._make(found[0]) if found else None

    def carry(self, run_id: int) -> list[SystemEvent]:
        rows = map(SystemEvent._make, self._session.rows(CARRY, run_id))
        return sorted(rows, key=lambda row: (row.raised_at, row.event_id))

    def carried(self, run_id: int) -> list[SystemEvent]:
        return list(map(SystemEvent._make, self._session.rows(CARRIED, run_id)))

    def remove_many(self, event_ids: Iterable[int]) -> None:
        self._session.change(REMOVE, ids(event_ids))
