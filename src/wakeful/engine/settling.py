"""Settling: writes outcome, lane, alarm and effects of ended attempts in one transaction, if the fence is valid.

Endings are never dropped: while the store cannot be written they wait and are tried again. Attempts that end during one
commit are settled together in the next. If an ending cannot be settled although the store works, it is tried again
every minute, by itself: until then its run stays open, and the error is in the log.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from wakeful.core.run.effects import Alert, Effect
from wakeful.core.run.results import Ending, StuckRunEnded, masked
from wakeful.core.run.runs import Attempt, Run, RunKind
from wakeful.core.run.settlement import Close, Wait
from wakeful.core.run.transitions import closed, ended_attempt, waiting
from wakeful.core.time.instants import MINUTE, Instant
from wakeful.engine.limits import TRY_AGAIN
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import EngineHooks, RunKeeper
from wakeful.ports.store import ALARM_RUN, Alarm, Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.engine")

SETTLE_MAX: Final = 200


class Ended(NamedTuple):
    """An attempt of this node that ended: the row as claimed, and how it ended."""

    run: Run
    ending: Ending


class SettleResult(NamedTuple):
    """For each ending, whether it still counted; and the alerts to send."""

    counted: list[bool]
    alerts: list[Alert]


class OfKind(NamedTuple):
    """Ended runs of one kind, locked, and their owners, which were locked before them."""

    keeper: RunKeeper
    locked: Any
    pairs: Sequence[tuple[Run, Ending]]


def settle(tx: Tx, hooks: EngineHooks, ended: Sequence[Ended], *, node_id: int, now: Instant) -> SettleResult:
    """Settle the runs this node still holds; a run that another node took is left alone (L6)."""
    plain = hooks.settle_plain(tx, ended, node_id=node_id, now=now)
    if len(plain) == len(ended):
        return SettleResult([True] * len(ended), [])
    rest = [item for item in ended if item.run.run_id not in plain]
    locked = lock_all(tx, hooks, [item.run for item in rest])
    rows = _held(tx, rest, node_id)
    kinds = [
        OfKind(
            hooks.keepers[kind],
            kept,
            [(rows[run.run_id], ending) for run, ending in rest if run.kind == kind and run.run_id in rows],
        )
        for kind, kept in locked.items()
    ]
    alerts = conclude_all(tx, hooks, kinds, now=now)
    return SettleResult([item.run.run_id in rows or item.run.run_id in plain for item in ended], alerts)


def lock_all(tx: Tx, hooks: EngineHooks, runs: Sequence[Run]) -> dict[RunKind, Any]:
    """Lock the owners of these runs before any run: kind by kind, in the same order everywhere."""
    kinds = sorted({run.kind for run in runs})
    return {kind: hooks.keepers[kind].lock(tx, [run for run in runs if run.kind == kind]) for kind in kinds}


def conclude(
    tx: Tx, hooks: EngineHooks, keeper: RunKeeper, locked: Any, pairs: Sequence[tuple[Run, Ending]], *, now: Instant
) -> list[Alert]:
    """Conclude runs of one kind."""
    return conclude_all(tx, hooks, [OfKind(keeper, locked, pairs)], now=now)


def conclude_all(tx: Tx, hooks: EngineHooks, kinds: Sequence[OfKind], *, now: Instant) -> list[Alert]:
    """Let the keepers decide, then write rows, attempts, alarms and lanes, and apply the effects. All keepers come
    before the first lane: they may lock further runs, and lanes are locked after all runs."""
    if hooks.redact is not None:
        kinds = [group._replace(pairs=_masked(group.pairs, hooks.redact)) for group in kinds]
    pairs = [pair for group in kinds for pair in group.pairs]
    if not pairs:
        return []
    settled = [
        fate for keeper, locked, of_kind in kinds if of_kind for fate in keeper.settle(tx, locked, of_kind, now=now)
    ]
    rows: list[Run] = []
    done: list[Run] = []
    attempts: list[Attempt] = []
    alarms: list[Alarm] = []
    freed: list[tuple[str, int]] = []
    silenced: list[int] = []
    for (run, _), decision in zip(pairs, settled, strict=True):
        is_stuck = False
        match decision.settlement:
            case Close(stuck=is_stuck) as close:
                (rows if is_stuck else done).append(closed(run, close, now=now, result=decision.result))
                if run.outcome == "waiting":
                    silenced.append(run.run_id)
            case Wait(until=until) as wait:
                rows.append(waiting(run, wait, result=decision.result))
                attempts.append(ended_attempt(run, wait, now=now))
                alarms.append(Alarm(ALARM_RUN, run.run_id, until, run.priority, run.lane, 0))
        if run.lane is not None and not is_stuck:
            freed.append((run.lane, run.run_id))
    if done:
        tx.runs.close_many(sorted(done))
    if rows:
        tx.runs.save_many(sorted(rows))
    if attempts:
        tx.runs.add_attempts(sorted(attempts))
        tx.alarms.set_many(sorted(alarms, key=lambda alarm: alarm.ref))
    if silenced:
        tx.alarms.remove_many(ALARM_RUN, sorted(silenced))
    if freed:
        tx.lanes.free_many(sorted(freed))
    return apply(tx, hooks, [effect for decision in settled for effect in decision.effects], now)


def apply(tx: Tx, hooks: EngineHooks, effects: Sequence[Effect], now: Instant) -> list[Alert]:
    """Apply effects in the transaction of what caused them. Returns the alerts, to be sent after the commit."""
    alerts: list[Alert] = []
    for effect in effects:
        if isinstance(effect, Alert):
            alerts.append(effect)
        applier = hooks.appliers.get(type(effect))
        if applier is not None:
            applier(tx, effect, now)
    return alerts


def _held(tx: Tx, ended: Sequence[Ended], node_id: int) -> dict[int, Run]:
    """The rows that are still ours under the fence of the claim."""
    running = {item.run.run_id: item.run for item in ended if not isinstance(item.ending, StuckRunEnded)}
    rows = tx.runs.held(node_id, running) if running else {}
    stuck = {item.run.run_id: item.run.fence for item in ended if isinstance(item.ending, StuckRunEnded)}
    if stuck:
        for row in tx.runs.lock(sorted(stuck)).values():
            if row.stuck and row.owner == node_id and row.fence == stuck[row.run_id]:
                rows[row.run_id] = row
    return rows


def _masked(pairs: Sequence[tuple[Run, Ending]], redact: Callable[[str], str]) -> list[tuple[Run, Ending]]:
    return [(run, masked(ending, redact)) for run, ending in pairs]


class Settler:
    """A queue of endings with one task that empties it, batch by batch."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        hooks: EngineHooks,
        node_id: Callable[[], int | None],
        *,
        alert: Callable[[Alert, Instant], None],
        ring_bell: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._node_id = node_id
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
                retry = asyncio.create_task(self._put_later(batch[0]))
                self._apart.add(retry)
                retry.add_done_callback(self._apart.discard)
                return
            for ended in batch:  # one ending is at fault; the others must still be settled (L9)
                await self._settle_or_keep([ended])

    async def _settle(self, batch: list[Ended]) -> None:
        node_id, now = self._node_id(), self._clock.read().now
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
