"""The settings as they change while the program runs.

Theory of operation: folders are watched, not files, because an editor puts a new file in the old one's place, and a
watch on the old one would never hear of it. What is heard is only a hint to look: the files' marks (device, inode,
size, times) are compared with those of the last look, and read when they differ. So a change that was not heard of (a
folder that was replaced, a file system without notices) is found at the next look anyway, every `RECHECK`, and the
store's own writes into the same folder cost a few `stat` calls.

A file is believed once it stops changing. One that has just vanished or become empty is most likely being saved, and
gets `GRACE` before it is taken at its word, which would be: everything back to its default.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias

from watchfiles import awatch

from wakeful.config.faults import SettingsRefused
from wakeful.config.load import Loaded
from wakeful.config.walk import diff
from wakeful.core.time.instants import SECOND, Duration

__all__ = ["SettingsWatch", "diff"]

STEP: Final[Duration] = 50
"""How long it must have been quiet before a change is looked at; also how soon a stop is noticed."""
DEBOUNCE: Final[Duration] = 500
"""How long a folder that is never quiet can put that off."""
RECHECK: Final[Duration] = 2 * SECOND
GRACE: Final[Duration] = SECOND
READS_MAX: Final = 20
"""Readings of files that change under the reader; then the result is taken, and the next look sees the rest."""

OnChange: TypeAlias = Callable[[Loaded, Loaded], Awaitable[None] | None]
OnError: TypeAlias = Callable[[SettingsRefused], Awaitable[None] | None]
Marks: TypeAlias = Mapping[Path, tuple[int, ...]]

_log: Final = logging.getLogger("wakeful.config")


class SettingsWatch:
    """Reads the settings again whenever a file they depend on changes.

    `on_change(old, new)` is called for valid settings that differ; `on_error` for a file that cannot be accepted, which
    changes nothing. Either may be a coroutine function; while it runs, no other change is reported.
    """

    def __init__(
        self,
        loaded: Loaded,
        read: Callable[[], Loaded],
        *,
        on_change: OnChange,
        on_error: OnError,
        grace: Duration = GRACE,
    ) -> None:
        self._read = read
        self._on_change = on_change
        self._on_error = on_error
        self._grace = grace
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # Nothing is known of what happened since `loaded` was read: the first look reads once more.
        self._seen: Marks = {}
        self.current = loaded
        self.refused: SettingsRefused | None = None

    async def start(self) -> None:
        """Begin; a change made from now on, or since the settings were loaded, is reported."""
        self._task = asyncio.create_task(self._run(), name="settings")

    async def stop(self) -> None:
        """End; nothing is reported any more afterwards."""
        self._stop.set()
        if self._task is not None and self._task is not asyncio.current_task():  # who is told of a change may stop it
            await self._task

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def _files(self) -> frozenset[Path]:
        return self.current.files | (self.refused.files if self.refused else frozenset())

    async def _run(self) -> None:
        while not self._stop.is_set():
            # Looked at before it is said which folders to watch: another file may name other secrets.
            await self._look_safely()
            folders = _folders(self._files)
            try:
                await self._listen(folders)
            except Exception as error:
                # No notices to be had (their number is limited, a folder has just gone): the clock has to do.
                _log.debug("cannot watch %s: %s", ", ".join(map(str, folders)), error)
                await self._pause(RECHECK)

    async def _listen(self, folders: Marks) -> None:
        """Look at every notice, and without one every `RECHECK`, until the folders are not the same any more."""
        notices = awatch(
            *folders,
            watch_filter=lambda change, path: self._has_news(folders),
            debounce=DEBOUNCE,
            step=STEP,
            stop_event=self._stop,
            rust_timeout=RECHECK,
            yield_on_timeout=True,
            recursive=False,
        )
        async with aclosing(notices):
            async for _ in notices:
                await self._look_safely()
                if self._stop.is_set() or _folders(self._files) != folders:
                    return

    def _has_news(self, folders: Marks) -> bool:
        return _marks(self._files) != self._seen or _folders(self._files) != folders

    async def _look_safely(self) -> None:
        try:
            await self._look()
        except Exception:  # whatever is wrong with one change or with who hears of it, the next one is looked at
            _log.exception("a change of the settings could not be applied")

    async def _look(self) -> None:
        if self._stop.is_set() or _marks(self._files) == self._seen:
            return
        outcome = await self._read_settled()
        if self._stop.is_set():
            return
        if isinstance(outcome, SettingsRefused):
            self.refused = outcome
            await _told(self._on_error(outcome))
            return
        old, self.current, self.refused = self.current, outcome, None
        if old.settings != outcome.settings:
            await _told(self._on_change(old, outcome))

    async def _wait_while_saving(self) -> None:
        """Give a file that has just become empty its time, if there is anything to lose."""
        waited = 0
        while self._has_more_than_defaults and _is_empty(self.current.file) and waited < self._grace:
            if self._stop.is_set():
                return
            await self._pause(STEP)
            waited += STEP

    @property
    def _has_more_than_defaults(self) -> bool:
        return any(source.line is not None for source in self.current.sources.values())

    async def _read_settled(self) -> Loaded | SettingsRefused:
        """What the files say, once they say the same before and after being read."""
        files = self._files
        for _ in range(READS_MAX):
            await self._wait_while_saving()
            before = _marks(files)
            outcome = await asyncio.to_thread(self._outcome)
            needed = self.current.files | outcome.files if isinstance(outcome, SettingsRefused) else outcome.files
            if needed == files and _marks(files) == before:
                break
            files = needed
            await self._pause(STEP)
        self._seen = before
        return outcome

    def _outcome(self) -> Loaded | SettingsRefused:
        try:
            return self._read()
        except SettingsRefused as refused:
            return refused

    async def _pause(self, duration: Duration) -> None:
        """Wait, but not for longer than until the stop."""
        try:
            await asyncio.wait_for(self._stop.wait(), duration / SECOND)
        except TimeoutError:
            return


async def _told(answer: Awaitable[None] | None) -> None:
    if inspect.isawaitable(answer):
        await answer


def _folders(files: Iterable[Path]) -> Marks:
    """The folders in which a change of the files shows: their own, and where links lead."""
    folders = {folder for file in files for folder in (file.parent, Path(os.path.realpath(file)).parent)}
    return {folder: _mark(folder)[:2] for folder in sorted(map(_existing, folders))}


def _existing(folder: Path) -> Path:
    """The folder itself, or the nearest one above in which it would appear."""
    return next((above for above in (folder, *folder.parents) if above.is_dir()), Path("/"))


def _marks(files: Iterable[Path]) -> Marks:
    """What changes when a file does; nothing for one that is not there."""
    return {file: _mark(file) for file in files}


def _mark(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode


def _is_empty(file: Path) -> bool:
    mark = _mark(file)
    return not mark or mark[2] == 0
