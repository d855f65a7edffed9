"""What agents may schedule by themselves: limits, approval, lineage; on a virtual clock."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from self_scheduling.owner import own
from wakeful import Wakeful, every
from wakeful.api.actors import Refused
from wakeful.app.calling import actor_of_run
from wakeful.app.owned_writing import wake_me
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.results import Done
from wakeful.core.self_scheduling.limits import Limited, SelfSchedulingTerms
from wakeful.features.schedules.owned import Actor
from wakeful.integrations.actions.fire import Fire
from wakeful.testing import virtual

START = "2026-11-16T12:00Z"
CODER = Actor("coder")
MONDAYS = {"schedule": "every monday at 9:00", "prompt": "Summarise the week"}


def make(tmp_path: Path, *, agent: Callable[..., Any] | None = None, **terms: Any) -> Wakeful:
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", self_scheduling=SelfSchedulingTerms(**terms))
    app.agent("coder")(agent or (lambda prompt: "done"))
    app.agent("other")(lambda prompt: "done")
    return app


async def test_what_an_agent_writes_waits_for_a_person(tmp_path: Path) -> None:
    """It is listed without a next run, has no runs, and runs only after it was approved."""
    app = make(tmp_path)
    async with virtual(app, start=START) as time:
        written = await own(app, CODER).put("mondays", MONDAYS)
        assert (written.result, written.view.slug) == ("pending", "coder.mondays")
        await time.advance("6d")
        shown = (await app.get("coder.mondays")).to_json()
        assert (shown["approval"], shown["nextRun"], shown["owner"]) == ("pending", None, "coder")
        assert [view.slug for view in await app.list()] == []  # nothing of it is planned
        assert "waits for a person" in (await app.why("coder.mondays")).sentence
        (asked,) = (await app.people.proposals()).proposals
        decided = await app.people.decide(asked.proposal_id, "approve")
        assert (decided.proposal.status, decided.is_missed) == ("approved", False)
        await time.advance("2d")
        assert [run.outcome for run in await app.runs("coder.mondays")] == ["succeeded"]
        shown = (await app.get("coder.mondays")).to_json()
        assert (shown["approval"], shown["owner"], shown["lineage"]["depth"]) == ("approved", "coder", 1)
        assert "created by coder" in (await app.why("coder.mondays")).sentence
        with pytest.raises(Conflict, match="was approved"):
            await app.people.decide(asked.proposal_id, "approve")


async def test_a_proposal_expires_after_a_week_and_is_a_finding_until_then(tmp_path: Path) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START) as time:
        await own(app, CODER).put("mondays", MONDAYS)
        (asked,) = (await app.people.proposals()).proposals
        findings = {one.name: one for one in (await app.system.health()).findings}
        assert findings["approvals"].level == "warn"
        assert "coder.mondays" in findings["approvals"].sentence
        await time.advance("7d")
        assert (await app.people.proposals()).proposals == []
        with pytest.raises(Conflict, match="expired"):
            await app.people.decide(asked.proposal_id, "approve")
        with pytest.raises(NotFound):
            await app.get("coder.mondays")


async def test_a_hundred_runs_that_schedule_themselves_leave_one_proposal(tmp_path: Path) -> None:
    """Under new names, with other spacing, and under the same name: it is the same schedule."""
    results: list[str] = []

    async def agent(fire: Fire, prompt: str) -> str:
        if fire.slug != "digest":
            return "a turn that nobody approved"
        actor = await actor_of_run(app, fire.run_id)
        slug = "mondays" if len(results) % 2 else f"mondays-{len(results)}"
        prompt = "Summarise the week" if len(results) % 3 else "summarise  the week."
        results.append((await own(app, actor).put(slug, {**MONDAYS, "prompt": prompt})).result)
        return "scheduled"

    app = make(tmp_path, agent=agent)
    async with virtual(app, start=START) as time:
        await app.add("digest", every("1h"), prompt="Every Monday, summarise the week", agent="coder")
        await time.advance("100h")
        assert results == ["pending"] * 100
        assert len((await app.people.proposals()).proposals) == 1
        assert {run.slug for run in await app.runs(limit=1000)} == {"digest"}


async def test_a_rejected_proposal_cannot_be_repeated(tmp_path: Path) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START):
        await own(app, CODER).put("mondays", MONDAYS)
        (asked,) = (await app.people.proposals()).proposals
        await app.people.decide(asked.proposal_id, "reject")
        with pytest.raises(Conflict, match="a person rejected this"):
            await own(app, CODER).put("mondays", MONDAYS)


async def test_removing_a_proposal_rejects_it(tmp_path: Path) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START):
        await own(app, CODER).put("mondays", MONDAYS)
        await app.remove("coder.mondays")
        assert (await app.people.proposals()).proposals == []
        with pytest.raises(NotFound):
            await app.remove("coder.mondays")


async def test_an_edit_is_a_pending_version_beside_the_one_that_runs(tmp_path: Path) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START) as time:
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look"})
        await app.people.decide((await app.people.proposals()).proposals[0].proposal_id, "approve")
        written = await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look twice"})
        assert written.result == "pending"
        await time.advance("4h")
        assert len(await app.runs("coder.watch")) == 2
        shown = (await app.get("coder.watch")).to_json()
        assert (shown["prompt"], shown["version"]) == ("Look", 1)
        (asked,) = (await app.people.proposals()).proposals
        assert asked.change == "edit"
        await app.update("coder.watch", prompt="Look once")  # a person edits it meanwhile
        with pytest.raises(Conflict, match="has changed since"):
            await app.people.decide(asked.proposal_id, "approve")
        await app.people.decide(asked.proposal_id, "reject")
        assert (await app.get("coder.watch")).to_json()["prompt"] == "Look once"


async def test_a_changed_proposal_cannot_be_approved_under_its_old_id(tmp_path: Path) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START):
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look"})
        (before,) = (await app.people.proposals()).proposals
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Delete everything"})
        with pytest.raises(Conflict, match="was replaced"):
            await app.people.decide(before.proposal_id, "approve")


async def test_a_single_time_that_passed_is_missed_for_approval(tmp_path: Path) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START) as time:
        await own(app, CODER).put("once", {"schedule": "in 1h", "prompt": "Look"})
        (asked,) = (await app.people.proposals()).proposals
        await time.advance("2h")
        assert (await app.people.decide(asked.proposal_id, "approve")).is_missed is True
        (row,) = await app.runs("coder.once")
        assert (row.outcome, row.reason) == ("missed", "approval")
        assert (await app.get("coder.once")).status == "done"


async def test_limits_say_which_and_what_is_left(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never", schedules_max=2)
    async with virtual(app, start=START, on_command=lambda command: "done"):
        with pytest.raises(Limited, match=r"interval_min: this would run every 30m.* every 1h at most"):
            await own(app, CODER).put("often", {"schedule": "every 30m", "command": {"argv": ["true"]}})
        with pytest.raises(Limited, match="expires: an agent's schedule ends after 30d"):
            await own(app, CODER).put("far", {"schedule": "2027-06-01 at 9:00", "prompt": "x"})
        for number in range(2):
            await own(app, CODER).put(f"job-{number}", {"schedule": "every 2h", "prompt": f"job {number}"})
        with pytest.raises(Limited, match="schedules_max: you have 2 schedules, and the maximum is 2 \\(0 left\\)"):
            await own(app, CODER).put("job-3", {"schedule": "every 2h", "prompt": "job 3"})
        assert (
            await own(app, Actor("other")).put("job-3", {"schedule": "every 2h", "prompt": "x"})
        ).result == "created"
        updated = await own(app, CODER).put("job-1", {"schedule": "every 3h", "prompt": "job 1"})
        assert updated.result == "updated"
        await own(app, CODER).remove("job-1")
        assert (await own(app, CODER).put("job-3", {"schedule": "every 2h", "prompt": "job 3"})).result == "created"


async def test_a_schedule_of_an_agent_ends_and_writing_it_again_does_not_extend_it(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never", expires=2 * 86_400_000)
    async with virtual(app, start=START) as time:
        await own(app, CODER).put("watch", {"schedule": "every 12h", "prompt": "Look"})
        await time.advance("1d")
        again = await own(app, CODER).put("watch", {"schedule": "every 12h", "prompt": "Look"})
        assert again.result == "unchanged"
        await time.advance("5d")
        assert len(await app.runs("coder.watch")) == 4
        assert (await app.get("coder.watch")).status == "done"


async def test_depth_counts_schedules_made_by_runs_of_schedules(tmp_path: Path) -> None:
    refused: list[str] = []

    async def agent(fire: Fire, prompt: str) -> str:
        actor = await actor_of_run(app, fire.run_id)
        try:
            await own(app, actor).put(f"child-{actor.depth}", {"schedule": "in 1h", "prompt": f"{actor.depth}"})
        except Limited as limited:
            refused.append(f"{fire.slug}: {limited}")
        return "done"

    app = make(tmp_path, agent=agent, approval="never", depth_max=2)
    async with virtual(app, start=START) as time:
        await app.add("root", every("10d"), prompt="begin", agent="coder")
        await time.advance("10d")
        await time.advance("5h")
        views = [view for view in await app.list() if view.owner]
        assert {view.slug: view.lineage.depth for view in views if view.lineage} == {
            "coder.child-0": 1,
            "coder.child-1": 2,
        }
        assert refused == [refused[0]]
        assert refused[0].startswith("coder.child-1: depth_max: ")


async def test_wake_me_gives_a_turn_in_the_same_session_and_a_chain_ends(tmp_path: Path) -> None:
    """The first link passes; at the depth limit the chain ends, with an error that says so."""
    turns: list[tuple[str, str | None]] = []
    refused: list[str] = []

    async def agent(fire: Fire, prompt: str, session_id: str | None = None) -> Any:
        turns.append((prompt.splitlines()[0], session_id))
        actor = await actor_of_run(app, fire.run_id)
        try:
            await wake_me(app, actor, "in 20m", f"link {len(turns)}")
        except Limited as limited:
            refused.append(limited.limit)
        return Done(reply="ok", session_id=session_id or f"session-of-{fire.slug}")

    app = make(tmp_path, agent=agent)
    async with virtual(app, start=START) as time:
        await app.add("root", every("1d"), prompt="begin", agent="coder")
        await time.advance("1d")
        await time.advance("2h")
        assert [session for _, session in turns] == [None, "session-of-root"]
        assert "link 1" in turns[1][0]
        assert refused == ["depth_max"]


async def test_the_second_link_of_a_chain_waits_for_a_person(tmp_path: Path) -> None:
    results: list[str] = []

    async def agent(fire: Fire, prompt: str) -> str:
        actor = await actor_of_run(app, fire.run_id)
        results.append((await wake_me(app, actor, "in 20m", f"link {len(results)}")).result)
        return "ok"

    app = make(tmp_path, agent=agent, depth_max=5)
    async with virtual(app, start=START) as time:
        await app.add("root", every("10d"), prompt="begin", agent="coder")
        await time.advance("10d")
        await time.advance("5h")
        assert results == ["created", "pending"]


async def test_wakes_per_day(tmp_path: Path) -> None:
    app = make(tmp_path, wakes_per_day=2)
    async with virtual(app, start=START) as time:
        for number in range(2):
            await wake_me(app, CODER, "in 1h", f"reminder {number}")
        with pytest.raises(
            Limited,
            match="wakes_per_day: wake_me and one-time schedules were used 2 times in 24 hours, and the maximum is 2 ",
        ):
            await wake_me(app, CODER, "in 1h", "reminder 3")
        await time.advance("25h")
        assert (await wake_me(app, CODER, "in 1h", "reminder 3")).result == "created"


async def test_another_agent_sees_and_changes_nothing(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never")
    async with virtual(app, start=START):
        await app.add("payroll", every("1d"), prompt="secret", agent="coder")
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look"})
        other = Actor("other")
        assert (await own(app, other).list()).schedules == []
        texts = set()
        for slug in ("watch", "coder.watch", "payroll", "nothing"):
            for attempt in (own(app, other).get, own(app, other).pause, own(app, other).resume, own(app, other).remove):
                with pytest.raises(NotFound) as refused:
                    await attempt(slug)
                texts.add(str(refused.value).replace(f"other.{slug}", "SLUG"))
        assert texts == {"you have no schedule 'SLUG'; list_schedules shows those you have"}
        assert (await app.get("coder.watch")).status == "idle"


async def test_an_agent_cannot_resume_what_a_person_stopped(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never")
    async with virtual(app, start=START):
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look"})
        assert (await own(app, CODER).pause("watch")).status == "paused"
        assert (await own(app, CODER).resume("watch")).status == "idle"
        await app.pause("coder.watch")
        await own(app, CODER).pause("watch")  # changes nothing about whose pause it is
        with pytest.raises(Conflict, match="a person paused it"):
            await own(app, CODER).resume("watch")


async def test_fields_that_are_not_an_agents_are_refused_by_name(tmp_path: Path) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START):
        with pytest.raises(ValueError, match="exclude: an agent may give dates, but cannot name files"):
            await own(app, CODER).put("x", {**MONDAYS, "exclude": {"calendar": "/etc/passwd"}})
        with pytest.raises(ValueError, match="agent: an agent can only schedule its own turns"):
            await own(app, CODER).put("x", {**MONDAYS, "agent": "other"})


async def test_a_run_of_a_command_may_only_wake(tmp_path: Path) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START):
        command = Actor("default", 1, "build", 0, None, is_agent_run=False)
        with pytest.raises(Refused, match="a command's run may only report its result"):
            await own(app, command).put("x", MONDAYS)
        with pytest.raises(Refused, match="a command's run"):
            await own(app, command).list()
