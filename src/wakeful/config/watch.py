"""Reload the settings when their files change.

Folders are watched, not files, because editors replace a file with a new one, and a watch on the old file would never
fire. A notification is only a hint: the files' marks (device, inode, size, times) are compared with the last ones, and
the files are read if they differ. A change without a notification (a replaced folder, a file system without
notifications) is therefore found at the next check, every `RECHECK`, and the store's own writes into the same folder
cost only a few `stat` calls.

A file is read once it stops changing. One that has just disappeared or become empty is probably being saved, and gets
`GRACE` before it counts, because that resets everything to its default.
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
"""How long the folder must be quiet before a change is read; also how soon a stop is noticed."""
DEBOUNCE: Final[Duration] = 500
"""How long constant changes in the folder can delay that."""
RECHECK: Final[Duration] = 2 * SECOND
GRACE: Final[Duration] = SECOND
READS_MAX: Final = 20
"""Maximum reads of files that keep changing; then the result is used, and the next check sees the rest."""

OnChange: TypeAlias = Callable[[Loaded, Loaded], Awaitable[None] | None]
OnError: TypeAlias = Callable[[SettingsRefused], Awaitable[None] | None]
Marks: TypeAlias = Mapping[Path, tuple[int, ...]]

_log: Final = logging.getLogger("wakeful.config")


class SettingsWatch:
    """Reloads the settings whenever a file they depend on changes.

    `on_change(old, new)` is called for valid settings that differ; `on_error` for an invalid file, which changes
    nothing. Either may be a coroutine function; while it runs, no other change is reported.
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
        # The files may have changed since `loaded` was read: the first check reads them again.
        self._seen: Marks = {}
        self.current = loaded
        self.refused: SettingsRefused | None = None

    async def start(self) -> None:
        """Start; reports changes from now on, and those made since the settings were loaded."""
        self._task = asyncio.create_task(self._run(), name="settings")

    async def stop(self) -> None:
        """Stop; nothing is reported afterwards."""
        self._stop.set()
        if self._task is not None and self._task is not asyncio.current_task():  # a callback may stop the watch
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
            # Check before choosing the folders to watch: a new file may name other secrets.
            await self._look_safely()
            folders = _folders(self._files)
            try:
                await self._listen(folders)
            except Exception as error:
                # No notifications available (their number is limited, a folder has just gone): poll instead.
                _log.debug("cannot watch %s: %s", ", ".join(map(str, folders)), error)
                await self._pause(RECHECK)

    async def _listen(self, folders: Marks) -> None:
        """Check on every notification, and at least every `RECHECK`, until the set of folders changes."""
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
        except Exception:  # an error in one change or its callback must not prevent the next check
            _log.exception("a settings change could not be applied")

    async def _look(self) -> None:
        if self._stop.is_set() or _marks(self._files) == self._seen:
            return
        outcome = await self._read_settled()
        if self._stop.is_set():
            return
        if isinstance(outcome, SettingsRefused):
            self.refused = outcome
            await _await_callback(self._on_error(outcome))
            return
        old, self.current, self.refused = self.current, outcome, None
        if old.settings != outcome.settings:
            await _await_callback(self._on_change(old, outcome))

    async def _wait_while_saving(self) -> None:
        """Wait for `GRACE` if a file has just become empty and there are settings to lose."""
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
        """Read the files until their marks are the same before and after."""
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
        """Wait, but no longer than until the stop."""
        try:
            await asyncio.wait_for(self._stop.wait(), duration / SECOND)
        except TimeoutError:
            return


async def _await_callback(answer: Awaitable[None] | None) -> None:
    if inspect.isawaitable(answer):
        await answer


def _folders(files: Iterable[Path]) -> Marks:
    """The folders to watch: those of the files, and of link targets."""
    folders = {folder for file in files for folder in (file.parent, Path(os.path.realpath(file)).parent)}
    return {folder: _mark(folder)[:2] for folder in sorted(map(_existing, folders))}


def _existing(folder: Path) -> Path:
    """The folder itself, or its nearest existing ancestor."""
    return next((above for above in (folder, *folder.parents) if above.is_dir()), Path("/"))


def _marks(files: Iterable[Path]) -> Marks:
    """What changes when a file does; empty if it does not exist."""
    return {file: _mark(file) for file in files}


def _mark(file: Path) -> tuple[int, ...]:
    try:
        status = file.stat()
    except (OSError, ValueError):
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode


def _is_empty(file: Path) -> bool:
    mark = _mark(file)
    return not mark or mark[2] == 0
