"""The heartbeat in the store: its state besides its cadence, and the system events for the agent."""

from typing import Annotated, Final, NamedTuple, TypeAlias

from wakeful.core.heartbeat.heartbeat import Heartbeat
from wakeful.core.returned import INTERNAL, At, Named, RunId, kind
from wakeful.core.time.instants import Instant
from wakeful.ports.database import columns_of
from wakeful.ports.table import Rows

ALARM_HEARTBEAT: Final = "heartbeat"
EventId: TypeAlias = Annotated[int, kind({"type": "string"}, str), Named("id")]


class SystemEvent(NamedTuple):
    """A system event for the agent's next turn."""

    event_id: EventId
    context_key: str | None  # one event per key; None: never replaced
    source: str
    text: str
    raised_at: Annotated[At, Named("at")]
    revision: int  # grows when a newer one replaces it
    slug: str | None  # the schedule that raised it
    run_id: RunId | None  # the run that waits until a turn has included it
    carried_by: Annotated[RunId | None, "the turn that last passed it to the agent"]
    carried_revision: Annotated[int | None, INTERNAL]  # the revision that was passed


class NewEvent(NamedTuple):
    """A system event about to be written; the store assigns its id."""

    context_key: str | None
    source: str
    text: str
    raised_at: Instant
    slug: str | None
    run_id: int | None


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


class Heartbeats(Rows[Heartbeat]):
    """The state of the heartbeat. Its row is the lock for its wakes and for the system events."""

    row, table, key, alarm = Heartbeat, "heartbeats", "owner_id", ALARM_HEARTBEAT


class WaitingEvents(Rows[SystemEvent]):
    """The events that wait for the next turn. Writers hold the lock of the heartbeat, or of the turn's run."""

    row, table, key, is_numbered = SystemEvent, "system_events", "event_id", True

    def add_or_replace(self, new: NewEvent) -> tuple[SystemEvent, SystemEvent | None]:
        """Write an event, replacing the one with its key if there is one; returns it, and the one it replaced."""
        key = new.context_key
        found = [] if key is None else self._made(self._db.rows(BY_KEY, context_key=key))
        (row,) = self._made(self._db.rows(REPLACE if found else ADD, **new._asdict()))
        return row, next(iter(found), None)

    def all(self) -> list[SystemEvent]:
        """All waiting events, oldest first."""
        return self._made(self._db.rows(ALL))

    def of_run(self, run_id: int) -> SystemEvent | None:
        """The event that this run waits for."""
        return next(iter(self._made(self._db.rows(OF_RUN, run_id=run_id))), None)

    def carry(self, run_id: int) -> list[SystemEvent]:
        """Mark all waiting events as passed to the agent by this run; returns them as marked, oldest first."""
        rows = self._made(self._db.rows(CARRY, run_id=run_id))
        return sorted(rows, key=lambda row: (row.raised_at, row.event_id))

    def carried(self, run_id: int) -> list[SystemEvent]:
        """The events this run passed to the agent, except those replaced by a newer event or a later run."""
        return self._made(self._db.rows(CARRIED, run_id=run_id))
