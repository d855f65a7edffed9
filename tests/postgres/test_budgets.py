"""Three nodes share one budget."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from postgres.cluster import until
from wakeful import Wakeful, every, manual
from wakeful.app.money import Budgets
from wakeful.core.run.results import Done

COST = 0.30
SCHEDULES = 24


class Spender:
    """The agent of all nodes."""

    def __init__(self) -> None:
        self.turns = 0
        self.running = 0

    async def __call__(self, prompt: str) -> Done:
        self.turns += 1
        self.running += 1
        await asyncio.sleep(0.05)
        self.running -= 1
        return Done(reply="done", usage={"input": 10, "output": 1, "total": 11, "cost": COST})


def _node(url: str, name: str, agent: Spender) -> Wakeful:
    app = Wakeful(
        url,
        name=name,
        timezone="UTC",
        agent_lane="parallel",
        agent_interval_min="0s",
        budgets=Budgets(day=1.0),
        shutdown_grace="5s",
    )
    app.agent("default")(agent)
    return app


@pytest.mark.torture
@pytest.mark.parametrize("has_history", [False, True])
async def test_three_nodes_never_spend_more_than_the_limit_and_one_run(url: str, has_history: bool) -> None:
    """Twenty-four prompts are due together on three nodes; the ledger, the budget and the agent agree."""
    agent = Spender()
    nodes = [_node(url, name, agent) for name in ("one", "two", "three")]
    for node in nodes:
        await node.start()
    first = nodes[0]
    try:
        if has_history:
            await first.add("before", manual(), prompt="work")
            await first.run_now("before")
            await until(lambda: _ended(first, "before"))
        at = datetime.now(UTC) + timedelta(seconds=15)  # still ahead when a slow machine has written all of them
        for number in range(SCHEDULES):
            await nodes[number % 3].add(f"job-{number}", every("30d", anchor=at), prompt="work")
        for number in range(SCHEDULES):
            await until(lambda slug=f"job-{number}": _ended(first, slug))  # type: ignore[misc]
        (budget,) = await first.budgets()
        spent = round(agent.turns * COST * 1e9)
        assert 0.89e9 <= spent <= 1.31e9
        assert (budget.spent, budget.reserved) == (spent, 0)
        total = (await first.cost("agent")).to_json()["total"]
        assert (total["runs"], total["unknown"]) == (agent.turns, 0)
        outcomes = [(await first.runs(f"job-{number}"))[0] for number in range(SCHEDULES)]
        skipped = [run for run in outcomes if run.outcome == "skipped"]
        assert len(skipped) == SCHEDULES - (agent.turns - has_history)
        assert {run.reason for run in skipped} == {"budget"}
    finally:
        for node in nodes:
            await node.stop()


async def _ended(app: Wakeful, slug: str) -> Any:
    runs = await app.runs(slug, limit=1)
    return bool(runs) and runs[0].outcome not in ("running", "waiting")
