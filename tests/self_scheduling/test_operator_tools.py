"""Operator tools with the official MCP client: for people's assistants, by role; agents never see them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client as McpClient

from edges.http.kit import Client, served
from self_scheduling.test_mcp import ERAS, call, over_http, refused
from wakeful import every, manual
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.server.http import Access, NamedToken

TOKENS = (
    NamedToken("home", "admin-secret"),
    NamedToken("looker", "read-secret", "read"),
    NamedToken("desk", "operate-secret", "operate"),
    NamedToken("coder", "coder-secret", "agent", "coder"),
)
READING = ["today", "list_schedules", "explain", "runs"]
OPERATING = ["run_now", "pause", "resume", "replay"]
BEYOND = ("approve", "decide", "put_schedule", "edit", "remove", "tokens", "settings", "import", "restore", "backup")


@asynccontextmanager
async def api_of(path: Path) -> AsyncIterator[Client]:
    async with served(path, access=Access(tokens=TOKENS), self_scheduling=SelfSchedulingTerms(), agents=None) as api:
        yield api


async def names(client: McpClient) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize("era", ERAS)
async def test_an_assistant_operates(tmp_path: Path, era: str) -> None:
    """Everything that the role `operate` has: look, run, pause, resume, replay."""
    async with api_of(tmp_path) as api, over_http(api, era, "operate-secret") as client:
        await api.app.add("report", manual(), command=["sh", "-c", "echo a report"])
        await api.app.add("payroll", every("100d"), command=["true"])
        assert await names(client) == READING + OPERATING
        started = await call(client, "run_now", slug="report")
        await api.app.wait_for(int(started["runId"]))
        (run,) = (await call(client, "runs", slug="report"))["runs"]
        assert (run["runId"], run["outcome"], run["output"]) == (started["runId"], "succeeded", "a report\n")
        assert run["plannedAt"]["utc"].endswith("Z") and "(" in run["plannedAt"]["local"]
        again = await call(client, "replay", runId=run["runId"])
        assert again["slug"] == "report"
        await api.app.wait_for(int(again["runId"]))
        assert len((await call(client, "runs", slug="report", outcome="succeeded"))["runs"]) == 2
        assert (await call(client, "pause", slug="payroll"))["status"] == "paused"
        listed = await call(client, "list_schedules", status="paused")
        assert [(one["slug"], one["does"]) for one in listed["schedules"]] == [("payroll", "command")]
        assert "paused" in (await call(client, "explain", slug="payroll"))["sentence"]
        resumed = await call(client, "resume", slug="payroll")
        assert resumed["status"] == "idle" and resumed["nextRun"] is not None
        assert "there is no schedule" in await refused(client, "pause", slug="absent")
        assert "is in the past" in await refused(client, "pause", slug="payroll", until="2020-01-01T00:00:00Z")
        assert "there is no run" in await refused(client, "replay", runId="x")


async def test_the_role_read_only_looks(tmp_path: Path) -> None:
    """The other tools are neither listed nor callable."""
    async with api_of(tmp_path) as api, over_http(api, "auto", "read-secret") as client:
        await api.app.add("report", manual(), command=["true"])
        assert await names(client) == READING
        for tool in OPERATING:
            assert "there is no tool" in await refused(client, tool, slug="report")
        assert await api.app.runs() == []
        tools = (await client.list_tools()).tools
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)


@pytest.mark.parametrize("token", ["read-secret", "operate-secret"])
async def test_what_is_left_to_people_is_offered_to_nobody(tmp_path: Path, token: str) -> None:
    async with api_of(tmp_path) as api, over_http(api, "auto", token) as client:
        for tool in BEYOND:
            assert "there is no tool" in await refused(client, tool)


async def test_an_agent_never_sees_them(tmp_path: Path) -> None:
    """Its list has its own tools only; those of the same name are its own."""
    async with api_of(tmp_path) as api, over_http(api, "auto", "coder-secret") as client:
        await api.app.add("payroll", every("100d"), command=["true"])
        offered = await names(client)
        assert not {"today", "runs", *OPERATING} & set(offered) and "put_schedule" in offered
        for tool in ("today", "runs", *OPERATING):
            assert "there is no tool" in await refused(client, tool)
        assert (await call(client, "list_schedules"))["schedules"] == []
        assert "you have no schedule" in await refused(client, "explain", slug="payroll")


async def test_a_token_that_may_do_everything_is_refused(tmp_path: Path) -> None:
    """A model that holds it could approve what an agent proposed; the refusal names the roles to use."""
    async with api_of(tmp_path) as api:
        body: Any = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        answer = await api.post("/mcp", body, headers={"Authorization": "Bearer admin-secret"})
        assert answer.status == 403 and 'role = "operate" or "read"' in answer.body["detail"]


async def test_today_returns_the_command_that_a_person_types(tmp_path: Path) -> None:
    """For a proposal, and for a failing schedule; nothing is approved."""
    coder = {"Authorization": "Bearer coder-secret"}
    async with api_of(tmp_path) as api, over_http(api, "auto", "operate-secret") as client:
        assert (await call(client, "today"))["attention"] == []
        await api.app.add("report", manual(), command=["false"])
        await api.app.run_now("report", wait=True)
        body = {"schedule": "every 2h", "command": {"argv": ["true"]}}
        assert (await api.put("tidy", body, headers=coder)).status == 202
        seen = await call(client, "today")
        (proposal,) = (await api.app.people.proposals()).proposals
        commands = {item["kind"]: item["command"] for item in seen["attention"]}
        assert commands["approval"] == f"wakeful approvals, then wakeful approvals approve {proposal.proposal_id}"
        assert commands["failing"] == "wakeful run report, or wakeful alerts ack report"
        assert seen["failing"] == 1 and seen["now"]["utc"].endswith("Z")
        assert (await api.app.get("coder.tidy")).approval == "pending"
