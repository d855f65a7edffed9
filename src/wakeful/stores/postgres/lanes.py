"""One run at a time per lane (L5), in PostgreSQL.

The lane row is the lock of the lane, and stays when the lane is free. A claim locks the rows that are available and
skips those another node has locked: it already holds locks of runs and lanes, and waiting for more of them in any order
could deadlock. A skipped lane is *unseen*: it may be about to get a holder, or about to be freed. In the second case
parking a run behind it would be wrong, because the transaction that frees it may have looked for parked runs before
ours was parked, and nothing would ever wake it. So the transaction remembers unseen lanes, and an alarm that would be
parked behind one stays due (`PostgresAlarms.set_many`): the next tick decides.

A lane that was seen held stays locked until our commit. Freeing it waits for that, and so finds what we parked.
"""

from collections.abc import Sequence

from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import int_array, text_array, texts, update_some

# The holders of these lanes, except those another node has locked.
SEE = "SELECT lane, holder FROM lanes WHERE lane = ANY($1::text[]) ORDER BY lane FOR UPDATE SKIP LOCKED"

# Of lanes that may have no row yet, those that no other transaction is about to create.
MAY_MAKE = """
SELECT lane FROM unnest($1::text[]) AS wanted (lane)
WHERE pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.lanes.' || lane, 0))
"""

# Create rows for lanes that have none. A separate statement after MAY_MAKE: it sees those created until then, and meets
# no concurrent insert, so it never waits.
MAKE = """
INSERT INTO lanes (lane)
SELECT lane FROM unnest($1::text[]) AS wanted (lane)
WHERE NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.lane = wanted.lane) RETURNING lane
"""

# Runs take free lanes.
TAKE = update_some("lanes", frozenset({"lane"}), key="lane", columns=("holder",))

# The holders of these lanes, locked until the transaction ends; waits for those another node has locked.
LOCK = "SELECT lane, holder FROM lanes WHERE lane = ANY($1::text[]) ORDER BY lane FOR UPDATE"

# Free lanes.
FREE = "UPDATE lanes SET holder = NULL WHERE lane = ANY($1::text[])"

# The holders of all lanes.
HOLDERS = "SELECT lane, holder FROM lanes WHERE holder IS NOT NULL ORDER BY lane"

# Unpark the first waiting run of each of these lanes, which must be free. Also if the lane was free before, because the
# run that was unparked may have left without taking it, and those behind it must not wait forever. Of the runs that
# need labels, the first for each set of labels: one that no node can run must not keep the others waiting.
UNPARK_HEADS = """
UPDATE alarms SET parked = parked & 2 WHERE kind = 'run' AND ref = ANY(ARRAY(
  SELECT head.ref FROM unnest($1::text[]) AS free (lane) CROSS JOIN LATERAL (
    SELECT ref FROM alarms
    WHERE alarms.lane = free.lane AND parked = 1 AND kind = 'run' AND due_at IS NOT NULL
    ORDER BY lane, priority, due_at, ref LIMIT 1
  ) AS head
  UNION ALL
  SELECT ref FROM (
    SELECT ref, row_number() OVER (PARTITION BY lane, run_on ORDER BY priority, due_at, ref) AS place FROM alarms
    WHERE parked = 3 AND kind = 'run' AND due_at IS NOT NULL AND lane = ANY($1::text[])
  ) AS labelled WHERE place = 1
  ORDER BY ref
))
"""

# Delete lanes that are neither held nor waited for. Rows that another node has locked stay.
PRUNE = """
DELETE FROM lanes WHERE lane = ANY(ARRAY(
  SELECT lane FROM lanes WHERE holder IS NULL AND NOT EXISTS (
    SELECT 1 FROM alarms WHERE alarms.lane = lanes.lane AND parked = 1 AND kind = 'run' AND due_at IS NOT NULL
  ) AND NOT EXISTS (
    SELECT 1 FROM alarms WHERE alarms.lane = lanes.lane AND parked = 3 AND kind = 'run' AND due_at IS NOT NULL
  ) ORDER BY lane LIMIT $1 FOR UPDATE SKIP LOCKED
)) RETURNING lane
"""


class PostgresLanes:
    """See `ports.store.Lanes`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def take_many(self, wanted: Sequence[tuple[str, int]]) -> set[int]:
        if not wanted:
            return set()
        holders = self._see({lane for lane, _ in wanted})
        taken: dict[str, int] = {}
        for lane, run_id in wanted:
            if lane in holders and holders[lane] is None:
                holders[lane] = taken[lane] = run_id
        if taken:
            self._session.save(TAKE, len(taken), text_array(list(taken)), int_array(taken.values()))
        return {run_id for lane, run_id in wanted if lane in holders and holders[lane] == run_id}

    def free_many(self, held: Sequence[tuple[str, int]]) -> None:
        if not held:
            return
        holders: dict[str, int | None] = dict(self._session.rows(LOCK, texts({lane for lane, _ in held})))
        freed = {lane for lane, run_id in held if holders.get(lane) == run_id}
        if freed:
            self._session.change(FREE, texts(freed))
        free = freed | {lane for lane, _ in held if holders.get(lane) is None}
        if free:
            self._session.change(UNPARK_HEADS, texts(free))

    def holders(self) -> dict[str, int]:
        return dict(self._session.rows(HOLDERS))

    def _see(self, lanes: set[str]) -> dict[str, int | None]:
        """The lanes that are available now, locked, with their holders; the others are unseen."""
        holders: dict[str, int | None] = dict(self._session.rows(SEE, texts(lanes)))
        unseen = lanes - holders.keys()
        may_make = [lane for (lane,) in self._session.rows(MAY_MAKE, texts(unseen))] if unseen else []
        if may_make:
            holders.update(dict.fromkeys((lane for (lane,) in self._session.rows(MAKE, texts(may_make))), None))
        self._session.unseen_lanes |= lanes - holders.keys()
        return holders
