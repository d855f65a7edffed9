"""Agents whose cost is not known, or cannot be: they neither use up what others may spend nor pass as free."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from features.kit import Bench, World, ledger, rfc, virtual
from features.money_kit import Spender, estimate_of, open_spending
from wakeful import every, once
from wakeful.app.money import Budgets
from wakeful.core.errors import Invalid
from wakeful.core.run.results import Result
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.features.money.feature import Money
from wakeful.features.money.queries import BUDGETS
from wakeful.features.money.terms import AgentPricing, MoneyTerms
from wakeful.features.money.unpriced import UNPRICED
from wakeful.ports.action import Fire, Ladder


class Two(Spender):
    """One agent reports what its turns cost, the other, `silent`, never does."""

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        result = await super().perform(spec, fire, ladder)
        return replace(result, usage=None) if spec.agent == "silent" else result  # type: ignore[type-var]


async def _two(world: World, **given: Any) -> Bench:
    app = await open_spending(world, Two(world, 0.01), budgets=Budgets(**{"day": 5.0, "month": 50.0, **given}))
    await app.add("priced", every("10m"), prompt="work")
    await app.add("talks", every("10m"), prompt="work", agent="silent")
    return app


def _outcomes(rows: list[str]) -> set[str]:
    return {row.split(" ", 2)[2] for row in rows}


@virtual
async def test_an_agent_that_reports_no_cost_keeps_no_other_from_running(world: World) -> None:
    """Both run all day. What is spent is what is known; the rest is a number of its own, with its schedules."""
    app = await _two(world)
    await world.sleep("12h1m")
    for slug in ("priced", "talks"):
        rows = await ledger(app, slug)
        assert (len(rows), _outcomes(rows)) == (72, {"succeeded"})
    for view in (await app.money.budgets()).budgets:
        assert (view.spent, view.assumed, view.reserved) == (720_000_000, 0, 0)
        assert (view.unknown, view.unknown_of) == (72, ("talks",))
    cost = {row.key: (row.cost, row.unknown) for row in (await app.cost()).rows}
    assert cost == {"priced": (720_000_000, 0), "talks": (0, 72)}
    shown = await app.get("talks")
    assert shown.to_json()["cost"]["today"] == 0.0


@virtual
async def test_an_agent_of_unknown_cost_is_under_no_limit(world: World) -> None:
    """After three turns without a cost it reserves nothing while it works, and runs although a budget is used up."""
    agent = Two(world, 0.01)
    app = await open_spending(world, agent, budgets=Budgets(day=5.0))
    await app.add("talks", every("4h"), prompt="work", agent="silent")
    await app.add("priced", every("1h", anchor=rfc("01-01 00:30:00")), prompt="work")
    await world.sleep("15h59m")
    agent.takes = "90m"
    await world.sleep("2m")
    agent.takes = "1s"
    await world.sleep("1h")
    assert (await app.runs("talks", limit=1))[0].outcome == "running"
    assert [view.reserved for view in (await app.money.budgets()).budgets] == [0]
    assert _outcomes(await ledger(app, "priced")) == {"succeeded"}
    agent.cost = 6.0
    await world.sleep("6h30m")
    assert _outcomes((await ledger(app, "priced"))[-3:]) == {"skipped (budget)"}
    assert (await ledger(app, "talks"))[-1] == "01-01 20:00:00 succeeded"


@virtual
async def test_budget_today_the_forecast_and_health_name_it(world: World) -> None:
    """The same agent with the same words in each, and what to write."""
    app = await _two(world)
    await world.sleep("2h1m")
    (named,) = BUDGETS.write(await app.money.budgets())["unpriced"]
    assert (named["agent"], named["slugs"]) == ("silent", ["talks"])
    assert "cost_per_run" in named["cure"]
    today = await app.people.today()
    assert [UNPRICED.write(agent) for agent in today.cost.unpriced] == [named]
    assert (today.cost.cost, today.cost.unknown) == (0.12, 12)
    found = [finding for finding in (await app.system.health()).findings if finding.name == "budgets"]
    assert [(finding.level, finding.sentence) for finding in found] == [("warn", named["sentence"])]
    assert [item.sentence for item in today.attention if item.kind == "finding"] == [named["sentence"]]
    why = await app.why("talks")
    assert "budget" not in why.sentence


@virtual
async def test_the_first_run_of_an_agent_runs_alone(world: World) -> None:
    """Its cost is not known yet: it reserves what is left. Another run waits for it, and is not skipped."""
    app = await open_spending(world, Spender(world, 0.01, takes="2m"), budgets=Budgets(day=5.0))
    for slug in ("first", "second"):
        await app.add(slug, once("+1m"), prompt="work")
    await world.sleep("1m30s")
    assert world.query("SELECT outcome, reason FROM runs ORDER BY run_id") == [("running", None), ("waiting", "budget")]
    await world.sleep("5m")
    assert _outcomes(await ledger(app, "second")) == {"succeeded"}


@pytest.mark.parametrize(
    ("per_run", "assumed"), [(None, 0), (0.25, 250_000_000)], ids=["nothing is known", "perRun is known"]
)
@virtual
async def test_a_lost_first_report_uses_up_nothing(world: World, per_run: float | None, assumed: int) -> None:
    """Without known runs `perRun` is assumed, else nothing; it is never the rest of the day."""
    app = await open_spending(world, Spender(world, None), budgets=Budgets(day=5.0, month=50.0))
    budget = {} if per_run is None else {"budget": {"perRun": per_run}}
    await app.add("report", once("+1m"), prompt="work", **budget)
    await world.sleep("2m")
    for view in (await app.money.budgets()).budgets:
        assert (view.spent, view.assumed, view.unknown, view.unknown_of) == (0, assumed, 1, ("report",))


@virtual
async def test_a_lost_report_costs_the_median_of_the_agents_runs(world: World) -> None:
    """When its first run began, nothing was known about the agent; when it ended without a report, other schedules had
    run. Their median is assumed."""
    costs = {"a": 0.1, "b": 0.2, "c": 0.9}
    agent = Spender(world, lambda fire: costs.get(fire.slug))
    app = await open_spending(world, agent)
    agent.takes = "10m"
    await app.add("long", once("+1m"), prompt="work", budget={"perDay": 5.0})
    await world.sleep("2m")
    agent.takes = "1s"
    for slug in costs:
        await app.add(slug, once("+1m"), prompt="work")
    await world.sleep("30m")
    (view,) = (await app.money.budgets()).budgets
    assert (view.spent, view.assumed, view.unknown, view.unknown_of) == (0, 200_000_000, 1, ("long",))
    assert (await app.get("long")).to_json()["cost"]["today"] == 0.0


@virtual
async def test_it_is_limited_again_once_it_reports_a_cost(world: World) -> None:
    """An update of its program taught it to report: from then on the budget applies."""
    agent = Spender(world, None)
    app = await open_spending(world, agent, budgets=Budgets(day=1.0))
    await app.add("report", every("1h"), prompt="work")
    await world.sleep("5h1m")
    assert len(agent.fires) == 5
    agent.cost = 0.4
    await world.sleep("12h")
    assert round(agent.spent, 2) == 0.8
    assert _outcomes((await ledger(app, "report"))[-8:]) == {"skipped (budget)"}


@virtual
async def test_a_cost_per_run_makes_it_known(world: World) -> None:
    """Each run counts with the amount in the settings; the run says where it is from."""
    app = await _two(world, day=1.0, cost_per_run={"silent": 0.25})
    await world.sleep("2h1m")
    assert BUDGETS.write(await app.money.budgets())["unpriced"] == []
    ran = [run for run in await app.runs("talks", limit=20) if run.outcome == "succeeded"]
    assert {(run.cost, run.priced) for run in ran} == {(0.25, "settings")}
    assert _outcomes(await ledger(app, "talks")) == {"succeeded", "skipped (budget)"}
    assert sum(view.unknown for view in (await app.money.budgets()).budgets) == 0


@virtual
async def test_a_free_agent_runs_although_a_budget_is_used_up(world: World) -> None:
    """0 is a value: its cost is known, and it always fits."""
    agent = Two(world, 5.0)
    app = await open_spending(world, agent, budgets=Budgets(day=1.0, cost_per_run={"silent": 0}))
    await app.add("dear", every("1h"), prompt="work")
    await app.add("free", every("1h"), prompt="work", agent="silent")
    await world.sleep("6h1m")
    assert _outcomes(await ledger(app, "dear")) == {"succeeded", "skipped (budget)"}
    assert _outcomes(await ledger(app, "free")) == {"succeeded"}
    assert (await app.runs("free", limit=1))[0].cost == 0
    assert await estimate_of(app, {"free": 10}) == 0


TERMS = MoneyTerms(
    agents={
        "reports": AgentPricing(None, "always"),
        "prints": AgentPricing(None, "never"),
        "tokens": AgentPricing("some-model", "never"),
    }
)


@virtual
async def test_a_limit_is_refused_once_with_all_agents_it_cannot_apply_to(world: World) -> None:
    """Each with the lines to write. Allowed, it is set, and they are named."""
    app = await open_spending(world, Spender(world, 0.01), budgets=Money(TERMS))
    with pytest.raises(Invalid) as refused:
        await app.money.set_budget("day", 5.0)
    lines = [str(error) for error in refused.value.errors]
    assert len(lines) == 2
    assert "'prints'" in lines[0] and "cost_per_run = 0.05" in lines[0] and "[agents.prints]" in lines[0]
    assert "'tokens'" in lines[1] and '[prices."some-model"]' in lines[1]
    assert all('"allow"' in line for line in lines)
    assert (await app.money.budgets()).budgets == []
    await app.money.set_budget("day", 5.0, agent="reports")
    await app.money.set_budget("day", 5.0, unpriced="allow")
    named = BUDGETS.write(await app.money.budgets())["unpriced"]
    assert [one["agent"] for one in named] == ["prints", "tokens"]
    found = [finding for finding in (await app.system.health()).findings if finding.name == "budgets"]
    assert [finding.level for finding in found] == ["ok", "ok"]


@virtual
async def test_a_limit_that_0_2_stored_is_allowed_with_a_finding(world: World) -> None:
    """It says nothing about agents of unknown cost: they run, and a finding says how to decide."""
    app = await open_spending(world, Spender(world, None), budgets=Money(TERMS))
    with closing(sqlite3.connect(world.path)) as store, store:
        store.execute(
            "INSERT INTO budget_limits (scope, unit, period, amount, set_at) VALUES ('all', 'usd', 'day', 1, 0)"
        )
    await app.add("talks", every("1h"), prompt="work", agent="prints")
    await world.sleep("4h1m")
    assert _outcomes(await ledger(app, "talks")) == {"succeeded"}
    found = [finding for finding in (await app.system.health()).findings if finding.name == "budgets"]
    assert [(finding.level, "agent prints (talks)" in finding.sentence) for finding in found] == [
        ("warn", True), ("warn", False)
    ]  # fmt: skip
    assert "cost_per_run" in (found[0].cure or "") and "--unpriced allow" in (found[0].cure or "")


@virtual
async def test_a_budget_in_a_definition_needs_a_known_cost(world: World) -> None:
    """It is refused with the line to write; one stored earlier keeps running."""
    app = await open_spending(world, Spender(world, 0.01), budgets=Money(TERMS))
    with pytest.raises(Invalid, match=r"cost_per_run = 0\.05"):
        await app.add("talks", every("1h"), prompt="work", agent="prints", budget={"perDay": 1.0})


@virtual
async def test_beats_fall_under_the_same_limits(world: World) -> None:
    """A heartbeat's turn reserves like a prompt: three fit, the rest of the day is skipped."""
    agent = Spender(world, 0.4)
    heartbeat = HeartbeatFeature(HeartbeatTerms(enabled=True))
    await open_spending(world, agent, budgets=Budgets(day=1.0), heartbeat=heartbeat)
    await world.sleep("20h")
    assert 2 <= len(agent.fires) <= 3
    assert world.query("SELECT count(*) > 10 FROM runs WHERE reason = 'budget'") == [(1,)]
