"""Disks, folders and people that misbehave: told clearly, nothing lost, the clock never late (L9)."""

import asyncio
import errno
import os
from typing import Any

import pytest

from features.kit import World, short, virtual
from mirror.kit import HOURLY, Desk, edit, listed, noticed, open_desk, place, read, save
from wakeful.ports.store import StoreUnavailable


async def with_schedule(world: World, **settings: Any) -> Desk:
    desk = await open_desk(world, **settings)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    return desk


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
@virtual
async def test_what_cannot_be_written_is_told_once_and_written_later(
    world: World, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full or read-only disk: one report, the old file whole, no litter, and all there when it is over."""
    desk = await with_schedule(world)
    for slug in ("one", "two"):
        await desk.schedules.put(slug, {**HOURLY, "slug": slug})
    await desk.update("standup", prompt="Second")

    def full(fd: int, data: Any) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for slug in ("one", "two", "standup"):
            desk.mirror.schedule_changed(slug)
        await noticed(world)
        await noticed(world)
    assert len(desk.told("trouble")) == 1
    assert os.strerror(number) in desk.told("trouble")[0]
    assert read(desk)["prompt"] == HOURLY["prompt"]
    assert listed(place(desk).parent) == ["definition.json", "last-run.json"]
    await world.sleep("30s")
    assert read(desk)["prompt"] == "Second"
    assert read(desk, "two")["slug"] == "two"
    assert desk.told("recovered") == ["definition files can be written again"]
    assert desk.told("edited") == []


@virtual
async def test_a_disk_that_fails_at_the_sync_leaves_a_file_of_ours(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renamed and not known to be durable: both texts stay known, neither is an edit."""
    desk = await with_schedule(world)
    await desk.update("standup", prompt="Second")

    def fail(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):  # noqa: PTH112 - a descriptor, not a path
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        desk.mirror.schedule_changed("standup")
        await world.sleep("1s")
    assert read(desk)["prompt"] == "Second"
    await noticed(world)
    assert (await desk.get("standup")).version == 2
    assert desk.told("edited") == []


@virtual
async def test_a_file_where_the_folder_belongs(world: World) -> None:
    """Told, left alone, and everything else goes on; moved away, the files are there."""
    (world.path.parent / "schedule").write_text("in the way")
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await world.until("01-01 09:00:00")
    assert len(desk.agent.asked) == 1
    assert len(desk.told("trouble")) == 1
    (world.path.parent / "schedule").unlink()
    await noticed(world)
    assert read(desk)["slug"] == "standup"
    assert desk.mirror.problems == []


@virtual
async def test_a_file_where_a_schedules_folder_belongs(world: World) -> None:
    """Its schedule has no files, the others have."""
    desk = await open_desk(world)
    desk.folder.mkdir(exist_ok=True)
    (desk.folder / "standup").write_text("in the way")
    (desk.folder / "readme.txt").write_text("no schedule is called that")
    await desk.schedules.put("standup", HOURLY)
    await desk.schedules.put("digest", {**HOURLY, "slug": "digest"})
    await noticed(world)
    await noticed(world)
    assert desk.told("refused") == ["standup: is a file in the place of the schedule's folder; move it elsewhere"]
    assert read(desk, "digest")["slug"] == "digest"
    (desk.folder / "standup").unlink()
    await noticed(world)
    assert read(desk)["slug"] == "standup"


@virtual
async def test_links_are_never_followed(world: World) -> None:
    """Neither a linked folder nor a linked file is read, and nothing outside is written."""
    outside = world.path.parent / "outside"
    outside.mkdir()
    (outside / "definition.json").write_text('{"prompt": "Evil", "schedule": {"type": "manual"}}')
    desk = await with_schedule(world)
    (desk.folder / "linked").symlink_to(outside)
    place(desk).unlink()
    place(desk).symlink_to(outside / "definition.json")
    place(desk, name="last-run.json").unlink()
    place(desk, name="last-run.json").symlink_to(outside / "new.json")
    place(desk, name=".last-run.json.new").symlink_to(outside / "passing.json")
    await noticed(world)
    assert desk.told("refused") == [
        "linked: is a symbolic link, which is not followed; put the folder itself here",
        "standup/definition.json: is a symbolic link, which is not followed; put the file itself here",
        "standup/last-run.json: is a symbolic link, which is not followed; put the file itself here",
    ]
    assert listed(outside) == ["definition.json"]
    assert [view.slug for view in await desk.list()] == ["standup"]
    assert (await desk.get("standup")).version == 1
    for name in ("definition.json", "last-run.json"):
        place(desk, name=name).unlink()
    await noticed(world)
    assert read(desk, name="last-run.json")["sessionId"] is None
    assert listed(outside) == ["definition.json"]


@virtual
async def test_pipes_and_folders_in_place_of_files_do_not_hold_us_up(world: World) -> None:
    """A pipe nobody writes to would be waited for."""
    desk = await with_schedule(world)
    place(desk).unlink()
    os.mkfifo(place(desk))
    place(desk, name="last-run.json").unlink()
    place(desk, name="last-run.json").mkdir()
    await noticed(world)
    assert [message.partition(": ")[2] for message in desk.told("refused")] == ["is not a file; put a file here"] * 2


@virtual
async def test_permission_denied_by_the_system(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told with the system's words, and over when it is over."""
    desk = await with_schedule(world)
    opened = os.open

    def deny(path: Any, *args: Any, **options: Any) -> int:
        if path == "definition.json":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", deny)
        await noticed(world)
    assert desk.told("refused") == ["standup/definition.json: cannot be read: Permission denied"]
    await noticed(world)
    assert desk.told("recovered") == ["standup/definition.json: valid again"]


@virtual
async def test_a_store_that_cannot_be_written_keeps_edits_for_later(world: World) -> None:
    """Nothing is taken for done that was not committed (L7)."""
    desk = await with_schedule(world)
    edit(desk, prompt="Second")
    desk.store.is_down = True
    await noticed(world)
    desk.store.is_down = False
    await noticed(world)
    assert (await desk.get("standup")).to_json()["prompt"] == "Second"
    assert len(desk.told("trouble")) == 1
    assert desk.told("edited") == ["standup/definition.json: applied as version 2"]


@virtual
async def test_a_store_that_fails_once_in_the_middle_of_writing(world: World) -> None:
    """Between the file and its note: found in order at the next look."""
    desk = await with_schedule(world)
    await desk.update("standup", prompt="Second")
    write = desk.mirror.folder.write

    def then_fail(writings: Any) -> Any:
        desk.store.fails_next = StoreUnavailable("the disk is full")
        desk.mirror.folder.write = write  # type: ignore[method-assign]
        return write(writings)

    desk.mirror.folder.write = then_fail  # type: ignore[method-assign]
    await noticed(world)
    await noticed(world)
    assert (await desk.get("standup")).version == 2
    assert read(desk)["prompt"] == "Second"
    assert desk.told("edited") == []


@virtual
async def test_a_listener_that_fails_harms_nobody(world: World) -> None:
    """Who hears the reports cannot stop what they are about."""
    desk = await open_desk(world)

    def fail(report: object) -> None:
        raise RuntimeError("not listening")

    desk.mirror._on_report = fail
    save(desk, HOURLY)
    save(desk, "{", "broken")
    await noticed(world)
    assert read(desk, name="last-run.json")["nextRun"] == "2026-01-01T09:00:00.000Z"


@virtual
async def test_a_disk_that_hangs_holds_up_neither_start_nor_clock_nor_stop(world: World) -> None:
    """A network disk that is away: the clock starts without it, and the end comes without it."""
    hanging = asyncio.Event()

    async def hang(work: Any) -> Any:
        await hanging.wait()
        return work()

    desk = await open_desk(world, disk=hang)
    assert short(world.now) == "01-01 00:00:10"
    await desk.schedules.put("standup", HOURLY)
    await world.until("01-01 09:00:00")
    assert len(desk.agent.asked) == 1
    await desk.stop()
    assert short(world.now) <= "01-01 09:00:20"


@virtual
async def test_a_bad_file_among_many_is_alone_with_its_trouble(world: World) -> None:
    """Its neighbours in the same batch are taken over."""
    desk = await open_desk(world)
    for number in range(20):
        save(desk, "{" if number % 5 == 0 else {**HOURLY, "slug": f"job-{number}"}, f"job-{number}")
    await noticed(world)
    assert len(desk.told("created")) == 16
    assert len(desk.told("refused")) == 4
    assert listed(desk.folder / "job-5") == ["definition.error.txt", "definition.json"]
