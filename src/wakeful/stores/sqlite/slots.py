"""Quota slots, in SQLite. There is one writer, so reading a row is locking it."""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from wakeful.core.slot.slot import Slot, new_slot
from wakeful.core.time.instants import Instant
from wakeful.ports.slots import SLOT_ALARMS, Read
from wakeful.stores.sqlite.due import due_of
from wakeful.stores.sqlite.rows import columns_of, ids, insert_into, plain, texts, update_of

_COLUMNS = columns_of(Slot, "slots")

# Insert a name.
ADD = """
INSERT INTO slots (name, version, created_at, updated_at, steady, quota_errors, poll_fence, is_starting,
  interval_from, times_through, is_forced, wake_errors)
VALUES (:name, 1, :now, :now, 0, 0, 0, 0, :now, :now, 0, 0)
ON CONFLICT (name) DO NOTHING
"""

# Every slot.
ALL = f"SELECT {_COLUMNS} FROM slots ORDER BY name"

# Slots by name.
BY_NAMES = f"SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN slots ON name = wanted.value"

# Slots by id.
LOCK = f"SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN slots ON slot_id = wanted.value"

# Slots whose alarm is due, oldest first, by the alarm's kind.
DUE = {kind: due_of(kind, "slots", "slot_id", _COLUMNS) for kind in SLOT_ALARMS}

# Update a slot.
SAVE = update_of("slots", Slot, key=("slot_id",), fixed=("name",))

# Delete a slot and its readings.
REMOVE = "DELETE FROM slots WHERE slot_id = ?"
REMOVE_READINGS = "DELETE FROM slot_readings WHERE slot_id = ?"

# Store a reading, replacing one of the same millisecond.
KEEP = f"{insert_into('slot_readings', Read)} ON CONFLICT DO UPDATE SET reading = excluded.reading"

# Delete old readings of a slot.
FORGET = "DELETE FROM slot_readings WHERE slot_id = ? AND read_at < ?"

# Readings of a slot, newest first.
READINGS = f"""
SELECT {columns_of(Read, "slot_readings")} FROM slot_readings
WHERE slot_id = ? AND read_at >= ? ORDER BY read_at DESC LIMIT ?
"""


class SqliteSlots:
    """See `ports.slots.Slots`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, name: str, definition: str | None, *, now: Instant) -> Slot | None:
        added = self._connection.execute(ADD, {"name": name, "now": now})
        if not added.rowcount or added.lastrowid is None:
            return None
        row = new_slot(added.lastrowid, name, definition, now=now)
        self.save_many([row])
        return row

    def all(self) -> list[Slot]:
        return list(map(Slot._make, self._connection.execute(ALL)))

    def by_names(self, names: Iterable[str]) -> dict[str, Slot]:
        rows = map(Slot._make, self._connection.execute(BY_NAMES, (texts(set(names)),)))
        return {row.name: row for row in rows}

    def lock(self, slot_ids: Iterable[int]) -> dict[int, Slot]:
        rows = map(Slot._make, self._connection.execute(LOCK, (ids(slot_ids),)))
        return {row.slot_id: row for row in rows}

    def due(self, kind: str, *, now: Instant, limit: int) -> list[Slot]:
        return list(map(Slot._make, self._connection.execute(DUE[kind], {"now": now, "limit": limit})))

    def save_many(self, rows: Sequence[Slot]) -> None:
        self._connection.executemany(SAVE, plain(rows))

    def remove(self, slot_id: int) -> None:
        self._connection.execute(REMOVE, (slot_id,))
        self._connection.execute(REMOVE_READINGS, (slot_id,))

    def keep_reading(self, row: Read, *, since: Instant) -> None:
        self._connection.execute(KEEP, tuple(row))
        self._connection.execute(FORGET, (row.slot_id, since))

    def readings(self, slot_id: int, *, since: Instant, limit: int) -> list[Read]:
        return list(map(Read._make, self._connection.execute(READINGS, (slot_id, since, limit))))[::-1]
