"""Alarms, in PostgreSQL. The column `parked` is as in SQLite.

Writing an alarm requires the lock of what it rings, with one exception in this store: freeing a lane unparks the head
of the lane without locking its run. So a parked alarm is changed only under the lock of its lane, and removing one
takes that lock first (`LOCK_LANES`), always in this order.
"""

from collections.abc import Sequence
from typing import Final

from wakeful.core.time.instants import Duration, Instant
from wakeful.ports.database import columns_of, texts_of
from wakeful.ports.store import ALARM_RUN, Alarm
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import arrays, ids, insert_into, int_array, texts

_COLUMNS = columns_of(Alarm, "alarms").replace("alarms.parked", "alarms.parked & 1")
_TEXTS: Final = texts_of(Alarm)

# Insert or update alarms. An unchanged one (each settle derives it again) does not touch the due index.
SET = f"""
{insert_into("alarms", Alarm, _TEXTS)}
ON CONFLICT (kind, ref) DO UPDATE SET
  due_at = excluded.due_at, priority = excluded.priority, lane = excluded.lane, parked = excluded.parked,
  run_on = excluded.run_on
  WHERE alarms.due_at IS DISTINCT FROM excluded.due_at OR alarms.parked <> excluded.parked
    OR alarms.priority <> excluded.priority OR alarms.lane IS DISTINCT FROM excluded.lane
    OR alarms.run_on IS DISTINCT FROM excluded.run_on
"""

# Change the due time of alarms. Without a join, so that the planner has to use the index; and it also finds a parked
# alarm that is being unparked at this moment.
MOVE = """
UPDATE alarms SET due_at = ($3::bigint[])[array_position($2::bigint[], ref)]
WHERE kind = $1 AND ref = ANY($2::bigint[])
"""

# The lanes behind which alarms that are about to be removed are parked.
LOCK_LANES = """
SELECT lane FROM lanes
WHERE lane = ANY(ARRAY(SELECT lane FROM alarms WHERE kind = $1 AND ref = ANY($2::bigint[]) AND parked & 1 = 1))
ORDER BY lane FOR UPDATE
"""

# Delete alarms.
REMOVE = "DELETE FROM alarms WHERE kind = $1 AND ref = ANY($2::bigint[])"

# Alarms of one kind by the id of their subject.
BY_REFS = f"SELECT {_COLUMNS} FROM alarms WHERE kind = $1 AND ref = ANY($2::bigint[])"

# The earliest alarm of each kind and priority, except for some kinds: one index seek each.
_WALK = """
WITH RECURSIVE walk AS (
  (
    SELECT kind, priority, due_at FROM alarms
    WHERE parked = 0 AND due_at IS NOT NULL ORDER BY kind, priority, due_at LIMIT 1
  )
  UNION ALL
  SELECT next.kind, next.priority, next.due_at
  FROM walk CROSS JOIN LATERAL (
    SELECT kind, priority, due_at FROM alarms
    WHERE parked = 0 AND due_at IS NOT NULL AND (alarms.kind, alarms.priority) > (walk.kind, walk.priority)
    ORDER BY kind, priority, due_at LIMIT 1
  ) AS next
)
"""
NEXT_DUE_AT = f"{_WALK} SELECT min(due_at) FROM walk WHERE kind <> ALL($1::text[])"
DUE_KINDS = f"{_WALK} SELECT kind FROM walk WHERE due_at <= $1"

# Postpone the first due alarm of a kind. Its row may be missing. One that is locked elsewhere is skipped.
HOLD_OFF_FIRST = """
WITH first AS (
  SELECT ref FROM alarms WHERE kind = $1 AND parked = 0 AND due_at <= $2
  ORDER BY priority, due_at, ref LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE alarms SET due_at = $3 WHERE kind = $1 AND ref = (SELECT ref FROM first) RETURNING ref
"""

# Bring waiting runs forward: the clock their times are based on was ahead. Rows are locked in key order.
SHIFT_WAITING = """
WITH waiting AS (
  SELECT ref FROM alarms
  WHERE kind = 'run' AND (
    due_at > $2 OR parked & 1 = 1 OR EXISTS (SELECT 1 FROM runs WHERE runs.run_id = alarms.ref AND runs.due_at > $3)
  )
  ORDER BY ref FOR UPDATE OF alarms
)
UPDATE alarms SET due_at = due_at - $1 WHERE kind = 'run' AND ref = ANY(ARRAY(SELECT ref FROM waiting))
"""


class PostgresAlarms:
    """See `ports.store.Alarms`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def set_many(self, rows: Sequence[Alarm]) -> None:
        if not rows:
            return
        # One statement must not write a row twice: the last one counts.
        last = {(row.kind, row.ref): row for row in rows}
        unseen = self._session.unseen_lanes
        if unseen:  # it is not known whether that lane is held: nothing is parked behind it, see `lanes`
            last = {key: row._replace(parked=0) if row.lane in unseen else row for key, row in last.items()}
        rows = [row if row.run_on is None else row._replace(parked=row.parked + 2) for row in last.values()]
        self._session.change(SET, *arrays(rows, Alarm, _TEXTS))

    def move_many(self, kind: str, moves: Sequence[tuple[int, Instant | None]]) -> None:
        if moves:
            refs, due_at = zip(*moves, strict=True)
            self._session.change(MOVE, kind, int_array(refs), int_array(due_at))

    def remove_many(self, kind: str, refs: Sequence[int]) -> None:
        if not refs:
            return
        wanted = ids(refs)
        if kind == ALARM_RUN:
            self._session.rows(LOCK_LANES, kind, wanted)
        self._session.change(REMOVE, kind, wanted)

    def by_refs(self, kind: str, refs: Sequence[int]) -> dict[int, Alarm]:
        rows = map(Alarm._make, self._session.rows(BY_REFS, kind, ids(refs)))
        return {row.ref: row for row in rows}

    def due_kinds(self, *, now: Instant) -> set[str]:
        return {kind for (kind,) in self._session.rows(DUE_KINDS, now)}

    def next_due_at(self, *, besides: Sequence[str] = ()) -> Instant | None:
        ((earliest,),) = self._session.rows(NEXT_DUE_AT, texts(besides))
        return None if earliest is None else int(earliest)

    def hold_off_first(self, kind: str, *, now: Instant, until: Instant) -> int | None:
        found = self._session.rows(HOLD_OFF_FIRST, kind, now, until)
        return int(found[0][0]) if found else None

    def shift_waiting(self, *, by: Duration, beyond: Instant, now: Instant) -> int:
        return self._session.change(SHIFT_WAITING, by, beyond, now)
