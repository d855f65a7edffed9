"""Fill a store with schedules and a ledger of a given length, by statements that both databases know.

The rows are those of runs that succeeded, in the order in which they ran: the newest row of each schedule is a few
minutes old. Going through the engine would take hours for a million rows.
"""

from functools import partial
from typing import Any, Final, cast

from wakeful import New, Wakeful, every
from wakeful.ports.store import Tx

STEP: Final = 100_000
APART: Final = 8_640
"""Milliseconds between two rows: the last day has 10,000, however long the ledger is."""
OFTEN: Final = "often"
"""The schedule that owns half of the ledger."""

_ADD: Final = """
WITH RECURSIVE numbers (n) AS (SELECT CAST(:first AS bigint) UNION ALL SELECT n + 1 FROM numbers WHERE n < :last),
  planned (n, at) AS (SELECT n, CAST(:newest AS bigint) - (:rows - n) * :apart FROM numbers)
INSERT INTO runs (run_id, kind, schedule_id, occurrence, planned_at, instants, due_at, trigger, outcome, rung, attempt,
  crashes, waits, priority, fence, version, started_at, claimed_at, ended_at, stuck)
SELECT n, 'schedule', CASE WHEN n % 2 = 0 THEN :often ELSE :lowest + n / 2 % :schedules END, at, at, 1, at, 'schedule',
  CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'succeeded' END, 'finished', 1, 0, 0, 1, 1, 1, at + 2, at + 2,
  at + 40 + n % 50, 0
FROM planned
"""
# The next run gets an id after these.
_COUNT_IDS: Final = "UPDATE counters SET value = :rows WHERE name = 'run_id'"
_COUNT_IDS_POSTGRES: Final = "SELECT setval('run_ids', :rows)"


async def fill(app: Wakeful, *, schedules: int, rows: int) -> None:
    """That many schedules, one more that owns every second row, and that many rows."""
    names = [OFTEN, *(f"s-{n:05d}" for n in range(schedules))]
    await app.add_many([New(name, every("1h"), command=["true"]) for name in names])
    store, now = app._open.store, app._moment().now

    def ids(tx: Tx) -> tuple[int, int]:
        known = tx.schedules.by_slugs([OFTEN, names[1]])
        return known[OFTEN].schedule_id, known[names[1]].schedule_id

    often, lowest = await store.read(ids)
    for first in range(1, rows + 1, STEP):
        params: dict[str, Any] = {
            "first": first,
            "last": min(first + STEP - 1, rows),
            "rows": rows,
            "often": often,
            "lowest": lowest,
            "schedules": schedules,
            "newest": now - 300_000,
            "apart": APART,
        }
        await store.write(partial(_run, _ADD, params))
    if store.is_exclusive:
        await store.write(partial(_run, _COUNT_IDS, {"rows": rows}))
    else:  # PostgreSQL
        await store.write(lambda tx: cast("Any", tx).db.rows(_COUNT_IDS_POSTGRES, rows=rows))


def _run(sql: str, params: dict[str, Any], tx: Any) -> None:
    tx.db.change(sql, **params)
