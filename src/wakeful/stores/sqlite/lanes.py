"""One run at a time per lane (L5), in SQLite.

A lane has a row only while a run holds it: there is one writer, so a free lane needs no row as a lock, and unused lanes
leave nothing behind.
"""

from collections.abc import Sequence
from sqlite3 import Connection

from wakeful.stores.sqlite.rows import texts

# The holders of these lanes.
HOLDERS_OF = "SELECT lane, holder FROM lanes WHERE lane IN (SELECT value FROM json_each(?))"

# The holders of all lanes.
HOLDERS = "SELECT lane, holder FROM lanes ORDER BY lane"

# A run takes a free lane.
TAKE = "INSERT INTO lanes (lane, holder) VALUES (?, ?)"

# A run frees its lane; one it does not hold is unchanged.
FREE = "DELETE FROM lanes WHERE lane = ? AND holder = ?"

# Of these lanes, those that are free: unpark the first waiting run. Also if the lane was free before, because the run
# that was unparked may have left without taking it, and those behind it must not wait forever. Of the runs that need
# labels, the first for each set of labels: one that no node can run must not keep the others waiting.
UNPARK_HEADS = """
UPDATE alarms SET parked = parked & 2
WHERE kind = 'run' AND ref IN (
  SELECT (
    SELECT ref FROM alarms AS waiting INDEXED BY alarms_parked
    WHERE waiting.lane = freed.value AND parked = 1 AND kind = 'run' AND due_at IS NOT NULL
    ORDER BY priority, due_at, ref LIMIT 1
  )
  FROM json_each(:lanes) AS freed
  WHERE NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.lane = freed.value)
  UNION ALL
  SELECT head.ref FROM json_each(:lanes) AS freed
  CROSS JOIN alarms AS head INDEXED BY alarms_parked_labelled ON head.lane = freed.value
  WHERE head.parked = 3 AND head.kind = 'run' AND head.due_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.lane = freed.value)
    AND NOT EXISTS (
      SELECT 1 FROM alarms AS earlier INDEXED BY alarms_parked_labelled
      WHERE earlier.lane = head.lane AND earlier.run_on = head.run_on AND earlier.parked = 3 AND earlier.kind = 'run'
        AND earlier.due_at IS NOT NULL
        AND (earlier.priority, earlier.due_at, earlier.ref) < (head.priority, head.due_at, head.ref)
    )
)
"""


class SqliteLanes:
    """See `ports.store.Lanes`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def take_many(self, wanted: Sequence[tuple[str, int]]) -> set[int]:
        if not wanted:
            return set()
        holders: dict[str, int] = dict(
            self._connection.execute(HOLDERS_OF, (texts({lane for lane, _ in wanted}),)).fetchall()
        )
        taken: dict[str, int] = {}
        for lane, run_id in wanted:
            if lane not in holders:
                holders[lane] = taken[lane] = run_id
        self._connection.executemany(TAKE, sorted(taken.items()))
        return {run_id for lane, run_id in wanted if holders[lane] == run_id}

    def free_many(self, held: Sequence[tuple[str, int]]) -> None:
        if not held:
            return
        self._connection.executemany(FREE, sorted(held))
        self._connection.execute(UNPARK_HEADS, {"lanes": texts({lane for lane, _ in held})})

    def holders(self) -> dict[str, int]:
        return dict(self._connection.execute(HOLDERS).fetchall())
