"""What an agent is not told, and who a process on the socket is."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers

from wakeful import Wakeful
from wakeful.app import self_scheduling
from wakeful.app.agent_tools import explain
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.features.schedules.owned import Actor
from wakeful.features.schedules.why_owned import without_figures
from wakeful.server.http import authentication, roles
from wakeful.server.http.access import Access, Caller
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
