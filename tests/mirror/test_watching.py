"""With real time, threads, watching and a disk that is really synced: what virtual time leaves out."""

import asyncio
import json
import os
import shutil
import stat
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE
from wakeful import Wakeful, every
from wakeful.server.mirror import Mirror, Report
from wakeful.server.mirror.folder import Folder, FolderTaken

pytestmark = pytest.mark.usefixtures("durable")


class Home:
    """An app and its mirror in one folder."""

    def __init__(self, path: Path) -> None:
        self.folder = path / "schedule"
        self.app = Wakeful(path / "wakeful.db", timezone="UTC")
        self.app.on_due(self._due)
        self.reports: list[Report] = []
        self.fires: list[str] = []

    async def start(self) -> None:
        await self.app.start()
        self.mirror = Mirror(self.folder, self.app._open, "all", on_report=self.reports.append)
        await self.mirror.start()

    async def stop(self) -> None:
        await self.mirror.stop()
        await self.app.stop()

    async def _due(self, fire: Any) -> None:
        self.fires.append(fire.slug)

    def file(self, slug: str = "tick", name: str = "definition.json") -> Path:
        return self.folder / slug / name

    def read(self, slug: str = "tick", name: str = "definition.json") -> Any:
        return json.loads(self.file(slug, name).read_text())


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path)
    await home.start()
    await home.app.add("tick", every("2h"))
    home.mirror.schedule_changed("tick")
    await eventually(lambda: home.file(name="last-run.json").exists() and not home.mirror.is_behind)
    yield home
    await home.stop()


async def eventually(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Return as soon as it holds; a rescan would be too late for it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            held = condition()
            if held if isinstance(held, bool) else await held:
                return
            await asyncio.sleep(0.01)


async def test_a_file_saved_in_place_is_taken_over_at_once(home: Home) -> None:
    """As `cat >` and most scripts do; and the file is spelt out again."""
    home.file().write_text(json.dumps({**home.read(), "timeout": "300s"}))
    await eventually(lambda: home.file().read_text().count('"timeout": "5m"') == 1)
    assert (await home.app.get("tick")).version == 2
    assert [str(report) for report in home.reports] == ["tick/definition.json: applied as version 2"]


async def test_a_file_saved_by_renaming_is_taken_over_at_once(home: Home) -> None:
    """As most editors do."""
    home.file(name="definition.json~").write_text(json.dumps({**home.read(), "timeout": "5m"}))
    home.file(name="definition.json~").rename(home.file())
    await eventually(lambda: [report.kind for report in home.reports] == ["edited"])
    assert (await home.app.get("tick")).to_json()["timeout"] == "5m"


async def test_a_new_folder_makes_a_schedule_at_once(home: Home) -> None:
    """Made and filled in one breath."""
    home.file("tock").parent.mkdir()
    home.file("tock").write_text(json.dumps({**home.read(), "slug": "tock"}))
    await eventually(lambda: home.file("tock", "last-run.json").exists())
    assert [view.slug for view in await home.app.list()] == ["tick", "tock"]


async def test_a_folder_that_is_removed_comes_back_at_once(home: Home) -> None:
    """Both files as they were."""
    before = home.file().read_bytes(), home.file(name="last-run.json").read_bytes()
    shutil.rmtree(home.folder / "tick", ignore_errors=True)  # a file may be back before the last one is gone
    await eventually(lambda: home.file().exists() and home.file(name="last-run.json").exists())
    assert (home.file().read_bytes(), home.file(name="last-run.json").read_bytes()) == before


async def test_a_forced_run_comes_within_seconds(home: Home) -> None:
    """`nextRun` in the past, while running."""
    last = {**home.read(name="last-run.json"), "nextRun": "2026-01-01T00:00:00.000Z"}
    home.file(name="last-run.json").write_text(json.dumps(last))
    await eventually(lambda: home.fires == ["tick"])
    await eventually(lambda: home.read(name="last-run.json")["nextRun"] > "2026-01-02")
    assert [run.trigger for run in await home.app.runs("tick")] == ["manual"]


async def test_our_own_writes_are_not_news(home: Home) -> None:
    """What we write is told to us, too, and leads to nothing: no report, no second write."""
    for timeout in ("3m", "4m", "5m"):
        await home.app.update("tick", timeout=timeout)
        home.mirror.schedule_changed("tick")
        await eventually(lambda timeout=timeout: home.read()["timeout"] == timeout)  # type: ignore[misc]
    inode = home.file().stat().st_ino
    home.file("tock").parent.mkdir()
    home.file("tock").write_text(json.dumps({**home.read(), "slug": "tock"}))
    await eventually(lambda: home.file("tock", "last-run.json").exists())  # everything before it was looked at
    assert home.file().stat().st_ino == inode
    assert [report.kind for report in home.reports] == ["created"]
    assert (await home.app.get("tick")).version == 4


async def test_files_are_durable_before_they_have_their_name(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Synced, renamed, and the name synced; none of it on the loop's thread."""
    done: list[str] = []
    threads: set[int] = set()
    fsync, rename = os.fsync, os.rename

    def note_fsync(fd: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        threads.add(threading.get_ident())
        fsync(fd)

    def note_rename(*args: Any, **options: Any) -> None:
        done.append("rename")
        rename(*args, **options)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "rename", note_rename)
    await home.app.update("tick", timeout="5m")
    home.mirror.schedule_changed("tick")
    await eventually(lambda: done[-1:] == ["folder"])
    assert done == ["file", "rename", "folder"]
    assert threading.get_ident() not in threads


async def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    """Edits made in between are taken in by the start itself; identical files are left alone."""
    home = Home(tmp_path)
    await home.start()
    await home.app.add("tick", every("2h"))
    await home.app.add("tock", every("2h"))
    home.mirror.schedule_changed("tick")
    home.mirror.schedule_changed("tock")
    await home.stop()
    inode = home.file("tock").stat().st_ino
    home.file().write_text(json.dumps({**home.read(), "timeout": "5m"}))
    home = Home(tmp_path)
    await home.start()
    assert (await home.app.get("tick")).version == 2
    await eventually(lambda: not home.mirror.is_behind)
    assert home.file("tock").stat().st_ino == inode
    await home.stop()


async def test_a_folder_closed_under_a_write_is_let_go_when_the_write_has_ended(tmp_path: Path) -> None:
    """Who keeps it next does not meet the last words of who kept it before."""
    folder, other = Folder(tmp_path / "schedule"), Folder(tmp_path / "schedule")
    with folder._held():
        folder.close()
        with pytest.raises(FolderTaken, match="another process owns the definition files"):
            other.names()
    assert other.names() == []
    with pytest.raises(FolderTaken, match="is stopped"):
        folder.names()
    other.close()


async def test_watching_that_fails_is_told_and_the_rescan_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system can watch only so many folders."""

    def fail(*args: Any, **options: Any) -> None:
        raise OSError("OS file watch limit reached.")

    monkeypatch.setattr("watchfiles.watch", fail)
    home = Home(tmp_path)
    await home.start()
    told = "saved files are noticed only within a minute: OS file watch limit reached."
    await eventually(lambda: any(told in str(report) for report in home.reports))
    await home.app.add("tick", every("2h"))
    home.mirror.schedule_changed("tick")
    await eventually(home.file().exists)
    await home.stop()
