"""The ids of runs that were merged into another row."""

from collections.abc import Sequence

from wakeful.core.time.instants import Instant
from wakeful.ports.ledger import MergedRun
from wakeful.stores.shared.database import Database, Table

_MERGED = Table("merged_runs", MergedRun, key=("run_id",))

# The row a run was merged into.
FIND = "SELECT into_id FROM merged_runs WHERE run_id = :run_id"

# Ids of rows that are gone.
OLD = """
SELECT run_id FROM merged_runs
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = merged_runs.into_id) LIMIT :limit
"""
REMOVE = "DELETE FROM merged_runs WHERE run_id IN :run_ids"


class SharedMergedRuns:
    """See `ports.ledger.MergedRuns`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def add_many(self, rows: Sequence[MergedRun]) -> None:
        self._db.insert(_MERGED, rows)

    def find(self, run_id: int) -> int | None:
        return next((into_id for (into_id,) in self._db.rows(FIND, run_id=run_id)), None)

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        gone = [run_id for (run_id,) in self._db.rows(OLD, limit=limit)]
        return self._db.change(REMOVE, run_ids=gone) if gone else 0
