"""`POST /api/understand`: a sentence becomes a definition that can be sent back, or a question."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edges.http.kit import Client, served
from wakeful.integrations.agents.call import CallAgent
from wakeful.ports.agent import Agent


@pytest.fixture
async def agent_api(tmp_path: Path) -> AsyncIterator[Client]:
    """An API whose default agent is a function."""

    def agents(clock: Any, registry: Any) -> dict[str, Agent]:
        registry.register("agent", lambda prompt: "")
        return {"default": CallAgent("agent", registry)}

    async with served(tmp_path, agents=agents) as client:
        yield client


async def test_what_was_understood_can_be_created_as_it_is(agent_api: Client) -> None:
    api = agent_api
    text = "every weekday at 9 summarise my mail, send to inbox"
    found = (await api.post("/api/understand", {"text": text, "timezone": "Asia/Tokyo"})).body
    assert found["definition"] == {
        "slug": "summarise-my-mail",
        "schedule": {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Asia/Tokyo"},
        "prompt": "summarise my mail",
        "deliver": {"channel": "inbox"},
    }
    assert found["when"] == "every weekday at 9"
    assert found["description"] == "every weekday at 09:00 (Asia/Tokyo)"
    assert (found["assumed"], found["unclear"]) == ([], [])
    assert 18 <= found["estimate"]["runs"] <= 24
    created = await api.put("summarise-my-mail", found["definition"])
    assert created.status == 201
    assert (await api.get("/api/schedule/summarise-my-mail/next?count=5")).body["times"] == found["next"]
    again = (await api.post("/api/understand", {"text": text})).body
    assert again["definition"]["slug"] == "summarise-my-mail-2"


async def test_what_is_unclear_is_asked_and_nothing_is_written(agent_api: Client) -> None:
    found = (await agent_api.post("/api/understand", {"text": "every day at 5 feed the cat"})).body
    assert found["definition"] is None
    assert (found["when"], found["next"], found["estimate"]) == ("every day at 5", [], None)
    assert found["unclear"] == [
        {
            "text": "at 5",
            "question": "'at 5' can mean 05:00 or 17:00; which one?",
            "options": ["every day at 05:00 feed the cat", "every day at 17:00 feed the cat"],
        }
    ]
    assert (await agent_api.get("/api/schedule")).body["schedules"] == []


async def test_assumptions_are_said(agent_api: Client) -> None:
    found = (await agent_api.post("/api/understand", {"text": "every morning check the backups"})).body
    assert found["assumed"] == ["no time was given: 08:00"]
    assert found["description"].startswith("at 08:00 every day")


async def test_what_cannot_run_here_is_said_before_it_is_created(api: Client) -> None:
    """Without an agent, there is nothing that could answer the prompt."""
    found = (await api.post("/api/understand", {"text": "every day at 9:00 check the backups"})).body
    assert found["definition"] is None
    assert found["unclear"][0]["question"].startswith("prompt: ")


async def test_wrong_requests_are_refused_by_field(api: Client) -> None:
    wrong_zone = await api.post("/api/understand", {"text": "every day at 9:00 x", "timezone": "Mars/Base"})
    assert (wrong_zone.status, wrong_zone.body["errors"][0]["field"]) == (400, "timezone")
    too_long = await api.post("/api/understand", {"text": "x" * 2_001})
    assert (too_long.status, too_long.body["errors"][0]["field"]) == (400, "text")
    assert (await api.post("/api/understand", {})).status == 400
