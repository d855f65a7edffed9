"""Definitions as files: a folder that mirrors the store; edits in it are applied.

Theory of operation
-------------------
The store is authoritative. After a commit `schedule_changed(slug)` is called; a background task collects the changes
and writes `<slug>/definition.json` and `<slug>/last-run.json`, merging several changes of one schedule. Nothing waits
for it: slugs that do not fit into the bounded list of changes are found by the reconcile pass, which walks through
store and folder page by page at startup, after errors, and slowly from then on.

A file that differs from what we wrote was edited (see `known`). It is read before it is written, checked, and applied
through the ordinary commands (see `edits`), or left as it is with an error file beside it. At startup all edits are
applied before `start` returns, so that the clock starts with them; nothing is written yet.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

from wakeful.app.bootstrap import Parts
from wakeful.core.slug import SLUG_PATTERN
from wakeful.core.time.instants import MINUTE, SECOND, Duration
from wakeful.integrations.system.threads import Threads
from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.server.mirror.folder import Folder, FolderTaken
from wakeful.server.mirror.report import OnReport, Report, to_log
from wakeful.server.mirror.syncing import MirrorSync, Offload, Phase
from wakeful.server.mirror.texts import Which, is_mirrored
from wakeful.server.mirror.watch import Watcher

log = logging.getLogger("wakeful.server.mirror")

BATCH: Final = 50
PAGE: Final = 500
CHANGED_MAX: Final = 10_000
NO_FILES_MAX: Final = 100_000
NAMES_TOLD_MAX: Final = 20

GATHER: Final[Duration] = 100
RESCAN: Final[Duration] = MINUTE
RETRY: Final[Duration] = 10 * SECOND
START_WITHIN: Final[Duration] = 10 * SECOND
STOP_WITHIN: Final[Duration] = 5 * SECOND
# Work on files takes at most a third of the time and the rescan a twentieth, so that the clock is not delayed (L9).
REST_PER_WORK: Final = 2
REST_PER_RESCAN: Final = 6


class Mirror:
    """Mirrors the definitions of one store in one folder. Bound to the event loop it is started on.

    `which` schedules have files: agent schedules, all, or none (off). `disk` runs blocking calls; by default in its own
    thread. `is_watching` notices saved files immediately instead of at the next rescan. `is_trusting` returns whether
    files are applied even if an agent may have written them.
    """

    def __init__(
        self,
        folder: Path,
        parts: Parts,
        which: Which = "agent",
        *,
        on_report: OnReport = to_log,
        disk: Offload | None = None,
        is_watching: bool = True,
        is_trusting: Callable[[], bool] = lambda: False,
    ) -> None:
        self.folder = Folder(folder)
        self._store = parts.store
        self._clock = parts.clock
        self._which: Which = which
        self._on_report = on_report
        self._threads = Threads()
        self._disk: Offload = disk or self._threads.run
        self._syncing = MirrorSync(self.folder, parts, which, self._disk, self._tell, is_trusting)
        self._is_watching = is_watching
        self._watcher: Watcher | None = None
        self._watched: tuple[int, int] | None = None
        self._bell = asyncio.Event()
        self._has_taken_in = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._changed: dict[str, bool] = {}  # slugs to sync; True: something changed in their folder
        self._busy: dict[str, bool] = {}  # slugs being synced
        self._no_files: set[str] = set()  # slugs without files that change often: ignored until the next reconcile
        self._told_names: set[str] = set()
        self._reconcile_at = 0
        self._is_working = False
        self._trouble: str | None = None

    # --- public -----------------------------------------------------------------------------------------------------

    def schedule_changed(self, slug: str) -> None:
        """Report a commit that touched this schedule. Cheap; on the event loop only."""
        if self._task is not None and slug not in self._no_files:
            self._mark(slug, is_touched=False)

    @property
    def problems(self) -> list[Report]:
        """The current problems: refused edits, and files that cannot be written."""
        refused = self._syncing.refusals.items()
        reports = [Report("refused", refusal.message, slug, name or None) for (slug, name), refusal in sorted(refused)]
        troubles = (self._trouble, self._syncing.trouble)
        return [Report("trouble", trouble) for trouble in troubles if trouble is not None] + reports

    @property
    def is_behind(self) -> bool:
        """Whether files and store may differ."""
        is_waiting = bool(self._changed or self._syncing.later) or self._monotonic >= self._reconcile_at
        return is_waiting or self._is_working

    async def start(self) -> None:
        """Apply the edits made in the meantime, then mirror. An unresponsive folder does not block it for long."""
        if self._which == "off" or self._task is not None:
            return
        self._reconcile_at = self._monotonic
        self._task = asyncio.create_task(self._run(), name="wakeful-mirror")
        await self._clock.wait(self._has_taken_in, START_WITHIN)

    async def stop(self) -> None:
        """Write pending changes within a time limit. Edits wait for the next start."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        if await self._within(STOP_WITHIN, _ended(task)):
            await self._within(STOP_WITHIN, self._flush())
        if self._watcher is not None:
            await self._within(STOP_WITHIN, self._watcher.stop())
        self.folder.close()
        self._threads.close()

    # --- the task ----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        await self._guarded(self._take_in())
        self._has_taken_in.set()
        while True:
            await self._clock.wait(self._bell, self._pause())
            self._bell.clear()
            await self._clock.sleep(GATHER)
            self._is_working = True
            await self._guarded(self._work())
            self._is_working = False

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Errors with files are reported and retried; they never stop the clock (L9)."""
        try:
            await work
        except (OSError, FolderTaken, StoreUnavailable) as error:
            self._fail(str(error) or type(error).__name__)
        except Exception as error:
            log.exception("the definition files could not be synced")
            self._fail(f"{type(error).__name__}: {error}")

    async def _work(self) -> None:
        now = self._monotonic
        for slug in [slug for slug, at in self._syncing.later.items() if at <= now]:
            del self._syncing.later[slug]
            self._mark(slug, is_touched=True)
        if now >= self._reconcile_at:
            planned = self._reconcile_at = now + RESCAN
            await self._reconcile()
            if self._reconcile_at == planned:  # otherwise another pass was requested during this one
                self._reconcile_at = self._monotonic + max(RESCAN, REST_PER_RESCAN * (self._monotonic - now))
        await self._drain("run")
        if self._syncing.trouble is not None:
            self._reconcile_at = min(self._reconcile_at, self._monotonic + RETRY)
        elif self._trouble is not None:
            self._trouble = None
            self._tell(Report("recovered", "definition files are synced again"))

    async def _take_in(self) -> None:
        """Read every file before any is written."""
        slugs = [name for name in await self._disk(self.folder.names) if SLUG_PATTERN.fullmatch(name)]
        for start in range(0, len(slugs), BATCH):
            await self._sync(dict.fromkeys(slugs[start : start + BATCH], True), "start")

    async def _reconcile(self) -> None:
        """Compare store and folder page by page in slug order; changes in the meantime are handled in between."""
        self._no_files.clear()
        names = await self._disk(self.folder.names)
        await self._watch()
        self._tell_of_strangers(names)
        folders = [name for name in names if SLUG_PATTERN.fullmatch(name)]
        after: str | None = None
        while True:
            page, last = await self._page(after)
            here = [name for name in folders if last is None or name <= last]
            folders = folders[len(here) :]
            both = dict.fromkeys(page, False) | dict.fromkeys(here, True)
            await self._sync_all(both)
            if last is None:
                return
            after = last

    async def _page(self, after: str | None) -> tuple[list[str], str | None]:
        """The slugs with files in one page of the store, and its last slug; None on the last page."""

        def read(tx: Tx) -> tuple[list[str], str | None]:
            rows = tx.schedules.page(after=after, limit=PAGE)
            mirrored = [row.slug for row in rows if is_mirrored(row.slug, row.definition, self._which)]
            return mirrored, rows[-1].slug if len(rows) == PAGE else None

        return await self._store.read(read)

    async def _sync_all(self, slugs: Mapping[str, bool]) -> None:
        left = iter(sorted(slugs.items()))
        while batch := dict(islice(left, BATCH)):
            await self._sync(batch, "run")
            await self._drain("run")

    async def _drain(self, phase: Phase) -> None:
        while self._changed:
            batch = dict(islice(self._changed.items(), BATCH))
            for slug in batch:
                del self._changed[slug]
            self._busy = batch
            for slug in await self._sync(batch, phase):
                if len(self._no_files) < NO_FILES_MAX and not batch[slug]:
                    self._no_files.add(slug)
            self._busy = {}

    async def _sync(self, batch: Mapping[str, bool], phase: Phase) -> Sequence[str]:
        began = self._monotonic
        have_no_files = await self._syncing.sync(batch, phase)
        if phase == "run":
            await self._clock.sleep(REST_PER_WORK * (self._monotonic - began))
        return have_no_files

    async def _flush(self) -> None:
        self._changed = {**self._busy, **self._changed}
        with suppress(OSError, FolderTaken, StoreUnavailable):  # the next start finds what was not written
            await self._drain("stop")

    # --- inside ------------------------------------------------------------------------------------------------------

    @property
    def _monotonic(self) -> int:
        return self._clock.read().monotonic

    def _pause(self) -> Duration:
        """Wait until there is something to do."""
        nearest = min(self._syncing.later.values(), default=self._reconcile_at)
        return max(0, min(nearest, self._reconcile_at) - self._monotonic)

    def _mark(self, slug: str, *, is_touched: bool) -> None:
        if len(self._changed) >= CHANGED_MAX:
            self._changed.clear()
            self._look_through()  # too many to remember
        else:
            self._changed[slug] = is_touched or self._changed.get(slug, False)
            self._bell.set()

    def _look_through(self) -> None:
        """Request a full comparison."""
        self._reconcile_at = self._monotonic
        self._bell.set()

    async def _watch(self) -> None:
        """Watch the folder; watch again if it was removed and created again."""
        if not self._is_watching:
            return
        identity = await self._disk(self.folder.identity)
        if identity == self._watched:
            return
        if self._watcher is not None:
            await self._watcher.stop()
        self._watched = identity
        self._watcher = Watcher(
            self.folder.path, begun=self._look_through, touched=self._touched, failed=self._cannot_watch
        )
        self._watcher.start()

    def _touched(self, slugs: Iterable[str]) -> None:
        for slug in slugs:
            if SLUG_PATTERN.fullmatch(slug):
                self._mark(slug, is_touched=True)

    def _cannot_watch(self, reason: str) -> None:
        self._syncing.lag = RESCAN
        self._tell(
            Report(
                "trouble", f"the folder cannot be watched, so saved files are noticed only within a minute: {reason}"
            )
        )

    def _tell_of_strangers(self, names: Iterable[str]) -> None:
        """Report folders whose name is not a slug; they are never read."""
        strangers = {name for name in names if not SLUG_PATTERN.fullmatch(name)} - self._told_names
        for name in sorted(strangers)[: NAMES_TOLD_MAX - len(self._told_names)]:
            self._told_names.add(name)
            cure = "name it with 1 to 64 of a-z 0-9 . _ - beginning with a letter or digit"
            self._tell(Report("refused", f"{name!r} is not a slug and is ignored; {cure}"))

    def _fail(self, reason: str) -> None:
        self._reconcile_at = self._monotonic + RETRY
        self._busy = {}
        if reason != self._trouble:
            self._trouble = reason
            self._tell(Report("trouble", f"{reason}; will be retried"))

    def _tell(self, report: Report) -> None:
        try:
            self._on_report(report)
        except Exception:  # a listener must not break the mirror
            log.exception("a report could not be delivered: %s", report)

    async def _within(self, limit: Duration, work: Coroutine[Any, Any, object]) -> bool:
        """Whether the work ended in time; if not, stop waiting for it."""
        ended = asyncio.Event()
        task = asyncio.create_task(work)
        task.add_done_callback(lambda _: ended.set())
        if await self._clock.wait(ended, limit):
            await task
            return True
        task.cancel()
        return False


async def _ended(task: "asyncio.Task[None]") -> None:
    await asyncio.wait([task])
