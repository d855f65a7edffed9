"""Quota slots in the store: their state, and the readings kept for charts.

The slot's row is the lock for both its sides; its alarms are derived from it and written under that lock.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from wakeful.core.slot.slot import Slot, new_slot
from wakeful.core.time.instants import Instant
from wakeful.ports.database import Table, Value, columns_of
from wakeful.ports.queries import due_of
from wakeful.ports.table import Rows

ALARM_WAKE: Final = "slot-wake"
ALARM_POLL: Final = "slot-poll"
ALARM_STATS: Final = "slot-stats"
SLOT_ALARMS: Final = (ALARM_WAKE, ALARM_POLL, ALARM_STATS)


class Read(NamedTuple):
    """One reading of a slot's quota, as stored."""

    slot_id: int
    read_at: Instant
    reading: str


_COLUMNS = columns_of(Slot, "slots")

# Insert a name and return its id. Concurrent inserts by two nodes wait for each other here.
ADD = """
INSERT INTO slots (name, version, created_at, updated_at, steady, quota_errors, poll_fence, is_starting,
  interval_from, times_through, is_forced, wake_errors)
VALUES (:name, 1, :now, :now, 0, 0, 0, 0, :now, :now, 0, 0)
ON CONFLICT (name) DO NOTHING RETURNING slot_id
"""

# Every slot.
ALL = f"SELECT {_COLUMNS} FROM slots ORDER BY name"

# Slots by name.
BY_NAMES = f"SELECT {_COLUMNS} FROM slots WHERE name IN :names"

# One slot, locked, unless another transaction holds it.
TRY_LOCK = f"SELECT {_COLUMNS} FROM slots WHERE name = :name FOR UPDATE SKIP LOCKED"

# Slots whose alarm is due, oldest first, by the alarm's kind; locked.
DUE = {kind: due_of(kind, Table("slots", Slot, key=("slot_id",))) for kind in SLOT_ALARMS}

# Delete the readings of a slot.
REMOVE_READINGS = "DELETE FROM slot_readings WHERE slot_id = :slot_id"

# Delete old readings of a slot.
FORGET = "DELETE FROM slot_readings WHERE slot_id = :slot_id AND read_at < :since"

# Readings of a slot, newest first.
READINGS = f"""
SELECT {columns_of(Read, "slot_readings")} FROM slot_readings
WHERE slot_id = :slot_id AND read_at >= :since ORDER BY read_at DESC LIMIT :limit
"""

# Rows of a slot that reach beyond an instant. Only after the clock went back.
ROWS_BEYOND = """
SELECT run_id FROM runs
WHERE schedule_id = :owner_id AND (planned_at > :after OR planned_until > :after OR started_at > :after)
"""


class QuotaSlots(Rows[Slot]):
    """The states of quota slots."""

    row, table, key, is_numbered, fixed = Slot, "slots", "slot_id", True, ("name",)

    def add_new(self, name: str, definition: str | None, *, now: Instant) -> Slot | None:
        """Write a new slot; None if the name is taken."""
        for (slot_id,) in self._db.change_returning(ADD, name=name, now=now):
            row = new_slot(slot_id, name, definition, now=now)
            self.save(row)
            return row
        return None

    def all(self) -> list[Slot]:
        """Every slot, ordered by name. There are only a few."""
        return self._made(self._db.rows(ALL))

    def by_names(self, names: Iterable[str]) -> dict[str, Slot]:
        """Slots by name, not locked."""
        return {row.name: row for row in self._made(self._db.rows(BY_NAMES, names=names))}

    def try_lock(self, name: str) -> Slot | None:
        """A slot, locked; None if it does not exist or another transaction holds it. Never waits: a transaction that
        holds schedules and runs may use it, although slots are locked before both elsewhere."""
        return next(iter(self._made(self._db.rows(TRY_LOCK, name=name))), None)

    def due_by(self, kind: str, *, now: Instant, limit: int) -> list[Slot]:
        """Slots whose alarm of this kind is due, oldest first, locked; those another node has locked are left out."""
        return self._made(self._db.rows(DUE[kind], now=now, limit=limit))

    def rows_beyond(self, owner_id: int, *, after: Instant) -> list[int]:
        """The ids of a slot's ledger rows that reach beyond `after`."""
        return sorted(run_id for (run_id,) in self._db.rows(ROWS_BEYOND, owner_id=owner_id, after=after))

    def remove(self, key: Value) -> bool:
        """Delete a slot and its readings; False if there is none."""
        self._db.change(REMOVE_READINGS, slot_id=key)
        return super().remove(key)


class SlotReadings(Rows[Read]):
    """Readings of quotas, for charts."""

    row, table, key = Read, "slot_readings", "slot_id, read_at"

    def keep(self, row: Read, *, since: Instant) -> None:
        """Store a reading (replacing one of the same millisecond), and delete those of its slot before `since`."""
        self.put(row)
        self._db.change(FORGET, slot_id=row.slot_id, since=since)

    def newest(self, slot_id: int, *, since: Instant, limit: int) -> list[Read]:
        """The newest `limit` readings since `since`, oldest first."""
        newest_first = self._db.rows(READINGS, slot_id=slot_id, since=since, limit=limit)
        return self._made(reversed(newest_first))
