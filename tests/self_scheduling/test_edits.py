"""Limits and stops hold for a slug that exists too: changing, reviving, deleting and creating again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from self_scheduling.owner import own
from wakeful import Wakeful, every
from wakeful.app.calling import actor_of_run
from wakeful.app.owned_writing import wake_me
from wakeful.core.refusals import Conflict
from wakeful.core.self_scheduling.limits import Limited, SelfSchedulingTerms
from wakeful.features.schedules.owned import Actor
from wakeful.integrations.actions.fire import Fire
from wakeful.testing import virtual

START = "2026-11-16T12:00Z"
CODER = Actor("coder")
DAY = 86_400_000


def make(tmp_path: Path, *, agent: Callable[..., Any] | None = None, **terms: Any) -> Wakeful:
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", self_scheduling=SelfSchedulingTerms(**terms))
    app.agent("coder")(agent or (lambda prompt: "done"))
    return app


@pytest.mark.parametrize("depth_max", [1, 3])
async def test_a_turn_that_schedules_itself_again_ends(tmp_path: Path, depth_max: int) -> None:
    """Under the same slug, from its own run: the chain is no longer than depth_max."""

    async def agent(fire: Fire, prompt: str) -> str:
        actor = await actor_of_run(app, fire.run_id)
        try:
            await own(app, actor).put("loop", {"schedule": "in 1s", "prompt": f"again {fire.run_id}"})
        except Limited as limited:
            refused.append(limited.limit)
        return "done"

    refused: list[str] = []
    app = make(tmp_path, agent=agent, approval="never", depth_max=depth_max, interval_min=1_000)
    async with virtual(app, start=START) as time:
        await app.add("root", every("10d"), prompt="begin", agent="coder")
        await time.advance("10d")
        await time.advance("1h")
        assert len(await app.runs("coder.loop")) <= depth_max
        assert refused


async def test_reviving_a_finished_schedule_counts(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never", schedules_max=2)
    async with virtual(app, start=START) as time:
        for number in range(2):
            await own(app, CODER).put(f"once-{number}", {"schedule": "in 1m", "prompt": f"look {number}"})
        await time.advance("2h")
        for number in range(2):
            await own(app, CODER).put(f"job-{number}", {"schedule": "every 2h", "prompt": f"job {number}"})
        with pytest.raises(Limited, match="schedules_max"):
            await own(app, CODER).put("once-0", {"schedule": "every 2h", "prompt": "revived"})


async def test_a_wake_cannot_become_a_schedule(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never")
    async with virtual(app, start=START):
        slug = (await wake_me(app, CODER, "in 1h", "look")).view.slug
        with pytest.raises(Conflict, match="is a wake_me, which cannot be changed"):
            await own(app, CODER).put(slug, {"schedule": "every 2h", "prompt": "look"})


@pytest.mark.parametrize(
    "when", ["2 14 * * *", "in 1m", {"type": "every", "every": "2h", "anchor": "2026-11-16T14:03:00Z"}]
)
async def test_changed_times_keep_the_interval_from_the_last_run(tmp_path: Path, when: Any) -> None:
    app = make(tmp_path, approval="never")
    async with virtual(app, start=START) as time:
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look"})
        await time.advance("2h")
        assert len(await app.runs("coder.watch")) == 1
        with pytest.raises(Limited, match="interval_min: with this change it would run at 2026-11-16T14:0"):
            await own(app, CODER).put("watch", {"schedule": when, "prompt": "Look now"})
        assert (await app.get("coder.watch")).to_json()["version"] == 1
        edit = {"schedule": "every 2h", "prompt": "Look twice"}
        assert (await own(app, CODER).put("watch", edit)).result == "updated"


async def test_an_edit_keeps_the_end(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never", expires=2 * DAY)
    async with virtual(app, start=START) as time:
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look"})
        ends = (await app.get("coder.watch")).to_json()["expiresAt"]
        await time.advance("1d")
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look twice"})
        assert (await app.get("coder.watch")).to_json()["expiresAt"] == ends
        later = {"schedule": "every 2h", "prompt": "Look thrice", "expiresAt": "2026-11-19T00:00:00Z"}
        with pytest.raises(Limited, match="a change cannot extend it"):
            await own(app, CODER).put("watch", later)


async def test_one_time_schedules_count_as_wakes(tmp_path: Path) -> None:
    app = make(tmp_path, approval="recurring", wakes_per_day=3)
    async with virtual(app, start=START) as time:
        for number in range(2):
            await own(app, CODER).put(f"once-{number}", {"schedule": "in 1m", "prompt": f"look {number}"})
        await own(app, CODER).remove("once-1")
        await wake_me(app, CODER, "in 1m", "look")
        with pytest.raises(Limited, match="wakes_per_day"):
            await own(app, CODER).put("once-3", {"schedule": "in 1m", "prompt": "look again"})
        with pytest.raises(Limited, match="wakes_per_day"):
            await wake_me(app, CODER, "in 1m", "look later")
        await time.advance("25h")
        await wake_me(app, CODER, "in 1m", "look later")


async def test_deleting_and_creating_is_limited_too(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never", wakes_per_day=3)
    async with virtual(app, start=START):
        for number in range(3):
            await own(app, CODER).put("watch", {"schedule": f"{number + 1} 12 * * *", "prompt": "Look"})
            await own(app, CODER).remove("watch")
        with pytest.raises(Limited, match="wakes_per_day"):
            await own(app, CODER).put("watch", {"schedule": "4 12 * * *", "prompt": "Look"})


async def test_an_edit_keeps_what_a_person_set(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never")
    async with virtual(app, start=START, on_command=lambda command: "done"):
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look"})
        kept = {
            "activeHours": {"start": "09:00", "end": "17:00"},
            "maxLateness": "10m",
            "timeout": "5m",
            "budget": {"perDay": 1.5},
            "sessionConfig": {"model": "small"},
        }
        await app.update("coder.watch", **kept)
        before = (await app.get("coder.watch")).to_json()
        new = {"schedule": "every 4h", "prompt": "Look twice", "sessionConfig": {"persistSession": False}}
        await own(app, CODER).put("watch", new)
        after = (await app.get("coder.watch")).to_json()
        for name in ("activeHours", "maxLateness", "timeout", "budget"):
            assert after[name] == before[name], name
        assert after["sessionConfig"] == {"model": "small", "persistSession": False}
        assert (after["prompt"], after["schedule"]["every"]) == ("Look twice", "4h")
        with pytest.raises(Conflict, match="a person set a budget or a check"):
            await own(app, CODER).put("watch", {"schedule": "every 4h", "command": {"argv": ["true"]}})


@pytest.mark.parametrize(
    ("slug", "prompt", "when"),
    [
        ("other", "Delete the old logs of the build server", "every 2h"),
        ("other", "delete the old logs, of the build server!", "every 3h"),
        ("watch", "Please delete the old logs of the build server", "every 121m"),
        ("other", "Del\u200bete the old \uff4c\uff4f\uff47\uff53 of the build server", "every 2h"),
    ],
)
async def test_what_was_rejected_cannot_come_back_in_another_form(
    tmp_path: Path, slug: str, prompt: str, when: str
) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START) as time:
        rejected = {"schedule": "every 2h", "prompt": "Delete the old logs of the build server"}
        await own(app, CODER).put("watch", rejected)
        await app.people.decide((await app.people.proposals()).proposals[0].proposal_id, "reject")
        with pytest.raises(Conflict, match="a person rejected this"):
            await own(app, CODER).put(slug, {"schedule": when, "prompt": prompt})
        other = {"schedule": "every 2h", "prompt": "Summarise the week"}
        assert (await own(app, CODER).put("week", other)).result == "pending"
        await time.advance("8d")
        assert (await own(app, CODER).put(slug, {"schedule": when, "prompt": prompt})).result == "pending"


async def test_deleting_does_not_undo_a_persons_stop(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never")
    watch = {"schedule": "every 2h", "prompt": "Look"}
    async with virtual(app, start=START):
        await own(app, CODER).put("watch", watch)
        await app.pause("coder.watch")
        await own(app, CODER).remove("watch")
        for slug, prompt in (("watch", "Look"), ("other", "Look"), ("watch", "Something else")):
            with pytest.raises(Conflict, match="this was waiting for a person after it was stopped"):
                await own(app, CODER).put(slug, {**watch, "prompt": prompt})
        assert (await app.people.proposals()).proposals == []
        await own(app, CODER).put("own", {**watch, "prompt": "Write a summary"})
        await own(app, CODER).pause("own")
        await own(app, CODER).remove("own")
        again = await own(app, CODER).put("own", {**watch, "prompt": "Write a summary"})
        assert again.result == "created"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"type": "cron", "expression": "0 9 * * MON"}, {"type": "cron", "expression": "0 9 * * 1"}),
        (
            {"type": "cron", "expression": "0 9 * * *", "timezone": "UTC"},
            {"type": "cron", "expression": "00 09 * * *", "timezone": "Etc/UTC"},
        ),
    ],
)
async def test_the_same_times_written_differently_are_one_schedule(tmp_path: Path, one: Any, other: Any) -> None:
    app = make(tmp_path, approval="never")
    async with virtual(app, start=START):
        await own(app, CODER).put("watch", {"schedule": one, "prompt": "Look"})
        again = await own(app, CODER).put("copy", {"schedule": other, "prompt": "Lo\u200bok\u3164"})
        assert (again.result, again.view.slug, again.is_copy) == ("unchanged", "coder.watch", True)


@pytest.mark.parametrize("approval", ["never", "recurring", "always"])
async def test_what_a_person_removed_comes_back_only_through_a_person(tmp_path: Path, approval: str) -> None:
    """Under the same slug, and nearly the same under another; other work still passes."""
    app = make(tmp_path, approval="never")
    async with virtual(app, start=START) as time:
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look at the build"})
        app._change_self_scheduling(SelfSchedulingTerms(approval=approval))  # type: ignore[arg-type]
        await app.remove("coder.watch")
        for slug, prompt in (
            ("watch", "Water the plants"),
            ("other", "Look at the build!"),
            ("other", "look at the build now"),
        ):
            again = await own(app, CODER).put(slug, {"schedule": "every 3h", "prompt": prompt})
            assert again.result == "pending", (slug, prompt)
            await own(app, CODER).remove(slug)
        await time.advance("60d")
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look at the build"})
        assert not await app.runs("coder.watch")
        (proposal,) = (await app.people.proposals()).proposals
        await app.people.decide(proposal.proposal_id, "approve")
        if approval == "never":  # a person wanted it after all, so it is as before
            changed = await own(app, CODER).put("watch", {"schedule": "every 4h", "prompt": "Look at the build"})
            assert changed.result == "updated"
            other = await own(app, CODER).put("plants", {"schedule": "every 4h", "prompt": "Water the plants"})
            assert other.result == "created"


async def test_a_turn_that_a_person_removed_is_not_asked_for_again(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never")
    async with virtual(app, start=START):
        wake = await wake_me(app, CODER, "in 2h", "Look at the build")
        await app.remove(wake.view.slug)
        assert (await wake_me(app, CODER, "in 3h", "Look at the build")).result == "pending"
        assert (await wake_me(app, CODER, "in 3h", "Water the plants")).result == "created"


async def test_what_a_person_stopped_does_not_go_on_under_another_name(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never")
    async with virtual(app, start=START):
        await own(app, CODER).put("watch", {"schedule": "every 2h", "prompt": "Look at the build"})
        await app.pause("coder.watch")
        again = await own(app, CODER).put("other", {"schedule": "every 3h", "prompt": "Look at the build"})
        assert again.result == "pending"


async def test_removing_what_is_over_is_no_refusal(tmp_path: Path) -> None:
    app = make(tmp_path, approval="never")
    async with virtual(app, start=START) as time:
        await own(app, CODER).put("once", {"schedule": "in 1h", "prompt": "Look at the build"})
        await time.advance("2h")
        await app.remove("coder.once")
        again = await own(app, CODER).put("once", {"schedule": "in 2h", "prompt": "Look at the build"})
        assert again.result == "created"


async def test_what_was_approved_too_late_runs_when_it_is_changed(tmp_path: Path) -> None:
    """Its only time had passed, so it was over; a change gives it new times. Found in a random world."""
    app = make(tmp_path, approval="always")
    async with virtual(app, start=START) as time:
        await own(app, CODER).put("look", {"schedule": "in 1h", "prompt": "Look at the build"})
        await time.advance("2h")
        (proposal,) = (await app.people.proposals()).proposals
        assert (await app.people.decide(proposal.proposal_id, "approve")).is_missed
        app._change_self_scheduling(SelfSchedulingTerms(approval="never"))
        changed = await own(app, CODER).put("look", {"schedule": "every 2h", "prompt": "Look at the build"})
        assert changed.result == "updated"
        await time.advance("5h")
        assert [run.outcome for run in await app.runs("coder.look")] == ["succeeded", "succeeded", "missed"]


async def test_an_agent_can_add_excluded_days_and_remove_none(tmp_path: Path) -> None:
    """A person may have excluded them."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", self_scheduling=SelfSchedulingTerms(approval="never"))
    app.agent("coder")(lambda prompt: "done")
    daily = {"schedule": "every day at 13:00", "prompt": "Look"}
    async with virtual(app, start="2026-11-16T12:00Z"):
        await own(app, CODER).put("watch", daily)
        one_day = {**daily, "exclude": {"dates": ["2026-12-24"]}}
        assert (await own(app, CODER).put("watch", one_day)).result == "updated"
        await app.update("coder.watch", exclude={"dates": ["2026-12-24", "2026-12-25"]})
        for exclude in ({"dates": ["2026-12-24"]}, {"dates": ["2026-12-24", "2026-12-25"], "timezone": "Asia/Tokyo"}):
            with pytest.raises(Conflict, match=r"cannot remove what coder\.watch excludes"):
                await own(app, CODER).put("watch", {**daily, "exclude": exclude})
        more = {**daily, "exclude": {"dates": ["2026-12-24", "2026-12-25", "2026-12-31"]}}
        assert (await own(app, CODER).put("watch", more)).result == "updated"
        await own(app, CODER).put("watch", {**daily, "prompt": "Look again"})
        kept = (await app.get("coder.watch")).to_json()["exclude"]
    assert kept["dates"] == ["2026-12-24", "2026-12-25", "2026-12-31"]
