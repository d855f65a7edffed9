"""An agent that schedules itself is told what that costs in 30 days."""

from pathlib import Path
from typing import Any

from edges.http.kit import served
from wakeful.api import actors
from wakeful.api.tools import call_tool
from wakeful.core.run.results import Done
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.features.schedules.owned import Actor
from wakeful.integrations.agents.call import CallAgent


def agents(clock: Any, registry: Any) -> dict[str, Any]:
    def work(prompt: str) -> Done:
        return Done(reply="done", usage={"input": 10, "output": 1, "total": 11, "cost": 0.25})

    registry.register("work", work)
    return {"default": CallAgent("work", registry)}


async def test_put_schedule_says_what_a_prompt_costs(tmp_path: Path) -> None:
    """From the average of its agent's turns; a command has no such figure."""
    terms = SelfSchedulingTerms(approval="never")
    async with served(tmp_path, agents=agents, self_scheduling=terms) as api:
        await api.put("first", {"schedule": {"type": "manual"}, "prompt": "work"})
        await api.post("/api/schedule/first/run?wait=true")
        agent, often = actors.Actor("agent", agent=Actor("default")), {"when": "every 2h"}
        asked = await call_tool(api.app, agent, "put_schedule", {"slug": "ask", "prompt": "work", **often})
        assert asked.content["perMonth"] == {"runs": 360, "cost": 90.0}
        made = await call_tool(api.app, agent, "put_schedule", {"slug": "tidy", "command": "true", **often})
        assert "perMonth" not in made.content
