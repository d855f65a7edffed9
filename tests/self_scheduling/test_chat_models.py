"""Models behind a chat endpoint call the same tools: "remind me in 20 minutes" works with any of them."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from patience import PATIENCE
from self_scheduling.scripted_model import ScriptedModel
from self_scheduling.test_by_chat import Line
from wakeful import Heartbeat, Wakeful
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.integrations.agents.anthropic import anthropic_agent
from wakeful.integrations.agents.chat import ROUNDS_MAX, ChatSettings
from wakeful.integrations.agents.openai import openai_agent
from wakeful.integrations.agents.transcripts import Transcripts


@asynccontextmanager
async def serving(model: ScriptedModel) -> AsyncIterator[str]:
    runner = web.AppRunner(model.application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def assistant(
    tmp_path: Path, model: ScriptedModel, dialect: str, *, has_tools: bool = True
) -> AsyncIterator[tuple[Wakeful, Line]]:
    line = Line()
    async with serving(model) as url:
        make = openai_agent if dialect == "openai" else anthropic_agent
        settings = ChatSettings(f"{url}/v1" if dialect == "openai" else url, "test-model", "key", has_tools=has_tools)
        app = Wakeful(
            tmp_path / "wakeful.db",
            timezone="UTC",
            shutdown_grace="1s",
            channels=lambda _clock, _listener: {"phone": line},
            heartbeat=Heartbeat(every="1d", agent="coder"),
            agents=lambda clock, _registry: {"coder": make(settings, clock, Transcripts(tmp_path / "transcripts"))},
            self_scheduling=SelfSchedulingTerms(),
        )
        async with app:
            yield app, line


async def until(holds: Callable[[], bool], said: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, said()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
async def test_remind_me_from_a_chat(tmp_path: Path, dialect: str) -> None:
    """The model calls wake_me; the turn comes in the same session, and its reply goes to the same chat."""
    model = ScriptedModel()
    model.script = {"Remind me": [("wake_me", {"after": "1s", "text": "Tell Ann to leave now"})]}
    async with assistant(tmp_path, model, dialect) as (app, line):
        model.reply = "I will."
        line.write("12345", "Remind me in a second to leave")
        await until(lambda: ("12345", "I will.") in line.sent, lambda: line.sent)
        model.reply = "Leave now, Ann."
        await until(lambda: ("12345", "Leave now, Ann.") in line.sent, lambda: line.sent)
        asked = model.asked[-1].body["messages"]
        assert "Tell Ann to leave now" in json.dumps(asked[-1])
        assert any("Remind me in a second to leave" in json.dumps(one) for one in asked[:-1])  # the same session
        (view,) = [one for one in await app.list() if one.owner == "coder"]
        assert view.lineage is not None and view.lineage.slug == "message:phone:12345"
        shown = json.dumps(model.results[0])
        assert "created" in shown and "in this session" in shown


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
async def test_rounds_are_bounded_and_refusals_are_told(tmp_path: Path, dialect: str) -> None:
    """A model that calls tools without end has to reply at last; what is refused it is told as a result."""
    model = ScriptedModel()
    often = [("put_schedule", {"slug": "x", "when": "20m", "prompt": "again"})] * 50
    model.script = {"Go on": often}
    async with assistant(tmp_path, model, dialect) as (app, line):
        line.write("12345", "Go on")
        await until(lambda: bool(line.sent), lambda: [len(model.asked), line.sent])
        assert len(model.asked) <= ROUNDS_MAX + 1 + 2 * (ROUNDS_MAX + 1)  # a failed turn is tried three times
        assert "has two meanings" in json.dumps(model.results[0])
        assert (await app.people.proposals()).proposals == []
        choice = model.asked[ROUNDS_MAX].body["tool_choice"]
        assert choice in ("none", {"type": "none"})
        assert (await app.cost("agent")).to_json()["total"]["tokens"] == sum(
            sum(asked.counted or ()) for asked in model.asked
        )


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
async def test_a_limit_between_two_rounds_frees_no_money(tmp_path: Path, dialect: str) -> None:
    """The model called a tool, and asked to come back later when it got the result: the first round was paid for."""

    class Limited(ScriptedModel):
        is_limited = False

        def _fault(self, dialect: Any, manner: Any) -> Any:
            if not self.is_limited or not self.asked:
                return None
            return replace(dialect.fault(429), headers={"Retry-After": "3600"})

    model = Limited()
    model.is_limited = True
    model.script = {"Go on": [("list_schedules", {})]}
    async with assistant(tmp_path, model, dialect) as (app, line):
        line.write("12345", "Go on")
        await until(lambda: len(model.asked) == 2, lambda: model.asked)
        while not (total := (await app.cost("agent")).to_json()["total"])["runs"]:
            await asyncio.sleep(0.02)
        assert (total["tokens"], [asked.counted is not None for asked in model.asked]) == (110, [True, False])


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
async def test_an_agent_with_tools_off_is_offered_none(tmp_path: Path, dialect: str) -> None:
    model = ScriptedModel()
    model.reply = "hello"
    async with assistant(tmp_path, model, dialect, has_tools=False) as (_, line):
        line.write("12345", "Hi")
        await until(lambda: ("12345", "hello") in line.sent, lambda: line.sent)
        assert ["tools" in one.body for one in model.asked] == [False]


async def test_an_endpoint_that_knows_no_tools_is_asked_without(tmp_path: Path) -> None:
    class Plain(ScriptedModel):
        def _fault(self, dialect: Any, manner: Any) -> Any:
            return dialect.fault(400) if self.is_offered else None

        async def _answer(self, request: web.Request, dialect: Any) -> web.StreamResponse:
            self.is_offered = "tools" in json.loads(await request.read())
            return await super()._answer(request, dialect)

    model = Plain()
    model.reply = "hello"
    async with assistant(tmp_path, model, "openai") as (_, line):
        line.write("12345", "Hi")
        await until(lambda: ("12345", "hello") in line.sent, lambda: line.sent)
        line.write("12345", "Hi again")
        await until(lambda: len(line.sent) == 2, lambda: line.sent)
        assert ["tools" in one.body for one in model.asked] == [True, False, False]
