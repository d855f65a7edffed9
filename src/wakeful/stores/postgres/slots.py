"""Quota slots, in PostgreSQL. The slot's row is the lock for both its sides."""

from collections.abc import Iterable, Sequence
from typing import Final

from wakeful.core.slot.slot import Slot, new_slot
from wakeful.core.time.instants import Instant
from wakeful.ports.slots import SLOT_ALARMS, Read
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.due import due_of
from wakeful.stores.postgres.rows import arrays, columns_of, fields_of, ids, storable, texts, update_of

_COLUMNS = columns_of(Slot, "slots")
_TEXTS: Final = frozenset({"name", "definition", "key_mark", "modes", "reading", "error", "stats", "wake_error"})

# Insert a name and return its id. Concurrent inserts by two nodes wait for each other here.
ADD = """
INSERT INTO slots (name, version, created_at, updated_at, steady, quota_errors, poll_fence, is_starting,
  interval_from, times_through, is_forced, wake_errors)
VALUES ($1, 1, $2, $2, 0, 0, 0, 0, $2, $2, 0, 0)
ON CONFLICT (name) DO NOTHING RETURNING slot_id
"""

# Every slot.
ALL = f"SELECT {_COLUMNS} FROM slots ORDER BY name"

# Slots by name.
BY_NAMES = f"SELECT {_COLUMNS} FROM slots WHERE name = ANY($1::text[])"

# Slots by id, in id order.
LOOK = f"SELECT {_COLUMNS} FROM slots WHERE slot_id = ANY($1::bigint[]) ORDER BY slot_id"

# The same, locked.
LOCK = f"{LOOK} FOR UPDATE"

# Slots whose alarm is due, oldest first, by the alarm's kind; without and with locks.
DUE = {kind: due_of(kind, "slots", "slot_id", fields_of(Slot)) for kind in SLOT_ALARMS}

# Update slots.
SAVE = update_of("slots", Slot, _TEXTS, key="slot_id", fixed=("name",))

# Delete a slot and its readings.
REMOVE = "DELETE FROM slots WHERE slot_id = $1"
REMOVE_READINGS = "DELETE FROM slot_readings WHERE slot_id = $1"

# Store a reading, replacing one of the same millisecond.
KEEP = """
INSERT INTO slot_readings (slot_id, read_at, reading) VALUES ($1, $2, $3)
ON CONFLICT (slot_id, read_at) DO UPDATE SET reading = excluded.reading
"""

# Delete old readings of a slot.
FORGET = "DELETE FROM slot_readings WHERE slot_id = $1 AND read_at < $2"

# Readings of a slot, newest first.
READINGS = f"""
SELECT {columns_of(Read, "slot_readings")} FROM slot_readings
WHERE slot_id = $1 AND read_at >= $2 ORDER BY read_at DESC LIMIT $3
"""


class PostgresSlots:
    """See `ports.slots.Slots`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, name: str, definition: str | None, *, now: Instant) -> Slot | None:
        given = self._session.change_returning(ADD, name, now)
        if not given:
            return None
        row = new_slot(int(given[0][0]), name, definition, now=now)
        self.save_many([row])
        return row

    def all(self) -> list[Slot]:
        return list(map(Slot._make, self._session.rows(ALL)))

    def by_names(self, names: Iterable[str]) -> dict[str, Slot]:
        rows = map(Slot._make, self._session.rows(BY_NAMES, texts(set(names))))
        return {row.name: row for row in rows}

    def lock(self, slot_ids: Iterable[int]) -> dict[int, Slot]:
        rows = map(Slot._make, self._session.rows(LOOK if self._session.is_reading else LOCK, ids(slot_ids)))
        return {row.slot_id: row for row in rows}

    def due(self, kind: str, *, now: Instant, limit: int) -> list[Slot]:
        look, hold = DUE[kind]
        return list(map(Slot._make, self._session.rows(look if self._session.is_reading else hold, now, limit)))

    def save_many(self, rows: Sequence[Slot]) -> None:
        if rows:
            self._session.save(SAVE, len(rows), *arrays(rows, Slot, _TEXTS, fixed=("name",)))

    def remove(self, slot_id: int) -> None:
        self._session.change(REMOVE, slot_id)
        self._session.change(REMOVE_READINGS, slot_id)

    def keep_reading(self, row: Read, *, since: Instant) -> None:
        self._session.change(KEEP, row.slot_id, row.read_at, storable(row.reading))
        self._session.change(FORGET, row.slot_id, since)

    def readings(self, slot_id: int, *, since: Instant, limit: int) -> list[Read]:
        return list(map(Read._make, self._session.rows(READINGS, slot_id, since, limit)))[::-1]
