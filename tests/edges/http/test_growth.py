"""A long ledger: what the page and the command line ask for costs the same."""

from pathlib import Path
from typing import Any

import pytest

from edges.http.kit import Client, served
from edges.http.steps import Steps
from wakeful.core.time.instants import DAY, HOUR, MINUTE

SHORT, LONG = 6_000, 60_000
SHARE = 1.5
"""Deeper trees take a few more steps."""
PATHS = [
    "/api/schedule?limit=50&recent=20",
    "/api/schedule/s/stats",
    "/api/schedule/s/runs?limit=50",
    "/api/schedule/s/why",
    "/api/schedule?troubled=true",
    "/api/runs?limit=50",
    "/api/runs?limit=50&outcome=failed",
    "/api/runs?limit=50&outcome=running",
    "/api/timeline",
    "/api/upcoming",
    "/api/agents",
    "/api/alerts",
    "/healthz",
    "/readyz",
    "/api/nodes",
]

# A ledger in which a minute lies between two rows, and every hundredth run failed.
ADD = """
WITH RECURSIVE numbers (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM numbers WHERE n < :last)
INSERT INTO runs (run_id, kind, schedule_id, occurrence, planned_at, instants, due_at, trigger, outcome, rung, attempt,
  crashes, waits, priority, fence, version, started_at, claimed_at, ended_at, stuck)
SELECT n, 'schedule', :schedule_id, at, at, 1, at, 'schedule', iif(n % 100 = 0, 'failed', 'succeeded'), 'finished', 1,
  0, 0, 1, 1, 1, at, at, at + 40, 0
FROM (SELECT n, :newest + n * 60000 AS at FROM numbers)
"""


async def lengthen(api: Client, first: int, last: int, newest: int) -> None:
    store = api.app._open.store

    def add(tx: Any) -> None:
        (schedule,) = tx.schedules.by_slugs(["s"]).values()
        tx.db.change(ADD, first=first, last=last, newest=newest, schedule_id=schedule.schedule_id)
        tx.db.change("UPDATE counters SET value = :last WHERE name = 'run_id'", last=last)

    await store.write(add)
    now = api.app.moment().now
    for _ in range(LONG):
        if not await store.write(lambda tx: tx.totals.advance(now=now, limit=2_000)):
            return


async def test_no_question_of_the_page_grows_with_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in steps of the database: ten times as many rows, and the same work for each request."""
    steps = Steps(monkeypatch)
    async with served(tmp_path) as api:
        assert (await api.put("s")).status == 201
        newest = api.app.moment().now - HOUR - LONG * MINUTE
        await lengthen(api, 1, SHORT, newest)
        short = {path: await steps.of(api, path) for path in PATHS}
        assert all(short.values())
        counted = (await api.get("/api/schedule/s/stats")).body["counts"]
        assert counted == {"succeeded": SHORT - SHORT // 100, "failed": SHORT // 100}
        await lengthen(api, SHORT + 1, LONG, newest)
        grown = {
            path: (short[path], many) for path in PATHS if (many := await steps.of(api, path)) > SHARE * short[path]
        }
        assert grown == {}
        counted = (await api.get("/api/schedule/s/stats")).body["counts"]
        assert counted == {"succeeded": LONG - LONG // 100, "failed": LONG // 100}


async def test_sums_follow_the_ledger_when_it_is_pruned(tmp_path: Path) -> None:
    """Counts cover what the ledger still has, as before."""
    async with served(tmp_path, tick=False) as api:
        await api.put("s")
        now = api.app.moment().now
        await lengthen(api, 1, SHORT, now - 30 * DAY)
        store = api.app._open.store
        pruned = await store.write(lambda tx: tx.runs.prune(before=now - 29 * DAY, limit=500))
        left = (await api.get("/api/schedule/s/stats")).body["counts"]
        assert pruned == 500
        assert left == {"succeeded": SHORT - SHORT // 100 - 495, "failed": SHORT // 100 - 5}
        await store.write(lambda tx: tx.totals.advance(now=now, limit=2_000))
        assert (await api.get("/api/schedule/s/stats")).body["counts"] == left
