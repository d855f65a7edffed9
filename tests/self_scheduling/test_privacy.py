"""What an agent is not told, and who a process on the socket is."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers

from wakeful import Wakeful
from wakeful.app import self_scheduling
from wakeful.app.agent_tools import call_tool, explain
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.features.schedules.owned import Actor
from wakeful.features.schedules.why_owned import without_figures
from wakeful.server.http import authentication, roles
from wakeful.server.http.access import SOCKET_CALLER, Access, Caller, NamedToken
from wakeful.server.http.problems import Refused
from wakeful.testing import virtual

CODER = Actor("coder")


async def test_why_does_not_name_what_others_own(tmp_path: Path) -> None:
    told: list[Any] = []
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", self_scheduling=SelfSchedulingTerms(approval="never"))
    app.agent("coder")(lambda prompt: "done")

    @app.agent("other")
    async def other(prompt: str) -> str:
        for _ in range(10_000):
            if any(run.outcome == "waiting" for run in await app.runs("coder.watch")):
                break
            await asyncio.sleep(0)
        told.append((await app.why("coder.watch")).to_json())
        told.append(await explain(app, CODER, "watch", None))
        return "done"

    async with virtual(app, start="2026-11-16T12:00Z") as time:
        daily = {"schedule": "every day at 13:00", "prompt": "secret"}
        await app.put("people.private-plan", {**daily, "agent": "other", "lane": "desk"})
        await app.put_as_agent(CODER, "watch", {"schedule": "every day at 13:00", "prompt": "Look"})
        await app.update("coder.watch", lane="desk")
        await time.advance("2h")
    for_person, for_agent = told
    assert "people.private-plan" in for_person["sentence"]
    assert "private-plan" not in str(for_agent)
    assert "of another schedule" in for_agent["sentence"]
    assert for_agent["facts"]["laneHolder"]["slug"] == "another schedule"


async def test_forecast_shows_nothing_of_other_agents(tmp_path: Path) -> None:
    """Only when people's work runs, so that a free time can be chosen."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", self_scheduling=SelfSchedulingTerms(approval="never"))
    app.agent("coder")(lambda prompt: "done")
    app.agent("other")(lambda prompt: "done")
    async with virtual(app, start="2026-11-16T12:00Z"):
        await app.put("standup", {"schedule": "every day at 13:00", "prompt": "secret", "agent": "other"})
        await app.put_as_agent(CODER, "watch", {"schedule": "every day at 14:00", "prompt": "Look"})
        await app.put_as_agent(Actor("other"), "plan", {"schedule": "every day at 15:00", "prompt": "Plan"})
        told = (await call_tool(app, CODER, "forecast", {"days": 1})).content
    assert told["busy"] == ["2026-11-16T13:00:00.000Z"]
    assert [row["slug"] for row in told["schedules"]] == ["coder.watch"]


async def test_a_token_on_the_socket_gives_its_own_rights() -> None:
    """Not those of the daemon's owner, which the socket gives to whoever sends none."""
    tokens = [NamedToken("coder", "c" * 32, "agent", "coder"), NamedToken("page", "p" * 32, "read")]
    doors = authentication.Authentication(lambda: Access(tokens=tokens), lambda: 0)
    scope = {"server": ("/run/wakeful.sock", None), "client": None, "state": {}}

    async def caller(**headers: str) -> Caller | None:
        return await doors.caller(scope, Headers(headers))

    assert await caller() == SOCKET_CALLER
    assert await caller(authorization="Bearer " + "c" * 32) == Caller("agent", "coder", "coder")
    assert await caller(authorization="Bearer " + "p" * 32) == Caller("read", "page")
    with pytest.raises(Refused, match="its run has ended"):
        await caller(authorization="Bearer of-a-run-that-has-ended")


def test_figures_of_budgets_are_left_out() -> None:
    text = "the daily budget of all agents is used up (4.20 USD of 5.00 USD spent); it resets at 2026-11-17T00:00:00Z"
    shown = without_figures({"lastError": text, "run": [{"error": text}], "count": 1})
    expected = "a budget is used up; it resets at 2026-11-17T00:00:00Z"
    assert shown == {"lastError": expected, "run": [{"error": expected}], "count": 1}


async def test_a_process_that_cannot_be_identified_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def of_run(session: int) -> Caller | None:
        return Caller("run", "run 7", run_id=7) if session == 4711 else None

    access: Any = Access
    doors = authentication.Authentication(access, lambda: 0, peer_caller=of_run)
    scope = {"server": ("/run/wakeful.sock", None), "client": None, "state": {authentication.PEER: 99}}
    own = os.getsid(0)

    def session_of(pid: int) -> int:
        if pid == 0:
            return own
        raise ProcessLookupError

    monkeypatch.setattr(authentication.os, "getsid", session_of)
    with pytest.raises(Refused, match="rights are unknown"):
        await doors.caller(scope, Headers())
    monkeypatch.setattr(authentication.os, "getsid", lambda pid: own if pid == 0 else 4711)
    found = await doors.caller(scope, Headers())
    assert found is not None and found.run_id == 7


def test_a_refused_run_is_not_told_how_to_get_around_it() -> None:
    refused = roles.refusal(Caller("run", "run 7", run_id=7), "POST", "/api/approvals/p1")
    assert refused is not None and "WAKEFUL_RUN_TOKEN" not in refused


async def test_a_command_that_an_agent_scheduled_acts_as_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its process session; a person's command is still the person's."""
    monkeypatch.setattr(self_scheduling, "_leads", lambda run, session: True)
    found: list[Actor | None] = []

    async def look(command: Any) -> str:
        run_id = await app.agent_run_of_session(4711)
        found.append(None if run_id is None else await app.actor_of_run(run_id))
        return "done"

    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", self_scheduling=SelfSchedulingTerms(approval="never"))
    async with virtual(app, start="2026-11-16T12:00Z", on_command=look) as time:
        await app.put("tidy", {"schedule": "every day at 13:00", "command": {"argv": ["true"]}})
        await time.advance("2h")
        assert found == [None]
        await app.put_as_agent(CODER, "tidy", {"schedule": "every day at 15:00", "command": {"argv": ["true"]}})
        await time.advance("2h")
        (_, actor) = found
        assert actor is not None
        assert (actor.agent, actor.is_agent_run, actor.depth) == ("coder", False, 1)
