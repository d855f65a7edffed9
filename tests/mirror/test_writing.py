"""From the store to the files."""

import asyncio
import stat
from typing import Any

import pytest

from features.kit import Bot, World, virtual
from mirror.kit import HOURLY, age, listed, noticed, open_desk, place, read, reopen
from wakeful import New, every
from wakeful.core.schedule.definition_json import READ_BACK


@virtual
async def test_both_files_say_what_is_stored(world: World) -> None:
    """The definition spelt out as in `show`, without what is read back; the last run in the words of old."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    desk.mirror.schedule_changed("standup")
    await world.sleep("1s")
    shown = (await desk.get("standup")).to_json()
    assert list(read(desk).items()) == [(name, value) for name, value in shown.items() if name not in READ_BACK]
    assert read(desk, name="last-run.json") == {
        "lastRun": None,
        "lastResult": None,
        "lastError": None,
        "sessionId": None,
        "nextRun": "2026-01-01T09:00:00.000Z",
    }
    assert place(desk).read_text().startswith('{\n  "slug": "standup",\n  "enabled": true,\n')


@virtual
async def test_the_last_run_follows_the_runs(world: World) -> None:
    """Result, session and next run, after each."""
    desk = await open_desk(world)
    await world.until("01-01 08:59:00")
    await desk.schedules.put("standup", HOURLY)
    await world.until("01-01 09:02:00")
    assert read(desk, name="last-run.json") == {
        "lastRun": "2026-01-01T09:00:00.000Z",
        "lastResult": "success",
        "lastError": None,
        "sessionId": "abc-123",
        "nextRun": "2026-01-02T09:00:00.000Z",
    }


@virtual
async def test_only_their_owner_reads_the_files(world: World) -> None:
    """0600 in 0700: prompts may hold anything."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (desk.folder, place(desk).parent, place(desk))]
    assert modes == [0o700, 0o700, 0o600]
    assert listed(place(desk).parent) == ["definition.json", "last-run.json"]


@virtual
async def test_many_changes_of_one_schedule_are_one_write(world: World) -> None:
    """Coalesced: the files change once, and hold the last of them."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    writes: list[int] = []
    write = desk.mirror.folder.write

    def counted(writings: list[object]) -> object:
        writes.append(len(writings))
        return write(writings)  # type: ignore[arg-type]

    desk.mirror.folder.write = counted  # type: ignore[method-assign,assignment]
    for number in range(50):
        await desk.update("standup", prompt=f"Question {number}")
        desk.mirror.schedule_changed("standup")
    await world.sleep("1s")
    assert writes == [1]
    assert read(desk)["prompt"] == "Question 49"


@virtual
async def test_what_did_not_change_is_not_written(world: World) -> None:
    """Neither by saying so, nor by the rescan, nor by a restart."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    before = age(desk)
    desk.mirror.schedule_changed("standup")
    await noticed(world)
    desk = await reopen(world, desk)
    await noticed(world)
    assert age(desk) == before
    assert desk.reports == []


@pytest.mark.parametrize(("which", "slugs"), [("agent", ["standup"]), ("all", ["standup", "tick"]), ("off", None)])
@virtual
async def test_which_schedules_have_files(world: World, which: str, slugs: list[str] | None) -> None:
    """Agent schedules, all, or none; `off` does not even make the folder."""
    desk = await open_desk(world, which=which)
    await desk.schedules.put("standup", HOURLY)
    await desk.add("tick", every("2h"))
    for slug in ("standup", "tick"):
        desk.mirror.schedule_changed(slug)
    await noticed(world)
    assert (listed(desk.folder) if desk.folder.exists() else None) == slugs


@virtual
async def test_a_removed_folder_is_written_again(world: World) -> None:
    """The store is the truth; deleting is done by the API."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    for name in ("definition.json", "last-run.json"):
        place(desk, name=name).unlink()
    place(desk).parent.rmdir()
    await noticed(world)
    assert read(desk)["prompt"] == HOURLY["prompt"]
    place(desk, name="last-run.json").unlink()
    await noticed(world)
    assert read(desk, name="last-run.json")["nextRun"] == "2026-01-01T09:00:00.000Z"
    assert (await desk.get("standup")).version == 1


@virtual
async def test_the_whole_folder_removed_is_written_again(world: World) -> None:
    """Also the one above."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    desk.folder.rename(desk.folder.with_name("moved-away"))
    await noticed(world)
    assert read(desk)["slug"] == "standup"


@virtual
async def test_a_schedule_that_is_removed_takes_its_files_along(world: World) -> None:
    """What we wrote we remove; what somebody else put there stays."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await desk.schedules.put("digest", {**HOURLY, "slug": "digest"})
    await noticed(world)
    place(desk, "digest", "notes.txt").write_text("mine")
    await desk.remove("standup")
    await desk.remove("digest")
    desk.mirror.schedule_changed("standup")
    desk.mirror.schedule_changed("digest")
    await world.sleep("1s")
    assert listed(desk.folder) == ["digest"]
    assert listed(desk.folder / "digest") == ["notes.txt"]
    await noticed(world)
    assert [view.slug for view in await desk.list()] == []
    assert {value for (value,) in world.query("SELECT value FROM meta WHERE name LIKE 'mirror:%'")} == {"{}"}


@virtual
async def test_a_schedule_that_is_no_agents_any_more_has_no_files(world: World) -> None:
    """A stale file would tell of something that is not."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    await desk.add("standup", every("2h"))
    await noticed(world)
    assert listed(desk.folder) == []
    assert (await desk.get("standup")).version == 2


@virtual
async def test_what_is_left_to_write_at_the_end_is_written(world: World) -> None:
    """Who stops the daemon and looks sees how things stood."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    desk.mirror.schedule_changed("standup")
    await desk.stop()
    assert read(desk, name="last-run.json")["nextRun"] == "2026-01-01T09:00:00.000Z"


@virtual
async def test_what_was_being_written_at_the_end_is_written(world: World) -> None:
    """Stopped in the middle of a look: that look is made once more."""
    never = asyncio.Event()
    hangs = False

    async def disk(work: Any) -> Any:
        nonlocal hangs
        if hangs:
            hangs = False
            await never.wait()
        return work()

    desk = await open_desk(world, disk=disk)
    await noticed(world)
    await desk.schedules.put("standup", HOURLY)
    hangs = True
    desk.mirror.schedule_changed("standup")
    await world.sleep("1s")
    assert not place(desk).exists()
    await desk.stop()
    assert read(desk)["slug"] == "standup"


@pytest.mark.torture
@virtual
async def test_a_thousand_schedules_changing_at_once_are_all_written_and_the_clock_is_not_late(world: World) -> None:
    """Files fall behind and catch up; runs start on time meanwhile."""
    desk = await open_desk(world, which="all", limits={"concurrency_max": 1000})
    bot = Bot(world)
    desk.on_due(bot)
    slugs = [f"job-{number}" for number in range(1000)]
    await desk.add_many([New(slug, every("3m")) for slug in slugs])
    await noticed(world)
    assert len(listed(desk.folder)) == 1000
    await desk.add_many([New(slug, every("3m"), timeout="5m") for slug in slugs])
    for slug in slugs:
        desk.mirror.schedule_changed(slug)
    await world.until("01-01 00:03:00")
    assert bot.began == ["01-01 00:03:00"] * 1000
    for slug in slugs:
        desk.mirror.schedule_changed(slug)
    await world.sleep("1s")
    assert {read(desk, slug)["timeout"] for slug in slugs} == {"5m"}
    last = [read(desk, slug, "last-run.json") for slug in slugs]
    assert {(one["lastResult"], one["nextRun"]) for one in last} == {("success", "2026-01-01T00:06:00.000Z")}
    assert not desk.mirror.is_behind


@virtual
async def test_more_changes_than_are_kept_are_found_by_looking_through_everything(world: World) -> None:
    """The list of changed slugs is bounded; nothing is lost when it runs over."""
    desk = await open_desk(world)
    await noticed(world)
    await desk.schedules.put("standup", HOURLY)
    desk.mirror.schedule_changed("standup")
    for number in range(10_500):
        desk.mirror.schedule_changed(f"nobody-{number}")
    assert len(desk.mirror._changed) <= 10_000
    await world.sleep("1s")
    assert read(desk)["slug"] == "standup"
    assert not desk.mirror.is_behind
