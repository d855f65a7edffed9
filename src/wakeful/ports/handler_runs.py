"""The details of handlers' runs that the ledger has no columns for."""

from collections.abc import Iterable

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import HandlerRun
from wakeful.ports.database import columns_of, grouped
from wakeful.ports.table import Rows

# The runs of sessions, in order.
OF_SESSIONS = f"""
SELECT {columns_of(HandlerRun, "handler_runs")} FROM handler_runs INDEXED BY handler_runs_of_session
WHERE session_id IN :session_ids ORDER BY session_id, run_id
"""

# The planned times in a span that a handler ran for, besides runs after which it is tried again. Reads the runs of its
# workflow, but only after the clock went back.
TAKEN = """
SELECT runs.planned_at FROM runs JOIN handler_runs ON handler_runs.run_id = runs.run_id
WHERE runs.schedule_id = :owner_id AND handler_runs.handler = :handler
  AND runs.planned_at >= :since AND runs.planned_at <= :until
  AND runs.outcome <> 'failed' AND runs.outcome <> 'unknown'
"""

# Rows of a workflow for times that did not run, which reach beyond an instant. Only after the clock went back.
GAPS_AHEAD = """
SELECT run_id FROM runs
WHERE schedule_id = :owner_id AND outcome IN ('skipped', 'missed') AND attempt = 0
  AND coalesce(planned_until, planned_at) > :after
"""

# Of the oldest handler runs, those that are no longer in the ledger.
GONE = """
SELECT run_id, session_id FROM (SELECT run_id, session_id FROM handler_runs ORDER BY run_id LIMIT :limit) AS oldest
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = oldest.run_id)
"""


class HandlerRunDetails(Rows[HandlerRun]):
    """The runs of producers and consumers, beside their rows in the ledger."""

    row, table, key = HandlerRun, "handler_runs", "run_id"
    fixed = ("workflow_id", "session_id", "handler", "kind", "queued")

    def of_sessions(self, session_ids: Iterable[int]) -> dict[int, list[HandlerRun]]:
        """The runs of each session, in order."""
        rows = self._made(self._db.rows(OF_SESSIONS, session_ids=session_ids))
        return grouped((row.session_id, row) for row in rows)

    def taken(self, owner_id: int, handler: str, *, since: Instant, until: Instant) -> frozenset[Instant]:
        """The planned times from `since` to `until` that a handler has a run for, unless that failed or is unknown."""
        rows = self._db.rows(TAKEN, owner_id=owner_id, handler=handler, since=since, until=until)
        return frozenset(planned_at for (planned_at,) in rows)

    def gaps_ahead(self, owner_id: int, *, after: Instant) -> list[int]:
        """The ids of a workflow's skipped or missed rows that reach beyond `after`."""
        return sorted(run_id for (run_id,) in self._db.rows(GAPS_AHEAD, owner_id=owner_id, after=after))

    def gone(self, *, limit: int) -> dict[int, int]:
        """Of the oldest `limit` runs, the sessions of those that are no longer in the ledger, by run."""
        return dict(self._db.rows(GONE, limit=limit))
