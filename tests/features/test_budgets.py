"""Budgets: a limit holds whatever happens, and says so."""

from typing import Any

import pytest

from features.kit import Bench, World, instant, ledger, virtual
from features.money_kit import Spender, open_spending
from wakeful import every, once
from wakeful.app.money import Budgets
from wakeful.core.errors import Invalid
from wakeful.core.run.results import Failed, Result
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.features.money.feature import Money
from wakeful.features.money.terms import MoneyTerms
from wakeful.ports.action import Fire, Ladder

QUIET = HeartbeatTerms(enabled=False)


class Unreachable(Spender):
    """Its connection is refused."""

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        await super().perform(spec, fire, ladder)
        return Failed("connection refused", rung="claimed")


class Overloaded(Spender):
    """Its model rejects every request while it is overloaded."""

    is_overloaded = True

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        if not self.is_overloaded:
            return await super().perform(spec, fire, ladder)
        await ladder.climb("sent")
        return Failed("HTTP 529: overloaded", is_refused=True)


async def _prompt(app: Bench, slug: str, timing: Any = None, **options: Any) -> None:
    await app.add(slug, timing or every("1h"), prompt="work", **options)


def _sums(world: World) -> list[tuple[Any, ...]]:
    return world.query("SELECT scope, period, spent, reserved FROM budgets ORDER BY budget_id")


@virtual
async def test_the_fourth_run_of_a_day_is_skipped(world: World) -> None:
    """One dollar a day and runs of 0.30: three run, the fourth says why not and when it will fit; tomorrow it runs."""
    agent = Spender(world, 0.30)
    app = await open_spending(world, agent)
    await _prompt(app, "report", budget={"perDay": 1.0})
    await world.sleep("4h1m")
    assert [row.rsplit(" ", 1)[-1] for row in await ledger(app, "report")] == [
        "succeeded", "succeeded", "succeeded", "(budget)"
    ]  # fmt: skip
    skipped = (await app.runs("report", limit=1))[0]
    assert (skipped.outcome, skipped.reason) == ("skipped", "budget")
    assert "0.90 USD of 1.00 USD spent" in (skipped.error or "")
    assert "resets at 2026-01-02T00:00:00.000Z" in (skipped.error or "")
    assert _sums(world) == [("schedule:1", "day", 900_000_000, 0)]
    await world.until("01-02 03:30:00")
    assert len(agent.fires) == 6


@pytest.mark.parametrize("has_history", [False, True])
@virtual
async def test_eight_at_once_stay_within_the_limit(world: World, has_history: bool) -> None:
    """Eight schedules due together never spend more than the limit and one run."""
    agent = Spender(world, 0.30, takes="20s")
    app = await open_spending(world, agent, budgets=Budgets(day=1.0))
    if has_history:
        await _prompt(app, "before", once("+1m"))
        await world.until("01-02 00:00:01")
        agent.spent = 0.0
    for number in range(8):
        await _prompt(app, f"job-{number}", every("6h", anchor="2026-01-02T06:00:00Z"))
    await world.until("01-02 11:00:00")
    assert 0.89 <= agent.spent <= 1.31
    assert _sums(world)[-1] == ("all", "day", round(agent.spent * 1e9), 0)
    ended = [line.split(" ", 2)[2] for number in range(8) for line in await ledger(app, f"job-{number}")]
    assert sorted(set(ended)) == ["skipped (budget)", "succeeded"]


@virtual
async def test_an_estimate_above_the_limit_lets_one_run_through(world: World) -> None:
    """One run per period is always admitted."""
    agent = Spender(world, 5.0)
    app = await open_spending(world, agent, budgets=Budgets(day=1.0))
    await _prompt(app, "dear")
    await world.until("01-03 23:59:00")
    assert len(agent.fires) == 3


@virtual
async def test_a_one_shot_waits(world: World) -> None:
    """A one-shot is not skipped: it waits until the budget frees."""
    agent = Spender(world, 0.9)
    app = await open_spending(world, agent, budgets=Budgets(day=1.0))
    await _prompt(app, "first", once("+1m"))
    await _prompt(app, "second", once("+1h"))
    await world.sleep("2h")
    waiting = (await app.runs("second", limit=1))[0]
    assert (waiting.outcome, waiting.reason) == ("waiting", "budget")
    assert str(waiting.next_attempt_at) == "2026-01-02 00:00:00+00:00"
    await world.until("01-02 00:01:00")
    assert await ledger(app, "second") == ["01-01 01:00:00 succeeded"]


@virtual
async def test_an_unknown_cost_is_charged_its_reservation(world: World) -> None:
    """A report that is lost counts as what was reserved, and is shown as unknown."""
    agent = Spender(world, 0.30)
    app = await open_spending(world, agent)
    await _prompt(app, "report", budget={"perDay": 1.0})
    await world.sleep("1h1m")
    agent.cost = None
    await world.sleep("3h")
    assert len(agent.fires) == 3
    assert _sums(world) == [("schedule:1", "day", 900_000_000, 0)]
    assert (await app.runs("report", limit=2))[1].cost is None


@virtual
async def test_a_clock_that_is_not_set_keeps_what_was_spent(world: World) -> None:
    """A run on a machine that has booted in 1970 counts for the day on which the clock is set. What was spent before
    keeps its date."""
    world.sleep_max = MINUTE
    app = await open_spending(world, Spender(world, 0.30), budgets=Budgets(day=1.0, month=30.0))
    await _prompt(app, "report", every("1d"))
    for wall in (world.now, 20 * HOUR):
        world.wall.set(wall)
        await world.sleep("2m")
        await app.run_now("report")
        await world.sleep("2m")
    assert [at for (at,) in world.query("SELECT at / 86400000 FROM charges ORDER BY run_id")] == [20_454, 0]
    world.wall.set(instant("01-01 02:00:00"))
    await world.until("01-02 00:01:00")
    assert [at for (at,) in world.query("SELECT at / 86400000 FROM charges ORDER BY run_id")] == [
        20_454,
        20_455,
        20_455,
    ]
    assert [row[1:] for row in _sums(world)] == [
        ("day", 300_000_000, 0),
        ("month", 900_000_000, 0),
        ("day", 600_000_000, 0),
    ]


@virtual
async def test_a_crash_frees_no_money(world: World) -> None:
    """A node that dies between the answer and the settlement has spent the money."""
    agent = Spender(world, 0.40, takes="30s")
    app = await open_spending(world, agent)
    await _prompt(app, "report", budget={"perDay": 1.0}, onCrash="unknown")
    await world.sleep("2h10s")
    assert len(agent.fires) == 2
    await app.kill()
    app = await open_spending(world, agent)
    await world.sleep("5h")
    assert len(agent.fires) == 2
    assert _sums(world) == [("schedule:1", "day", 800_000_000, 0)]


@virtual
async def test_what_never_reached_the_agent_is_free(world: World) -> None:
    """An attempt that was claimed and never sent costs nothing."""
    agent = Spender(world, 0.40)
    app = await open_spending(world, agent)
    await _prompt(app, "report", budget={"perDay": 1.0})
    await world.sleep("1h1m")
    agent.hesitates = "30s"
    await world.sleep("59m10s")
    assert _sums(world) == [("schedule:1", "day", 400_000_000, 400_000_000)]
    await app.kill()
    app = await open_spending(world, agent)
    await world.sleep("2m")
    assert _sums(world) == [("schedule:1", "day", 800_000_000, 0)]
    assert [fire.attempt for fire in agent.fires] == [1, 2]


@virtual
async def test_retries_are_paid_for(world: World) -> None:
    """Failed attempts keep their usage, and count."""
    agent = Spender(world, 0.40)
    agent.fails = 1
    app = await open_spending(world, agent)
    await _prompt(app, "report", every("6h"), budget={"perDay": 1.0}, retry={"times": 3, "delay": "10m"})
    await world.sleep("7h")
    assert _sums(world) == [("schedule:1", "day", 800_000_000, 0)]
    rows = world.query("SELECT attempt, cost, priced FROM charges ORDER BY attempt")
    assert rows == [(1, 400_000_000, "reported"), (2, 400_000_000, "reported")]
    assert (await app.runs("report", limit=1))[0].cost == 0.8


@virtual
async def test_what_comes_next_says_that_it_will_be_skipped(world: World) -> None:
    """`why`, for now and for an instant ahead, and Today, until the budget frees; the plan itself stays as it is."""
    agent = Spender(world, 0.60)
    app = await open_spending(world, agent)
    await _prompt(app, "report", every("6h"), budget={"perDay": 1.0})
    await world.sleep("6h1m")
    now = await app.why("report")
    used_up = (
        "because the daily budget of report is used up (0.60 USD of 1.00 USD spent, and a run is estimated at 0.60 "
    )
    assert f"; 12:00 will be skipped {used_up}" in now.sentence
    assert now.sentence.endswith("; it runs next at 2026-01-02 00:00.")
    assert now.facts["budgetFreesAt"] == "2026-01-02T00:00:00.000Z"
    ahead = (await app.why("report", at="2026-01-01T18:00:00Z")).sentence
    assert ahead.startswith(f"report will be skipped at 2026-01-01 18:00 (UTC) {used_up}")
    assert (await app.why("report", at="2026-01-02T00:00:00Z")).sentence.startswith("report will run at ")
    today = await app.people.today()
    assert [(start.slug, start.budget_frees_at) for start in today.upcoming] == [("report", instant("01-02 00:00:00"))]
    view = await app.get("report")
    assert view is not None and view.next_run is not None
    await world.sleep("6h")
    assert (await app.stats("report")).streak == 1
    assert "; 18:00 will be skipped as well; it runs next at 2026-01-02 00:00." in (await app.why("report")).sentence
    assert (await ledger(app, "report"))[-1].endswith("skipped (budget)")


@virtual
async def test_a_budget_that_is_used_up_delays_a_one_time_schedule(world: World) -> None:
    """It is not skipped, so `why` says that it will not start then."""
    app = await open_spending(world, Spender(world, 0.60), budgets=Budgets(day=1.0))
    await _prompt(app, "report", every("6h"))
    await _prompt(app, "later", once("2026-01-01T20:00:00Z"))
    await world.sleep("6h1m")
    said = (await app.why("later", at="2026-01-01T20:00:00Z")).sentence
    assert said.startswith("later will not start at 2026-01-01 20:00 (UTC) because the daily budget of all agents is ")


@virtual
async def test_a_manual_run_is_refused_at_once(world: World) -> None:
    """A person hears immediately that the budget is used up."""
    agent = Spender(world, 0.9)
    app = await open_spending(world, agent, budgets=Budgets(day=1.0))
    await _prompt(app, "report", every("6h"))
    await world.sleep("6h1m")
    await app.run_now("report")
    await world.sleep("1m")
    assert (await ledger(app, "report"))[-1].endswith("skipped (budget)")


@virtual
async def test_people_are_told(world: World) -> None:
    """Once at the warning, once when it is used up, once when it is free again."""
    heard: list[str] = []

    async def hear(text: str) -> None:
        heard.append(text)

    agent = Spender(world, 0.30)
    app = await open_spending(world, agent, budgets=Budgets(day=1.0), people={"phone": hear})
    await _prompt(app, "report")
    await world.sleep("2h1m")
    assert heard == []
    await world.sleep("1h")
    assert [text for text in heard if "nearly used up: 0.90 USD of 1.00 USD" in text]
    await world.sleep("5h")
    assert len([text for text in heard if "is used up" in text and "recovered" not in text]) == 1
    await world.until("01-02 02:00:00")
    assert any("recovered" in text for text in heard)


@virtual
async def test_a_run_above_its_limit_is_an_incident(world: World) -> None:
    """`perRun` keeps nothing from starting; a run that exceeded it is reported."""
    agent = Spender(world, 2.0)
    app = await open_spending(world, agent)
    await _prompt(app, "report", budget={"perRun": 1.0})
    await world.sleep("2h1m")
    assert len(agent.fires) == 2
    assert world.reported() == ["over-budget:1"]


@virtual
async def test_tokens_have_budgets_too(world: World) -> None:
    """1,100 tokens a run: two fit into 2,500."""
    agent = Spender(world, 0.1)
    app = await open_spending(world, agent)
    await _prompt(app, "report", budget={"tokensPerDay": 2500})
    await world.sleep("5h")
    assert len(agent.fires) == 2


@virtual
async def test_another_zone_gives_no_budget_twice_and_locks_none(world: World) -> None:
    """The periods of a new zone begin with what was really spent in them."""
    agent = Spender(world, 0.5)
    app = await open_spending(world, agent, budgets=Budgets(day=1.0))
    await _prompt(app, "report", every("1h"))
    await world.until("01-01 17:30:00")
    assert len(agent.fires) == 2
    await app._change(timezone="Asia/Shanghai")  # where it is already the second
    await world.until("01-02 00:30:00")
    assert len(agent.fires) == 4
    await app._change(timezone="UTC")  # the second in UTC began half an hour ago: nothing was spent in it
    await world.until("01-02 12:30:00")
    assert len(agent.fires) == 6
    await world.until("01-04 23:30:00")
    assert len(agent.fires) == 10


@virtual
async def test_daylight_saving_keeps_days_whole(world: World) -> None:
    """A day of 23 or 25 hours is one day."""
    agent = Spender(world, 0.5)
    await world.until("2026-03-28T23:30:00Z")  # 00:30 on the 29th in Berlin; the clock is set forward at 01:00 UTC
    app = await open_spending(world, agent, budgets=Budgets(day=1.0), timezone="Europe/Berlin")
    await _prompt(app, "report", every("1h"))
    await world.until("2026-03-29T21:55:00Z")
    assert len(agent.fires) == 2
    await world.until("2026-03-29T22:45:00Z")
    assert len(agent.fires) == 3


@virtual
async def test_a_clock_in_2036_locks_nothing(world: World) -> None:
    """What was spent while the clock was wrong counts once, for the day it really happened."""
    agent = Spender(world, 0.25)
    app = await open_spending(world, agent, budgets=Budgets(day=1.0))
    await _prompt(app, "report", every("20m"))
    await world.sleep("45m")
    assert len(agent.fires) == 2
    world.wall.step(10 * 365 * 24 * HOUR)
    await world.sleep("25m")
    spent_then = len(agent.fires) - 2
    assert spent_then >= 1
    world.wall.step(-10 * 365 * 24 * HOUR)
    await world.sleep("6h")
    assert len(agent.fires) == 4
    assert [row[:2] for row in _sums(world)] == [("all", "day")]
    await world.until("01-02 12:00:00")
    assert len(agent.fires) == 8


def test_a_budget_needs_a_limit() -> None:
    """An empty budget and an amount of nothing are refused with the cure."""
    from wakeful.core.schedule.definition_json import definition_from_json

    given = {"schedule": {"type": "every", "every": "2h"}, "prompt": "work"}
    for budget, field in (({}, "budget.perDay"), ({"perDay": 0}, "budget.perDay"), ({"perDay": "1"}, "budget.perDay")):
        with pytest.raises(Invalid) as refused:
            definition_from_json({**given, "budget": budget}, default_zone="UTC", slug="a")
        assert refused.value.errors[0].field == field
    with pytest.raises(Invalid) as refused:
        command = {"schedule": given["schedule"], "command": {"argv": ["true"]}, "budget": {"perDay": 1}}
        definition_from_json(command, default_zone="UTC", slug="a")
    assert refused.value.errors[0].field == "budget"


@virtual
async def test_a_person_is_answered_when_the_budget_is_used_up(world: World) -> None:
    """The answer says so."""
    heard: list[str] = []

    async def hear(text: str) -> None:
        heard.append(text)

    agent = Spender(world, 0.9)
    app = await open_spending(
        world, agent, budgets=Budgets(day=1.0), people={"phone": hear}, heartbeat=HeartbeatFeature(QUIET)
    )
    await _prompt(app, "report", every("6h"))
    await world.sleep("6h1m")
    await app.people.receive("phone", "me", "hello?")
    await world.sleep("1m")
    assert len(agent.fires) == 2
    assert any(text.startswith("done") and "daily budget of all agents is used up" in text for text in heard)
    assert _sums(world) == [("all", "day", 1_800_000_000, 0)]


@virtual
async def test_why_explains_a_budget(world: World) -> None:
    """For an instant that was skipped, and for a one-shot that waits."""
    agent = Spender(world, 0.9)
    app = await open_spending(world, agent, budgets=Budgets(day=1.0))
    await _prompt(app, "report", every("6h"))
    await _prompt(app, "single", once("+11h"))
    await world.sleep("12h1m")
    skipped = (await app.why("report", at="2026-01-01T12:00:00Z")).sentence
    assert "0.90 USD of 1.00 USD" in skipped and "2026-01-02" in skipped
    waiting = (await app.why("single")).sentence
    assert "budget" in waiting and "0.90 USD of 1.00 USD" in waiting


@virtual
async def test_the_brake_stops_an_agent_that_costs_ten_times_its_median(world: World) -> None:
    """Five times is an incident, ten times stops it until a person lets it go on."""
    agent = Spender(world, 0.01)
    app = await open_spending(world, agent, budgets=Budgets(brake=True))
    await _prompt(app, "poll", every("20m"))
    await world.sleep("5h")
    assert world.reported() == []
    agent.cost = 0.06
    await world.sleep("1h10m")
    assert world.reported() == ["expensive:default"]
    agent.cost = 0.2
    await world.sleep("1h10m")
    assert world.reported() == ["expensive:default", "brake:default"]
    turns = len(agent.fires)
    await world.sleep("1h")
    assert len(agent.fires) == turns
    assert (await ledger(app, "poll"))[-1].endswith("skipped (brake)")
    await app.money.release("default")
    agent.cost = 0.01
    await world.sleep("30m")
    assert len(agent.fires) > turns


@virtual
async def test_without_the_brake_it_is_only_reported(world: World) -> None:
    """`brake = false` is the default."""
    agent = Spender(world, 0.01)
    app = await open_spending(world, agent)
    await _prompt(app, "poll", every("20m"))
    await world.sleep("5h")
    agent.cost = 0.2
    await world.sleep("2h")
    assert world.reported() == ["expensive:default"]
    assert len(agent.fires) == 21


@virtual
async def test_a_turn_that_was_never_sent_costs_nothing(world: World) -> None:
    """The connection was refused: nothing is charged, although no cost is known and everything left was reserved."""
    agent = Unreachable(world)
    app = await open_spending(world, agent, budgets=Budgets(day=1.0))
    await _prompt(app, "report", budget={"perDay": 1.0})
    await world.sleep("1h1m")
    assert (await app.runs("report", limit=1))[0].error == "connection refused"
    assert agent.fires
    assert [(spent, reserved) for _, _, spent, reserved in _sums(world)] == [(0, 0), (0, 0)]
    assert world.query("SELECT count(*) FROM charges") == [(0,)]


@virtual
async def test_a_request_that_the_model_refused_costs_nothing(world: World) -> None:
    """A wrong key or an overloaded model in the first turn leaves the day's budget whole."""
    agent = Overloaded(world, 0.30)
    app = await open_spending(world, agent, budgets=Budgets(day=1.0))
    await _prompt(app, "report", retry={"times": 0})
    await world.sleep("1h5m")
    assert (await app.runs("report", limit=1))[0].error == "HTTP 529: overloaded"
    assert _sums(world) == [("all", "day", 0, 0)]
    agent.is_overloaded = False
    await world.sleep("1h")
    assert (await app.runs("report", limit=1))[0].outcome == "succeeded"
    assert _sums(world) == [("all", "day", 300_000_000, 0)]


@virtual
async def test_turns_that_used_nothing_are_no_estimate(world: World) -> None:
    """After twenty turns that failed without a token, eight at once still reserve what a turn costs."""
    agent = Spender(world, 0.30, takes="20s")
    app = await open_spending(world, agent, budgets=Budgets(day=1.0))
    await _prompt(app, "before", once("+1m"))
    await world.sleep("2m")
    agent.cost, agent.tokens, agent.fails = 0.0, 0, 100
    await _prompt(app, "outage", every("20m"), retry={"times": 0}, maxConsecutiveErrors=99)
    await world.sleep("23h")
    await app.remove("outage")
    await world.until("01-02 00:00:01")
    assert len(agent.fires) >= 22
    agent.cost, agent.tokens, agent.fails, agent.spent = 0.30, 1100, 0, 0.0
    for number in range(8):
        await _prompt(app, f"job-{number}", every("6h", anchor="2026-01-02T06:00:00Z"))
    await world.until("01-02 11:00:00")
    assert 0.89 <= agent.spent <= 1.31


@pytest.mark.parametrize(("other", "is_same"), [(Budgets(day=1.0), True), (Budgets(day=2.0), False)])
@virtual
async def test_nodes_compare_their_budgets(world: World, other: Budgets, is_same: bool) -> None:
    """What a node publishes differs if its [budgets] do, so that `doctor` finds it."""
    published: list[str] = []
    for budgets in (Budgets(day=1.0), other):
        app = await open_spending(world, Spender(world), budgets=budgets)
        await world.sleep("1m")
        published += [str(terms) for (terms,) in world.query("SELECT terms FROM nodes ORDER BY node_id DESC LIMIT 1")]
        await app.stop()
    assert all(published) and (published[0] == published[1]) is is_same


@virtual
async def test_changed_budgets_are_published(world: World) -> None:
    """Without a restart, when the settings change."""
    money = Money(MoneyTerms(warn_at=0.5), read=lambda new: new)
    await open_spending(world, Spender(world), budgets=money)
    await world.sleep("1m")
    before = world.query("SELECT terms FROM nodes")
    money._changed(None, MoneyTerms(warn_at=0.9))
    await world.sleep("2h")
    assert world.query("SELECT terms FROM nodes") != before
