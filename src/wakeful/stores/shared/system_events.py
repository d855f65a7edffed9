"""System events. Writers hold the lock of the heartbeat, or of the turn's run."""

from collections.abc import Iterable

from wakeful.ports.store import NewEvent, SystemEvent
from wakeful.stores.shared.database import Database, columns_of

_COLUMNS = columns_of(SystemEvent, "system_events")

# The event with a key, locked. (Events without one are never replaced.)
BY_KEY = f"SELECT {_COLUMNS} FROM system_events WHERE context_key = :context_key FOR UPDATE"

# Insert an event.
ADD = f"""
INSERT INTO system_events (context_key, source, text, raised_at, slug, run_id, revision)
VALUES (:context_key, :source, :text, :raised_at, :slug, :run_id, 1) RETURNING {_COLUMNS}
"""

# Replace the older event with the same key.
REPLACE = f"""
UPDATE system_events
SET source = :source, text = :text, raised_at = :raised_at, slug = :slug, run_id = :run_id, revision = revision + 1
WHERE context_key = :context_key RETURNING {_COLUMNS}
"""

# All waiting events, oldest first.
ALL = f"SELECT {_COLUMNS} FROM system_events ORDER BY raised_at, event_id"

# The event that a run waits for.
OF_RUN = f"SELECT {_COLUMNS} FROM system_events WHERE run_id = :run_id ORDER BY event_id LIMIT 1"

# Mark all waiting events as passed to the agent by this run. In one statement: what is marked is what is returned.
CARRY = f"""
WITH waiting AS (SELECT event_id FROM system_events ORDER BY event_id FOR UPDATE)
UPDATE system_events SET carried_by = :run_id, carried_revision = revision
WHERE event_id IN (SELECT event_id FROM waiting) RETURNING {_COLUMNS}
"""

# The events this run passed to the agent, except those replaced since.
CARRIED = f"""
SELECT {_COLUMNS} FROM system_events WHERE carried_by = :run_id AND carried_revision = revision
ORDER BY raised_at, event_id
"""

# Delete events.
REMOVE = "DELETE FROM system_events WHERE event_id IN :event_ids"


class SharedSystemEvents:
    """See `ports.store.SystemEvents`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def put(self, new: NewEvent) -> tuple[SystemEvent, SystemEvent | None]:
        key = new.context_key
        found = None if key is None else next(iter(self._db.rows(BY_KEY, context_key=key)), None)
        (row,) = self._db.rows(ADD if found is None else REPLACE, **new._asdict())
        return SystemEvent._make(row), None if found is None else SystemEvent._make(found)

    def all(self) -> list[SystemEvent]:
        return list(map(SystemEvent._make, self._db.rows(ALL)))

    def of_run(self, run_id: int) -> SystemEvent | None:
        return next(map(SystemEvent._make, self._db.rows(OF_RUN, run_id=run_id)), None)

    def carry(self, run_id: int) -> list[SystemEvent]:
        rows = map(SystemEvent._make, self._db.rows(CARRY, run_id=run_id))
        return sorted(rows, key=lambda row: (row.raised_at, row.event_id))

    def carried(self, run_id: int) -> list[SystemEvent]:
        return list(map(SystemEvent._make, self._db.rows(CARRIED, run_id=run_id)))

    def remove_many(self, event_ids: Iterable[int]) -> None:
        self._db.change(REMOVE, event_ids=event_ids)
