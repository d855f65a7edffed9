"""Where schedules stand, in SQLite. The one writer holds every row, so holding is reading."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from sqlite3 import Connection

from wakeful.core.cadence import Cadence
from wakeful.core.instants import Instant
from wakeful.ports.store import PLANNED_COLUMNS, SETTLED_COLUMNS
from wakeful.stores.sqlite.due import due_of
from wakeful.stores.sqlite.rows import columns_of, ids, insert_into, plain, update_of, update_some

_COLUMNS = columns_of(Cadence, "cadences")

# Write a new cadence.
ADD = insert_into("cadences", Cadence)

# Cadences by id.
LOCK = f"SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN cadences ON schedule_id = wanted.value"

# Cadences whose alarm is due, oldest first.
DUE = due_of("schedule", "cadences", "schedule_id", _COLUMNS)

# Write a cadence back.
SAVE = update_of("cadences", Cadence, key=("schedule_id",))

# Write back what ringing changes, and what settling changes: a third of the cost of the whole row.
SAVE_PLANNED = update_some("cadences", key="schedule_id", columns=PLANNED_COLUMNS)
SAVE_SETTLED = update_some("cadences", key="schedule_id", columns=SETTLED_COLUMNS)
_planned = attrgetter("schedule_id", *PLANNED_COLUMNS)
_settled = attrgetter("schedule_id", *SETTLED_COLUMNS)

# Cadences planned beyond now. A scan, and deliberately so: it is asked at start and after a clock step only, and an
# index on the border would be moved by every fire.
AHEAD_OF = f"SELECT {_COLUMNS} FROM cadences WHERE schedule_id > ? AND planned_through > ? ORDER BY schedule_id LIMIT ?"


class SqliteCadences:
    """See `ports.store.Cadences`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add_many(self, rows: Sequence[Cadence]) -> None:
        self._connection.executemany(ADD, plain(rows))

    def lock(self, schedule_ids: Iterable[int]) -> dict[int, Cadence]:
        rows = map(Cadence._make, self._connection.execute(LOCK, (ids(schedule_ids),)))
        return {row.schedule_id: row for row in rows}

    def due(self, *, now: Instant, limit: int) -> list[Cadence]:
        return list(map(Cadence._make, self._connection.execute(DUE, (now, limit))))

    def save_many(self, rows: Sequence[Cadence]) -> None:
        self._connection.executemany(SAVE, plain(rows))

    def save_planned(self, rows: Sequence[Cadence]) -> None:
        self._connection.executemany(SAVE_PLANNED, map(_planned, rows))

    def save_settled(self, rows: Sequence[Cadence]) -> None:
        self._connection.executemany(SAVE_SETTLED, map(_settled, rows))

    def ahead_of(self, now: Instant, *, after_id: int, limit: int) -> list[Cadence]:
        return list(map(Cadence._make, self._connection.execute(AHEAD_OF, (after_id, now, limit))))
