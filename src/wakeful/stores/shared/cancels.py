"""Cancel requests."""

from collections.abc import Sequence

from wakeful.core.time.instants import Instant
from wakeful.ports.cancels import CancelRequest
from wakeful.stores.shared.database import Database, columns_of

_COLUMNS = columns_of(CancelRequest, "cancels")

# Record a request; the first one is kept.
ADD = """
INSERT INTO cancels (run_id, requested_at, requested_by) VALUES (:run_id, :requested_at, :requested_by)
ON CONFLICT (run_id) DO NOTHING
"""

# The requests for these runs.
AMONG = f"SELECT {_COLUMNS} FROM cancels WHERE run_id IN :run_ids ORDER BY run_id"

# Forget old requests.
PRUNE = """
DELETE FROM cancels WHERE run_id IN (
  SELECT run_id FROM cancels WHERE requested_at < :before AND requested_at >= :since ORDER BY run_id LIMIT :limit
)
"""


class SharedCancels:
    """See `ports.cancels.Cancels`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, row: CancelRequest) -> None:
        self._db.change(ADD, **row._asdict())

    def among(self, run_ids: Sequence[int]) -> dict[int, CancelRequest]:
        rows = map(CancelRequest._make, self._db.rows(AMONG, run_ids=run_ids))
        return {row.run_id: row for row in rows}

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        return self._db.change(PRUNE, before=before, since=since, limit=limit)
