"""One at a time per lane (L5), in PostgreSQL.

The lane row is the lock of the lane, and stays when the lane is free. A claim takes the rows it can have at once and
passes over those another node is working on: it holds runs and lanes already, and waiting for more of them in whatever
order they come would end in a circle. A lane passed over is *unseen*: it may be on its way to a holder, or just being
freed. Parking a run behind it would be a mistake in the second case, because whoever frees it may have looked for
parked runs before ours was parked, and nobody would ever wake it. So the transaction remembers unseen lanes, and an
alarm that is to be parked behind one is left ringing (`PostgresAlarms.set_many`): the next look decides.

A lane seen held stays locked until our commit, and whoever frees it waits for that; so it finds what we parked.
"""

from collections.abc import Sequence

from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import ids, int_array, text_array, texts, update_some

# Who holds these lanes; those another node is working on are left out.
SEE = "SELECT lane, holder FROM lanes WHERE lane = ANY($1::text[]) ORDER BY lane FOR UPDATE SKIP LOCKED"

# Of lanes that may have no row yet, those that nobody else is about to make one for.
MAY_MAKE = """
SELECT lane FROM unnest($1::text[]) AS wanted (lane)
WHERE pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.lanes.' || lane, 0))
"""

# Make rows for lanes that have none. A statement after MAY_MAKE: it sees those that were made until then, and meets no
# other maker, so that it waits for nobody.
MAKE = """
INSERT INTO lanes (lane)
SELECT lane FROM unnest($1::text[]) AS wanted (lane)
WHERE NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.lane = wanted.lane) RETURNING lane
"""

# Runs take free lanes.
TAKE = update_some("lanes", frozenset({"lane"}), key="lane", columns=("holder",))

# Who holds these lanes, held until the transaction ends; waits for those another node is working on.
LOCK = "SELECT lane, holder FROM lanes WHERE lane = ANY($1::text[]) ORDER BY lane FOR UPDATE"

# Let lanes go.
FREE = "UPDATE lanes SET holder = NULL WHERE lane = ANY($1::text[])"

# Who holds what.
HOLDERS = "SELECT lane, holder FROM lanes WHERE holder IS NOT NULL ORDER BY lane"

# Of these lanes, which nobody holds, the first in line.
HEADS = """
SELECT head.ref FROM unnest($1::text[]) AS free (lane) CROSS JOIN LATERAL (
  SELECT ref FROM alarms
  WHERE alarms.lane = free.lane AND parked = 1 AND kind = 'run' AND due_at IS NOT NULL
  ORDER BY lane, priority, due_at, ref LIMIT 1
) AS head
"""

# Let them ring. Also where the lane was free before, because the run that was let through may have left without taking
# it, and those behind it must not wait for ever.
UNPARK = "UPDATE alarms SET parked = 0 WHERE kind = 'run' AND ref = ANY($1::bigint[])"

# Forget lanes that nobody holds or waits for. What another node is working on stays.
PRUNE = """
DELETE FROM lanes WHERE lane = ANY(ARRAY(
  SELECT lane FROM lanes WHERE holder IS NULL AND NOT EXISTS (
    SELECT 1 FROM alarms WHERE alarms.lane = lanes.lane AND parked = 1 AND kind = 'run' AND due_at IS NOT NULL
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
        heads = [ref for (ref,) in self._session.rows(HEADS, texts(free))] if free else []
        if heads:
            self._session.change(UNPARK, ids(heads))

    def holders(self) -> dict[str, int]:
        return dict(self._session.rows(HOLDERS))

    def _see(self, lanes: set[str]) -> dict[str, int | None]:
        """Those of the lanes that can be had now, locked, with their holders; the others are unseen."""
        holders: dict[str, int | None] = dict(self._session.rows(SEE, texts(lanes)))
        unseen = lanes - holders.keys()
        may_make = [lane for (lane,) in self._session.rows(MAY_MAKE, texts(unseen))] if unseen else []
        if may_make:
            holders.update(dict.fromkeys((lane for (lane,) in self._session.rows(MAKE, texts(may_make))), None))
        self._session.unseen_lanes |= lanes - holders.keys()
        return holders
