"""The heartbeat in the store: its state besides its cadence, and the system events for the agent."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from wakeful.core.heartbeat.heartbeat import Heartbeat
from wakeful.core.time.instants import Instant

ALARM_HEARTBEAT: Final = "heartbeat"


class SystemEvent(NamedTuple):
    """Something to be included in the agent's next turn."""

    event_id: int
    context_key: str | None  # one event per key; None: never replaced
    source: str
    text: str
    raised_at: Instant
    revision: int  # grows when a newer one replaces it
    slug: str | None  # the schedule that raised it
    run_id: int | None  # the run that waits until a turn has included it
    carried_by: int | None  # the turn that last passed it to the agent
    carried_revision: int | None  # the revision that was passed


class NewEvent(NamedTuple):
    """A system event about to be written; the store assigns its id."""

    context_key: str | None
    source: str
    text: str
    raised_at: Instant
    slug: str | None
    run_id: int | None


class Heartbeats(Protocol):
    """The state of the heartbeat. Its row is the lock for its wakes and for the system events."""

    def add(self, row: Heartbeat) -> None:
        """Write a heartbeat, unless it exists."""
        ...

    def lock(self, owner_ids: Iterable[int]) -> dict[int, Heartbeat]:
        """Read heartbeats and lock them until the transaction ends. A read transaction only reads."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Heartbeat]:
        """Heartbeats whose alarm is due, locked; one that another node has locked is left out."""
        ...

    def save(self, row: Heartbeat) -> None:
        """Write the whole row. The caller holds its lock."""
        ...


class SystemEvents(Protocol):
    """The events that wait for the next turn. Writers hold the lock of the heartbeat, or of the turn's run."""

    def put(self, new: NewEvent) -> tuple[SystemEvent, SystemEvent | None]:
        """Write an event, replacing the one with its key if there is one; returns it, and the one it replaced."""
        ...

    def all(self) -> list[SystemEvent]:
        """All waiting events, oldest first."""
        ...

    def of_run(self, run_id: int) -> SystemEvent | None:
        """The event that this run waits for."""
        ...

    def carry(self, run_id: int) -> list[SystemEvent]:
        """Mark all waiting events as passed to the agent by this run; returns them as marked, oldest first."""
        ...

    def carried(self, run_id: int) -> list[SystemEvent]:
        """The events this run passed to the agent, except those replaced by a newer event or a later run."""
        ...

    def remove_many(self, event_ids: Iterable[int]) -> None: ...
