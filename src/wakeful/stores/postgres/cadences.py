"""The states of schedules, in PostgreSQL. The cadence row is the lock of its schedule."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import CadencesBegun, CadencesSaved, Change
from wakeful.ports.database import Table, texts_of
from wakeful.ports.plans import BEGUN_COLUMNS, PLANNED_COLUMNS, SETTLED_COLUMNS, Beginning
from wakeful.ports.queries import due_of
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.database import translated
from wakeful.stores.postgres.rows import (
    arrays,
    arrays_of,
    ids,
    insert_into,
    int_array,
    text_array,
    unnest_of,
    update_of,
    update_some,
)

_CADENCES = Table("cadences", Cadence, key=("schedule_id",))
_COLUMNS = _CADENCES.columns
_TEXTS: Final = texts_of(Cadence)

# Insert cadences.
ADD = insert_into("cadences", Cadence, _TEXTS)

# Insert the cadences of new schedules, and their alarms.
_BEGUN: Final = ("schedule_id", *BEGUN_COLUMNS)
BEGIN = f"""
INSERT INTO cadences ({", ".join(_BEGUN)}, ran_through, consecutive_errors, trouble)
SELECT new.*, 0, 0, 0 FROM {unnest_of(_BEGUN, _TEXTS)} AS new
"""
BEGIN_ALARMS = """
INSERT INTO alarms (kind, ref, due_at, priority, lane, parked, run_on)
SELECT 'schedule', new.ref, new.due_at, 1, NULL, CASE WHEN new.run_on IS NULL THEN 0 ELSE 2 END, new.run_on
FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS new (ref, due_at, run_on)
"""
_begun = attrgetter(*BEGUN_COLUMNS)

# Cadences by id, in id order.
LOOK = f"SELECT {_COLUMNS} FROM cadences WHERE schedule_id = ANY($1::bigint[]) ORDER BY schedule_id"

# The same, locked.
LOCK = f"{LOOK} FOR UPDATE"

# Cadences whose alarm is due, oldest first; without and with locks.
_DUE = due_of("schedule", _CADENCES)
LOOK_DUE, DUE = translated(_DUE, is_reading=True).text, translated(_DUE).text

# Update cadences.
SAVE = update_of("cadences", Cadence, _TEXTS, key="schedule_id")

# Write the columns that ringing changes, and those that settling changes: a third of the cost of the whole row.
SAVE_PLANNED = update_some("cadences", _TEXTS, key="schedule_id", columns=PLANNED_COLUMNS)
SAVE_SETTLED = update_some("cadences", _TEXTS, key="schedule_id", columns=SETTLED_COLUMNS)
_PLANNED: Final = ("schedule_id", *PLANNED_COLUMNS)
_SETTLED: Final = ("schedule_id", *SETTLED_COLUMNS)
_planned = attrgetter(*_PLANNED)
_settled = attrgetter(*_SETTLED)

# Cadences planned beyond now. Deliberately a scan: it runs only at start and after a clock step, and an index on this
# column would be updated by every fire.
LOOK_AHEAD_OF = (
    f"SELECT {_COLUMNS} FROM cadences WHERE schedule_id > $1 AND planned_through > $2 ORDER BY schedule_id LIMIT $3"
)

# The same, locked.
AHEAD_OF = f"{LOOK_AHEAD_OF} FOR UPDATE"


class PostgresCadences:
    """See `ports.store.Cadences`."""

    __slots__ = ("_changes", "_session")

    def __init__(self, session: Session, changes: list[Change]) -> None:
        self._session = session
        self._changes = changes

    def add_many(self, rows: Sequence[Cadence]) -> None:
        if rows:
            self._session.change(ADD, *arrays(rows, Cadence, _TEXTS))

    def begin_many(self, beginnings: Sequence[Beginning]) -> None:
        rows = [(key, *_begun(beginning.cadence)) for beginning in beginnings for key in beginning.schedule_ids]
        if not rows:
            return
        self._session.change(BEGIN, *arrays_of(rows, _BEGUN, _TEXTS))
        due_at = [beginning.due_at for beginning in beginnings for _ in beginning.schedule_ids]
        queues = [beginning.run_on for beginning in beginnings for _ in beginning.schedule_ids]
        self._session.change(BEGIN_ALARMS, int_array(row[0] for row in rows), int_array(due_at), text_array(queues))
        self._changes.append(CadencesBegun(beginnings))

    def lock(self, schedule_ids: Iterable[int]) -> dict[int, Cadence]:
        query = LOOK if self._session.is_reading else LOCK
        rows = map(Cadence._make, self._session.rows(query, ids(schedule_ids)))
        return {row.schedule_id: row for row in rows}

    def due(self, *, now: Instant, limit: int) -> list[Cadence]:
        query = LOOK_DUE if self._session.is_reading else DUE
        return list(map(Cadence._make, self._session.rows(query, now, limit)))

    def save_many(self, rows: Sequence[Cadence], *, turned: Sequence[Cadence] = ()) -> None:
        if rows:
            self._session.save(SAVE, len(rows), *arrays(rows, Cadence, _TEXTS))
            self._changes.append(CadencesSaved(rows, turned))

    def save_planned(self, rows: Sequence[Cadence]) -> None:
        if rows:
            self._session.save(SAVE_PLANNED, len(rows), *arrays_of(list(map(_planned, rows)), _PLANNED, _TEXTS))

    def save_settled(self, rows: Sequence[Cadence], *, turned: Sequence[Cadence] = ()) -> None:
        if rows:
            self._session.save(SAVE_SETTLED, len(rows), *arrays_of(list(map(_settled, rows)), _SETTLED, _TEXTS))
        if turned:
            self._changes.append(CadencesSaved(rows, turned))

    def ahead_of(self, now: Instant, *, after_id: int, limit: int) -> list[Cadence]:
        query = LOOK_AHEAD_OF if self._session.is_reading else AHEAD_OF
        return list(map(Cadence._make, self._session.rows(query, after_id, now, limit)))
