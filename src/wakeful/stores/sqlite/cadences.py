"""The states of schedules, in SQLite. There is one writer, so reading a row is locking it."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from sqlite3 import Connection

from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import CadencesBegun, CadencesSaved, Change
from wakeful.ports.database import columns_of
from wakeful.ports.plans import BEGUN_COLUMNS, PLANNED_COLUMNS, SETTLED_COLUMNS, Beginning
from wakeful.stores.sqlite.rows import ids, insert_into, plain, update, update_of

_COLUMNS = columns_of(Cadence, "cadences")

# Insert a cadence.
ADD = insert_into("cadences", Cadence)

# Insert the cadences of new schedules that start in the same way, and their alarms.
BEGIN = f"""
INSERT INTO cadences (schedule_id, {", ".join(BEGUN_COLUMNS)}, ran_through, consecutive_errors, trouble)
SELECT value, {", ".join("?" for _ in BEGUN_COLUMNS)}, 0, 0, 0 FROM json_each(?)
"""
BEGIN_ALARMS = """
INSERT INTO alarms (kind, ref, due_at, priority, lane, parked, run_on)
SELECT 'schedule', value, ?, 1, NULL, ?, ? FROM json_each(?)
"""
_begun = attrgetter(*BEGUN_COLUMNS)

# Cadences by id.
LOCK = f"SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN cadences ON schedule_id = wanted.value"

# Cadences whose alarm is due, oldest first: one seek for each priority, merged before the rows are read.
_OF_PRIORITY = """
  SELECT ref, due_at FROM alarms INDEXED BY alarms_due
  WHERE kind = 'schedule' AND priority = {priority} AND parked = 0 AND due_at IS NOT NULL AND due_at <= :now"""
DUE = f"""
WITH due AS ({_OF_PRIORITY.format(priority=0)}
  UNION ALL{_OF_PRIORITY.format(priority=1)}
  ORDER BY due_at, ref LIMIT :limit
)
SELECT {_COLUMNS} FROM due CROSS JOIN cadences ON cadences.schedule_id = due.ref ORDER BY due.due_at, due.ref
"""

# Update a cadence.
SAVE = update_of("cadences", Cadence, key=("schedule_id",))

# Write the columns that ringing changes.
SAVE_PLANNED = update("cadences", key="schedule_id", columns=PLANNED_COLUMNS)
_planned = attrgetter(*PLANNED_COLUMNS, "schedule_id")

# Write the columns that settling changes.
SAVE_SETTLED = update("cadences", key="schedule_id", columns=SETTLED_COLUMNS)
_settled = attrgetter(*SETTLED_COLUMNS, "schedule_id")

# Cadences planned beyond now. Deliberately a scan: it runs only at start and after a clock step, and an index on this
# column would be updated by every fire.
AHEAD_OF = f"SELECT {_COLUMNS} FROM cadences WHERE schedule_id > ? AND planned_through > ? ORDER BY schedule_id LIMIT ?"


class SqliteCadences:
    """See `ports.store.Cadences`."""

    __slots__ = ("_changes", "_connection")

    def __init__(self, connection: Connection, changes: list[Change]) -> None:
        self._connection = connection
        self._changes = changes

    def add_many(self, rows: Sequence[Cadence]) -> None:
        self._connection.executemany(ADD, plain(rows))

    def begin_many(self, beginnings: Sequence[Beginning]) -> None:
        keys = [ids(beginning.schedule_ids) for beginning in beginnings]
        together = list(zip(beginnings, keys, strict=True))
        self._connection.executemany(BEGIN, [(*_begun(beginning.cadence), wanted) for beginning, wanted in together])
        alarms = [
            (beginning.due_at, 0 if beginning.run_on is None else 2, beginning.run_on, wanted)
            for beginning, wanted in together
        ]
        self._connection.executemany(BEGIN_ALARMS, alarms)
        if beginnings:
            self._changes.append(CadencesBegun(beginnings))

    def lock(self, schedule_ids: Iterable[int]) -> dict[int, Cadence]:
        rows = map(Cadence._make, self._connection.execute(LOCK, (ids(schedule_ids),)))
        return {row.schedule_id: row for row in rows}

    def due(self, *, now: Instant, limit: int) -> list[Cadence]:
        return list(map(Cadence._make, self._connection.execute(DUE, {"now": now, "limit": limit})))

    def save_many(self, rows: Sequence[Cadence], *, turned: Sequence[Cadence] = ()) -> None:
        self._connection.executemany(SAVE, plain(rows))
        if rows:
            self._changes.append(CadencesSaved(rows, turned))

    def save_planned(self, rows: Sequence[Cadence]) -> None:
        self._connection.executemany(SAVE_PLANNED, map(_planned, rows))

    def save_settled(self, rows: Sequence[Cadence], *, turned: Sequence[Cadence] = ()) -> None:
        self._connection.executemany(SAVE_SETTLED, map(_settled, rows))
        if turned:
            self._changes.append(CadencesSaved(rows, turned))

    def ahead_of(self, now: Instant, *, after_id: int, limit: int) -> list[Cadence]:
        return list(map(Cadence._make, self._connection.execute(AHEAD_OF, (after_id, now, limit))))
