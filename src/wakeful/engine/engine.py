"""The engine: one loop that rings due alarms, runs what they start, and settles it.

`tick` does one pass at one reading of the clock and returns when the next pass is due. The loop sleeps until then, or
until the bell is set (a command wrote something, an attempt ended, capacity became free). A missed bell costs at most
`sleep_max`: every tick queries the store for what is due and keeps no state.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, Final

from wakeful.core.run.effects import Alert
from wakeful.core.time.instants import DAY, SECOND, Duration, Instant
from wakeful.engine.batch import Batcher
from wakeful.engine.cancels import Cancels
from wakeful.engine.claiming import Claimed, ClaimRequest, claim
from wakeful.engine.claiming_one_by_one import claim_one_by_one, postpone_each
from wakeful.engine.limits import JUMP_MIN, STEP_BACK_MIN, TRY_AGAIN, Limits, manual_max
from wakeful.engine.membership import Identity, Load, Membership
from wakeful.engine.pruning import PRUNE_PAUSE, Pruner, PruneRequest
from wakeful.engine.recovery import turn_back
from wakeful.engine.running import Runner
from wakeful.engine.settler import Settler
from wakeful.engine.side_tasks import SideTasks
from wakeful.engine.this_node import ThisNode
from wakeful.engine.urgent_store import UrgentStore
from wakeful.ports.claims import Claim
from wakeful.ports.clock import Clock, Moment
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.sink import Alerted, ClockJumped, LeaseLost, Sink, Ticked
from wakeful.ports.store import Mark, Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.engine")

CLOCK_RETRY: Final = SECOND
EMPTY_PAUSE_MIN: Final = 2
EMPTY_TICKS_MAX: Final = 12
CANCEL_LOOK_EVERY: Final = SECOND // 2


class Engine:
    """Ticks over one store. Several engines may share a store that supports it."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        hooks: EngineHooks,
        identity: Identity,
        limits: Limits | None = None,
        on_alert: Callable[[Alert], None] | None = None,
        sink: Sink | None = None,
        node: ThisNode | None = None,
        adopt: Callable[[Instant], Awaitable[object]] | None = None,
    ) -> None:
        self._store = UrgentStore(store)
        self._clock = clock
        self._hooks = hooks
        self._limits = limits or Limits()
        self._on_alert = on_alert or _log_alert
        self._sink = sink  # gets clock and lease events; the store reports its own writes (`EventingStore`)
        self._node = node or ThisNode()
        self._bell = self._node.bell
        self._adopt = adopt  # called before this node enters: repairs a store that is a copy or was rolled back
        self._membership = Membership(self._store, clock, hooks, identity, self._limits, self._node, alert=self.alert)
        self._settler = Settler(self._store, clock, hooks, self)
        self._runner = Runner(
            hooks,
            clock,
            Batcher(self._mark),
            self._membership.lease,
            self._settler.put,
            self._on_room,
            self._is_loop_closing,
            ending_grace=self._limits.ending_grace,
        )
        self._side_tasks = SideTasks(store, clock, self._node.ring_bell)
        self._pruner = Pruner(store, self._limits.prune_every, self._node.ring_bell, hooks.prunes)
        self._loop_task: asyncio.Task[None] | None = None
        self._is_draining = False  # claims nothing more, still renews its lease and enforces deadlines
        self._is_stopped = False
        self._is_full = False  # at the last tick there was no capacity for everything that was due
        self._is_turn_of_late = False  # see `engine.fairness`
        self._sleeps_until: int | None = None  # monotonic; None while it ticks
        self._last: Moment | None = None
        self._steady_since = 0
        self._gap_reason = "outage"
        self._empty_ticks = 0
        self._left_at: Instant | None = None  # when the alarm was due that the last tick left
        self._cancels_at = 0  # monotonic: when to look for cancel requests again
        self._is_cancel_look_due = False
        self._lag = 0

    # --- state for other parts ---------------------------------------------------------------------------------------

    @property
    def is_ticking(self) -> bool:
        """Whether this process holds the clock."""
        return self.node_id is not None

    @property
    def node_id(self) -> int | None:
        return self._membership.node_id

    @property
    def running(self) -> list[int]:
        """Ids of the runs in progress here, including stuck ones."""
        return self._runner.run_ids

    @property
    def loop_task(self) -> asyncio.Task[None] | None:
        """The task that ticks; it waits on the clock while nothing is due."""
        return self._loop_task

    @property
    def under_way(self) -> dict[asyncio.Task[None], str]:
        """The tasks that perform or settle something now, each with a readable name."""
        others = self._settler.under_way | self._pruner.under_way
        return self._runner.under_way | self._side_tasks.under_way | others

    def change_limits(
        self, *, concurrency_max: int, shutdown_grace: Duration, ledger_days: int, labels: frozenset[str]
    ) -> None:
        """Apply new limits. Runs above a lower cap continue; nothing is claimed until there is capacity again."""
        is_forgetting = ledger_days < self._limits.ledger_days
        self._limits = replace(
            self._limits, concurrency_max=concurrency_max, shutdown_grace=shutdown_grace, ledger_days=ledger_days
        )
        self._membership.labels = labels
        self._membership.ledger_days = ledger_days
        self._membership.renew_at = 0  # the lease row shows our capacity and labels to other nodes
        if is_forgetting:
            self._pruner.look_at(0)
        self._node.ring_bell()

    def ring_bell(self) -> None:
        """Tick now: something may be due earlier than planned."""
        self._node.ring_bell()

    def claim_request(self, now: Instant, room: int) -> ClaimRequest | None:
        """See `engine.settler.SettlerHost`. A node that stops claims nothing more."""
        node_id = self.node_id
        if node_id is None:
            return None
        return ClaimRequest(
            node_id,
            now,
            0 if self._is_draining else room,
            lease_until=self._membership.lease_until,
            manual_room=self._manual_room,
            labels=self._node.labels_held,
        )

    def start_claims(self, claims: list[Claim]) -> None:
        """Start runs that were claimed; the next tick comes before their deadlines."""
        started_at = self._clock.read().monotonic  # read again: the commit may have taken long
        self._runner.start(claims, started_at)
        deadline = self._runner.next_deadline()
        if deadline is not None and self._sleeps_until is not None:
            self._sleep_less(deadline)

    def look_by(self, due_at: Instant | None) -> None:
        """Tick at `due_at` or earlier, and now if there was no capacity for what was due."""
        if self._is_full or (due_at is not None and self._sleeps_until is None):
            self._node.ring_bell()
        elif due_at is not None:
            moment = self._clock.read()
            self._sleep_less(moment.monotonic + max(0, due_at - moment.now))

    def _sleep_less(self, until: int) -> None:
        """Do not sleep longer than until this monotonic time."""
        if self._sleeps_until is not None and until < self._sleeps_until:
            self._sleeps_until = until
            self._bell.set()

    def alert(self, alert: Alert, now: Instant) -> None:
        """Report an alert after its transaction was committed."""
        self._on_alert(alert)
        if self._sink is not None:
            self._sink.tell([Alerted(now, alert.incident, alert.text)])

    async def start(self) -> None:
        """Start ticking, or start waiting for the clock while another process holds it."""
        self._is_draining = self._is_stopped = False
        await self._enter()
        self._loop_task = asyncio.create_task(self._run(), name="wakeful-engine")

    async def stop(self) -> None:
        """Stop claiming, give runs their grace period, cancel the rest, record everything, and release the clock."""
        self._is_draining = True
        self._node.ring_bell()
        if self.node_id is not None:
            await self._within(self._limits.shutdown_grace, self._wait_recorded())
            self._runner.end_all("shutdown")
            self._side_tasks.end_all()
            await self._within(self._limits.ending_grace, self._wait_idle())
            self._runner.give_up_rest()
            # A store that cannot be written must not block shutdown: the next start treats the remaining runs as lost.
            await self._within(self._limits.store_grace, self._settler.wait_tried())
            self._settler.clear()
        self._is_stopped = True
        self._node.ring_bell()
        if self._loop_task is not None:
            await self._within(self._limits.store_grace, _ended(self._loop_task))
            self._loop_task.cancel()
            await asyncio.wait([self._loop_task])
            self._loop_task = None
        await self._pruner.stop()
        await self._within(self._limits.store_grace, self._membership.leave())

    # --- the loop ----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self._is_stopped:
            self._bell.clear()
            self._node.is_rung = False
            try:
                if self.node_id is None and not await self._enter():
                    await self._clock.wait(self._bell, CLOCK_RETRY)
                    continue
                deadline = await self.tick(self._clock.read())
            except StoreUnavailable as error:
                log.warning("the store is unavailable, trying again: %s", error)
                deadline = self._clock.read().monotonic + TRY_AGAIN
            except Exception:
                log.exception("a tick failed; the engine continues")
                deadline = self._clock.read().monotonic + TRY_AGAIN
            await self._sleep_until(deadline)

    async def tick(self, moment: Moment) -> int:
        """Do one pass; returns the monotonic time of the next one."""
        await self._check_clock(moment)
        await self._membership.rescue_answered(moment.now)
        self._runner.end_overdue(moment.monotonic)
        await self._end_cancelled(moment)
        self._side_tasks.end_overdue(moment.monotonic)
        self._prune(moment)
        room = self._limits.concurrency_max - self._in_use
        request = self.claim_request(moment.now, room)
        if request is None:
            return moment.monotonic + CLOCK_RETRY
        if self._is_draining:
            return self._next_look(moment, None)
        self._is_full = room <= 0 or self._manual_room <= 0
        is_ringing = not self._membership.is_clock_unset(moment.now)
        request = request._replace(
            gap_reason=self._gap_reason, is_ringing=is_ringing, is_turn_of_late=self._is_turn_of_late
        )
        claimed, is_batch_failed = await self._claim(request)
        if claimed.is_lost and not claimed.claims:  # another node voided this one: the renewal logs it and re-enters
            self._membership.renew_at = moment.monotonic
            return moment.monotonic
        self._gap_reason = "outage"
        if claimed.claims:
            self._is_turn_of_late = not self._is_turn_of_late
        self.start_claims(claimed.claims)
        for side_task in claimed.side_tasks:
            self._side_tasks.start(side_task, moment)
        for alert in claimed.alerts:
            self.alert(alert, moment.now)
        due_at = [claim.batch.due_at for claim in claimed.claims if claim.batch.trigger == "schedule"]
        self._lag = moment.now - min(due_at, default=moment.now)
        if self._sink is not None:
            self._sink.tell([Ticked(moment.now, self._lag, len(claimed.claims), self._runner.count)])
        if is_batch_failed:
            return moment.monotonic + TRY_AGAIN
        is_used_up = self._in_use >= self._limits.concurrency_max
        self._is_full = claimed.is_more or is_used_up or self._manual_room <= 0
        if claimed.is_more and not is_used_up:
            return moment.monotonic
        is_left = claimed.next_due_at is not None and claimed.next_due_at <= moment.now and is_ringing and room > 0
        # A tick that made runs wait has done something: then another alarm is the first one.
        is_same, self._left_at = claimed.next_due_at == self._left_at, claimed.next_due_at
        is_empty = is_left and is_same and not claimed.claims and not claimed.side_tasks
        self._empty_ticks = self._empty_ticks + 1 if is_empty else 0
        if self._empty_ticks % EMPTY_TICKS_MAX == EMPTY_TICKS_MAX - 1:
            await self._store.write(partial(postpone_each, now=moment.now, labels=self._node.labels_held))
        return self._next_look(moment, claimed.next_due_at)

    async def _end_cancelled(self, moment: Moment) -> None:
        """End the attempts on this node that people asked to cancel. Whoever asks rings the bell; when ticks follow
        each other closely, not every tick checks."""
        run_ids = self._runner.run_ids
        self._is_cancel_look_due = bool(run_ids) and moment.monotonic < self._cancels_at
        if not run_ids or self._is_cancel_look_due:
            return
        self._cancels_at = moment.monotonic + CANCEL_LOOK_EVERY
        for run_id in await self._store.read(lambda tx: tx[Cancels].among(run_ids)):
            self._runner.cancel(run_id, moment.monotonic)

    async def _claim(self, request: ClaimRequest) -> tuple[Claimed, bool]:
        """Claim what is due in one transaction; if that fails, one alarm at a time. Also returns whether it failed."""
        try:
            return await self._store.write(partial(claim, hooks=self._hooks, request=request)), False
        except StoreUnavailable:
            raise
        except Exception:  # one alarm is at fault; the others must still ring (L9)
            log.exception("batch claim failed; claiming alarms one by one")
            return await claim_one_by_one(self._store, self._hooks, request), True

    def _next_look(self, moment: Moment, next_due_at: Instant | None) -> int:
        candidates = [moment.monotonic + self._limits.sleep_max, self._membership.renew_at]
        if self._is_cancel_look_due:
            candidates.append(self._cancels_at)
        deadlines = (self._runner.next_deadline(), self._side_tasks.next_deadline(), self._pruner.next_at)
        candidates += [deadline for deadline in deadlines if deadline is not None]
        if self._in_use >= self._limits.concurrency_max:
            candidates.append(moment.monotonic + TRY_AGAIN)  # free capacity sets the bell; this covers side tasks
        elif next_due_at is not None and not self._membership.is_clock_unset(moment.now):
            candidates.append(moment.monotonic + max(0, next_due_at - moment.now, self._pause()))
        return min(candidates)

    def _pause(self) -> Duration:
        """How long to wait after ticks that found a due alarm and could do nothing with it: it may refer to a missing
        row, or another node may hold it at the moment. Without the pause the engine would spin."""
        return 0 if self._empty_ticks == 0 else min(EMPTY_PAUSE_MIN << min(self._empty_ticks, 16), TRY_AGAIN)

    @property
    def _in_use(self) -> int:
        """The capacity in use: attempts, and what ended runs keep for their successors."""
        return self._runner.count - self._runner.backfill_count + self._settler.kept

    @property
    def _manual_room(self) -> int:
        """How many more manual runs may start."""
        in_use = self._runner.manual_count + self._settler.kept_manual
        return max(0, manual_max(self._limits.concurrency_max) - in_use)

    def _on_room(self) -> None:
        """An attempt ended: tick if something waits for its capacity."""
        if self._is_full:
            self._node.ring_bell()

    def _is_loop_closing(self) -> bool:
        """Whether all tasks are being cancelled: only this class cancels its loop task, when no attempt is left."""
        return self._loop_task is not None and (self._loop_task.done() or self._loop_task.cancelling() > 0)

    async def _sleep_until(self, deadline: int) -> None:
        """Sleep until the deadline or the bell; check from time to time whether another process wrote."""
        self._sleeps_until, poll = deadline, self._limits.poll
        try:
            while not self._is_stopped and not self._node.is_rung:
                self._bell.clear()
                left = self._sleeps_until - self._clock.read().monotonic
                if left <= 0:
                    return await asyncio.sleep(0)
                is_called = await self._clock.wait(self._bell, left if poll is None else min(left, poll))
                if not is_called and poll is not None and await self._store.changed():
                    return None
        finally:
            self._sleeps_until = None

    # --- time --------------------------------------------------------------------------------------------------------

    async def _check_clock(self, moment: Moment) -> None:
        """Check the clock before anything else: renew the lease, and detect jumps in both directions."""
        jumped = stood_still = slept = 0
        if self._last is not None:
            jumped = (moment.now - self._last.now) - (moment.monotonic - self._last.monotonic)
            slept = moment.slept - self._last.slept
            stood_still = moment.monotonic - self._last.monotonic + slept
        self._last = moment
        if abs(jumped) >= JUMP_MIN and self._sink is not None:
            self._sink.tell([ClockJumped(moment.now, jumped)])
        if jumped >= JUMP_MIN:
            self._gap_reason = "suspended" if slept * 2 > jumped else "clock"
        if abs(jumped) >= JUMP_MIN:
            self._steady_since = moment.monotonic
            self._membership.doubt_leases(moment)  # before the renewal, which voids nodes by their leases
        if abs(jumped) >= JUMP_MIN or moment.monotonic >= self._membership.renew_at:
            await self._renew(moment, stood_still=stood_still, slept=slept)
        came_back = max(self._membership.clock_high - moment.now, -jumped)
        if came_back >= STEP_BACK_MIN and not self._membership.is_clock_unset(moment.now):
            log.warning("the clock was set back by %d s; planning again from now", came_back // 1000)
            await turn_back(self._store, self._hooks, now=moment.now, by=came_back)
            self._membership.turned_back(moment)
        self._membership.clock_high = max(self._membership.clock_high, moment.now)

    # --- membership --------------------------------------------------------------------------------------------------

    async def _enter(self) -> bool:
        """Take the clock and join as a new node; False while another process holds the clock."""
        if not await self._store.hold_clock():
            return False
        if self._adopt is not None:
            await self._adopt(self._clock.read().now)
        moment = self._clock.read()
        await self._membership.enter(moment, capacity=self._limits.concurrency_max)
        self._steady_since = moment.monotonic
        self._pruner.look_at(moment.monotonic + PRUNE_PAUSE)
        self._last = None
        return True

    async def _renew(self, moment: Moment, *, stood_still: Duration, slept: Duration) -> None:
        """Renew the lease. If another node took it, drop everything that runs here and enter again."""
        node_id = self.node_id
        load = Load(self._lag, self._runner.count, self._limits.concurrency_max)
        if await self._membership.renew(moment, load, stood_still=stood_still, slept=slept):
            return
        log.warning("this node lost its lease: other nodes take over its runs, and it continues as a new node")
        if self._sink is not None and node_id is not None:
            self._sink.tell([LeaseLost(moment.now, node_id)])
        self._runner.end_all("fenced")
        self._side_tasks.end_all()
        self._settler.clear()
        # Wait: this same node may be the one that tries these runs again.
        await self._within(self._limits.ending_grace, self._runner.wait_idle())
        await self._enter()

    # --- the ledger --------------------------------------------------------------------------------------------------

    def _prune(self, moment: Moment) -> None:
        """Start the next batch, if it is due and the clock can be used for it."""
        next_at = self._pruner.next_at
        if next_at is None or moment.monotonic < next_at:
            return
        if self.node_id is None or self._membership.is_clock_unset(moment.now):
            self._pruner.look_at(moment.monotonic + self._limits.prune_every)
            return
        before = moment.now - self._limits.ledger_days * DAY
        steady_for = moment.monotonic - self._steady_since
        self._pruner.start(moment, PruneRequest(before, self._membership.kept_since, steady_for))

    async def _mark(self, marks: list[Mark]) -> list[bool]:
        node_id = self.node_id
        if node_id is None:
            return [False] * len(marks)

        def mark(tx: Tx) -> list[bool]:
            return tx.runs.mark_many(node_id, marks)

        return await self._store.write(mark)

    async def _wait_idle(self) -> None:
        await self._runner.wait_idle()
        await self._side_tasks.wait_idle()

    async def _wait_recorded(self) -> None:
        await self._wait_idle()
        await self._settler.wait_empty()

    async def _within(self, grace: Duration, waiting: Coroutine[Any, Any, None]) -> None:
        """Wait for the task, at most `grace`."""
        idle = asyncio.Event()

        async def watch() -> None:
            try:
                await waiting
            finally:
                idle.set()

        watcher = asyncio.create_task(watch())
        await self._clock.wait(idle, grace)
        watcher.cancel()
        await asyncio.wait([watcher])
        if not watcher.cancelled():
            watcher.result()


async def _ended(task: "asyncio.Task[None]") -> None:
    await asyncio.wait([task])


def _log_alert(alert: Alert) -> None:
    log.warning("%s: %s", alert.incident, alert.text)
