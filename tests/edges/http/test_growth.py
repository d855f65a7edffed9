"""A long ledger: what the page and the command line ask for costs the same."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from edges.http.kit import Client, served
from edges.http.steps import Steps
from postgres.server import Server, server
from wakeful.core.time.instants import DAY, HOUR, MINUTE, format_instant
from wakeful.engine.run_totals import RunTotals

__all__ = ["server"]

RECENT, OLD = 6_000, 54_000
SHARE = 1.5
"""Deeper trees take a few more steps."""
PATHS = [
    "/api/schedule?limit=50&recent=20",
    "/api/schedule?troubled=true",
    "/api/schedule?health=failing",
    "/api/schedule?q=s",
    "/api/schedule/s",
    "/api/schedule/s/stats",
    "/api/schedule/s/stats?since=SINCE",
    "/api/schedule/s/runs?limit=50",
    "/api/schedule/s/runs?limit=50&outcome=failed",
    "/api/schedule/s/next",
    "/api/schedule/s/why",
    "/api/runs?limit=50",
    "/api/runs?limit=50&outcome=failed",
    "/api/runs?limit=50&outcome=running",
    "/api/runs?limit=50&slug=s",
    "/api/runs?limit=50&q=nothing",
    "/api/runs?limit=50&since=SINCE&until=SINCE",
    "/api/runs/59900",
    "/api/timeline",
    "/api/timeline?since=SINCE",
    "/api/today",
    "/api/upcoming",
    "/api/calendar.ics",
    "/api/nodes",
    "/api/agents",
    "/api/heartbeat",
    "/api/system-events",
    "/api/workflows",
    "/api/deliveries",
    "/api/channels",
    "/api/inbox",
    "/api/alerts",
    "/api/approvals",
    "/api/cost",
    "/api/cost?by=agent",
    "/api/budget",
    "/api/export",
    "/healthz",
    "/readyz",
]
ELSEWHERE = {
    "/": "a file",
    "/api/routes": "reads no store",
    "/api/forms/schedule": "reads no store",
    "/api/forms/slot": "reads no store",
    "/api/forms/workflow": "reads no store",
    "/api/config": "reads no store",
    "/api/slots": "a bounded number of slots, each with its readings of a week; the daemon has them",
    "/api/slots/{name}": "as above",
    "/api/slots/{name}/runs": "the query is that of schedules",
    "/api/calendar/key": "reads one value",
    "/api/stream": "reads no store",
    "/metrics": "the queries of /healthz, of deliveries and of costs",
    "/api/caller": "reads no table, or the open runs",
    "/api/forecast": "a simulation in another process, which reads a bounded record of each schedule",
    "/api/deliveries/{id}": "one row by its key",
    "/api/workflows/{id}": "as long as the workflow's own history, whose queries are those of schedules",
    "/api/workflows/{id}/sessions": "as above",
    "/api/workflows/{id}/runs": "as above",
    "/api/workflows/{id}/topics/{topic}/messages": "as above",
}
"""Routes that the test below leaves out, and why."""

# Every hundredth run failed.
ADD = """
WITH RECURSIVE numbers (n) AS (
  SELECT CAST(:first AS bigint) UNION ALL SELECT n + 1 FROM numbers WHERE n < CAST(:last AS bigint))
INSERT INTO runs (run_id, kind, schedule_id, occurrence, planned_at, instants, due_at, trigger, outcome, rung, attempt,
  crashes, waits, priority, fence, version, started_at, claimed_at, ended_at, stuck)
SELECT n, 'schedule', CAST(:schedule_id AS bigint), at, at, 1, at, 'schedule',
  CASE WHEN n % 100 = 0 THEN 'failed' ELSE 'succeeded' END, 'finished', 1, 0, 0, 1, 1, 1, at, at, at + 40, 0
FROM (SELECT n, CAST(:since AS bigint) + (n - CAST(:first AS bigint)) * CAST(:spacing AS bigint) AS at
  FROM numbers) AS timed
"""


async def add(api: Client, first: int, last: int, *, since: int, spacing: int = MINUTE) -> None:
    """Runs with these ids, from that time on."""
    store = api.app._open.store

    def write(tx: Any) -> None:
        (schedule,) = tx.schedules.by_slugs(["s"]).values()
        values = {"first": first, "last": last, "since": since, "spacing": spacing}
        tx.db.change(ADD, schedule_id=schedule.schedule_id, **values)
        tx.db.change("UPDATE counters SET value = :last WHERE name = 'run_id'", last=last)

    await store.write(write)
    now = api.app._moment().now
    for _ in range(OLD):
        if not await store.write(lambda tx: tx[RunTotals].advance(now=now, limit=2_000)):
            return


@asynccontextmanager
async def ledger(folder: Path, server: Server | None, *, is_long: bool) -> AsyncIterator[Client]:
    """The API on a ledger of four days, and, if it is long, ten times as many rows that are weeks older."""
    folder.mkdir()
    with nullcontext(None) if server is None else server.schema() as store:
        async with served(folder, store=store) as api:
            assert (await api.put("s")).status == 201
            now = api.app._moment().now
            if is_long:
                await add(api, 1, OLD, since=now - 80 * DAY, spacing=MINUTE // 2)
            await add(api, OLD + 1, OLD + RECENT, since=now - RECENT * MINUTE - HOUR)
            if server is not None:
                with server.connect() as connection:
                    connection.execute("ANALYZE")
            yield api


async def measured(api: Client, steps: Steps) -> dict[str, int]:
    """The steps of each request."""
    since = format_instant(api.app._moment().now - 2 * DAY)
    return {path: await steps.of(api, path.replace("SINCE", since)) for path in PATHS}


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.torture)])
async def test_no_question_of_the_page_grows_with_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, kind: str
) -> None:
    """Counted in steps of the database: ten times as many rows, and the same work for each request."""
    steps = Steps(monkeypatch)
    on = request.getfixturevalue("server") if kind == "postgres" else None
    async with ledger(tmp_path / "short", on, is_long=False) as api:
        short = await measured(api, steps)
        counted = (await api.get("/api/schedule/s/stats")).body["counts"]
        assert counted == {"succeeded": RECENT - RECENT // 100, "failed": RECENT // 100}
        described = (await api.get("/api/openapi.json")).body["paths"]
    assert all(short.values())
    routes = {path for path, methods in described.items() if "get" in methods} - ELSEWHERE.keys()
    asked = {re.sub(r"\?.*", "", path) for path in PATHS}
    named = {re.sub(r"{slug}", "s", re.sub(r"{id}", "59900", route)) for route in routes}
    assert named == asked, "a new route belongs on one of the lists above"
    async with ledger(tmp_path / "long", on, is_long=True) as api:
        long = await measured(api, steps)
        counted = (await api.get("/api/schedule/s/stats")).body["counts"]
        assert counted == {"succeeded": (RECENT + OLD) * 99 // 100, "failed": (RECENT + OLD) // 100}
    assert {path: (short[path], long[path]) for path in PATHS if long[path] > SHARE * short[path] + 5} == {}


async def test_sums_follow_the_ledger_when_it_is_pruned(tmp_path: Path) -> None:
    """Counts cover what the ledger still has, as before."""
    async with served(tmp_path, tick=False) as api:
        await api.put("s")
        now = api.app._moment().now
        await add(api, 1, RECENT, since=now - 30 * DAY)
        store = api.app._open.store
        pruned = await store.write(lambda tx: tx.runs.prune(before=now - 29 * DAY, limit=500))
        left = (await api.get("/api/schedule/s/stats")).body["counts"]
        assert pruned == 500
        assert left == {"succeeded": RECENT - RECENT // 100 - 495, "failed": RECENT // 100 - 5}
        await store.write(lambda tx: tx[RunTotals].advance(now=now, limit=2_000))
        assert (await api.get("/api/schedule/s/stats")).body["counts"] == left
