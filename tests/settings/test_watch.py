"""The settings while they change: valid ones take effect, faulty ones are reported and change nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import watchfiles

import wakeful.config.watch as watch_module
from patience import PATIENCE
from settings.kit import write
from wakeful.config import Loaded, SettingsRefused, SettingsWatch, diff, load


class Observed:
    """A watch over a home folder, and what it reported."""

    def __init__(self, home: Path, **options: Any) -> None:
        self.reports: asyncio.Queue[list[str] | str] = asyncio.Queue()
        self.reads = 0
        self.has_read = asyncio.Event()
        self._home = home
        self._loop = asyncio.get_running_loop()
        self.watch = SettingsWatch(
            load(home, environ={}), self._read, on_change=self.on_change, on_error=self.on_error, **options
        )

    def _read(self) -> Loaded:
        self.reads += 1
        self._loop.call_soon_threadsafe(self.has_read.set)
        return load(self._home, environ={})

    def on_change(self, old: Loaded, new: Loaded) -> None:
        self.reports.put_nowait(diff(old.settings, new.settings))

    def on_error(self, refused: SettingsRefused) -> None:
        self.reports.put_nowait(str(refused))

    async def next(self) -> list[str] | str:
        return await asyncio.wait_for(self.reports.get(), PATIENCE)

    @property
    def days(self) -> int:
        return self.watch.current.settings.log.days


@asynccontextmanager
async def watching(home: Path, **options: Any) -> AsyncIterator[Observed]:
    observed = Observed(home, **options)
    async with observed.watch:
        await asyncio.wait_for(observed.has_read.wait(), PATIENCE)
        yield observed
    assert observed.reports.empty()


def put(home: Path, text: str) -> None:
    """As careful programs save: a new file in the old one's place."""
    draft = home / "wakeful.toml.tmp"
    draft.write_text(text)
    draft.replace(home / "wakeful.toml")


def put_like_an_editor(home: Path, text: str) -> None:
    """As vim saves: the old file becomes the backup, the new one is written, the backup goes."""
    file, backup = home / "wakeful.toml", home / "wakeful.toml~"
    file.rename(backup)
    file.write_text(text)
    backup.unlink()


def put_in_place(home: Path, text: str) -> None:
    """As simple programs save."""
    (home / "wakeful.toml").write_text(text)


@pytest.mark.parametrize("save", [put, put_like_an_editor, put_in_place])
async def test_a_saved_file_takes_effect(tmp_path: Path, save: Callable[[Path, str], None]) -> None:
    """However it is saved, several times in a row."""
    write(tmp_path, "[log]\ndays = 1\n")
    async with watching(tmp_path) as seen:
        for days in (2, 3, 4):
            save(tmp_path, f"[log]\ndays = {days}\n")
            assert await seen.next() == ["log.days"]
            assert seen.days == days


async def test_a_file_that_was_not_there_at_first_is_seen(tmp_path: Path) -> None:
    """The folder is watched, not the file."""
    async with watching(tmp_path) as seen:
        put(tmp_path, "[log]\ndays = 2\n")
        assert await seen.next() == ["log.days"]


async def test_a_broken_file_is_reported_in_full_and_changes_nothing(tmp_path: Path) -> None:
    """Until it is fixed."""
    write(tmp_path, "[log]\ndays = 1\n")
    async with watching(tmp_path) as seen:
        put(tmp_path, "[log]\ndays = 0\n[server]\nport = -1\n")
        report = await seen.next()
        assert "line 2: log.days: 0 is too small" in report
        assert "line 4: server.port: -1 is too small" in report
        assert seen.days == 1
        assert seen.watch.refused is not None
        put(tmp_path, "[log]\ndays = 5\n")
        assert await seen.next() == ["log.days"]
        assert seen.watch.refused is None


async def test_a_file_put_back_as_it_was_is_no_change(tmp_path: Path) -> None:
    """The error is over, and nothing has to be applied."""
    write(tmp_path, "[log]\ndays = 1\n")
    async with watching(tmp_path) as seen:
        put(tmp_path, "[log")
        assert isinstance(await seen.next(), str)
        put(tmp_path, "# again\n[log]\ndays = 1\n")
        await _until(lambda: seen.watch.refused is None)
        assert seen.watch.current.sources["log.days"].line == 3
        put(tmp_path, "[log]\ndays = 2\n")
        assert await seen.next() == ["log.days"]


async def test_a_change_between_loading_and_watching_is_not_lost(tmp_path: Path) -> None:
    """The first look compares with what was loaded."""
    seen = Observed(tmp_path)
    put(tmp_path, "[log]\ndays = 2\n")
    async with seen.watch:
        assert await seen.next() == ["log.days"]


async def test_a_changed_secret_file_is_a_change(tmp_path: Path) -> None:
    """Wherever it lies; a key can be replaced without touching the settings."""
    home, elsewhere = tmp_path / "home", tmp_path / "secrets"
    home.mkdir()
    elsewhere.mkdir()
    (elsewhere / "key").write_text("first-key")
    write(home, f'[hooks.a]\ntoken = {{file = "{elsewhere}/key"}}\n')
    async with watching(home) as seen:
        (elsewhere / "new").write_text("second-key")
        (elsewhere / "new").replace(elsewhere / "key")
        assert await seen.next() == ["hooks.a.token"]
        assert seen.watch.current.settings.hooks["a"].token.reveal() == "second-key"


async def test_a_secret_file_that_appears_ends_the_error(tmp_path: Path) -> None:
    """Its folder is watched although the settings that name it were refused."""
    home, elsewhere = tmp_path / "home", tmp_path / "secrets"
    home.mkdir()
    elsewhere.mkdir()
    async with watching(home) as seen:
        put(home, f'[hooks.a]\ntoken = {{file = "{elsewhere}/key"}}\n')
        assert "does not exist" in await seen.next()
        (elsewhere / "key").write_text("the-key")
        assert await seen.next() == ["hooks.a"]


async def test_what_a_link_leads_to_is_watched(tmp_path: Path) -> None:
    """Settings kept in another folder, as those who version them do."""
    home, kept = tmp_path / "home", tmp_path / "kept"
    home.mkdir()
    kept.mkdir()
    write(kept, "[log]\ndays = 1\n")
    (home / "wakeful.toml").symlink_to(kept / "wakeful.toml")
    async with watching(home) as seen:
        put(kept, "[log]\ndays = 2\n")
        assert await seen.next() == ["log.days"]


async def test_a_folder_mounted_by_a_swapped_link_is_watched(tmp_path: Path) -> None:
    """As clusters mount settings: the file is a link through a link that is replaced."""
    for number in (1, 2):
        (tmp_path / f"..v{number}").mkdir()
        write(tmp_path / f"..v{number}", f"[log]\ndays = {number}\n")
    (tmp_path / "..data").symlink_to("..v1")
    (tmp_path / "wakeful.toml").symlink_to("..data/wakeful.toml")
    async with watching(tmp_path) as seen:
        (tmp_path / "..new").symlink_to("..v2")
        (tmp_path / "..new").rename(tmp_path / "..data")
        assert await seen.next() == ["log.days"]


async def test_a_folder_that_is_replaced_is_watched_again(tmp_path: Path) -> None:
    """Gone for a while, then another one under the same name."""
    home = tmp_path / "home"
    home.mkdir()
    write(home, "[log]\ndays = 1\n")
    async with watching(home, grace=50) as seen:
        shutil.rmtree(home)
        assert await seen.next() == ["log.days"]
        assert seen.days == 7
        home.mkdir()
        put(home, "[log]\ndays = 2\n")
        assert await seen.next() == ["log.days"]
        put(home, "[log]\ndays = 3\n")
        assert await seen.next() == ["log.days"]


async def test_a_home_folder_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """No error, no busy loop: it is looked for now and then."""
    home = tmp_path / "home"
    async with watching(home) as seen:
        home.mkdir()
        put(home, "[log]\ndays = 2\n")
        assert await seen.next() == ["log.days"]


async def test_a_file_being_saved_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between emptying and writing lies a moment in which all settings would be back at their defaults."""
    write(tmp_path, "[log]\ndays = 1\n")
    was_seen_empty = asyncio.Event()
    is_empty = watch_module._is_empty

    def observe(file: Path) -> bool:
        found = is_empty(file)
        if found:
            was_seen_empty.set()
        return found

    monkeypatch.setattr(watch_module, "_is_empty", observe)
    async with watching(tmp_path, grace=int(PATIENCE * 1000)) as seen:
        with (tmp_path / "wakeful.toml").open("w") as file:
            await asyncio.wait_for(was_seen_empty.wait(), PATIENCE)
            file.write("[log]\ndays = 2\n")
        assert await seen.next() == ["log.days"]
        assert seen.days == 2


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_file_that_stays_away_means_the_defaults(tmp_path: Path, is_deleted: bool) -> None:
    """Deleted or emptied, and not just being saved."""
    file = write(tmp_path, "[log]\ndays = 1\n")
    async with watching(tmp_path, grace=100) as seen:
        if is_deleted:
            file.unlink()
        else:
            os.truncate(file, 0)
        assert await seen.next() == ["log.days"]
        assert seen.days == 7


async def test_other_files_of_the_folder_are_not_read_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store writes there all the time."""
    write(tmp_path, "[log]\ndays = 1\n")
    noticed = asyncio.Event()
    awatch = watchfiles.awatch

    def observe(*paths: Path, watch_filter: Callable[[Any, str], bool], **options: Any) -> Any:
        def is_wanted(change: Any, path: str) -> bool:
            is_news = watch_filter(change, path)
            if path.endswith("wakeful.db-wal"):
                assert not is_news
                noticed.set()
            return is_news

        return awatch(*paths, watch_filter=is_wanted, **options)

    monkeypatch.setattr(watch_module, "awatch", observe)
    async with watching(tmp_path) as seen:
        put(tmp_path, "[log]\ndays = 2\n")
        await seen.next()
        reads = seen.reads
        (tmp_path / "wakeful.db-wal").write_bytes(b"a page")
        await asyncio.wait_for(noticed.wait(), PATIENCE)
        assert seen.reads == reads


async def test_who_is_told_may_take_its_time_and_may_fail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A coroutine is waited for; an error of its is logged, and the next change is reported all the same."""
    write(tmp_path, "[log]\ndays = 1\n")
    told: asyncio.Queue[int] = asyncio.Queue()

    async def on_change(old: Loaded, new: Loaded) -> None:
        told.put_nowait(new.settings.log.days)
        await asyncio.sleep(0)
        raise RuntimeError("cannot apply it")

    def read() -> Loaded:
        return load(tmp_path)

    watch = SettingsWatch(read(), read, on_change=on_change, on_error=lambda refused: None)
    async with watch:
        for days in (2, 3):
            put(tmp_path, f"[log]\ndays = {days}\n")
            assert await asyncio.wait_for(told.get(), PATIENCE) == days
    assert "could not be applied" in caplog.text


async def test_who_is_told_may_stop_it(tmp_path: Path) -> None:
    """A change that asks for a restart, say."""
    write(tmp_path, "[log]\ndays = 1\n")
    stopped = asyncio.Event()

    async def on_change(old: Loaded, new: Loaded) -> None:
        await watch.stop()
        stopped.set()

    def read() -> Loaded:
        return load(tmp_path)

    watch = SettingsWatch(read(), read, on_change=on_change, on_error=lambda refused: None)
    await watch.start()
    put(tmp_path, "[log]\ndays = 2\n")
    await asyncio.wait_for(stopped.wait(), PATIENCE)
    await asyncio.wait_for(watch.stop(), PATIENCE)


async def test_it_stops_at_once_and_then_is_silent(tmp_path: Path) -> None:
    """Stopping twice, or before it began, is no error."""
    seen = Observed(tmp_path)
    await asyncio.wait_for(seen.watch.stop(), PATIENCE)
    seen = Observed(tmp_path)
    await seen.watch.start()
    await asyncio.wait_for(seen.watch.stop(), PATIENCE)
    await asyncio.wait_for(seen.watch.stop(), PATIENCE)
    put(tmp_path, "[log]\ndays = 2\n")
    assert seen.reports.empty()


async def test_without_notices_the_clock_finds_the_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system gives only so many watches; changes are then found a little later."""
    monkeypatch.setattr(watch_module, "RECHECK", 50)

    def no_notices(*paths: Path, **options: Any) -> Any:
        raise OSError("no space left for watches")

    monkeypatch.setattr(watch_module, "awatch", no_notices)
    async with watching(tmp_path) as seen:
        put(tmp_path, "[log]\ndays = 2\n")
        assert await seen.next() == ["log.days"]


async def _until(condition: Callable[[], bool]) -> None:
    """Wait until something holds that nothing reports."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)
