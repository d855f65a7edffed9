"""The names of 0.2 for agents and the heartbeat: they work, and say what to use."""

from pathlib import Path

import pytest

from wakeful import Heartbeat, Wakeful
from wakeful.testing import virtual


async def test_old_names_of_turns_work_and_warn(tmp_path: Path) -> None:
    """With the same results as before."""
    app = Wakeful(tmp_path / "wakeful.db", heartbeat=Heartbeat(every="30m"))
    app.agent("coder")(lambda prompt: "HEARTBEAT_OK")
    async with virtual(app, start="2026-11-16T12:00Z"):
        with pytest.warns(DeprecationWarning, match=r"Wakeful.agents is deprecated.*use app.turns.agents"):
            assert [agent.name for agent in await app.agents()] == ["coder", "default"]
        with pytest.warns(DeprecationWarning, match=r"use app.turns.wake"):
            assert not (await app.wake("manual", "look")).is_coalesced
        with pytest.warns(DeprecationWarning, match=r"use app.turns.system_events"):
            assert [event.text for event in await app.system_events()] == ["look"]
        with pytest.warns(DeprecationWarning, match=r"use app.turns.heartbeat"):
            view, turns = await app.heartbeat()
        assert ([wake.reason for wake in view.wakes], turns) == (["manual"], [])
        with pytest.warns(DeprecationWarning, match=r"use app.turns.test_agent"):
            assert (await app.test_agent("coder")).slug == "agent-test.coder"
        with pytest.warns(DeprecationWarning, match=r"use app.turns.agents"):
            assert await app.cost_of_agents() == {}
