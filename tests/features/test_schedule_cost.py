"""`cost` of schedules: what they spent today, this month, and in their last run, in lists too."""

from typing import Any

import pytest

from features.kit import Bench, World, virtual
from features.money_kit import Spender, open_spending, traced
from wakeful import every
from wakeful.core.time.instants import HOUR, MINUTE


def _nothing() -> None: ...


async def _costs(app: Bench) -> dict[str, Any]:
    """What the list says; single reads say the same, and what a month will cost."""
    costs = {view.slug: view.to_json()["cost"] for view in await app.list()}
    for slug, cost in costs.items():
        single = (await app.get(slug)).to_json()["cost"]
        assert single == cost or single == {**cost, "perMonth": single["perMonth"]}
    return costs


@virtual
async def test_lists_show_what_schedules_cost(world: World) -> None:
    """Of the local day and month, with retries; a schedule that never ran cost nothing, a call has no cost."""
    agent = Spender(world, 0.25)
    app = await open_spending(world, agent, timezone="Asia/Shanghai")
    await app.add("report", every("1h"), prompt="work", retry={"times": 1, "delay": "1m"})
    await app.add("later", every("60d"), prompt="work")
    await app.add("plain", every("1h"), call=_nothing)
    agent.fails = 1
    await world.sleep("1h5m")
    assert await _costs(app) == {
        "report": {"today": 0.5, "month": 0.5, "lastRun": 0.5},
        "later": {"today": 0.0, "month": 0.0, "lastRun": None},
        "plain": None,
    }
    await world.until("01-01 16:30:00")  # half an hour after midnight in Shanghai; the run at midnight is of this day
    assert (await _costs(app))["report"] == {"today": 0.25, "month": 4.25, "lastRun": 0.25}
    agent.cost = None
    await world.sleep("1h")
    assert (await _costs(app))["report"] == {"today": 0.25, "month": 4.25, "lastRun": None}
    await app.pause("report")
    await world.until("01-02 16:30:00")
    assert (await _costs(app))["report"] == {"today": 0.0, "month": 4.25, "lastRun": None}
    await app.stop()
    await world.until("01-31 15:59:00")
    await app.start()
    await world.until("01-31 16:00:00")
    assert (await _costs(app))["report"]["month"] == 0.0


@virtual
async def test_zones_and_clocks_do_not_spoil_the_sums(world: World) -> None:
    """After a change of zone, and after an hour in 2036, they are what the ledger says."""
    world.sleep_max = 5 * MINUTE
    agent = Spender(world, 0.25)
    app = await open_spending(world, agent)
    await app.add("report", every("30m"), prompt="work")
    await world.until("01-01 20:10:00")
    await app._change(timezone="Asia/Shanghai")
    await world.until("01-01 20:40:00")
    assert (await _costs(app))["report"]["today"] == 10 * 0.25  # 16:00 to 20:30 UTC
    world.wall.step(10 * 365 * 24 * HOUR)
    await world.sleep("1h")
    world.wall.step(-10 * 365 * 24 * HOUR)
    await world.sleep("2h")
    (spent,) = world.query("SELECT sum(cost) FROM charges WHERE at >= ?", 1_767_283_200_000)[0]
    assert (await _costs(app))["report"]["today"] == spent / 1e9 > 10 * 0.25


@virtual
async def test_a_list_takes_the_same_statements_whatever_was_spent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many schedules and charges there are."""
    counted = traced(monkeypatch)
    app = await open_spending(world, Spender(world, 0.25))
    await app.add("report", every("1h"), prompt="work")
    await app.list()  # opens the connection
    counted.clear()
    await app.list()
    few = len(counted)
    for number in range(10):
        await app.add(f"other-{number}", every("1h"), prompt="work")
    await world.sleep("5h5m")
    counted.clear()
    await app.list()
    assert len(counted) == few
    assert not [statement for statement in counted if " charges" in statement]
