"""From `definition.json` to the store."""

import json
from typing import Any

import pytest

from features.kit import World, ledger, short, virtual
from mirror.kit import HOURLY, age, edit, noticed, open_desk, place, read, reopen, save
from wakeful import every
from wakeful.features.schedules.checks import MINIMUM_INTERVAL_CURE


@virtual
async def test_an_edited_prompt_is_taken_over_and_the_cadence_stays(world: World) -> None:
    """§4: a new version, the next run where it was, the file spelt out again."""
    desk = await open_desk(world)
    await world.until("01-01 08:57:00")
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    edit(desk, prompt="What is new?")
    await noticed(world)
    view = await desk.get("standup")
    assert (view.to_json()["prompt"], view.version, short(view.next_run)) == ("What is new?", 2, "01-01 09:00:00")
    assert desk.told("edited") == ["standup/definition.json: applied as version 2"]
    await world.until("01-01 09:05:00")
    assert desk.agent.asked == ["What is new?"]
    assert list(read(desk)) == list((await desk.get("standup")).to_json())[: len(read(desk))]


@virtual
async def test_an_edit_made_while_we_were_down_is_in_force_before_the_clock_starts(world: World) -> None:
    """L2: one that was disabled in its file does not catch up first."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    await desk.stop()
    edit(desk, enabled=False)
    await world.until("01-03 12:00:00")
    desk = await open_desk(world, desk.agent)
    await noticed(world)
    assert desk.agent.asked == []
    assert (await desk.get("standup")).status == "disabled"
    edit(desk, enabled=True)
    await noticed(world)
    assert (await desk.get("standup")).status == "idle"
    assert await ledger(desk, "standup") == ["01-01 09:00:00 missed (outage) x3"]


@virtual
async def test_an_edit_saved_right_before_the_end_waits_for_the_next_start(world: World) -> None:
    """The end writes what is ours and reads nothing: a run it forced would be cut short."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    edit(desk, prompt="In the last moment")
    desk.mirror.schedule_changed("standup")
    desk = await reopen(world, desk, which="off")
    assert (await desk.get("standup")).version == 1
    assert read(desk)["prompt"] == "In the last moment"
    desk = await reopen(world, desk)
    assert (await desk.get("standup")).version == 2


@virtual
async def test_an_edited_file_of_a_schedule_removed_meanwhile_makes_it_again(world: World) -> None:
    """Nothing that somebody wrote is lost; and it is what the file says, disabled if it says so."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", {**HOURLY, "enabled": False})
    await noticed(world)
    desk = await reopen(world, desk, which="off")
    await desk.remove("standup")
    edit(desk, prompt="Still wanted")
    desk = await reopen(world, desk)
    view = await desk.get("standup")
    assert (view.to_json()["prompt"], view.status) == ("Still wanted", "disabled")


@virtual
async def test_a_new_folder_with_a_definition_makes_a_schedule(world: World) -> None:
    """The file of old is enough; what it leaves out is filled in and written back."""
    desk = await open_desk(world)
    old = {
        "slug": "daily-standup",
        "prompt": "Generate daily standup summary from git commits",
        "enabled": True,
        "schedule": {"type": "cron", "expression": "0 9 * * 1-5"},
        "sessionConfig": {"model": "claude-sonnet", "persistSession": True},
    }
    save(desk, old, "daily-standup")
    await noticed(world)
    assert desk.told("created") == ["daily-standup/definition.json: a new schedule"]
    assert short((await desk.get("daily-standup")).next_run) == "01-01 09:00:00"
    assert read(desk, "daily-standup")["schedule"]["timezone"] == "UTC"
    assert read(desk, "daily-standup", "last-run.json")["nextRun"] == "2026-01-01T09:00:00.000Z"


@virtual
async def test_the_same_content_saved_again_is_nothing_at_all(world: World) -> None:
    """Byte by byte: no read of the store is changed, no file is written."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    before = await desk.get("standup")
    content = place(desk).read_bytes()
    place(desk).unlink()
    place(desk).write_bytes(content)
    inode = place(desk).stat().st_ino
    await noticed(world)
    assert await desk.get("standup") == before
    assert place(desk).stat().st_ino == inode
    assert desk.reports == []


@virtual
async def test_another_way_to_write_the_same_definition_is_no_edit_of_it(world: World) -> None:
    """Reordered, shortened, reformatted: no version, and the file is put in order."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    before, content = await desk.get("standup"), place(desk).read_bytes()
    short_form = {"prompt": HOURLY["prompt"], "schedule": HOURLY["schedule"], "sessionConfig": {"persistSession": True}}
    save(desk, json.dumps(short_form, indent=8))
    await noticed(world)
    assert await desk.get("standup") == before
    assert place(desk).read_bytes() == content
    assert desk.reports == []


@virtual
async def test_a_single_time_that_is_done_goes_on_when_its_file_says_a_later_one(world: World) -> None:
    """Its file reads `enabled: false` because it is done, and nobody asked for that: a later time is enough."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", {**HOURLY, "schedule": {"type": "once", "at": "2026-01-01T00:10:00Z"}})
    await world.until("01-01 00:12:00")
    assert (read(desk)["enabled"], (await desk.get("standup")).status) == (False, "done")
    edit(desk, schedule={"type": "once", "at": "2026-01-01T00:30:00Z"})
    await world.until("01-01 00:32:00")
    assert len(desk.agent.asked) == 2


@virtual
async def test_a_pause_outlives_an_edit_of_the_prompt(world: World) -> None:
    """The file says enabled because pausing keeps it so: what its owner did not touch is not what they want."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await desk.pause("standup")
    await noticed(world)
    assert read(desk)["enabled"] is True
    edit(desk, prompt="Anything else?")
    await noticed(world)
    view = await desk.get("standup")
    assert (view.status, view.version) == ("paused", 2)


@virtual
async def test_an_interval_below_the_minimum_is_refused_in_the_known_words(world: World) -> None:
    """The file stays as it is with a note beside it; the schedule goes on as stored; a correction is taken over."""
    desk = await open_desk(world)
    await world.until("01-01 08:57:00")
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    edit(desk, schedule={"type": "interval", "intervalMinutes": 30})
    saved = place(desk).read_bytes()
    await noticed(world)
    note = place(desk, name="definition.error.txt")
    refusal = f"schedule: Minimum interval is 60 minutes (1 hour){MINIMUM_INTERVAL_CURE}"
    assert f"  {refusal}\n" in note.read_text()
    assert place(desk).read_bytes() == saved
    assert desk.told("refused") == [f"standup/definition.json: {refusal}"]
    assert [problem.slug for problem in desk.mirror.problems] == ["standup"]
    await world.until("01-01 09:05:00")
    assert desk.agent.asked == [HOURLY["prompt"]]
    assert len(desk.told("refused")) == 1
    assert read(desk, name="last-run.json")["lastResult"] == "success"
    edit(desk, schedule={"type": "interval", "intervalMinutes": 60})
    await noticed(world)
    assert not note.exists()
    assert read(desk)["schedule"]["type"] == "interval"
    assert desk.mirror.problems == []
    assert (await desk.get("standup")).version == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"prompt": "x", "schedule": {"type": ', "is not JSON: Expecting value at line 1, column 38"),
        ("", "is empty; write a JSON object"),
        ("[1, 2]", "a definition is a JSON object; write {…}"),
        ('"text"', "a definition is a JSON object; write {…}"),
        (b"\x00\xff\xfe\x81" * 10, "is not text in UTF-8 (byte 1); save it as UTF-8"),
        (b" " * 10_000_000, "is 10000000 bytes long; the maximum is 1048576; make it shorter"),
        ("[" * 100_000, "is not usable JSON: nested too deeply, or a number is too long"),
        ({**HOURLY, "prompt": 5}, "prompt: "),
        ({**HOURLY, "schedule": "hourly"}, "schedule: "),
        ({**HOURLY, "promt": "x"}, "promt: unknown field; did you mean 'prompt'?"),
        ({**HOURLY, "slug": "other"}, "slug: 'other' does not match 'standup' in the path"),
        ({**HOURLY, "agent": "nobody"}, "agent: there is no agent 'nobody'"),
        ({**HOURLY, "prompt": "\ud800"}, "prompt: contains half of a character"),
    ],
)
@virtual
async def test_what_cannot_be_a_definition_is_reported_and_left(world: World, content: Any, message: str) -> None:
    """Nothing lost, nothing stopped: one sentence, the file as it is, the schedule as it was (L9)."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    before = await desk.get("standup")
    save(desk, content)
    saved = place(desk).read_bytes()
    await noticed(world)
    assert len(desk.told("refused")) == 1
    assert message in desk.told("refused")[0]
    assert message in place(desk, name="definition.error.txt").read_text()
    assert place(desk).read_bytes() == saved
    assert await desk.get("standup") == before
    place(desk).unlink()
    await noticed(world)
    assert read(desk)["prompt"] == HOURLY["prompt"]
    assert not place(desk, name="definition.error.txt").exists()


@virtual
async def test_a_refused_file_is_not_written_over_by_a_later_change(world: World) -> None:
    """Who typed it finds it again; removing it brings the stored one."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    save(desk, "{ half of a thought")
    await noticed(world)
    await desk.update("standup", prompt="Changed elsewhere")
    desk.mirror.schedule_changed("standup")
    desk = await reopen(world, desk)
    await noticed(world)
    assert place(desk).read_text() == "{ half of a thought"
    assert len(desk.told("refused")) == 1
    place(desk).unlink()
    await noticed(world)
    assert read(desk)["prompt"] == "Changed elsewhere"


@virtual
async def test_a_file_still_being_written_is_read_when_it_is_whole(world: World) -> None:
    """A broken one may be half written: it is looked at once more before anything is said."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    whole = json.dumps({**read(desk), "prompt": "Whole"})
    save(desk, whole[:40])
    desk.mirror.schedule_changed("standup")
    await world.sleep("500ms")
    save(desk, whole[:80])
    desk.mirror.schedule_changed("standup")
    await world.sleep("700ms")
    assert desk.reports == []
    save(desk, whole)
    await world.sleep("2s")
    assert (await desk.get("standup")).to_json()["prompt"] == "Whole"
    assert desk.told("refused") == []


@virtual
async def test_only_agent_schedules_come_as_files_unless_all_do(world: World) -> None:
    """The setting says so, and the refusal names it."""
    desk = await open_desk(world, which="agent")
    report = {"schedule": {"type": "every", "every": "2h"}, "call": {"target": "on_due"}}
    save(desk, report, "report")
    await noticed(world)
    cure = 'write a prompt, or set mirror = "all" under [schedules]'
    assert desk.told("refused") == [f"report/definition.json: call: only agent schedules are kept as files; {cure}"]
    desk = await reopen(world, desk, which="all")
    await noticed(world)
    assert desk.told("created") == ["report/definition.json: a new schedule"]
    assert not place(desk, "report", "definition.error.txt").exists()


@pytest.mark.parametrize("slug", ["Daily", "with space", "heartbeat", "x" * 65])
@virtual
async def test_a_folder_that_can_be_no_schedule_is_told_of_once(world: World, slug: str) -> None:
    """Else its owner would wait for ever."""
    desk = await open_desk(world)
    save(desk, {**HOURLY, "slug": slug}, slug)
    await noticed(world)
    await noticed(world)
    assert len(desk.told("refused")) == 1
    assert await desk.list() == []


@virtual
async def test_the_grid_of_an_interval_survives_an_edit_of_something_else(world: World) -> None:
    """L3: whether the file says where it begins or not."""
    desk = await open_desk(world)
    await desk.add("standup", every("2h"), prompt="Hello")
    await world.until("01-01 00:30:00")
    edit(desk, schedule={"type": "every", "every": "2h"}, prompt="Hello again")
    await noticed(world)
    view = await desk.get("standup")
    assert (short(view.next_run), view.version) == ("01-01 02:00:00", 2)


@virtual
async def test_many_edits_at_once_are_all_taken_over(world: World) -> None:
    """As a checkout of a folder under version control brings them."""
    desk = await open_desk(world)
    for number in range(100):
        save(desk, {**HOURLY, "slug": f"job-{number}"}, f"job-{number}")
    await noticed(world)
    assert len(await desk.list()) == 100
    before = age(desk, "job-7")
    await noticed(world)
    assert age(desk, "job-7") == before
    assert len(desk.reports) == 100
