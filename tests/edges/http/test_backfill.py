"""Replay and backfill over REST: dry by default on the command line, `?dryRun=true` here."""

from typing import Any

from edges.http.kit import Client
from far_away import minute_away

DAY = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-01T23:59:59Z"}


def hourly() -> dict[str, Any]:
    """It is not due while a test runs."""
    timing = {"type": "cron", "expression": f"{minute_away()} * * * *", "timezone": "UTC"}
    return {"schedule": timing, "command": {"argv": ["true"]}}


async def test_a_backfill_is_counted_started_and_stopped(api: Client) -> None:
    """Counting changes nothing; stopping returns how many will not run."""
    await api.put("hourly", hourly())
    counted = await api.post("/api/schedule/hourly/backfill?dryRun=true", DAY)
    assert (counted.status, counted.body) == (202, {"instants": 24, "bySlug": {"hourly": 24}, "estimate": 0.0})
    assert (await api.get("/api/schedule/hourly/runs")).body["runs"] == []
    assert (await api.post("/api/schedule/hourly/backfill", DAY)).body["instants"] == 24
    assert (await api.post("/api/schedule/hourly/backfill", DAY)).body["instants"] == 0
    stopped = await api.ask("DELETE", "/api/schedule/hourly/backfill")
    assert (stopped.status, 20 <= stopped.body["left"] <= 24) == (200, True)


async def test_a_run_is_replayed(api: Client) -> None:
    await api.put("hourly", hourly())
    old = (await api.post("/api/schedule/hourly/run?wait=true")).body
    dry = await api.post(f"/api/runs/{old['runId']}/replay?dryRun=true")
    assert (dry.status, dry.body) == (200, {"instants": 1, "bySlug": {"hourly": 1}, "estimate": 0.0})
    assert len((await api.get("/api/schedule/hourly/runs")).body["runs"]) == 1
    assert (await api.post("/api/runs/4711/replay?dryRun=true")).status == 404
    answer = await api.post(f"/api/runs/{old['runId']}/replay")
    assert (answer.status, answer.body["trigger"], answer.body["replayOf"]) == (202, "replay", old["runId"])
    run = await api.app.wait_for(int(answer.body["runId"]), within="60s")
    assert run.outcome == "succeeded"


async def test_wrong_input_is_refused_by_field(api: Client) -> None:
    await api.put("hourly", hourly())
    for body, field in (
        ({}, "from"),
        ({"from": "x", "until": "y"}, "from"),
        ({**DAY, "until": "2999-01-01T00:00:00Z"}, "until"),
    ):
        answer = await api.post("/api/schedule/hourly/backfill", body)
        assert (answer.status, answer.body["errors"][0]["field"]) == (400, field)
    assert (await api.post("/api/replay", {})).status == 400
    assert (await api.post("/api/schedule/none/backfill", DAY)).status == 404
    assert (await api.post("/api/replay?dryRun=true", {"since": "2026-01-01T00:00:00Z"})).body["instants"] == 0
