"""The ids of runs that were merged into another row: they still resolve."""

from typing import NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.ports.table import Rows


class MergedRun(NamedTuple):
    """A run whose instant was added to the row before it."""

    run_id: int
    into_id: int


# Ids of rows that are gone.
OLD = """
SELECT run_id FROM merged_runs
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = merged_runs.into_id) LIMIT :limit
"""


class MergedRuns(Rows[MergedRun]):
    """Runs that were merged into another row."""

    row, table, key = MergedRun, "merged_runs", "run_id"

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete ids of rows that are gone; returns how many."""
        gone = [run_id for (run_id,) in self._db.rows(OLD, limit=limit)]
        return self.remove_many(gone) if gone else 0
