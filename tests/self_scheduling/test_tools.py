"""Agents' tools are operations: what each is described with is what it takes, from wherever it is called."""

from pathlib import Path
from typing import get_type_hints

import pytest

from wakeful import Wakeful
from wakeful.api.actors import ONLY_WAKES, Actor, Agent, Refused
from wakeful.api.agent_tools import Tools
from wakeful.api.tool_results import OwnSchedule
from wakeful.api.tools import TOOLS, call_tool, schema_of, text_of
from wakeful.core.errors import Invalid
from wakeful.core.refusals import NotFound
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.testing import virtual

START = "2026-11-16T12:00Z"
CODER = Agent("coder")
COMMAND = Agent("default", 1, "build", 0, None, is_agent_run=False)


def make(tmp_path: Path) -> Wakeful:
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", self_scheduling=SelfSchedulingTerms(approval="never"))
    app.agent("coder")(lambda prompt: "done")
    app.agent("default")(lambda prompt: "done")
    return app


def test_the_tools_are_in_their_order_and_say_what_they_take() -> None:
    """Each parameter has a text, and the schema requires those without a default."""
    assert list(TOOLS) == [
        "preview_schedule", "put_schedule", "list_schedules", "set_schedule_state", "wake_me", "report_run", "explain",
        "forecast",
    ]  # fmt: skip
    for operation in TOOLS.values():
        schema = schema_of(operation)
        assert text_of(operation) and operation.summary
        assert all(one["description"] for one in schema["properties"].values())
        hints = get_type_hints(operation.function)
        assert list(schema["properties"]) == [name for name in hints if name != "return"]


async def test_a_tool_returns_the_same_in_python_and_by_name(tmp_path: Path) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START):
        tools = Tools(app, Actor("agent", agent=CODER))
        made = await tools.put_schedule("watch", "every 2h", prompt="Look")
        assert (made.status, made.slug) == ("created", "coder.watch")
        (listed,) = (await tools.list_schedules()).schedules
        by_name = await call_tool(app, Actor("agent", agent=CODER), "list_schedules", {})
        assert isinstance(listed, OwnSchedule)
        assert (by_name.is_error, by_name.content["schedules"][0]["slug"]) == (False, listed.slug)
        with pytest.raises(Invalid, match="give exactly one of after and at"):
            await tools.wake_me(text="hello")
        refused = await call_tool(app, Actor("agent", agent=CODER), "wake_me", {"text": "hello"})
        assert refused.is_error and "give exactly one of after and at" in refused.content["error"]


async def test_only_agents_have_tools(tmp_path: Path) -> None:
    """A program has none, and a command's run has those that wake and report."""
    app = make(tmp_path)
    async with virtual(app, start=START):
        with pytest.raises(NotFound, match="nothing here"):
            await Tools(app).list_schedules()
        command = Tools(app, Actor("agent", agent=COMMAND))
        with pytest.raises(Refused, match=ONLY_WAKES):
            await command.list_schedules()
        assert (await command.wake_me(after="20m", text="look")).status == "created"


async def test_old_names_work_and_warn(tmp_path: Path) -> None:
    """Those of 0.2 for agents that schedule themselves."""
    app = make(tmp_path)
    async with virtual(app, start=START):
        with pytest.deprecated_call(match="gone in 0.4"):
            written = await app.put_as_agent(CODER, "watch", {"schedule": "every 2h", "prompt": "Look"})
        with pytest.deprecated_call():
            assert [view.slug for view in await app.list_as_agent(CODER)] == [written.view.slug]
        with pytest.deprecated_call():
            assert (await app.pause_as_agent(CODER, "watch")).status == "paused"
        with pytest.deprecated_call():
            assert (await app.wake_me(CODER, "in 20m", "hello")).result == "created"
        with pytest.deprecated_call():
            assert await app.remove_as_agent(CODER, "watch") == "coder.watch"
        with pytest.deprecated_call():
            assert await app.proposals() == []
        with pytest.deprecated_call(), pytest.raises(Refused, match=ONLY_WAKES):
            await app.put_as_agent(COMMAND, "watch", {"schedule": "every 2h", "prompt": "Look"})
