"""System events, in SQLite."""

from collections.abc import Iterable
from sqlite3 import Connection

from wakeful.ports.store import NewEvent, SystemEvent
from wakeful.stores.sqlite.rows import columns_of, ids

_COLUMNS = columns_of(SystemEvent, "system_events")

# The event with a key. (Events without one are never replaced.)
BY_KEY = f"SELECT {_COLUMNS} FROM system_events WHERE context_key = ?"

# Insert an event.
ADD = f"""
INSERT INTO system_events (context_key, source, text, raised_at, slug, run_id, revision) VALUES (?, ?, ?, ?, ?, ?, 1)
RETURNING {_COLUMNS}
"""

# Replace the older event with the same key.
REPLACE = f"""
UPDATE system_events SET source = ?, text = ?, raised_at = ?, slug = ?, run_id = ?, revision = revision + 1
WHERE context_key = ? RETURNING {_COLUMNS}
"""

# All waiting events, oldest first.
ALL = f"SELECT {_COLUMNS} FROM system_events ORDER BY raised_at, event_id"

# The event that a run waits for.
OF_RUN = f"SELECT {_COLUMNS} FROM system_events WHERE run_id = ? ORDER BY event_id LIMIT 1"

# Mark all waiting events as passed to the agent by this run.
CARRY = f"UPDATE system_events SET carried_by = ?, carried_revision = revision RETURNING {_COLUMNS}"

# The events this run passed to the agent, except those replaced since.
CARRIED = f"""
SELECT {_COLUMNS} FROM system_events WHERE carried_by = ? AND carried_revision = revision ORDER BY raised_at, event_id
"""

# Delete events.
REMOVE = "DELETE FROM system_events WHERE event_id IN (SELECT value FROM json_each(?))"


class SqliteSystemEvents:
    """See `ports.store.SystemEvents`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, new: NewEvent) -> tuple[SystemEvent, SystemEvent | None]:
        key = new.context_key
        found = None if key is None else self._connection.execute(BY_KEY, (key,)).fetchone()
        if found is None:
            row = self._connection.execute(ADD, tuple(new)).fetchone()
        else:
            row = self._connection.execute(REPLACE, (*new[1:], key)).fetchone()
        return SystemEvent._make(row), None if found is None else SystemEvent._make(found)

    def all(self) -> list[SystemEvent]:
        return list(map(SystemEvent._make, self._connection.execute(ALL)))

    def of_run(self, run_id: int) -> SystemEvent | None:
        found = self._connection.execute(OF_RUN, (run_id,)).fetchone()
        return None if found is None else SystemEvent._make(found)

    def carry(self, run_id: int) -> list[SystemEvent]:
        rows = map(SystemEvent._make, self._connection.execute(CARRY, (run_id,)).fetchall())
        return sorted(rows, key=lambda row: (row.raised_at, row.event_id))

    def carried(self, run_id: int) -> list[SystemEvent]:
        return list(map(SystemEvent._make, self._connection.execute(CARRIED, (run_id,))))

    def remove_many(self, event_ids: Iterable[int]) -> None:
        self._connection.execute(REMOVE, (ids(event_ids),))
