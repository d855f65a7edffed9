"""Handlers of workflows that report what they used: on their run, in the sums, and in the budget of everything."""

from pathlib import Path

from postgres.cluster import until
from wakeful import Price, Wakeful
from wakeful.app.money import Budgets
from workflows.handlers import flow, handling, says

USED = {"input": 1000, "output": 100, "model": "glm-4.6"}
COST = 0.6 * 1000 / 1e6 + 2.2 * 100 / 1e6


async def test_usage_of_handlers_is_charged(tmp_path: Path) -> None:
    """Every phase counts, and so does what came before an uncertain effect; an impossible report does not."""
    budgets = Budgets(day=1.0, prices={"glm-4.6": Price(0.6, 2.2)})
    async with handling() as handler, Wakeful(tmp_path / "wakeful.db", timezone="UTC", budgets=budgets) as app:
        prepare = handler.answers["prepare"]
        handler.answers["produce"] = {"messages": [{"topic": "mail", "id": "a", "payload": 1}], "usage": USED}
        handler.answers["prepare"] = lambda data: {**prepare(data), "usage": USED}
        handler.answers["next"] = {"usage": USED}
        handler.script["prepare"] = [lambda data: {**prepare(data), "usage": {"input": -5, "cost": float("nan")}}]
        handler.script["mutate"] = [{"usage": USED}, says(500, "broken")]

        async def has_spent(times: int) -> bool:
            return [budget.spent for budget in (await app.money.budgets()).budgets] == [round(times * COST * 1e9)]

        await app.workflows.put("inbox", flow(handler.address))
        await app.workflow("inbox").run()
        await until(lambda: has_spent(3))
        consumed, produced, *_ = [run for run in await app.runs("workflow:inbox") if run.usage is not None]
        assert (produced.outcome, produced.usage["total"], round(produced.cost, 6)) == ("succeeded", 1100, COST)
        assert (consumed.outcome, consumed.usage["total"], consumed.priced) == ("succeeded", 2200, "table")
        (row,) = (await app.cost("model")).rows
        assert (row.key, row.runs, row.tokens, row.unknown) == ("glm-4.6", 2, 3300, 0)
        await app.workflow("inbox").publish("mail", "b", 2)
        await until(lambda: has_spent(4))
        uncertain = (await app.runs("workflow:inbox"))[0]
        assert uncertain.outcome != "succeeded" and uncertain.usage["total"] == 1100
