"""The settler: a queue of endings, settled batch by batch.

Endings are never dropped: while the store cannot be written they wait and are tried again. Attempts that end during one
commit are settled together in the next. If an ending cannot be settled although the store works, it is tried again
every minute, by itself: until then its run stays open, and the error is in the log.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Final, Protocol

from wakeful.core.run.effects import Alert
from wakeful.core.run.results import Ending, Unproven
from wakeful.core.run.runs import PRIORITY_BACKFILL, PRIORITY_PERSON
from wakeful.core.time.instants import MINUTE, Instant
from wakeful.engine.claiming import ClaimRequest
from wakeful.engine.limits import TRY_AGAIN
from wakeful.engine.settling import Ended, settle_and_claim
from wakeful.ports.claims import Claim
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.store import Store, StoreUnavailable

log = logging.getLogger("wakeful.engine")

SETTLE_MAX: Final = 200


class SettlerHost(Protocol):
    """What the settler needs from the engine."""

    def claim_request(self, now: Instant, room: int) -> ClaimRequest | None:
        """What this node may claim now, at most `room` runs; None: it does not hold the clock."""
        ...

    def start_claims(self, claims: list[Claim]) -> None:
        """Start runs that were claimed."""
        ...

    def look_by(self, due_at: Instant | None) -> None:
        """Tick at `due_at` or earlier, and now if there was no capacity for what was due."""
        ...

    def alert(self, alert: Alert, now: Instant) -> None: ...


class Settler:
    """A queue of endings with one task that empties it."""

    def __init__(self, store: Store, clock: Clock, hooks: EngineHooks, host: SettlerHost) -> None:
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._host = host
        self._queue: deque[Ended] = deque()
        self._kept: dict[int, int] = {}  # ended runs whose capacity is kept for a successor, with their priorities
        self._is_turn_of_late = False  # see `engine.fairness`
        self._task: asyncio.Task[None] | None = None
        self._apart: set[asyncio.Task[None]] = set()  # endings that failed, each waiting for its next try
        self._refused = asyncio.Event()  # the store did not accept the last batch

    @property
    def under_way(self) -> dict[asyncio.Task[None], str]:
        """The task that settles, while there are endings to settle."""
        return {} if self._task is None or self._task.done() else {self._task: "settling"}

    @property
    def kept(self) -> int:
        """The capacity that ended runs in lanes keep for their successors."""
        return len(self._kept)

    @property
    def kept_manual(self) -> int:
        """How much of it is kept by manual runs."""
        return sum(priority == PRIORITY_PERSON for priority in self._kept.values())

    def put(self, claim: Claim, ending: Ending) -> None:
        """Settle the ending of a run that this node claimed."""
        item = Ended(claim, ending)
        self._queue.append(item)
        if claim.lane is not None:
            self._keep([item])
        if self._task is None:
            self._task = asyncio.create_task(self._drain())

    def clear(self) -> None:
        """Drop endings of runs that another node took, or that the next start will treat as lost."""
        self._release(self._queue)
        self._queue.clear()
        for retry in self._apart:
            retry.cancel()

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
                await self._settle_or_keep(self._batch(), may_claim=True)
        finally:
            self._task = None

    async def _settle_or_keep(self, batch: list[Ended], *, may_claim: bool) -> None:
        try:
            await self._settle(batch, may_claim)
            self._refused.clear()
        except StoreUnavailable:
            self._refused.set()
            self._queue.extendleft(reversed(batch))
            await self._clock.sleep(TRY_AGAIN)
        except Exception:
            if may_claim and _in_lanes(batch):  # a waiting run may be at fault: leave it to the next tick (L9)
                return await self._settle_or_keep(batch, may_claim=False)
            if len(batch) == 1:
                log.exception("cannot settle run %d; trying again in a minute", batch[0].claim.run_id)
                self._release(batch)
                retry = asyncio.create_task(self._put_later(batch[0]))
                self._apart.add(retry)
                retry.add_done_callback(self._apart.discard)
                return None
            for ended in batch:  # one ending is at fault; the others must still be settled (L9)
                await self._settle_or_keep([ended], may_claim=may_claim)
        return None

    async def _settle(self, batch: list[Ended], may_claim: bool) -> None:
        request = self._claim_request(batch, _in_lanes(batch) if may_claim else 0)
        if request is None:
            self._release(batch)
            return
        settled, claims, next_due_at = await self._store.write(
            partial(settle_and_claim, hooks=self._hooks, ended=batch, request=request)
        )
        self._release(batch)
        if claims:
            self._is_turn_of_late = not self._is_turn_of_late
            self._host.start_claims(claims)
        for item, is_counted in zip(batch, settled.counted, strict=True):
            if not is_counted:
                log.warning("run %d was taken from this node; its late result is ignored", item.claim.run_id)
        for alert in settled.alerts:
            self._host.alert(alert, request.now)
        self._host.look_by(next_due_at)

    def _keep(self, batch: Iterable[Ended]) -> None:
        """Keep the capacity of these for their successors."""
        self._kept.update((item.claim.run_id, item.claim.batch.priority) for item in batch if _hands_on(item))

    def _release(self, batch: Iterable[Ended]) -> None:
        """Give up the capacity that these keep. The same run may be in the queue again: stuck, and then freed."""
        if self._kept:
            for item in batch:
                if _hands_on(item):
                    self._kept.pop(item.claim.run_id, None)

    def _claim_request(self, batch: Iterable[Ended], room: int) -> ClaimRequest | None:
        """What may be claimed once the part of these is free."""
        is_kept = bool(self._kept)
        if is_kept:
            self._release(batch)
        request = self._host.claim_request(self._clock.read().now, room)
        if is_kept:
            self._keep(batch)
        return None if request is None else request._replace(is_turn_of_late=self._is_turn_of_late)

    async def _put_later(self, ended: Ended) -> None:
        await self._clock.sleep(MINUTE)
        self.put(*ended)

    def _batch(self) -> list[Ended]:
        """Up to `SETTLE_MAX` endings, one per run: `stuck` is settled before the later `freed` of the same run."""
        batch: dict[int, Ended] = {}
        while self._queue and len(batch) < SETTLE_MAX and self._queue[0].claim.run_id not in batch:
            ended = self._queue.popleft()
            batch[ended.claim.run_id] = ended
        return list(batch.values())


def _in_lanes(ended: Iterable[Ended]) -> int:
    """How many of these have capacity for a successor."""
    return sum(map(_hands_on, ended))


def _hands_on(item: Ended) -> bool:
    """Whether its capacity is free for the next run of its lane. A backfilled run used none, and one that could not be
    ended still uses its own."""
    claim = item.claim
    is_backfill = claim.batch.priority == PRIORITY_BACKFILL
    return claim.lane is not None and not is_backfill and not isinstance(item.ending, Unproven)
