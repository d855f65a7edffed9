"""MCP with the official client: over HTTP and stdio, in both protocol eras."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client as McpClient
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from edges.http.kit import Client, daemon, served
from patience import PATIENCE
from sampling import sampled
from wakeful import every
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.server.http import Access, NamedToken

ERAS = ("legacy", "2026-07-28")
NAMES = [
    "preview_schedule",
    "put_schedule",
    "list_schedules",
    "set_schedule_state",
    "wake_me",
    "report_run",
    "explain",
    "forecast",
]
TOKENS = (
    NamedToken("home", "admin-secret"),
    NamedToken("coder", "coder-secret", "agent", "coder"),
    NamedToken("other", "other-secret", "agent", "other"),
)


@asynccontextmanager
async def api_of(path: Path, **terms: Any) -> AsyncIterator[Client]:
    limits = SelfSchedulingTerms(**{"approval": "never", **terms})
    async with served(path, access=Access(tokens=TOKENS), self_scheduling=limits, agents=None) as api:
        yield api


@asynccontextmanager
async def over_http(api: Client, mode: str, token: str = "coder-secret") -> AsyncIterator[McpClient]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http:
        transport = streamable_http_client(f"{api.base}/mcp", http_client=http)
        async with McpClient(transport, mode=mode) as client:
            yield client


async def call(client: McpClient, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return dict(result.structured_content)


async def refused(client: McpClient, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.structured_content["error"])


async def use_all(client: McpClient) -> None:
    """Create, list, explain, pause and delete a schedule."""
    assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
    seen = await call(client, "preview_schedule", when="weekdays at 9:00", timezone="Europe/Berlin")
    assert seen["understood"] == "every weekday at 09:00 (Europe/Berlin)"
    assert len(seen["next"]) == 5 and seen["next"][0]["local"].endswith("09:00 (Europe/Berlin)")
    assert seen["next"][0]["utc"].endswith("Z")
    assert "has two meanings; write 'every 20m' or 'in 20m'" in await refused(client, "preview_schedule", when="20m")
    made = await call(client, "put_schedule", slug="tidy", when="every 2h", command="make tidy", note="keeps it tidy")
    assert (made["status"], made["slug"]) == ("created", "coder.tidy")
    again = await call(client, "put_schedule", slug="tidy", when="every 2 hours", command="make tidy")
    assert (again["status"], again["next"]) == ("unchanged", made["next"])
    changed = await call(client, "put_schedule", slug="coder.tidy", when="every 3h", command="make tidy")
    assert changed["status"] == "updated"
    copy = await call(client, "put_schedule", slug="cleanup", when="every 3h", command="make tidy")
    assert (copy["status"], copy["slug"]) == ("unchanged", "coder.tidy")
    listed = await call(client, "list_schedules")
    assert [(one["slug"], one["command"]) for one in listed["schedules"]] == [("coder.tidy", ["make", "tidy"])]
    assert listed["left"] == 19
    assert "created by coder" in (await call(client, "explain", slug="tidy"))["sentence"]
    assert (await call(client, "set_schedule_state", slug="tidy", state="paused"))["status"] == "paused"
    assert (await call(client, "set_schedule_state", slug="tidy", state="active"))["status"] == "active"
    assert (await call(client, "forecast", days=1))["schedules"] == [{"slug": "coder.tidy", "runs": 8, "cost": None}]
    assert "interval_min" in await refused(client, "put_schedule", slug="x", when="every 5m", command="true")
    assert "does not come from a run" in await refused(client, "report_run", rung="finished")
    assert "is not one of paused" in await refused(client, "set_schedule_state", slug="tidy", state="gone")
    assert "is not a parameter" in await refused(client, "put_schedule", slug="x", when="every 2h", job={"a": 1})
    assert "there is no tool" in await refused(client, "create_job")
    assert (await call(client, "set_schedule_state", slug="tidy", state="deleted"))["status"] == "deleted"
    assert (await call(client, "list_schedules"))["schedules"] == []
    assert "you have no schedule" in await refused(client, "explain", slug="tidy")


@pytest.mark.parametrize("era", ERAS)
async def test_over_http(tmp_path: Path, era: str) -> None:
    async with api_of(tmp_path) as api, over_http(api, era) as client:
        await use_all(client)


async def test_hints_and_instructions(tmp_path: Path) -> None:
    """Hints are set; enforcement does not rest on them."""
    async with api_of(tmp_path) as api, over_http(api, "auto") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        reads = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
        assert reads == {"preview_schedule", "list_schedules", "explain", "forecast"}
        for tool in tools.values():  # flat: no objects in the parameters but the counts of usage
            kinds = {name: schema["type"] for name, schema in tool.input_schema["properties"].items()}
            assert {name for name, kind in kinds.items() if kind == "object"} <= {"usage"}


async def test_only_agents_reach_it(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        for token, status in (("admin-secret", 403), ("wrong", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            answer = await api.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
            assert answer.status == status


async def test_agents_are_apart_over_every_way(tmp_path: Path) -> None:
    """By slug, id, list, error text or stream: another agent learns nothing."""
    coder, other = ({"Authorization": f"Bearer {name}-secret"} for name in ("coder", "other"))
    async with api_of(tmp_path) as api:
        await api.app.add("payroll", every("1h"), command=["true"])
        body = {"schedule": "every 2h", "command": {"argv": ["true"]}}
        assert (await api.put("tidy", body, headers=coder)).status == 201
        assert [one["slug"] for one in (await api.get("/api/schedule", headers=coder)).body["schedules"]] == [
            "coder.tidy"
        ]
        assert (await api.get("/api/schedule", headers=other)).body["schedules"] == []
        assert (await api.get("/api/schedule?owner=coder", headers=other)).body["schedules"] == []
        texts = set()
        for slug in ("tidy", "coder.tidy", "payroll", "absent"):
            for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("GET", "/why")):
                answer = await api.ask(method, f"/api/schedule/{slug}{path}", headers=other)
                assert answer.status == 404, (method, slug, path)
                texts.add(answer.body["error"].replace(slug, "SLUG"))
            texts.add((await api.get(f"/api/schedule/{slug}/next", headers=other)).body["error"].replace(slug, "SLUG"))
        assert texts == {"you have no schedule 'other.SLUG'; list_schedules shows those you have"}
        for path in ("/api/stream", "/api/runs", "/api/runs/1", "/api/upcoming", "/api/approvals", "/api/timeline",
                     "/api/deliveries", "/metrics", "/api/config", "/api/own/schedule"):  # fmt: skip
            assert (await api.get(path, headers=other)).status == 403, path
        async with over_http(api, "auto", "other-secret") as client:
            forecast = await call(client, "forecast")
            assert forecast["schedules"] == []
            assert forecast["busy"] != []
            assert "payroll" not in str(forecast)


async def test_people_decide_and_agents_do_not(tmp_path: Path) -> None:
    admin, coder = ({"Authorization": f"Bearer {name}-secret"} for name in ("admin", "coder"))
    async with api_of(tmp_path, approval="always") as api:
        body = {"schedule": "every 2h", "command": {"argv": ["true"]}}
        made = await api.put("tidy", body, headers=coder)
        assert (made.status, made.body["approval"], made.body["nextRun"]) == (202, "pending", None)
        (asked,) = (await api.get("/api/approvals", headers=admin)).body["approvals"]
        assert (asked["owner"], asked["slug"], len(asked["next"])) == ("coder", "coder.tidy", 5)
        path = f"/api/approvals/{asked['id']}"
        assert (await api.post(path, {"decision": "approve"}, headers=coder)).status == 403
        assert (await api.post(path, {"decision": "maybe"}, headers=admin)).status == 400
        assert (await api.post("/api/approvals/p00000000", {"decision": "approve"}, headers=admin)).status == 404
        listed = (await api.get("/api/schedule?owner=coder", headers=admin)).body["schedules"]
        assert [(one["slug"], one["approval"], one["nextRun"]) for one in listed] == [("coder.tidy", "pending", None)]
        assert (await api.get("/api/schedule/coder.tidy/runs", headers=admin)).body["runs"] == []
        decided = await api.post(path, {"decision": "approve"}, headers=admin)
        assert (decided.status, decided.body["status"]) == (200, "approved")
        assert (await api.post(path, {"decision": "approve"}, headers=admin)).status == 409
        shown = (await api.get("/api/schedule/coder.tidy", headers=admin)).body
        assert (shown["approval"], shown["owner"]) == ("approved", "coder")
        assert shown["nextRun"] is not None
        rejected = await api.put("tidy", {**body, "schedule": "every 4h"}, headers=coder)
        assert rejected.status == 202


@pytest.mark.torture
async def test_an_agent_that_schedules_itself_a_hundred_times_has_one_proposal(tmp_path: Path) -> None:
    """Over MCP, under ever new names; nothing is planned, and no later call says that something was created."""
    admin = {"Authorization": "Bearer admin-secret"}
    async with api_of(tmp_path, approval="always") as api, over_http(api, "auto") as client:
        for number in range(100):
            when = "every monday at 9:00" if number % 2 else "mondays at 09:00"
            made = await call(client, "put_schedule", slug=f"mondays-{number}", when=when, command="make report")
            assert (made["status"], made["slug"]) == ("pending", "coder.mondays-0")
        (asked,) = (await api.get("/api/approvals", headers=admin)).body["approvals"]
        assert asked["slug"] == "coder.mondays-0"
        listed = (await api.get("/api/schedule?owner=coder", headers=admin)).body["schedules"]
        assert [(one["slug"], one["nextRun"]) for one in listed] == [("coder.mondays-0", None)]
        assert (await api.get("/api/runs", headers=admin)).body["runs"] == []


@pytest.mark.parametrize("era", sampled(ERAS, every=2))
async def test_over_stdio(tmp_path: Path, era: str) -> None:
    """`wakeful mcp` over the socket acts as the agent it was given, and no more."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "wakeful.toml").write_text('[self_scheduling]\napproval = "never"\n[agents.coder]\nadapter = "echo"\n')
    with daemon(home):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "wakeful.cli.main", "--home", str(home), "mcp", "--agent", "coder"],
            env=environment,
        )
        async with McpClient(stdio_client(server), mode=era) as client:
            await use_all(client)
