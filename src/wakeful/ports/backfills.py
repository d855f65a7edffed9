"""Backfills: past instants that are run on request, one after another, outside the plan."""

from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.time.instants import Instant
from wakeful.ports.database import columns_of, insert_one
from wakeful.ports.table import Rows

ALARM_BACKFILL: Final = "backfill"

BackfillState: TypeAlias = Literal["active", "stopped", "done"]
BackfillTrigger: TypeAlias = Literal["backfill", "replay"]


class Backfill(NamedTuple):
    """A request to run past instants of one schedule, in the order of its columns."""

    backfill_id: int  # 0: not written yet
    schedule_id: int
    trigger: BackfillTrigger
    instants: str  # JSON: the instants, oldest first
    cursor: int  # how many of them have a run
    open_run_id: int | None  # the run of the last one
    state: BackfillState
    requested_by: str
    created_at: Instant
    ended_at: Instant | None


class BackfilledRun(NamedTuple):
    """A run of a past instant, in the order of its columns."""

    run_id: int
    schedule_id: int
    planned_at: Instant
    replay_of: int | None


_COLUMNS = columns_of(Backfill, "backfills")
_NEW = [name for name in Backfill._fields if name != "backfill_id"]

# A new request.
ADD = f"{insert_one('backfills', _NEW)} RETURNING backfill_id"

# A schedule's unfinished requests, locked.
ACTIVE = f"""
SELECT {_COLUMNS} FROM backfills WHERE schedule_id = :schedule_id AND state = 'active'
ORDER BY backfill_id FOR UPDATE
"""

# How many backfilled runs are open.
OPEN_RUNS = """
SELECT count(*) FROM backfills CROSS JOIN runs
WHERE backfills.state = 'active' AND runs.run_id = backfills.open_run_id AND runs.outcome IN ('running', 'waiting')
"""

# All unfinished requests.
ALL_ACTIVE = "SELECT backfill_id FROM backfills WHERE state = 'active' ORDER BY backfill_id"

# A schedule's backfilled runs for a range of instants.
BETWEEN = f"""
SELECT {columns_of(BackfilledRun, "backfilled_runs")} FROM backfilled_runs
WHERE schedule_id = :schedule_id AND planned_at >= :first AND planned_at <= :last ORDER BY planned_at, run_id
"""

# Records of runs that are no longer in the ledger: old runs are deleted first.
GONE = """
SELECT run_id FROM (SELECT run_id FROM backfilled_runs ORDER BY run_id LIMIT :limit) AS oldest
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = oldest.run_id)
"""


class Backfills(Rows[Backfill]):
    """Requests, with their progress."""

    row, table, key, is_numbered = Backfill, "backfills", "backfill_id", True
    fixed = ("schedule_id", "trigger", "instants", "requested_by", "created_at")
    alarm, time = ALARM_BACKFILL, "ended_at"

    def add_new(self, row: Backfill) -> int:
        """Write a backfill; returns its id."""
        values = {name: value for name, value in row._asdict().items() if name != "backfill_id"}
        ((backfill_id,),) = self._db.change_returning(ADD, **values)
        return int(backfill_id)

    def lock_active(self, schedule_id: int) -> list[Backfill]:
        """A schedule's unfinished backfills, locked, oldest first."""
        return self._made(self._db.rows(ACTIVE, schedule_id=schedule_id))

    def open_runs(self) -> int:
        """How many backfilled runs are running or waiting."""
        ((count,),) = self._db.rows(OPEN_RUNS)
        return int(count)

    def active(self) -> list[int]:
        """The ids of unfinished backfills."""
        return [backfill_id for (backfill_id,) in self._db.rows(ALL_ACTIVE)]


class BackfilledRuns(Rows[BackfilledRun]):
    """The runs made for requests."""

    row, table, key = BackfilledRun, "backfilled_runs", "run_id"

    def between(self, schedule_id: int, *, first: Instant, last: Instant) -> list[BackfilledRun]:
        """A schedule's backfilled runs for instants in [first, last]."""
        return self._made(self._db.rows(BETWEEN, schedule_id=schedule_id, first=first, last=last))

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` records of runs that the ledger no longer has; returns how many."""
        gone = [run_id for (run_id,) in self._db.rows(GONE, limit=limit)]
        return self.remove_many(gone) if gone else 0
