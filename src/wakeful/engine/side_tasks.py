"""Side tasks: work outside the ledger that this node performs, such as delivery attempts and quota polls.

A side task is claimed by moving its alarm to the time its claim expires, so nothing needs to be recorded here: if the
task is lost with the process, cancelled at its deadline, or its result is not written, the alarm rings again.
"""

import asyncio
import logging
from collections.abc import Callable

from wakeful.core.time.instants import SECOND
from wakeful.ports.clock import Clock, Moment
from wakeful.ports.handlers import SideTask
from wakeful.ports.store import Store, StoreUnavailable

log = logging.getLogger("wakeful.engine")

WRITE_TRIES = 5


class SideTasks:
    """Everything this node runs that has no row in the ledger."""

    def __init__(self, store: Store, clock: Clock, ring_bell: Callable[[], None]) -> None:
        self._store = store
        self._clock = clock
        self._ring_bell = ring_bell
        self._deadlines: dict[asyncio.Task[None], int] = {}  # monotonic

    @property
    def count(self) -> int:
        return len(self._deadlines)

    @property
    def under_way(self) -> dict[asyncio.Task[None], str]:
        """The running tasks, each with its name."""
        return {task: task.get_name() for task in self._deadlines if not task.done()}

    def start(self, side_task: SideTask, claimed: Moment) -> None:
        """Run a side task in its own asyncio task, until its deadline. `claimed` was read before the claim was
        written."""
        until = Moment(claimed.now + side_task.timeout, claimed.monotonic + side_task.timeout)
        task = asyncio.create_task(self._perform(side_task, until), name=f"wakeful-side-task {side_task.name}")
        self._deadlines[task] = until.monotonic
        task.add_done_callback(self._forget)

    def next_deadline(self) -> int | None:
        """The monotonic time at which a task must be cancelled."""
        return min(self._deadlines.values(), default=None)

    def end_overdue(self, monotonic: int) -> None:
        """Cancel tasks past their deadline."""
        for task, deadline in list(self._deadlines.items()):
            if deadline <= monotonic:
                log.warning("%s took too long and was cancelled", task.get_name())
                del self._deadlines[task]
                task.cancel()

    def end_all(self) -> None:
        """Cancel everything; the alarms keep what is left."""
        for task in list(self._deadlines):
            task.cancel()

    async def wait_idle(self) -> None:
        """Return when nothing runs."""
        while self._deadlines:
            await asyncio.wait(list(self._deadlines))

    async def _perform(self, side_task: SideTask, until: Moment) -> None:
        moment = self._clock.read()
        if moment.monotonic >= until.monotonic or moment.now >= until.now:
            log.warning("%s is not started: this process was frozen until after its claim expired", side_task.name)
            return
        try:
            note = await side_task.perform()
        except Exception:  # a failing side task must not stop the engine (L9); its claim expires by itself
            log.exception("%s failed", side_task.name)
            return
        if note is None:
            return
        for _ in range(WRITE_TRIES):
            try:
                await self._store.write(note)
                break
            except StoreUnavailable as error:
                log.warning("cannot write the result of %s yet: %s", side_task.name, error)
                await self._clock.sleep(SECOND)
            except Exception:
                log.exception("cannot write the result of %s", side_task.name)
                break

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._deadlines.pop(task, None)
        self._ring_bell()  # something may be due now, or waiting for capacity
