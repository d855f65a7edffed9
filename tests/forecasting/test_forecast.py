"""Forecasts: what the coming week costs, and how that compares with what happens."""

from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import Cli
from far_away import minute_away
from forecasting.recorded import record, steady
from sampling import sampled
from wakeful import Budgets, Invalid, Wakeful
from wakeful.app.forecast_rows import Forecasts, StoredForecast
from wakeful.core.time.instants import DAY
from wakeful.ports.store import Tx
from wakeful.simulation.ranges import Rehearsed, figures_of


async def reply(prompt: str) -> str:
    return "done"


def with_agent(path: Path, **options: Any) -> Wakeful:
    app = Wakeful(path, timezone="UTC", tick=False, agent_lane="parallel", **options)
    app.agent()(reply)
    return app


@pytest.mark.parametrize("weeks", [40, pytest.param(100, marks=pytest.mark.torture)])
def test_ranges_contain_the_following_week_nine_times_in_ten(weeks: int) -> None:
    """Over many recorded weeks of noisy costs; what is expected is within 10 % for steady schedules."""
    errors: list[float] = []
    contained = 0
    for seed in range(weeks):
        schedules = steady(seed)
        figures = {}
        turns = {}
        for schedule in schedules:
            count = 7 * DAY // schedule.every
            known = figures_of([round(schedule.cost() * 1e9) for _ in range(count)])
            assert known is not None
            figures[schedule.slug], turns[schedule.slug] = known, [count]
        found = Rehearsed(turns, figures, seed=seed, days=1).of_days(0, 1)
        actual = sum(schedule.week() for schedule in schedules) * 1e9
        contained += found.low <= actual <= found.high
        errors.append(abs(found.expected - actual) / actual)
    assert contained >= 0.9 * weeks
    assert sorted(errors)[int(0.9 * weeks)] < 0.10, "nine in ten"
    assert sum(errors) / weeks < 0.05


@pytest.mark.parametrize("seed", sampled(range(20), every=20, offset=3))
async def test_a_forecast_from_a_recorded_week(seed: int, tmp_path: Path) -> None:
    """From the ledger to the answer: runs, tokens and cost of the coming week."""
    path, schedules = tmp_path / "wakeful.db", steady(seed)
    async with with_agent(path) as app:
        for schedule in schedules:
            await app.schedules.put(schedule.slug, schedule.definition)
        await record(path, schedules, app._moment().now)
        made = await app.forecast()
    total = made["total"]
    mean = sum(schedule.mean * (7 * DAY // schedule.every) for schedule in schedules)
    assert total["runs"] == pytest.approx(sum(7 * DAY // schedule.every for schedule in schedules), abs=len(schedules))
    assert total["cost"]["low"] < total["cost"]["expected"] < total["cost"]["high"]
    assert total["cost"]["expected"] == pytest.approx(mean, rel=0.2)
    assert total["tokens"]["expected"] == pytest.approx(total["cost"]["expected"] * 10_000, rel=0.02)
    assert sum(day["cost"]["expected"] for day in made["days"]) == pytest.approx(total["cost"]["expected"])
    assert made["unknownCosts"] == 0
    assert made["accuracy"] is None


async def test_collisions_budgets_and_unknown_costs(tmp_path: Path) -> None:
    """Two schedules of one agent wait for each other; a small budget is at risk; without history nothing is known."""
    path = tmp_path / "wakeful.db"
    app = Wakeful(path, timezone="UTC", tick=False, budgets=Budgets(day=0.05))
    app.agent()(reply)
    async with app:
        schedules = steady(1, 3)
        for schedule in schedules:
            schedule.every = 3_600_000
            timing = {"type": "cron", "expression": "0 * * * *", "timezone": "UTC"}
            await app.schedules.put(schedule.slug, {**schedule.definition, "schedule": timing})
        fresh = await app.forecast(2)
        assert fresh["unknownCosts"] > 0
        assert fresh["total"]["cost"] == {"low": 0.0, "expected": 0.0, "high": 0.0}
        await record(path, schedules, app._moment().now)
        made = await app.forecast(2)
    assert made["unknownCosts"] == 0
    assert {row["scope"] for row in made["budgets"]} == {"all"}
    assert all(row["risk"] > 0 and row["limit"] == 0.05 for row in made["budgets"])
    assert any(row["skipped"] for row in made["budgets"])


async def test_a_limit_that_is_far_away_is_not_at_risk(tmp_path: Path) -> None:
    """Instants are skipped because of the limit for everything; that of the schedule has nothing to do with it."""
    path = tmp_path / "wakeful.db"
    app = Wakeful(path, timezone="UTC", tick=False, budgets=Budgets(day=0.5))
    app.agent()(reply)
    async with app:
        schedules = steady(1, 3)
        for schedule in schedules:
            schedule.every, schedule.mean = 3_600_000, 0.1
            timing = {"type": "cron", "expression": "0 * * * *", "timezone": "UTC"}
            definition = {**schedule.definition, "schedule": timing, "budget": {"perDay": 50.0}}
            await app.schedules.put(schedule.slug, definition)
        await record(path, schedules, app._moment().now)
        made = await app.forecast(2)
    assert any(row["skipped"] for row in made["budgets"])
    assert {row["scope"] for row in made["budgets"]} == {"all"}


async def test_lanes_collide(tmp_path: Path) -> None:
    """What waits for its agent for a minute or more is listed, the longest wait first."""
    path = tmp_path / "wakeful.db"
    app = Wakeful(path, timezone="UTC", tick=False)
    app.agent()(reply)
    async with app:
        schedules = steady(1, 4)
        for schedule in schedules:
            timing = {"type": "cron", "expression": "0 9 * * *", "timezone": "UTC"}
            await app.schedules.put(schedule.slug, {**schedule.definition, "schedule": timing})
        await record(path, schedules, app._moment().now)
        made = await app.forecast(3)
    assert [(row["lane"], row["longest"]) for row in made["collisions"]] == [
        ("agent:default", "1m30s3ms"),
        ("agent:default", "1m2ms"),
    ]


async def test_the_last_forecast_is_compared_with_what_happened(tmp_path: Path) -> None:
    """One is stored each day; afterwards the ledger says how good it was."""
    path, schedules = tmp_path / "wakeful.db", steady(5)
    async with with_agent(path) as app:
        for schedule in schedules:
            await app.schedules.put(schedule.slug, schedule.definition)
        now = app._moment().now
        await record(path, schedules, now)
        assert await app._forecast_daily()
        assert not await app._forecast_daily()
        (stored,) = await app._store.read(lambda tx: tx[Forecasts].since(0))

        def earlier(tx: Tx) -> None:
            tx[Forecasts].forget(before=now + DAY)
            # By no more than the week that was recorded: its first day would lack the hours of today.
            tx[Forecasts].add_first(
                StoredForecast("earlier", stored.made_at - 7 * DAY, stored.ends_at - 7 * DAY, stored.body)
            )

        await app._store.write(earlier)
        found = (await app.forecast(2))["accuracy"]
    assert found["days"] == 6
    assert found["cost"]["low"] < found["cost"]["expected"] < found["cost"]["high"]
    assert found["error"] == pytest.approx(found["cost"]["expected"] / found["cost"]["actual"] - 1)
    assert abs(found["error"]) < 0.2
    assert found["within"]


async def test_bad_days_are_refused(tmp_path: Path) -> None:
    async with with_agent(tmp_path / "wakeful.db") as app:
        for days in (0, 93, True, "7"):
            with pytest.raises(Invalid, match="days"):
                await app.forecast(days)  # type: ignore[arg-type]


def test_the_command_line_shows_days(cli: Cli) -> None:
    cli.ask("add", "hourly", "--cron", f"{minute_away()} * * * *", "--tz", "UTC", "--command", "true")
    said = cli.ask("forecast", "--days", "2")
    assert (said.code, said.out.splitlines()[0].split()[:2]) == (0, ["DAY", "RUNS"])
    assert any(line.split()[:2] == ["total", "48"] for line in said.out.splitlines())
    assert cli.ask("forecast", "-o", "json").json["total"]["runs"] == 168
    assert cli.ask("forecast", "--days", "0").code == 2
    cli.ask("rm", "hourly")
