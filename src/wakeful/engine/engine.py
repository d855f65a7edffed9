"""The engine: one loop that rings due alarms, runs what they start, and settles it.

`tick` does one pass at one reading of the clock and returns when the next pass is due. The loop sleeps until then, or
until the bell is set (a command wrote something, an attempt ended, capacity became free). A missed bell costs at most
`sleep_max`: every tick queries the store for what is due and relies on no state of its own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from wakeful.core.run.effects import Alert
from wakeful.core.run.results import Ending
from wakeful.core.run.runs import Run
from wakeful.core.schedule.policies import DAY, SECOND
from wakeful.core.time.instants import INSTANT_MAX, Duration, Instant, format_instant
from wakeful.engine.batch import Batcher
from wakeful.engine.claiming import Claimed, ClaimRequest, claim
from wakeful.engine.claiming_one_by_one import claim_one_by_one, postpone_each
from wakeful.engine.lease import Lease
from wakeful.engine.limits import JUMP_MIN, STEP_BACK_MIN, Limits
from wakeful.engine.orphans import OrphanInquiry
from wakeful.engine.recovery import is_trusted, note_clock, read_clock_high, rescue, turn_back
from wakeful.engine.running import Runner
from wakeful.engine.settler import Settler
from wakeful.engine.settling import Ended, settle
from wakeful.engine.side_tasks import SideTasks
from wakeful.engine.store_rollback import has_gone_back, mark
from wakeful.engine.tick_gaps import note_leaving, note_tick, notice_silence
from wakeful.ports.clock import Clock, Moment
from wakeful.ports.handlers import AlarmHandler, EngineHooks
from wakeful.ports.sink import Alerted, ClockJumped, LeaseLost, Sink, Ticked
from wakeful.ports.store import Mark, Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.engine")

CLOCK_RETRY: Final = SECOND
TRY_AGAIN: Final = SECOND
EMPTY_PAUSE_MIN: Final = 2
EMPTY_TICKS_MAX: Final = 12
PRUNE_STEP: Final = 500
PRUNE_PAUSE: Final = SECOND
BORN_AT: Final = "created_at"

_BEFORE_ALL: Final = -(2**62)
"""Lower than every id: cadences that belong to no schedule have negative ids."""
_OTHERS_MAX: Final = 100


class Identity(NamedTuple):
    """The name, host and process id of this node."""

    name: str
    host: str
    pid: int


class Leased(NamedTuple):
    """A lease as last written to the store."""

    at: Instant
    until: Instant


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
    ) -> None:
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._identity = identity
        self._limits = limits or Limits()
        self._on_alert = on_alert or _log_alert
        self._sink = sink  # gets clock and lease events; the store reports its own writes (`EventingStore`)
        self._bell = asyncio.Event()
        marks: Batcher[Mark, bool] = Batcher(self._mark)
        # Called before this node enters: repairs a store that is a copy or was rolled back.
        self.adopt: Callable[[Instant], Awaitable[object]] | None = None
        self._leased = Leased(0, 0)  # this node's lease as it last wrote it
        self._lease = Lease(clock, self._limits.lease, self._renew_now)
        self._runner = Runner(
            hooks, clock, marks, self._lease, self._ended, self._bell.set, ending_grace=self._limits.ending_grace
        )
        self._settler = Settler(self._settle, clock)
        self._side_tasks = SideTasks(store, clock, self._bell.set)
        self._inquiry = OrphanInquiry(store, hooks, clock, self._on_inquiry_result)
        self._has_inquiry_result = False  # a target reported the result of a run of a dead node: rescue it now
        self._loop_task: asyncio.Task[None] | None = None
        self._is_draining = False  # claims nothing more, still renews its lease and enforces deadlines
        self._is_stopped = False
        self._node_id: int | None = None
        self._last: Moment | None = None
        self._high: Instant = 0
        self._born_at: Instant = 0
        self._renew_at = 0
        self._prune_at = 0
        self._steady_since = 0
        self._leases_known_at = 0  # monotonic: by then every live node has renewed by the current clock
        self._gap_reason = "outage"
        self._empty_ticks = 0
        self._lag = 0
        self._terms = ""  # a hash of the settings that all nodes must share
        self._published = ""

    # --- state for other parts ---------------------------------------------------------------------------------------

    @property
    def is_ticking(self) -> bool:
        """Whether this process holds the clock."""
        return self._node_id is not None

    @property
    def node_id(self) -> int | None:
        return self._node_id

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
        return self._runner.under_way | self._side_tasks.under_way | self._settler.under_way

    def change_limits(self, *, concurrency_max: int, shutdown_grace: Duration, ledger_days: int) -> None:
        """Apply new limits. Runs above a lower cap continue; nothing is claimed until there is capacity again."""
        is_forgetting = ledger_days < self._limits.ledger_days
        self._limits = replace(
            self._limits, concurrency_max=concurrency_max, shutdown_grace=shutdown_grace, ledger_days=ledger_days
        )
        self._renew_at = 0  # the lease row shows our capacity to other nodes
        if is_forgetting:
            self._prune_at = 0
        self._bell.set()

    def publish_terms(self, terms: str) -> None:
        """Publish a hash of the settings this node runs with, as part of its lease."""
        self._terms = terms

    def ring_bell(self) -> None:
        """Tick now: something may be due earlier than planned."""
        self._bell.set()

    async def start(self) -> None:
        """Start ticking, or start waiting for the clock while another process holds it."""
        self._is_draining = self._is_stopped = False
        await self._enter()
        self._loop_task = asyncio.create_task(self._run(), name="wakeful-engine")

    async def stop(self) -> None:
        """Stop claiming, give runs their grace period, cancel the rest, record everything, and release the clock."""
        self._is_draining = True
        self._bell.set()
        if self._node_id is not None:
            await self._within(self._limits.shutdown_grace, self._wait_recorded())
            self._runner.end_all("shutdown")
            self._side_tasks.end_all()
            await self._within(self._limits.ending_grace, self._wait_idle())
            self._runner.give_up_rest()
            # A store that cannot be written must not block shutdown: the next start treats the remaining runs as lost.
            await self._within(self._limits.store_grace, self._settler.wait_tried())
            self._settler.clear()
        self._is_stopped = True
        self._bell.set()
        if self._loop_task is not None:
            await self._within(self._limits.store_grace, _ended(self._loop_task))
            self._loop_task.cancel()
            await asyncio.wait([self._loop_task])
            self._loop_task = None
        await self._inquiry.close()
        await self._within(self._limits.store_grace, self._leave())

    # --- the loop ----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self._is_stopped:
            self._bell.clear()
            try:
                if self._node_id is None and not await self._enter():
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
        if self._has_inquiry_result and self._node_id is not None:
            await self._rescue(moment.now)
        self._runner.end_overdue(moment.monotonic)
        self._side_tasks.end_overdue(moment.monotonic)
        if moment.monotonic >= self._prune_at:
            await self._prune(moment)
        if self._node_id is None:
            return moment.monotonic + CLOCK_RETRY
        if self._is_draining:
            return self._next_look(moment, None)
        room = self._limits.concurrency_max - self._runner.count
        is_ringing = not self._is_clock_unset(moment.now)
        request = ClaimRequest(self._node_id, moment.now, room, self._gap_reason, is_ringing, self._leased.until)
        claimed, is_batch_failed = await self._claim(request)
        if claimed.is_lost and not claimed.claims:  # another node voided this one: the renewal logs it and re-enters
            self._renew_at = moment.monotonic
            return moment.monotonic
        self._gap_reason = "outage"
        started_at = self._clock.read().monotonic  # read again: the commit may have taken long
        for item in claimed.claims:
            self._runner.start(item, started_at)
        for side_task in claimed.side_tasks:
            self._side_tasks.start(side_task, moment)
        for alert in claimed.alerts:
            self._alert(alert, moment.now)
        on_time = [moment.now - item.run.due_at for item in claimed.claims if item.run.trigger == "schedule"]
        self._lag = max(on_time, default=0)
        if self._sink is not None:
            self._sink.tell([Ticked(moment.now, self._lag, len(claimed.claims), self._runner.count)])
        if is_batch_failed:
            return moment.monotonic + TRY_AGAIN
        if claimed.is_more and self._runner.count < self._limits.concurrency_max:
            return moment.monotonic
        is_left = claimed.next_due_at is not None and claimed.next_due_at <= moment.now and is_ringing and room > 0
        self._empty_ticks = self._empty_ticks + 1 if is_left and not claimed.claims and not claimed.side_tasks else 0
        if self._empty_ticks % EMPTY_TICKS_MAX == EMPTY_TICKS_MAX - 1:
            await self._store.write(partial(postpone_each, now=moment.now))
        return self._next_look(moment, claimed.next_due_at)

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
        candidates = [moment.monotonic + self._limits.sleep_max, self._renew_at, self._prune_at]
        deadlines = (self._runner.next_deadline(), self._side_tasks.next_deadline())
        candidates += [deadline for deadline in deadlines if deadline is not None]
        if self._runner.count >= self._limits.concurrency_max:
            candidates.append(moment.monotonic + TRY_AGAIN)  # free capacity sets the bell; this covers side tasks
        elif next_due_at is not None and not self._is_clock_unset(moment.now):
            candidates.append(moment.monotonic + max(0, next_due_at - moment.now, self._pause()))
        return min(candidates)

    def _pause(self) -> Duration:
        """How long to wait after ticks that found a due alarm and could do nothing with it: it may refer to a missing
        row, or another node may hold it at the moment. Without the pause the engine would spin."""
        return 0 if self._empty_ticks == 0 else min(EMPTY_PAUSE_MIN << min(self._empty_ticks, 16), TRY_AGAIN)

    async def _sleep_until(self, deadline: int) -> None:
        """Sleep until the deadline or the bell; check from time to time whether another process wrote."""
        while not self._is_stopped:
            left = deadline - self._clock.read().monotonic
            poll = self._limits.poll
            if left <= 0:
                return await asyncio.sleep(0)
            if await self._clock.wait(self._bell, left if poll is None else min(left, poll)):
                return None
            if poll is not None and await self._store.changed():
                return None
        return None

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
        if abs(jumped) >= JUMP_MIN or moment.monotonic >= self._renew_at:
            await self._renew(moment, stood_still=stood_still, slept=slept)
        came_back = max(self._high - moment.now, -jumped)
        if came_back >= STEP_BACK_MIN and not self._is_clock_unset(moment.now):
            log.warning("the clock went back by %d s: planning from now", came_back // 1000)
            await turn_back(self._store, self._hooks, now=moment.now, by=came_back)
            self._high = moment.now
            self._leases_known_at = moment.monotonic + self._limits.lease
        self._high = max(self._high, moment.now)

    def _is_clock_unset(self, now: Instant) -> bool:
        """Whether the clock is before the creation of the store, and so not set yet: nothing is planned by it."""
        return now < self._born_at - DAY

    # --- leases ------------------------------------------------------------------------------------------------------

    async def _enter(self) -> bool:
        """Take the clock, register as a new incarnation, and recover what earlier incarnations left."""
        if not await self._store.hold_clock():
            return False
        if self.adopt is not None:
            await self.adopt(self._clock.read().now)
        moment = self._clock.read()

        def enter(tx: Tx) -> tuple[int, Instant, Instant]:
            node_id = tx.nodes.register(
                name=self._identity.name,
                host=self._identity.host,
                pid=self._identity.pid,
                now=moment.now,
                lease_until=moment.now + self._limits.lease,
                capacity=self._limits.concurrency_max,
            )
            if self._store.is_exclusive:
                tx.nodes.void([n.node_id for n in tx.nodes.all() if n.node_id != node_id], now=moment.now)
                for handler in self._hooks.alarms:
                    self._recover(handler, tx, moment.now)
            tx.nodes.publish(node_id, terms=self._terms)
            born = tx.meta.get(BORN_AT)
            if born is None:
                tx.meta.set(BORN_AT, born := str(moment.now))
            if moment.now >= int(born) - DAY:  # otherwise the clock is not set yet and cannot measure a gap
                self._notice_silence(tx, moment.now, slept=0)
                note_tick(tx, moment.now)
            # The furthest planned instant counts too: a process may die before it records how far the clock got.
            ahead = tx.cadences.ahead_of(moment.now + STEP_BACK_MIN, after_id=0, limit=1)
            others = tx.cadences.ahead_of(moment.now + STEP_BACK_MIN, after_id=_BEFORE_ALL, limit=_OTHERS_MAX)
            ahead += [other for other in others if other.schedule_id < 0 and other.next_at is not None]
            high = max([read_clock_high(tx) or 0, *(cadence.planned_through for cadence in ahead)])
            if moment.now >= max(int(born) - DAY, high - STEP_BACK_MIN):  # waiting runs without a cadence rely on it
                note_clock(tx, moment.now)
            return node_id, high, int(born)

        node_id, self._high, self._born_at = await self._store.write(enter)
        self._steady_since = moment.monotonic
        self._prune_at = moment.monotonic + PRUNE_PAUSE
        self._last = None
        self._renew_at = moment.monotonic + self._limits.renew_every
        self._leases_known_at = moment.monotonic + self._limits.lease
        self._node_id = node_id
        self._leased = Leased(moment.now, moment.now + self._limits.lease)
        self._lease.renew(moment)
        await self._rescue(moment.now)
        return True

    def _recover(self, handler: AlarmHandler, tx: Tx, now: Instant) -> None:
        try:
            handler.recover(tx, now=now)
        except StoreUnavailable:
            raise
        except Exception:  # its side tasks ring when their claims expire; the engine starts anyway (L9)
            log.exception("cannot recover side tasks of kind %s", handler.kind)

    def _notice_silence(self, tx: Tx, now: Instant, *, slept: Duration) -> None:
        """Report how long no node ticked; a listener that fails must not stop the engine (L9)."""
        try:
            notice_silence(tx, self._hooks.on_silence, now=now, slept=slept)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("cannot record a gap in which no node ticked")

    async def _renew(self, moment: Moment, *, stood_still: Duration = 0, slept: Duration = 0) -> None:
        """Extend the lease, void dead nodes, and rescue their runs. If our own lease was taken, enter again."""
        node_id = self._node_id
        lost: list[Instant | None] = []  # the store was rolled back to that moment; None: another node recorded it

        def renew(tx: Tx) -> tuple[bool, bool]:
            assert node_id is not None  # noqa: S101 - only a registered node renews
            lost.clear()
            if has_gone_back(tx, node_id, lease_until=self._leased.until):
                lost.append(mark(tx, renewed_at=self._leased.at, now=moment.now))
                return False, False
            is_ours = tx.nodes.renew(
                node_id,
                now=moment.now,
                lease_until=moment.now + self._limits.lease,
                lag=self._lag,
                running=self._runner.count,
                capacity=self._limits.concurrency_max,
            )
            if not is_ours:
                return False, False
            if not self._is_clock_unset(moment.now):
                if stood_still > 2 * self._limits.renew_every:
                    self._notice_silence(tx, moment.now, slept=slept)
                note_tick(tx, moment.now)
            if self._published != self._terms:
                tx.nodes.publish(node_id, terms=self._terms)
            if not self._is_clock_unset(moment.now) and moment.now >= self._high - STEP_BACK_MIN:
                note_clock(tx, moment.now)
            # A lease that no live node could hold by now was written by a clock that was ahead.
            is_known = moment.monotonic >= self._leases_known_at
            beyond = moment.now + self._limits.lease + STEP_BACK_MIN if is_known else INSTANT_MAX
            dead = [n.node_id for n in tx.nodes.expired(now=moment.now, beyond=beyond) if n.node_id != node_id]
            tx.nodes.void(dead, now=moment.now)
            return True, bool(dead) or bool(tx.nodes.with_leftovers())

        is_ours, is_work = await self._store.write(renew)
        if lost:
            self._went_back(lost[-1], moment.now)
        self._published = self._terms
        self._renew_at = moment.monotonic + self._limits.renew_every
        if not is_ours:
            log.warning("this node lost its lease: other nodes take its runs, it enters again as a new node")
            if self._sink is not None and node_id is not None:
                self._sink.tell([LeaseLost(moment.now, node_id)])
            self._node_id = None
            self._lease.lose()
            self._runner.end_all("fenced")
            self._side_tasks.end_all()
            self._settler.clear()
            # Wait: this same node may be the one that tries these runs again.
            await self._within(self._limits.ending_grace, self._runner.wait_idle())
            await self._enter()
            return
        self._leased = Leased(moment.now, moment.now + self._limits.lease)
        self._lease.renew(moment)
        if is_work:
            await self._rescue(moment.now)

    def _went_back(self, copied_at: Instant | None, now: Instant) -> None:
        """Report that the store lost commits, once for all nodes."""
        log.error("the store was rolled back: what was committed since this node's last renewal is gone")
        if copied_at is not None:
            text = (
                f"the store lost what was written after {format_instant(copied_at)}, as after a failover to a lagging "
                "copy: runs that were open are unknown, instants since then are missed"
            )
            self._alert(Alert("store", text), now)

    def _renew_now(self) -> None:
        """Renew before the next attempt starts: by our own clock the lease may have expired."""
        self._renew_at = self._clock.read().monotonic
        self._bell.set()

    async def _rescue(self, now: Instant) -> None:
        self._has_inquiry_result = False
        for alert in await rescue(self._store, self._hooks, self._inquiry, now=now):
            self._alert(alert, now)

    async def _leave(self) -> None:
        node_id, self._node_id = self._node_id, None
        self._lease.lose()
        moment = self._clock.read()

        def leave(tx: Tx) -> None:
            if node_id is not None and tx.nodes.void([node_id], now=moment.now):
                note_leaving(tx, moment.now)

        if node_id is not None:
            try:
                await self._store.write(leave)
            except StoreUnavailable as error:
                log.warning("cannot record the shutdown, the lease will expire by itself: %s", error)
            await self._store.release_clock()

    async def _prune(self, moment: Moment) -> None:
        """Delete one small batch of what is past the ledger's retention, so that the writer is never held long."""
        steady_for = moment.monotonic - self._steady_since

        def prune(tx: Tx) -> int:
            if not is_trusted(tx, moment.now, steady_for=steady_for):
                return 0
            before = moment.now - self._limits.ledger_days * DAY
            tx.nodes.prune(before=before)
            steps = (tx.runs.prune, tx.deliveries.prune, tx.inbox.prune, tx.incidents.prune)
            return max(step(before=before, limit=PRUNE_STEP, since=self._born_at - DAY) for step in steps)

        pruned = 0
        if self._node_id is not None and not self._is_clock_unset(moment.now):
            pruned = await self._store.write(prune)
        self._prune_at = moment.monotonic + (PRUNE_PAUSE if pruned else self._limits.prune_every)

    def _on_inquiry_result(self) -> None:
        self._has_inquiry_result = True
        self._bell.set()

    # --- endings -----------------------------------------------------------------------------------------------------

    def _ended(self, run: Run, ending: Ending) -> None:
        self._settler.put(Ended(run, ending))

    async def _settle(self, ended: list[Ended]) -> None:
        node_id = self._node_id
        if node_id is None:
            return
        now = self._clock.read().now
        concluded = await self._store.write(partial(settle, hooks=self._hooks, ended=ended, node_id=node_id, now=now))
        for item, counted in zip(ended, concluded.counted, strict=True):
            if not counted:
                log.warning("run %d was taken from this node; its late result is ignored", item.run.run_id)
        for alert in concluded.alerts:
            self._alert(alert, now)
        self._bell.set()

    def _alert(self, alert: Alert, now: Instant) -> None:
        self._on_alert(alert)
        if self._sink is not None:
            self._sink.tell([Alerted(now, alert.incident, alert.text)])

    async def _mark(self, marks: list[Mark]) -> list[bool]:
        node_id = self._node_id
        if node_id is None:
            return [False] * len(marks)
        return await self._store.write(lambda tx: tx.runs.mark_many(node_id, marks))

    async def _wait_idle(self) -> None:
        await self._runner.wait_idle()
        await self._side_tasks.wait_idle()

    async def _wait_recorded(self) -> None:
        await self._wait_idle()
        await self._settler.wait_empty()

    async def _within(self, grace: Duration, waiting: Coroutine[Any, Any, None]) -> None:
        """Wait for it, at most `grace`."""
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
