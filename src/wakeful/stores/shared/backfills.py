"""Backfills and their runs."""

from collections.abc import Sequence

from wakeful.core.time.instants import Instant
from wakeful.ports.backfills import ALARM_BACKFILL, Backfill, BackfilledRun
from wakeful.stores.shared.database import Database, Table, insert_one
from wakeful.stores.shared.queries import due_of

_BACKFILLS = Table(
    "backfills",
    Backfill,
    key=("backfill_id",),
    fixed=("schedule_id", "trigger", "instants", "requested_by", "created_at"),
)
_RUNS = Table("backfilled_runs", BackfilledRun, key=("run_id",))
_NEW = [name for name in Backfill._fields if name != "backfill_id"]

# A new request.
ADD = f"{insert_one('backfills', _NEW)} RETURNING backfill_id"

# A schedule's unfinished requests, locked.
ACTIVE = f"""
SELECT {_BACKFILLS.columns} FROM backfills WHERE schedule_id = :schedule_id AND state = 'active'
ORDER BY backfill_id FOR UPDATE
"""

# How many backfilled runs are open.
OPEN_RUNS = """
SELECT count(*) FROM backfills CROSS JOIN runs
WHERE backfills.state = 'active' AND runs.run_id = backfills.open_run_id AND runs.outcome IN ('running', 'waiting')
"""

# All unfinished requests.
ALL_ACTIVE = "SELECT backfill_id FROM backfills WHERE state = 'active' ORDER BY backfill_id"

# Requests whose alarm is due, locked.
DUE = due_of(ALARM_BACKFILL, _BACKFILLS)

# The past instants that these runs are for.
OF_RUNS = f"SELECT {_RUNS.columns} FROM backfilled_runs WHERE run_id IN :run_ids ORDER BY run_id"

# A schedule's backfilled runs for a range of instants.
BETWEEN = f"""
SELECT {_RUNS.columns} FROM backfilled_runs
WHERE schedule_id = :schedule_id AND planned_at >= :first AND planned_at <= :last ORDER BY planned_at, run_id
"""

# Forget finished requests, and runs that are no longer in the ledger: old runs are deleted first.
PRUNE = """
DELETE FROM backfills WHERE backfill_id IN (
  SELECT backfill_id FROM backfills
  WHERE state <> 'active' AND ended_at < :before AND ended_at >= :since ORDER BY backfill_id LIMIT :limit
)
"""
PRUNE_RUNS = """
DELETE FROM backfilled_runs WHERE run_id IN (
  SELECT run_id FROM (SELECT run_id FROM backfilled_runs ORDER BY run_id LIMIT :limit) AS oldest
  WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = oldest.run_id)
)
"""


class SharedBackfills:
    """See `ports.backfills.Backfills`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, row: Backfill) -> int:
        values = {name: value for name, value in row._asdict().items() if name != "backfill_id"}
        ((backfill_id,),) = self._db.change_returning(ADD, **values)
        return int(backfill_id)

    def lock_active(self, schedule_id: int) -> list[Backfill]:
        return list(map(Backfill._make, self._db.rows(ACTIVE, schedule_id=schedule_id)))

    def open_runs(self) -> int:
        ((count,),) = self._db.rows(OPEN_RUNS)
        return int(count)

    def active(self) -> list[int]:
        return [backfill_id for (backfill_id,) in self._db.rows(ALL_ACTIVE)]

    def due(self, *, now: Instant, limit: int) -> list[Backfill]:
        return list(map(Backfill._make, self._db.rows(DUE, now=now, limit=limit)))

    def save(self, row: Backfill) -> None:
        self._db.update(_BACKFILLS, [row])

    def add_run(self, row: BackfilledRun) -> None:
        self._db.insert(_RUNS, [row])

    def of_runs(self, run_ids: Sequence[int]) -> dict[int, BackfilledRun]:
        rows = map(BackfilledRun._make, self._db.rows(OF_RUNS, run_ids=run_ids))
        return {row.run_id: row for row in rows}

    def runs_between(self, schedule_id: int, *, first: Instant, last: Instant) -> list[BackfilledRun]:
        rows = self._db.rows(BETWEEN, schedule_id=schedule_id, first=first, last=last)
        return list(map(BackfilledRun._make, rows))

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        runs = self._db.change(PRUNE_RUNS, limit=limit)
        return max(runs, self._db.change(PRUNE, before=before, since=since, limit=limit))
