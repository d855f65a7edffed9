"""What an agent is not told, and who a process on the socket is."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers

from self_scheduling.owner import own
from wakeful import Wakeful
from wakeful.api import actors
from wakeful.api.tools import call_tool
from wakeful.app.calling import actor_of_run, calling_run
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.features.schedules import calling_runs
from wakeful.features.schedules.owned import Actor
from wakeful.features.schedules.why_owned import without_figures
from wakeful.integrations.actions.ancestry import Ancestry
from wakeful.server.http import authentication, roles
from wakeful.server.http.access import SOCKET_CALLER, UNKNOWN_CALLER, Access, Caller, NamedToken
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
        told.append((await call_tool(app, actors.Actor("agent", agent=CODER), "explain", {"slug": "watch"})).content)
        return "done"

    async with virtual(app, start="2026-11-16T12:00Z") as time:
        daily = {"schedule": "every day at 13:00", "prompt": "secret"}
        await app.schedules.put("people.private-plan", {**daily, "agent": "other", "lane": "desk"})
        await own(app, CODER).put("watch", {"schedule": "every day at 13:00", "prompt": "Look"})
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
        await app.schedules.put("standup", {"schedule": "every day at 13:00", "prompt": "secret", "agent": "other"})
        await own(app, CODER).put("watch", {"schedule": "every day at 14:00", "prompt": "Look"})
        await own(app, Actor("other")).put("plan", {"schedule": "every day at 15:00", "prompt": "Plan"})
        told = (await call_tool(app, actors.Actor("agent", agent=CODER), "forecast", {"days": 1})).content
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


async def test_a_process_that_cannot_be_identified_may_only_read() -> None:
    """It is in another namespace (0), or has ended; a token gives its own rights."""

    async def of_run(_ancestry: Ancestry) -> Caller | None:
        return None

    tokens = [NamedToken("page", "p" * 32, "operate")]
    doors = authentication.Authentication(lambda: Access(tokens=tokens), lambda: 0, peer_caller=of_run)
    for hidden in (0, 2**22 - 1):
        scope = {"server": ("/run/wakeful.sock", None), "client": None, "state": {authentication.PEER: hidden}}
        assert await doors.caller(scope, Headers()) == UNKNOWN_CALLER
        assert await doors.caller(scope, Headers({authentication.AS_AGENT: "coder"})) == UNKNOWN_CALLER
        with_token = await doors.caller(scope, Headers({"authorization": "Bearer " + "p" * 32}))
        assert with_token == Caller("operate", "page")


def test_a_refused_run_is_not_told_how_to_get_around_it() -> None:
    refused = roles.refusal(Caller("run", "run 7", run_id=7), "POST", "/api/approvals/p1")
    assert refused is not None and "WAKEFUL_RUN_TOKEN" not in refused


async def test_a_command_that_an_agent_scheduled_acts_as_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its process; a person's command is still the person's."""
    monkeypatch.setattr(calling_runs, "_process_of", lambda run: 4711)
    found: list[tuple[bool, Actor]] = []

    async def look(command: Any) -> str:
        run = await calling_run(app, {4711}, ())
        assert run is not None and await calling_run(app, {4712}, ()) is None
        found.append((run.is_agents, await actor_of_run(app, run.run_id)))
        return "done"

    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", self_scheduling=SelfSchedulingTerms(approval="never"))
    async with virtual(app, start="2026-11-16T12:00Z", on_command=look) as time:
        await app.schedules.put("tidy", {"schedule": "every day at 13:00", "command": {"argv": ["true"]}})
        await time.advance("2h")
        assert [is_agents for is_agents, _ in found] == [False]
        await own(app, CODER).put("tidy", {"schedule": "every day at 15:00", "command": {"argv": ["true"]}})
        await time.advance("2h")
        (_, (is_agents, actor)) = found
        assert is_agents and (actor.agent, actor.is_agent_run, actor.depth) == ("coder", False, 1)
