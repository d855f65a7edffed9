"""Alarms, in SQLite. The column `parked` is `Alarm.parked`, plus 2 for alarms that need a label: they are found by
other indexes (`ports.labelled`), so that nodes without the label never see them."""

from collections.abc import Iterator, Sequence
from sqlite3 import Connection

from wakeful.core.run.runs import PRIORITY_BACKFILL, PRIORITY_PERSON, PRIORITY_PLANNED
from wakeful.core.time.instants import Duration, Instant
from wakeful.ports.store import Alarm
from wakeful.stores.sqlite.rows import ids, plain

# Insert or update an alarm. An unchanged one (each settle derives it again) does not touch the due index.
SET = """
INSERT INTO alarms (kind, ref, due_at, priority, lane, parked, run_on)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (kind, ref) DO UPDATE SET
  due_at = excluded.due_at, priority = excluded.priority, lane = excluded.lane, parked = excluded.parked,
  run_on = excluded.run_on
  WHERE due_at IS NOT excluded.due_at OR parked <> excluded.parked OR priority <> excluded.priority
    OR lane IS NOT excluded.lane OR run_on IS NOT excluded.run_on
"""

# Change the due time of an alarm.
MOVE = "UPDATE alarms SET due_at = ? WHERE kind = ? AND ref = ?"

# Delete an alarm.
REMOVE = "DELETE FROM alarms WHERE kind = ? AND ref IN (SELECT value FROM json_each(?))"

# Alarms of one kind by the id of their subject.
BY_REFS = """
SELECT kind, ref, due_at, priority, lane, parked & 1, run_on
FROM json_each(?) AS wanted CROSS JOIN alarms ON kind = ? AND ref = wanted.value
"""

# The earliest alarm of the next priority of a kind, and of the next kind: one index seek each. (Two statements, because
# a row-value comparison seeks by the kind only and then reads all of it.)
NEXT_PRIORITY = """
SELECT kind, priority, due_at FROM alarms INDEXED BY alarms_due
WHERE parked = 0 AND due_at IS NOT NULL AND kind = ? AND priority > ? ORDER BY priority, due_at LIMIT 1
"""
NEXT_KIND = """
SELECT kind, priority, due_at FROM alarms INDEXED BY alarms_due
WHERE parked = 0 AND due_at IS NOT NULL AND kind > ? ORDER BY kind, priority, due_at LIMIT 1
"""

# Postpone the first due alarm of a kind and priority. Its row may be missing.
HOLD_OFF_FIRST = """
UPDATE alarms SET due_at = :until WHERE kind = :kind AND ref = (
  SELECT ref FROM alarms INDEXED BY alarms_due
  WHERE kind = :kind AND priority = :priority AND parked = 0 AND due_at IS NOT NULL AND due_at <= :now
  ORDER BY due_at, ref LIMIT 1
) RETURNING ref
"""

# Bring waiting runs forward: the clock their times are based on was ahead. Parked ones were due already, perhaps by
# that clock, and must be due when their lane is freed. So must those whose instant lies ahead now: they were rung by
# that clock, and there was no capacity for them.
SHIFT_WAITING = """
UPDATE alarms SET due_at = due_at - :by
WHERE kind = 'run' AND (
  due_at > :beyond OR parked & 1 OR EXISTS (SELECT 1 FROM runs WHERE run_id = ref AND runs.due_at > :now)
)
"""


class SqliteAlarms:
    """See `ports.store.Alarms`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def set_many(self, rows: Sequence[Alarm]) -> None:
        stored = [row if row.run_on is None else row._replace(parked=row.parked + 2) for row in rows]
        self._connection.executemany(SET, plain(stored))

    def move_many(self, kind: str, moves: Sequence[tuple[int, Instant | None]]) -> None:
        self._connection.executemany(MOVE, [(due_at, kind, ref) for ref, due_at in moves])

    def remove_many(self, kind: str, refs: Sequence[int]) -> None:
        self._connection.execute(REMOVE, (kind, ids(refs)))

    def by_refs(self, kind: str, refs: Sequence[int]) -> dict[int, Alarm]:
        rows = map(Alarm._make, self._connection.execute(BY_REFS, (ids(refs), kind)))
        return {row.ref: row for row in rows}

    def due_kinds(self, *, now: Instant) -> set[str]:
        return {kind for kind, due_at in self._heads() if due_at <= now}

    def next_due_at(self, *, besides: Sequence[str] = ()) -> Instant | None:
        return min((due_at for kind, due_at in self._heads() if kind not in besides), default=None)

    def _heads(self) -> Iterator[tuple[str, Instant]]:
        """The earliest alarm of each kind and priority."""
        found = self._connection.execute(NEXT_KIND, ("",)).fetchone()
        while found is not None:
            kind, priority, due_at = found
            yield kind, due_at
            found = self._connection.execute(NEXT_PRIORITY, (kind, priority)).fetchone()
            if found is None:
                found = self._connection.execute(NEXT_KIND, (kind,)).fetchone()

    def hold_off_first(self, kind: str, *, now: Instant, until: Instant) -> int | None:
        for priority in (PRIORITY_PERSON, PRIORITY_PLANNED, PRIORITY_BACKFILL):
            given = {"kind": kind, "priority": priority, "now": now, "until": until}
            found = self._connection.execute(HOLD_OFF_FIRST, given).fetchall()
            if found:
                return int(found[0][0])
        return None

    def shift_waiting(self, *, by: Duration, beyond: Instant, now: Instant) -> int:
        return self._connection.execute(SHIFT_WAITING, {"by": by, "beyond": beyond, "now": now}).rowcount
