"""Quota slots. The slot's row is the lock for both its sides."""

from collections.abc import Iterable, Sequence

from wakeful.core.slot.slot import Slot, new_slot
from wakeful.core.time.instants import Instant
from wakeful.ports.slots import SLOT_ALARMS, Read
from wakeful.stores.shared.database import Database, Table
from wakeful.stores.shared.queries import due_of

_SLOTS = Table("slots", Slot, key=("slot_id",), fixed=("name",))
_READINGS = Table("slot_readings", Read, key=("slot_id", "read_at"))

# Insert a name and return its id. Concurrent inserts by two nodes wait for each other here.
ADD = """
INSERT INTO slots (name, version, created_at, updated_at, steady, quota_errors, poll_fence, is_starting,
  interval_from, times_through, is_forced, wake_errors)
VALUES (:name, 1, :now, :now, 0, 0, 0, 0, :now, :now, 0, 0)
ON CONFLICT (name) DO NOTHING RETURNING slot_id
"""

# Every slot.
ALL = f"SELECT {_SLOTS.columns} FROM slots ORDER BY name"

# Slots by name.
BY_NAMES = f"SELECT {_SLOTS.columns} FROM slots WHERE name IN :names"

# Slots by id, in id order, locked.
LOCK = f"SELECT {_SLOTS.columns} FROM slots WHERE slot_id IN :slot_ids ORDER BY slot_id FOR UPDATE"

# One slot, locked, unless another transaction holds it.
TRY_LOCK = f"SELECT {_SLOTS.columns} FROM slots WHERE name = :name FOR UPDATE SKIP LOCKED"

# Slots whose alarm is due, oldest first, by the alarm's kind; locked.
DUE = {kind: due_of(kind, _SLOTS) for kind in SLOT_ALARMS}

# Delete a slot and its readings.
REMOVE = "DELETE FROM slots WHERE slot_id = :slot_id"
REMOVE_READINGS = "DELETE FROM slot_readings WHERE slot_id = :slot_id"

# Delete old readings of a slot.
FORGET = "DELETE FROM slot_readings WHERE slot_id = :slot_id AND read_at < :since"

# Readings of a slot, newest first.
READINGS = f"""
SELECT {_READINGS.columns} FROM slot_readings
WHERE slot_id = :slot_id AND read_at >= :since ORDER BY read_at DESC LIMIT :limit
"""


class SharedSlots:
    """See `ports.slots.Slots`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, name: str, definition: str | None, *, now: Instant) -> Slot | None:
        for (slot_id,) in self._db.change_returning(ADD, name=name, now=now):
            row = new_slot(slot_id, name, definition, now=now)
            self.save_many([row])
            return row
        return None

    def all(self) -> list[Slot]:
        return list(map(Slot._make, self._db.rows(ALL)))

    def by_names(self, names: Iterable[str]) -> dict[str, Slot]:
        rows = map(Slot._make, self._db.rows(BY_NAMES, names=names))
        return {row.name: row for row in rows}

    def lock(self, slot_ids: Iterable[int]) -> dict[int, Slot]:
        rows = map(Slot._make, self._db.rows(LOCK, slot_ids=slot_ids))
        return {row.slot_id: row for row in rows}

    def try_lock(self, name: str) -> Slot | None:
        return next(map(Slot._make, self._db.rows(TRY_LOCK, name=name)), None)

    def due(self, kind: str, *, now: Instant, limit: int) -> list[Slot]:
        return list(map(Slot._make, self._db.rows(DUE[kind], now=now, limit=limit)))

    def save_many(self, rows: Sequence[Slot]) -> None:
        self._db.update(_SLOTS, rows)

    def remove(self, slot_id: int) -> None:
        self._db.change(REMOVE, slot_id=slot_id)
        self._db.change(REMOVE_READINGS, slot_id=slot_id)

    def keep_reading(self, row: Read, *, since: Instant) -> None:
        self._db.upsert(_READINGS, [row])  # replaces one of the same millisecond
        self._db.change(FORGET, slot_id=row.slot_id, since=since)

    def readings(self, slot_id: int, *, since: Instant, limit: int) -> list[Read]:
        newest_first = self._db.rows(READINGS, slot_id=slot_id, since=since, limit=limit)
        return list(map(Read._make, reversed(newest_first)))
