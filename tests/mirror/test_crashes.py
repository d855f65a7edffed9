"""Dying at any moment: a file of ours is never mistaken for an edit, and an edit never for a file of ours."""

import asyncio
from typing import Any

import pytest

from features.kit import World, virtual
from mirror.kit import HOURLY, Desk, edit, noticed, open_desk, place, read, save
from wakeful.server.mirror.folder import FileWrite


class Died(BaseException):
    """The process ends here."""


class Disk:
    """Runs disk work inline, and dies at a chosen write: before it, or after it and before anyone hears of it."""

    def __init__(self) -> None:
        self.dies: str | None = None
        self.desk: Desk | None = None

    async def __call__(self, work: Any) -> Any:
        if self.dies is None or self.desk is None:
            return work()
        folder = self.desk.mirror.folder
        is_write = False
        write = folder.write

        def noticing(writings: Any) -> Any:
            nonlocal is_write
            is_write = True
            if self.dies == "before":
                raise Died
            return write(writings)

        folder.write = noticing  # type: ignore[method-assign]
        try:
            answer = work()
        except Died:
            await self._die()
        finally:
            del folder.write
        if is_write:
            await self._die()
        return answer

    async def _die(self) -> None:
        assert self.desk is not None
        self.dies = None
        self.desk.machine.kill()
        await asyncio.sleep(0)  # a killed process never comes back from here


async def with_disk(world: World, **settings: Any) -> tuple[Desk, Disk]:
    disk = Disk()
    desk = await open_desk(world, disk=disk, **settings)
    disk.desk = desk
    return desk, disk


@pytest.mark.parametrize("moment", ["before", "after"])
@virtual
async def test_dying_between_commit_and_write_loses_nothing(world: World, moment: str) -> None:
    """The next start finds the file old, or new and not yet noted: either way it is ours, and put in order."""
    desk, disk = await with_disk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    await desk.update("standup", prompt="Second")
    disk.dies = moment
    desk.mirror.schedule_changed("standup")
    await world.sleep("1s")
    assert read(desk)["prompt"] == ("Second" if moment == "after" else HOURLY["prompt"])
    await desk.kill()
    desk = await open_desk(world, desk.agent)
    await desk.update("standup", prompt="Third")  # before the first reconcile: the file is two versions behind
    await noticed(world)
    assert read(desk)["prompt"] == "Third"
    assert (await desk.get("standup")).version == 3
    assert desk.reports == []


@pytest.mark.parametrize("moment", ["before", "after"])
@virtual
async def test_dying_in_the_middle_of_the_first_write_creates_nothing_anew(world: World, moment: str) -> None:
    """Removed while it was down: a file of ours does not bring a schedule back."""
    desk, disk = await with_disk(world)
    await noticed(world)
    await desk.schedules.put("standup", HOURLY)
    disk.dies = moment
    desk.mirror.schedule_changed("standup")
    await world.sleep("1s")
    await desk.kill()
    other = await open_desk(world, which="off")  # somebody else who has the store, and no files
    await other.remove("standup")
    await other.stop()
    desk = await open_desk(world, desk.agent)
    await noticed(world)
    assert await desk.list() == []
    assert not place(desk).parent.exists()
    assert desk.reports == []


@virtual
async def test_a_stale_file_is_not_mistaken_for_an_edit(world: World) -> None:
    """The store changed while nobody kept the files: they follow, and undo nothing."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    await desk.stop()
    other = await open_desk(world, which="off")
    await other.update("standup", prompt="Newer")
    await other.stop()
    desk = await open_desk(world, desk.agent)
    await noticed(world)
    assert read(desk)["prompt"] == "Newer"
    assert (await desk.get("standup")).version == 2


@virtual
async def test_an_old_text_put_back_by_hand_is_an_edit(world: World) -> None:
    """Only what we left there last is ours, not everything we ever wrote."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    first = place(desk).read_bytes()
    await desk.update("standup", prompt="Second")
    await noticed(world)
    save(desk, first)
    await noticed(world)
    assert (await desk.get("standup")).to_json()["prompt"] == HOURLY["prompt"]
    assert (await desk.get("standup")).version == 3


@virtual
async def test_an_edit_saved_just_before_we_write_is_not_written_over(world: World) -> None:
    """The file is looked at again in the last moment."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    folder = desk.mirror.folder
    write = folder.write

    def late(writings: list[FileWrite]) -> Any:
        folder.write = write  # type: ignore[method-assign]
        edit(desk, prompt="Saved in between")
        return write(writings)

    folder.write = late  # type: ignore[method-assign,assignment]
    await desk.update("standup", timeout="5m")
    desk.mirror.schedule_changed("standup")
    await world.sleep("2s")
    assert (await desk.get("standup")).to_json()["prompt"] == "Saved in between"
    assert desk.told("edited") == ["standup/definition.json: applied as version 3"]


@virtual
async def test_a_lost_store_is_made_again_from_the_files(world: World) -> None:
    """Definitions and sessions are there; what was overdue runs once."""
    desk = await open_desk(world)
    await world.until("01-01 08:59:00")
    await desk.schedules.put("standup", HOURLY)
    await world.until("01-01 09:02:00")
    await desk.stop()
    for path in world.path.parent.glob("wakeful.db*"):
        path.unlink()
    desk = await open_desk(world, desk.agent)
    await noticed(world)
    view = await desk.get("standup")
    assert (view.to_json()["prompt"], view.session_id) == (HOURLY["prompt"], "abc-123")
    assert len(desk.agent.asked) == 1


@virtual
async def test_two_who_keep_one_folder_do_not_disturb_one_another(world: World) -> None:
    """The second leaves the files alone, says so, and takes over when the first is gone."""
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await noticed(world)
    second = await open_desk(world, desk.agent, name="second")
    assert len(second.told("trouble")) == 1
    assert "another process owns the definition files in" in second.told("trouble")[0]
    edit(desk, prompt="Read by one")
    await noticed(world)
    assert (len(desk.told("edited")), len(second.told("edited"))) == (1, 0)
    await desk.stop()
    edit(second, prompt="Read by the other")
    await noticed(world)
    assert len(second.told("edited")) == 1
    assert second.told("recovered") == ["definition files are synced again"]
