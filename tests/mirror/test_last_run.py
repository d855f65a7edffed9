"""From `last-run.json` to the store: the diagnostics of old, word for word."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from features.kit import World, ledger, short, virtual
from mirror.kit import HOURLY, Agent, Desk, edit, noticed, open_desk, place, read, reopen, save
from wakeful.core.run.results import Busy

# The recipe under "Force a test run", as a person pastes it; the placeholder filled in.
RECIPE = """\
cat > schedule/standup/last-run.json << EOF
{
  "lastRun": "2026-01-01T00:00:00.000Z",
  "lastResult": "success",\x20
  "lastError": null,
  "sessionId": "%s",
  "nextRun": "2026-01-01T00:00:00.000Z"
}
EOF
"""


def paste(desk: Desk, recipe: str) -> None:
    subprocess.run(["sh", "-ec", recipe], cwd=desk.folder.parent, check=True)


async def after_nine(world: World, agent: Agent | None = None) -> Desk:
    """A desk at 09:02 whose schedule ran at 09:00."""
    await world.until("01-01 08:58:00")
    desk = await open_desk(world, agent)
    await desk.schedules.put("standup", HOURLY)
    await world.until("01-01 09:02:00")
    return desk


@virtual
async def test_check_schedule_state(world: World) -> None:
    """`cat` both files, `jq -r .sessionId`."""
    desk = await after_nine(world)
    home = desk.folder.parent
    shown = subprocess.run(["cat", "schedule/standup/definition.json"], cwd=home, capture_output=True, check=True)
    assert json.loads(shown.stdout)["prompt"] == HOURLY["prompt"]
    shown = subprocess.run(["cat", "schedule/standup/last-run.json"], cwd=home, capture_output=True, check=True)
    assert json.loads(shown.stdout)["sessionId"] == "abc-123"
    if shutil.which("jq"):
        jq = ["jq", "-r", ".sessionId", "schedule/standup/last-run.json"]
        assert subprocess.run(jq, cwd=home, capture_output=True, check=True).stdout == b"abc-123\n"


@virtual
async def test_force_a_test_run_by_stop_edit_start(world: World) -> None:
    """One run at the start, none at the next; the cadence is where it was."""
    desk = await after_nine(world)
    await desk.stop()
    paste(desk, RECIPE % "abc-123")
    desk = await open_desk(world, desk.agent)
    await world.settle()
    assert len(desk.agent.asked) == 2
    assert len(desk.told("forced")) == 1
    assert short((await desk.get("standup")).next_run) == "01-02 09:00:00"
    desk = await reopen(world, desk)
    await noticed(world)
    assert len(desk.agent.asked) == 2
    assert await ledger(desk, "standup") == ["01-01 09:00:00 succeeded", "01-01 09:02:00 succeeded"]
    assert read(desk, name="last-run.json")["nextRun"] == "2026-01-02T09:00:00.000Z"


@virtual
async def test_force_a_test_run_by_edit_stop_start(world: World) -> None:
    """The recipe edits while the server runs: the run comes with the start, and is not cut short by the stop."""
    desk = await after_nine(world)
    paste(desk, RECIPE % "abc-123")
    desk.mirror.schedule_changed("standup")
    await world.sleep("300ms")
    assert len(desk.agent.asked) == 1
    desk = await reopen(world, desk)
    await noticed(world)
    assert len(desk.agent.asked) == 2
    desk = await reopen(world, desk)
    await noticed(world)
    assert len(desk.agent.asked) == 2


@virtual
async def test_force_a_test_run_without_a_restart(world: World) -> None:
    """Noticed while running; the same recipe again is another wish."""
    desk = await after_nine(world)
    for expected in (2, 3):
        paste(desk, RECIPE % "abc-123")
        await noticed(world)
        await noticed(world)
        assert len(desk.agent.asked) == expected
    triggers = [run.trigger for run in await desk.runs("standup")]
    assert triggers == ["manual", "manual", "schedule"]


@virtual
async def test_a_crash_right_after_the_forced_run_does_not_force_another(world: World) -> None:
    """The wish and its memory are one commit: the file still says so, and it counts no more."""
    desk = await after_nine(world)
    await desk.stop()
    paste(desk, RECIPE % "abc-123")
    desk = await open_desk(world, desk.agent)  # takes the edit in, and has written nothing yet
    assert read(desk, name="last-run.json")["nextRun"] == "2026-01-01T00:00:00.000Z"
    await desk.kill()
    desk = await open_desk(world, desk.agent)
    await noticed(world)
    assert len(desk.told("forced")) == 0
    assert len([run for run in await desk.runs("standup") if run.trigger == "manual"]) == 1
    assert read(desk, name="last-run.json")["nextRun"] == "2026-01-02T09:00:00.000Z"
    paste(desk, RECIPE % "abc-123")
    await noticed(world)
    assert len(desk.told("forced")) == 1


@virtual
async def test_an_edited_session_is_adopted(world: World) -> None:
    """The next run goes on with it; null means a new one."""
    desk = await after_nine(world)
    edit(desk, name="last-run.json", sessionId="mine-7")
    await noticed(world)
    assert desk.told("adopted") == ["standup/last-run.json: continues with session mine-7"]
    await desk.run_now("standup")
    await world.settle()
    assert desk.agent.sessions == [None, "mine-7"]
    await noticed(world)
    edit(desk, name="last-run.json", sessionId=None)
    await noticed(world)
    await desk.run_now("standup")
    await world.settle()
    assert desk.agent.sessions == [None, "mine-7", None]
    assert short((await desk.get("standup")).next_run) == "01-02 09:00:00"


@virtual
async def test_a_next_run_that_time_moved_into_the_past_is_nobodys_wish(world: World) -> None:
    """Who was down over 09:00 and edits only the session gets the catch-up, and no run beside it."""
    desk = await after_nine(world)
    await desk.stop()
    edit(desk, name="last-run.json", sessionId="mine-7")
    await world.until("01-02 10:00:00")
    desk = await open_desk(world, desk.agent)
    await noticed(world)
    assert desk.told("forced") == []
    assert await ledger(desk, "standup") == ["01-01 09:00:00 succeeded", "01-02 09:00:00 succeeded"]
    assert desk.agent.sessions == [None, "mine-7"]


@virtual
async def test_forced_and_missed_together_are_one_run(world: World) -> None:
    """Overdue and forced: the agent is asked once, and the ledger says what became of the instant (L1)."""
    desk = await after_nine(world)
    await desk.stop()
    await world.until("01-02 10:00:00")
    paste(desk, RECIPE % "abc-123")
    desk = await open_desk(world, desk.agent)
    await noticed(world)
    assert len(desk.agent.asked) == 2
    rows = await ledger(desk, "standup")
    assert rows[0] == "01-01 09:00:00 succeeded"
    assert sorted(rows[1:]) == ["01-02 09:00:00 skipped (blocked)", "01-02 10:00:00 succeeded"]


@virtual
async def test_other_fields_are_ours_to_say(world: World) -> None:
    """Ignored and written again, also a next run in the future and fields nobody knows."""
    desk = await after_nine(world)
    before, view = read(desk, name="last-run.json"), await desk.get("standup")
    changes = {"lastRun": None, "lastResult": "error", "lastError": "x", "nextRun": "2026-02-01T00:00:00Z", "more": 1}
    edit(desk, name="last-run.json", **changes)
    await noticed(world)
    assert read(desk, name="last-run.json") == before
    assert await desk.get("standup") == view
    assert desk.reports == []


@virtual
async def test_a_run_that_waits_for_a_busy_session_comes_at_once(world: World) -> None:
    """nextRun named its next attempt: that one is brought forward."""
    agent = Agent()
    agent.script = [Busy("Session busy")]
    await world.until("01-01 08:58:00")
    desk = await open_desk(world, agent)
    await desk.schedules.put("standup", HOURLY)
    await world.until("01-01 09:10:00")
    assert read(desk, name="last-run.json")["nextRun"] == "2026-01-01T10:00:00.000Z"
    paste(desk, RECIPE % "abc-123")
    await noticed(world)
    assert await ledger(desk, "standup") == ["01-01 09:00:00 succeeded"]
    assert len(agent.asked) == 2


@pytest.mark.parametrize("halt", ["disabled", "paused"])
@virtual
async def test_a_halted_schedule_is_not_forced_and_says_so(world: World, halt: str) -> None:
    """L2. The wish is used up: resuming later does not bring an old one back."""
    desk = await after_nine(world)
    await (desk.pause("standup") if halt == "paused" else desk.update("standup", enabled=False))
    await noticed(world)
    paste(desk, RECIPE % "abc-123")
    await noticed(world)
    reason = f"standup is {halt}; enable it first, or run it by hand"
    assert desk.told("refused") == [f"standup/last-run.json: nextRun was set to the past, and nothing runs: {reason}"]
    await desk.resume("standup")
    desk = await reopen(world, desk)
    await noticed(world)
    assert len(desk.agent.asked) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON: "),
        ("[]", "a last run is a JSON object; write {…}"),
        ({"nextRun": 5}, "nextRun: 5 is not a time; write it like 2026-01-30T09:00:00Z"),
        ({"nextRun": "yesterday"}, "nextRun: 'yesterday' is not a date and time; write it like 2026-01-30T09:00:00Z"),
        ({"nextRun": "2026-01-01T00:00:00"}, "nextRun: "),
        ({"sessionId": 7}, "sessionId: 7 is not a session id"),
        ({"sessionId": "a\nb"}, "sessionId: 'a\\nb' is not a session id"),
        ({"sessionId": ""}, "sessionId: '' is not a session id"),
    ],
)
@virtual
async def test_a_last_run_that_cannot_be_read_is_reported_and_left(world: World, content: Any, message: str) -> None:
    """With a note beside it, until its author corrects or removes it."""
    desk = await after_nine(world)
    save(desk, content, name="last-run.json")
    saved = place(desk, name="last-run.json").read_bytes()
    await noticed(world)
    assert message in place(desk, name="last-run.error.txt").read_text()
    assert [message in told for told in desk.told("refused")] == [True]
    assert place(desk, name="last-run.json").read_bytes() == saved
    assert len(desk.agent.asked) == 1
    place(desk, name="last-run.json").unlink()
    await noticed(world)
    assert read(desk, name="last-run.json")["sessionId"] == "abc-123"
    assert not place(desk, name="last-run.error.txt").exists()


@virtual
async def test_folders_brought_from_elsewhere_keep_their_session_and_run_if_overdue(world: World) -> None:
    """A copy of the folder of old: overdue runs once at the start, as it did there."""
    desk = await open_desk(world)
    await desk.stop()
    old = {"prompt": "Hello", "schedule": {"type": "interval", "intervalMinutes": 120}, "enabled": True}
    last = {"lastRun": "2025-12-01T09:00:00.000Z", "lastResult": "success", "lastError": None, "sessionId": "old-1"}
    save(desk, old, "overdue")
    save(desk, {**last, "nextRun": "2025-12-01T11:00:00.000Z"}, "overdue", "last-run.json")
    save(desk, {**old, "enabled": False}, "asleep")
    save(desk, {**last, "nextRun": "2025-12-01T11:00:00.000Z"}, "asleep", "last-run.json")
    desk = await open_desk(world, desk.agent)
    await noticed(world)
    assert desk.agent.sessions == ["old-1"]
    assert [run.slug for run in await desk.runs()] == ["overdue"]
    assert (await desk.get("asleep")).session_id == "old-1"
