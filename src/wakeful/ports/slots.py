"""Quota slots in the store: their state, and the readings kept for charts.

The slot's row is the lock for both its sides; its alarms are derived from it and written under that lock.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from wakeful.core.slot.slot import Slot
from wakeful.core.time.instants import Instant

ALARM_WAKE: Final = "slot-wake"
ALARM_POLL: Final = "slot-poll"
ALARM_STATS: Final = "slot-stats"
SLOT_ALARMS: Final = (ALARM_WAKE, ALARM_POLL, ALARM_STATS)


class Read(NamedTuple):
    """One reading of a slot's quota, as stored."""

    slot_id: int
    read_at: Instant
    reading: str


class Slots(Protocol):
    """The states of quota slots."""

    def add(self, name: str, definition: str | None, *, now: Instant) -> Slot | None:
        """Write a new slot; None if the name is taken."""
        ...

    def all(self) -> list[Slot]:
        """Every slot, ordered by name. There are only a few."""
        ...

    def by_names(self, names: Iterable[str]) -> dict[str, Slot]:
        """Slots by name, not locked."""
        ...

    def lock(self, slot_ids: Iterable[int]) -> dict[int, Slot]:
        """Read these slots and lock them until the transaction ends. A read transaction only reads."""
        ...

    def try_lock(self, name: str) -> Slot | None:
        """A slot, locked; None if it does not exist or another transaction holds it. Never waits: a transaction that
        holds schedules and runs may use it, although slots are locked before both elsewhere."""
        ...

    def due(self, kind: str, *, now: Instant, limit: int) -> list[Slot]:
        """Slots whose alarm of this kind is due, oldest first, locked; those another node has locked are left out."""
        ...

    def save_many(self, rows: Sequence[Slot]) -> None:
        """Write whole rows. The caller holds their locks."""
        ...

    def remove(self, slot_id: int) -> None:
        """Delete a slot and its readings."""
        ...

    def keep_reading(self, row: Read, *, since: Instant) -> None:
        """Store a reading (replacing one of the same millisecond), and delete those of its slot before `since`."""
        ...

    def readings(self, slot_id: int, *, since: Instant, limit: int) -> list[Read]:
        """The newest `limit` readings since `since`, oldest first."""
        ...
