"""Quota slots in the store: where each stands, and the readings kept for charts.

The slot's row is the lock of both its sides; its alarms are derived from it and written under that lock.
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
    """One reading of a slot's quota, as it is kept."""

    slot_id: int
    read_at: Instant
    reading: str


class Slots(Protocol):
    """Where quota slots stand."""

    def add(self, name: str, definition: str | None, *, now: Instant) -> Slot | None:
        """Write a new slot; None if the name is taken."""
        ...

    def all(self) -> list[Slot]:
        """Every slot, in the order of their names. They are few."""
        ...

    def by_names(self, names: Iterable[str]) -> dict[str, Slot]:
        """Slots by name, to look at."""
        ...

    def lock(self, slot_ids: Iterable[int]) -> dict[int, Slot]:
        """Read these slots and hold them until the transaction ends. In a read, just read."""
        ...

    def due(self, kind: str, *, now: Instant, limit: int) -> list[Slot]:
        """Slots whose alarm of this kind is due, oldest due first, held; those another node holds are left out."""
        ...

    def save_many(self, rows: Sequence[Slot]) -> None:
        """Write changed rows back whole. The caller holds them."""
        ...

    def remove(self, slot_id: int) -> None:
        """Take a slot away, with its readings."""
        ...

    def keep_reading(self, row: Read, *, since: Instant) -> None:
        """Keep a reading (in place of one of the same millisecond), and forget those of its slot before `since`."""
        ...

    def readings(self, slot_id: int, *, since: Instant, limit: int) -> list[Read]:
        """The newest `limit` readings since then, oldest first."""
        ...
