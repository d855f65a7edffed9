"""The settler: writes endings to the ledger.

Endings are never dropped: while the store cannot be written they wait and are tried again. Attempts that end during one
commit are settled together in the next. If an ending cannot be settled although the store works, it is tried again
every minute, by itself: until then its run stays open, and the error is in the log.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from wakeful.core.run.effects import Alert
from wakeful.core.run.results import Ending
from wakeful.core.run.runs import Run
from wakeful.core.schedule.policies import MINUTE, SECOND
from wakeful.core.time.instants import Instant
from wakeful.engine.membership import Membership
from wakeful.engine.settling import Ended, settle
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.store import Store, StoreUnavailable

log = logging.getLogger("wakeful.engine")

SETTLE_MAX: Final = 200
TRY_AGAIN: Final = SECOND


class Settler:
    """A queue of endings with one task that empties it, batch by batch."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        hooks: EngineHooks,
        membership: Membership,
        *,
        alert: Callable[[Alert, Instant], None],
        ring_bell: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._membership = membership
        self._alert = alert
        self._ring_bell = ring_bell
        self._queue: deque[Ended] = deque()
        self._task: asyncio.Task[None] | None = None
        self._apart: set[asyncio.Task[None]] = set()  # endings that failed, each waiting for its next try
        self._refused = asyncio.Event()  # the store did not accept the last batch

    @property
    def under_way(self) -> dict[asyncio.Task[None], str]:
        """The task that settles, while there are endings to settle."""
        return {} if self._task is None or self._task.done() else {self._task: "settling"}

    def put(self, run: Run, ending: Ending) -> None:
        """Settle the ending of a run that this node claimed."""
        self._queue.append(Ended(run, ending))
        if self._task is None:
            self._task = asyncio.create_task(self._drain())

    def clear(self) -> None:
        """Drop endings of runs that another node took, or that the next start will treat as lost."""
        self._queue.clear()
        for waiting in self._apart:
            waiting.cancel()

    async def wait_empty(self) -> None:
        """Return when everything put so far is in the ledger."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def wait_tried(self) -> None:
        """Return when everything put so far is in the ledger, or the store did not accept it."""
        refused = asyncio.create_task(self._refused.wait())
        try:
            while self._task is not None and not self._refused.is_set():
                await asyncio.wait([self._task, refused], return_when=asyncio.FIRST_COMPLETED)
        finally:
            refused.cancel()

    async def _drain(self) -> None:
        try:
            await asyncio.sleep(0)  # let attempts that end at the same moment join
            while self._queue:
                await self._settle_or_keep(self._batch())
        finally:
            self._task = None

    async def _settle_or_keep(self, batch: list[Ended]) -> None:
        try:
            await self._settle(batch)
            self._refused.clear()
        except StoreUnavailable:
            self._refused.set()
            self._queue.extendleft(reversed(batch))
            await self._clock.sleep(TRY_AGAIN)
        except Exception:
            if len(batch) == 1:
                log.exception("cannot settle run %d; trying again in a minute", batch[0].run.run_id)
                waiting = asyncio.create_task(self._put_later(batch[0]))
                self._apart.add(waiting)
                waiting.add_done_callback(self._apart.discard)
                return
            for ended in batch:  # one ending is at fault; the others must still be settled (L9)
                await self._settle_or_keep([ended])

    async def _settle(self, batch: list[Ended]) -> None:
        node_id, now = self._membership.node_id, self._clock.read().now
        if node_id is None:
            return
        settled = await self._store.write(partial(settle, hooks=self._hooks, ended=batch, node_id=node_id, now=now))
        for item, is_counted in zip(batch, settled.counted, strict=True):
            if not is_counted:
                log.warning("run %d was taken from this node; its late result is ignored", item.run.run_id)
        for alert in settled.alerts:
            self._alert(alert, now)
        self._ring_bell()

    async def _put_later(self, ended: Ended) -> None:
        await self._clock.sleep(MINUTE)
        self.put(*ended)

    def _batch(self) -> list[Ended]:
        """Up to `SETTLE_MAX` endings, one per run: `stuck` is settled before the later `freed` of the same run."""
        batch: dict[int, Ended] = {}
        while self._queue and len(batch) < SETTLE_MAX and self._queue[0].run.run_id not in batch:
            ended = self._queue.popleft()
            batch[ended.run.run_id] = ended
        return list(batch.values())
