"""Simulations through REST, Python and the command line."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientTimeout

from edges.cli.kit import Cli
from edges.http.kit import Client, served
from patience import PATIENCE
from wakeful import Invalid, Wakeful
from wakeful.app.forecast_rows import Forecasts

HOURLY: dict[str, Any] = {
    "schedule": {"type": "cron", "expression": "0 * * * *", "timezone": "UTC"},
    "command": {"argv": ["true"]},
}
DAY = {"from": "2026-03-02T00:00:00Z", "until": "2026-03-03T00:00:00Z"}


async def test_what_a_draft_changes_is_one_sentence_and_data(tmp_path: Path) -> None:
    """Nothing of it is written, and nothing runs."""
    async with served(tmp_path, tick=False) as api:
        await api.put("hourly", HOURLY)
        draft = {
            **HOURLY,
            "slug": "twice",
            "schedule": {"type": "times", "times": ["09:00", "18:00"], "timezone": "UTC"},
        }
        answer = await api.post("/api/simulate", {**DAY, "with": [draft], "without": ["hourly"]})
        assert answer.status == 200
        body = answer.body
        assert [(row["slug"], row["runs"], row["succeeded"]) for row in body["schedules"]] == [("twice", 2, 2)]
        assert [(day["date"], day["runs"]) for day in body["days"]] == [("2026-03-02", 2)]
        assert body["difference"]["sentence"] == "2 more runs of twice; 24 fewer runs of hourly."
        assert body["difference"]["added"] == [{"slug": "twice", "runs": 2, "first": "2026-03-02T09:00:00.000Z"}]
        assert body["difference"]["removed"] == [{"slug": "hourly", "runs": 24, "first": "2026-03-02T00:00:00.000Z"}]
        assert "rows" not in body
        listed = await api.get("/api/schedule")
        assert [row["slug"] for row in listed.body["schedules"]] == ["hourly"]
        assert (await api.get("/api/runs")).body["runs"] == []


async def test_rows_show_outages_and_failures(api: Client) -> None:
    """An outage misses all but the last instant, which is caught up; with everything failing it is disabled."""
    await api.put("hourly", HOURLY)
    outage = {"from": "2026-03-02T02:30:00Z", "until": "2026-03-02T05:30:00Z"}
    rows = (await api.post("/api/simulate?rows=true", {**DAY, "outages": [outage]})).body["rows"]
    assert [(row["plannedAt"][11:16], row["outcome"], row["reason"], row.get("count", 1)) for row in rows[:5]] == [
        ("00:00", "succeeded", None, 1),
        ("01:00", "succeeded", None, 1),
        ("02:00", "succeeded", None, 1),
        ("03:00", "missed", "outage", 2),
        ("05:00", "succeeded", None, 1),
    ]
    assert (rows[4]["trigger"], rows[4]["startedAt"]) == ("catchUp", "2026-03-02T05:30:00.000Z")
    body = (await api.post("/api/simulate", {**DAY, "failing": {"hourly": 1}})).body
    assert body["schedules"][0]["outcomes"] == {"failed": 5}
    assert body["difference"]["sentence"].startswith("19 fewer runs of hourly; 5 runs of hourly end differently")


async def test_attempts_repeat_what_was_recorded(api: Client) -> None:
    """A schedule that always failed fails in the simulation too; two in one lane wait for each other."""
    await api.put("bad", {**HOURLY, "command": {"argv": ["sh", "-c", "exit 3"]}, "maxConsecutiveErrors": 0})
    await api.post("/api/schedule/bad/run?wait=true")
    for slug in ("a", "b"):
        await api.put(slug, {**HOURLY, "lane": "shared"})
    body = (await api.post("/api/simulate", {**DAY, "slow": {"a": "10m", "b": "10m"}})).body
    by_slug = {row["slug"]: row for row in body["schedules"]}
    assert by_slug["bad"]["failed"] == by_slug["bad"]["runs"] > 0
    assert by_slug["a"]["succeeded"] == by_slug["b"]["succeeded"] == 24
    assert body["lanes"] == [{"lane": "shared", "runs": 48, "waited": 24, "longest": "10m", "total": "4h"}]
    assert body["peak"]["running"] == 2


async def test_a_used_up_quota_and_budget_hold_runs_back(api: Client) -> None:
    """As they do in reality: a quota delays a run until the reset."""
    await api.put("hourly", {**HOURLY, "overlap": "skip", "slot": None})
    body = {**DAY, "with": [{**HOURLY, "slug": "quota"}]}
    assert (await api.post("/api/simulate", body)).status == 200
    spans = {"quota": [{"slot": "main", "from": "2026-03-02T01:30:00Z", "until": "2026-03-02T04:30:00Z"}]}
    waited = await api.post("/api/simulate?rows=true", {**DAY, **spans})
    assert {row["outcome"] for row in waited.body["rows"]} == {"succeeded"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"days": 367}, "days"),
        ({"days": 0}, "days"),
        ({"days": 2, "until": "2999-01-01T00:00:00Z"}, "until"),
        ({"from": "2026-03-02T00:00:00Z", "until": "2026-03-01T00:00:00Z"}, "until"),
        ({"from": "2026-03-02T00:00:00Z", "until": "2028-03-01T00:00:00Z"}, "until"),
        ({"without": ["none"]}, "without[0]"),
        ({"failing": {"hourly": 2}}, "failing.hourly"),
        ({"failing": {"none": 0.5}}, "failing.none"),
        ({"slow": {"hourly": 5}}, "slow.hourly"),
        ({"outages": [{"from": "2026-03-02T00:00:00Z"}]}, "outages[0].until"),
        ({"with": [{"slug": "x", "schedule": {"type": "every", "every": "soon"}, "command": {"argv": ["true"]}}]},
         "with[0].schedule.every"),
        ({"with": [{**HOURLY}]}, "with[0].slug"),
        ({"with": [{**HOURLY, "slug": "x", "schedule": {"type": "every", "every": "10s"}}], "days": 366}, "until"),
        ({"budgets": [{"scope": "me", **DAY}]}, "budgets[0].scope"),
        ({"sed": 3}, "sed"),
    ],
)  # fmt: skip
async def test_bad_input_is_refused_by_field(api: Client, body: dict[str, Any], field: str) -> None:
    await api.put("hourly", HOURLY)
    answer = await api.post("/api/simulate", body)
    assert (answer.status, [error["field"] for error in answer.body["errors"]]) == (400, [field])


async def test_the_same_seed_gives_the_same_result(api: Client) -> None:
    """And another seed another one."""
    await api.put("hourly", {**HOURLY, "maxConsecutiveErrors": 0})
    asked = {**DAY, "failing": {"hourly": 0.5}}
    first, second, third = [
        (await api.post("/api/simulate?rows=true", {**asked, "seed": seed})).body["rows"] for seed in (1, 1, 2)
    ]
    assert first == second != third


@pytest.mark.usefixtures("interpreter")
async def test_a_simulation_ends_with_the_connection_of_its_client(api: Client) -> None:
    """Or whoever comes next would wait for a result that nobody reads; the last finished forecast is kept."""
    await api.put("hourly", HOURLY)
    assert (await api.get("/api/forecast?days=1&latest=true")).status == 204
    made = (await api.get("/api/forecast?days=1")).body
    assert (await api.get("/api/forecast?days=1&latest=true")).body == made
    await api.put("often", {**HOURLY, "schedule": {"type": "every", "every": "10s"}})
    with pytest.raises(TimeoutError):
        await api.get("/api/forecast?days=7", timeout=ClientTimeout(sock_read=0.3))
    async with asyncio.timeout(PATIENCE):
        while api.app._simulations_waiting:
            await asyncio.sleep(0.02)
    assert (await api.get("/api/forecast?days=7&latest=true")).status == 204
    assert await api.app._store.read(lambda tx: tx[Forecasts].since(0)) == []


@pytest.mark.usefixtures("interpreter")
async def test_a_python_program_simulates(api: Client) -> None:
    """With values of Python; errors are raised."""
    app = api.app
    await app.schedules.put("hourly", HOURLY)
    result = await app.simulate(days=1, drafts=[{**HOURLY, "slug": "more"}], slow={"more": "5m"}, seed=3)
    assert [row["slug"] for row in result["schedules"]] == ["hourly", "more"]
    with pytest.raises(Invalid, match="without"):
        await app.simulate(without=["none"])


async def test_long_attempts_meet_the_next_instant_and_their_timeout(api: Client) -> None:
    """Until then nothing acts on the schedules."""
    await api.put("long", {**HOURLY, "timeout": "2h"})
    await api.put("limited", {**HOURLY, "timeout": "20m", "maxConsecutiveErrors": 0})
    asked = {"from": DAY["from"], "until": "2026-03-02T03:00:00Z", "slow": {"long": "90m", "limited": "30m"}}
    rows = (await api.post("/api/simulate?rows=true", asked)).body["rows"]
    shown = [(row["slug"], row["plannedAt"][11:16], row["outcome"], (row["endedAt"] or "")[11:16]) for row in rows]
    assert [row for row in shown if row[0] == "long"] == [
        ("long", "00:00", "succeeded", "01:30"),
        ("long", "01:00", "skipped", ""),
        ("long", "02:00", "running", ""),
    ]
    assert shown[0] == ("limited", "00:00", "timedOut", "00:20")


async def test_runs_wait_when_there_is_no_capacity_for_all(tmp_path: Path) -> None:
    """Also those of schedules that nothing else acts on."""
    slugs = [f"s{n}" for n in range(5)]
    async with Wakeful(tmp_path / "plan.db", timezone="UTC", concurrency_max=2) as app:
        for slug in slugs:
            await app.schedules.put(slug, HOURLY)
        slow = dict.fromkeys(slugs, "10m")
        answer = await app.simulate(start=DAY["from"], until="2026-03-02T01:00:00Z", slow=slow, rows=True)
    assert sorted(row["startedAt"][11:19] for row in answer["rows"]) == [
        *("00:00:00", "00:00:00"),
        *("00:10:00", "00:10:00"),
        "00:20:00",
    ]
    assert answer["peak"]["running"] == 2


@pytest.mark.torture
async def test_a_plan_on_postgresql_is_simulated_too(tmp_path: Path, url: str) -> None:
    """It is copied into a scratch store; the forecast is stored on the server."""
    async with served(tmp_path, store=url) as api:
        await api.put("hourly", HOURLY)
        await api.post("/api/schedule/hourly/run?wait=true")
        body = (await api.post("/api/simulate", {**DAY, "without": ["hourly"]})).body
        assert body["difference"]["sentence"] == "24 fewer runs of hourly."
        made = (await api.get("/api/forecast")).body
        assert (made["total"]["runs"], made["accuracy"]) == (168, None)
        assert len(await api.app._store.read(lambda tx: tx[Forecasts].since(0))) == 1


def test_the_command_line_shows_a_table(cli: Cli, tmp_path: Path) -> None:
    """And JSON; what cannot be read is refused with its option."""
    cli.ask("add", "simulated", "--cron", "0 9 * * *", "--tz", "UTC", "--command", "true")
    draft = tmp_path / "extra.json"
    draft.write_text(json.dumps({"schedule": {"type": "every", "every": "6h"}, "command": {"argv": ["true"]}}))
    said = cli.ask("simulate", "--days", "2", "--with", str(draft), "--failing", "simulated=1", "--outage", "1h..2h")
    assert (said.code, said.err) == (0, "")
    assert "more runs of extra" in said.out
    assert any(line.split()[:2] == ["extra", "7"] for line in said.out.splitlines())
    shown = cli.ask("simulate", "--days", "2", "--rows", "-o", "json").json
    assert {row["slug"] for row in shown["rows"]} >= {"simulated"}
    for arguments in (("--outage", "1h"), ("--failing", "simulated"), ("--failing", "simulated=x"), ("--days", "999")):
        assert cli.ask("simulate", *arguments).code == 2
    cli.ask("rm", "simulated")
