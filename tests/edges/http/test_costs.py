"""Costs and budgets over HTTP."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from starlette.requests import Request

from edges.http.kit import served
from far_away import zone_at_noon
from wakeful.core.run.results import Done
from wakeful.core.run.usage import Usage
from wakeful.integrations.agents.call import CallAgent
from wakeful.observe.metrics import Gauges
from wakeful.ports.agent import Agent
from wakeful.server.http.metrics import get_metrics
from wakeful.server.http.serving import Api, Serving

USED: Usage = {"input": 1000, "cachedInput": 400, "output": 100, "total": 1100, "model": "glm-4.6", "cost": 0.25}
DAILY = {"schedule": {"type": "every", "every": "24h"}, "prompt": "report"}


def agents(clock: Any, registry: Any) -> dict[str, Agent]:
    def work(prompt: str) -> Done:
        return Done(reply="done", usage=USED)

    registry.register("work", work)
    return {"default": CallAgent("work", registry)}


async def test_costs_in_the_metrics(tmp_path: Path) -> None:
    """What all agents cost today and this month is looked up at the moment of asking."""
    seen: list[Gauges] = []

    def figures(gauges: Gauges) -> bytes:
        seen.append(gauges)
        return b""

    async with served(tmp_path, agents=agents, timezone=zone_at_noon()) as api:
        await api.ask("PUT", "/api/schedule/report", DAILY)
        for _ in range(2):
            await api.post("/api/schedule/report/run?wait=true")
        parts = SimpleNamespace(app=api.app, serving=Serving(figures=figures))
        await get_metrics(cast(Api, parts), cast(Request, None))
    assert [(one.cost_today, one.cost_month) for one in seen] == [(0.5, 0.5)]


async def test_what_was_spent_and_what_is_left(tmp_path: Path) -> None:
    """Sums by schedule, agent, model and day; a budget set by a person holds at once."""
    async with served(tmp_path, agents=agents, timezone=zone_at_noon()) as api:
        made = await api.ask("PUT", "/api/schedule/report", {**DAILY, "budget": {"perDay": 0.6}})
        assert made.body["cost"] == {
            "today": 0.0, "month": 0.0, "lastRun": None, "perMonth": {"runs": 30, "cost": None}
        }  # fmt: skip
        for _ in range(2):
            ran = await api.post("/api/schedule/report/run?wait=true")
            assert (ran.body["outcome"], ran.body["cost"], ran.body["priced"]) == ("succeeded", 0.25, "reported")
        sums = {"runs": 2, "tokens": 2200, "cost": 0.5, "unknown": 0}
        for by, key in (("schedule", "report"), ("agent", "default"), ("model", "glm-4.6")):
            found = (await api.get(f"/api/cost?by={by}")).body
            assert found == {"by": by, "rows": [{"key": key, **sums}], "total": {"key": "total", **sums}}
        (day,) = (await api.get("/api/cost?by=day")).body["rows"]
        assert (day["runs"], day["cost"], len(day["key"])) == (2, 0.5, 10)
        (agent,) = (await api.get("/api/agents")).body["agents"]
        assert agent["cost"] == {"today": 0.5, "month": 0.5}
        shown = (await api.get("/api/schedule/report")).body["cost"]
        assert (shown["today"], shown["lastRun"], shown["perMonth"]) == (0.5, 0.25, {"runs": 30, "cost": 7.5})
        (budget,) = (await api.get("/api/budget")).body["budgets"]
        assert (budget["scope"], budget["limit"], budget["spent"], budget["reserved"], budget["origin"]) == (
            "schedule:report", 0.6, 0.5, 0.0, "definition"
        )  # fmt: skip
        refused = await api.post("/api/schedule/report/run?wait=true")
        assert (refused.body["outcome"], refused.body["reason"]) == ("skipped", "budget")
        assert "is used up (0.50 USD of 0.60 USD spent, and a run is estimated at 0.25 USD)" in refused.body["error"]

        set_to = await api.ask("PUT", "/api/budget", {"period": "day", "limit": 0.4})
        assert [(row["scope"], row["spent"], row["origin"]) for row in set_to.body["budgets"]] == [
            ("all", 0.5, "set"),
            ("schedule:report", 0.5, "definition"),
        ]
        await api.ask("PUT", "/api/schedule/other", DAILY)
        ran = await api.post("/api/schedule/other/run?wait=true")
        assert (ran.body["outcome"], ran.body["reason"]) == ("skipped", "budget")
        why = (await api.get("/api/schedule/other/why")).body["sentence"]
        assert "budget" in why
        missing = await api.ask("PUT", "/api/budget", {"period": "day"})
        assert missing.status == 400 and "limit: is missing" in missing.body["error"]
        wrong = await api.ask("PUT", "/api/budget", {"period": "day", "limit": None, "agent": [{}]})
        assert wrong.status == 400 and "agent" in str(wrong.body)
        assert (await api.ask("PUT", "/api/budget", {"period": "day", "limit": None})).status == 200
        assert (await api.ask("PUT", "/api/budget", {"period": "day", "limit": None})).status == 404
        ran = await api.post("/api/schedule/other/run?wait=true")
        assert ran.body["outcome"] == "succeeded"


async def test_bad_budgets_are_refused(tmp_path: Path) -> None:
    """Each with its field and the cure; nothing is set."""
    async with served(tmp_path, agents=agents, timezone=zone_at_noon()) as api:
        for body, field in (
            ({"period": "year", "limit": 1}, "period"),
            ({"period": "day", "limit": -1}, "limit"),
            ({"period": "day", "limit": "many"}, "limit"),
            ({"period": "day", "limit": True}, "limit"),
            ({"period": "day", "limit": 1, "agents": "x"}, "agents"),
            ({"period": "day", "limit": 1, "unpriced": "maybe"}, "unpriced"),
        ):
            refused = await api.ask("PUT", "/api/budget", body)
            assert (refused.status, refused.body["errors"][0]["field"]) == (400, field)
        assert (await api.get("/api/cost?by=week")).status == 400
        assert (await api.get("/api/cost?since=yesterday")).status == 400
        assert (await api.post("/api/budget/default/release", {})).status == 404
        assert (await api.get("/api/budget")).body == {"budgets": [], "unpriced": [], "stopped": []}
