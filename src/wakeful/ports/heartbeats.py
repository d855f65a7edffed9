"""The heartbeat in the store: what it has besides its cadence, and what the agent is to be told."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from wakeful.core.heartbeat.heartbeat import Heartbeat
from wakeful.core.time.instants import Instant

ALARM_HEARTBEAT: Final = "heartbeat"


class SystemEvent(NamedTuple):
    """Something the agent is to be told in its next turn."""

    event_id: int
    context_key: str | None  # one event per key; None: nothing replaces it
    source: str
    text: str
    raised_at: Instant
    revision: int  # grows when a newer one takes its place
    slug: str | None  # the schedule that raised it
    run_id: int | None  # the run that waits for a turn to have carried it
    carried_by: int | None  # the turn that last gave it to the agent
    carried_revision: int | None  # and in which revision


class NewEvent(NamedTuple):
    """A system event about to be written; the store gives it its id."""

    context_key: str | None
    source: str
    text: str
    raised_at: Instant
    slug: str | None
    run_id: int | None


class Heartbeats(Protocol):
    """Where the heartbeat stands. Its row is the lock of its wakes and of the system events."""

    def add(self, row: Heartbeat) -> None:
        """Write it, unless it is there."""
        ...

    def lock(self, owner_ids: Iterable[int]) -> dict[int, Heartbeat]:
        """Read them and hold them until the transaction ends. In a read, just read."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Heartbeat]:
        """Heartbeats whose alarm is due, held; one that another node holds is left out."""
        ...

    def save(self, row: Heartbeat) -> None:
        """Write it back whole. The caller holds it."""
        ...


class SystemEvents(Protocol):
    """What waits for the next turn. Whoever writes holds the heartbeat, or the run that carries."""

    def put(self, new: NewEvent) -> tuple[SystemEvent, SystemEvent | None]:
        """Write an event, in place of the one of its key if there is one; answers it, and the one it replaced."""
        ...

    def all(self) -> list[SystemEvent]:
        """Everything that waits, oldest first."""
        ...

    def of_run(self, run_id: int) -> SystemEvent | None:
        """The event that this run waits for."""
        ...

    def carry(self, run_id: int) -> list[SystemEvent]:
        """Mark everything that waits as given to the agent by this run; answers it as it was marked, oldest first."""
        ...

    def carried(self, run_id: int) -> list[SystemEvent]:
        """What this run gave to the agent, as far as neither a newer event nor a later run took its place."""
        ...

    def remove_many(self, event_ids: Iterable[int]) -> None: ...
