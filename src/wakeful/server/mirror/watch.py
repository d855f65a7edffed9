"""Watch the folder for saved files.

A thread waits for notifications, because even setting up a watch blocks: it needs a system call for each folder. A
notification is only a hint; the rescan finds what it misses.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import watchfiles

from wakeful.core.time.instants import Duration
from wakeful.integrations.system.threads import call_on, in_thread
from wakeful.server.mirror.texts import FILES

STEP: Final[Duration] = 50
DEBOUNCE: Final[Duration] = 400


class Watcher:
    """Watches one folder and reports the slugs whose folders changed.

    `begun` is called when the watch is active: files saved before that were not reported.
    """

    def __init__(
        self,
        path: Path,
        *,
        begun: Callable[[], None],
        touched: Callable[[Iterable[str]], None],
        failed: Callable[[str], None],
    ) -> None:
        self._path = path.resolve()  # the system reports real paths
        self._begun: Callable[[], None] | None = begun
        self._touched = touched
        self._failed = failed
        self._is_over = threading.Event()
        self._ended: asyncio.Future[None] | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._ended = in_thread(lambda: self._watch(loop), name="mirror-watch")

    async def stop(self) -> None:
        """Returns when the thread has ended, within one step of the watch."""
        self._is_over.set()
        if self._ended is not None:
            await self._ended

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for changes in watchfiles.watch(
                self._path,
                watch_filter=None,
                step=STEP,
                debounce=DEBOUNCE,
                stop_event=self._is_over,
                yield_on_timeout=True,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                if self._begun is not None:
                    call_on(loop, self._begun)
                    self._begun = None
                slugs = {slug for _, path in changes if (slug := self._slug_of(path)) is not None}
                if slugs:
                    call_on(loop, lambda slugs=slugs: self._touched(slugs))  # type: ignore[misc]
        except Exception as error:  # too many folders for the system to watch, or it cannot watch at all
            reason = str(error) or type(error).__name__
            call_on(loop, lambda: self._failed(reason))

    def _slug_of(self, path: str) -> str | None:
        """The slug of a change; None for temporary files and error files."""
        try:
            parts = Path(path).relative_to(self._path).parts
        except ValueError:
            return None
        is_ours = len(parts) == 1 or (len(parts) == 2 and parts[1] in FILES)
        return parts[0] if is_ours else None
