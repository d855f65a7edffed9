"""Running one plan: the engine and the features, in virtual time, with outages and used-up quotas at their times.

Most schedules of most plans do the same every time: they start when they are due, or when their lane is free, and
succeed. These runs are computed without the engine (`simulation.straight`). They influence others only if there is no
capacity for all; then the plan is simulated once more, by the engine alone. Or if a budget may be used up; then it is
simulated once more, and the engine decides about the rest of that period.
"""

import gc
import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count
from typing import Any, Final

from wakeful.app.bootstrap import FeatureContext, MakeFeature, Parts, Setup, assemble_with
from wakeful.app.features import plug_heartbeat
from wakeful.app.money import plug_money
from wakeful.app.simulation_job import SimulationJob
from wakeful.core.errors import Invalid
from wakeful.core.money.budgets import Limit
from wakeful.core.money.charges import Charge
from wakeful.core.run.effects import Replan
from wakeful.core.schedule.actions import Call, Command, Dispatch, Event, Http, Prompt
from wakeful.core.simulation.request import Span, Troubles, UsedUpSlot
from wakeful.core.simulation.summary import SimulatedPlan, SimulatedRow, in_order
from wakeful.core.time.instants import DAY, Instant
from wakeful.engine.limits import Limits
from wakeful.engine.membership import Identity
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.money.feature import Money
from wakeful.features.schedules import commands
from wakeful.features.schedules.checks import Checked
from wakeful.ports.action import Action
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Tx
from wakeful.simulation.actions import Behaviour, Meter, RecordedAction, no_process, perform, replaced
from wakeful.simulation.copying import Copied, write_copy
from wakeful.simulation.gates import gates_of
from wakeful.simulation.grouping import Grouped, grouped
from wakeful.simulation.payments import Budgets, Spent, UsedUp
from wakeful.simulation.straight import Group, go_straight
from wakeful.stores.sqlite.scratch import ScratchStore, ledger_of, spent_in
from wakeful.testing.virtual_clock import VirtualClock
from wakeful.testing.virtual_loop import Process, VirtualLoop, drain

_YEARS: Final = 3 * 366 * DAY
# No other node exists, so the lease is never renewed; nothing is pruned; and nothing but alarms wakes the engine.
_CALM: Final[dict[str, Any]] = {
    "lease": _YEARS,
    "renew_every": _YEARS,
    "sleep_max": _YEARS,
    "prune_every": _YEARS,
    "ledger_days": 100_000,
}
_TRIES: Final = 4
"""How often a plan is simulated because of budgets, before the engine decides about everything."""
_IDENTITY: Final = Identity("simulated", "simulated", 0)


def run_plan(
    job: SimulationJob, copied: Copied, *, troubles: Troubles, drafts: tuple[Checked, ...] = ()
) -> SimulatedPlan:
    """Simulate the plan from `starts_at` until right before `ends_at`."""
    gc.freeze()
    used_up: dict[Limit, list[Span]] = {}
    for _ in range(_TRIES):
        plan = _run(job, copied, troubles, drafts, used_up)
        if plan.is_crowded:
            break
        more = plan.used_up()
        if not more:
            return plan.result()
        for limit, spans in more.items():
            used_up.setdefault(limit, []).extend(spans)
    return _run(job, copied, troubles, drafts, None).result()


def _run(
    job: SimulationJob, copied: Copied, troubles: Troubles, drafts: tuple[Checked, ...], used_up: UsedUp | None
) -> "_Plan":
    loop = VirtualLoop()
    try:
        plan = _Plan(loop, job, copied, troubles, drafts, used_up)
        loop.run(plan.live())
    finally:
        drain(loop)
    return plan


class _Plan:
    def __init__(
        self,
        loop: VirtualLoop,
        job: SimulationJob,
        copied: Copied,
        troubles: Troubles,
        drafts: tuple[Checked, ...],
        used_up: UsedUp | None,
    ) -> None:
        self._loop = loop
        self._job = job
        self._drafts = drafts
        self._troubles = troubles
        self._clock = VirtualClock(loop, job.request.starts_at)
        self._behaviour = Behaviour(job.request.seed, copied.records, troubles, self._clock, Meter())
        self._copied = copied
        self._used_up = used_up  # None: the engine decides about everything
        self._straight: Grouped | None = None
        self._runs: list[SimulatedRow] = []
        self._owners: list[int] = []
        self._steps: list[tuple[Instant, int, Callable[[], Any]]] = []
        self._orders = count()
        self._store = ScratchStore()
        without = frozenset(troubles.without)
        self._store.run(lambda tx: write_copy(tx, copied, job, without=without))
        self._process: Process | None = None
        self._parts: Parts | None = None

    async def live(self) -> None:
        """Let time pass, and apply outside events at their times."""
        self._plan_steps()
        is_down = any(span.starts_at <= self._job.request.starts_at < span.ends_at for span in self._troubles.outages)
        await (self._write_drafts() if is_down else self._boot())
        while self._steps:
            at, _, step = heapq.heappop(self._steps)
            await self._loop.sleep(max(at - self._clock.read().now, 0))
            done = step()
            if done is not None:
                await done
        self._kill()

    def _plan_steps(self) -> None:
        starts_at, ends_at = self._job.request.starts_at, self._job.request.ends_at
        self._at(ends_at - 1, lambda: None)  # what is due when the period ends does not belong to it
        for outage in self._troubles.outages:
            if outage.starts_at > starts_at:
                self._at(outage.starts_at, self._kill)
            if outage.ends_at > starts_at:
                self._at(outage.ends_at, self._boot)
        for span in self._troubles.quota:
            self._at(max(span.starts_at, starts_at), partial(self._use_up, span))

    def _at(self, at: Instant, step: Callable[[], Any]) -> None:
        """Do this at that time; steps for the same time are done in the order in which they were added."""
        if at < self._job.request.ends_at:
            heapq.heappush(self._steps, (at, next(self._orders), step))

    async def _boot(self) -> None:
        if self._process is None:
            self._process = process = Process(self._loop, "node")
            await process.start(self._begin())

    async def _begin(self) -> None:
        self._parts = parts = await self._assemble()
        await self._put_drafts(parts)
        await parts.engine.start()
        if self._used_up is not None and self._straight is None:
            self._begin_straight(self._used_up)

    async def _write_drafts(self) -> None:
        """Write the definitions when the simulation begins during an outage, so that nothing runs yet."""
        await self._put_drafts(await self._assemble())

    async def _put_drafts(self, parts: Parts) -> None:
        drafts, self._drafts = self._drafts, ()
        if drafts:
            put = partial(commands.put_many, checked=list(drafts), hooks=parts.hooks, now=self._clock.read().now)
            for index, fate in enumerate(await parts.store.write(put)):
                if isinstance(fate, Invalid):
                    raise Invalid(*(replace(error, field=f"with[{index}].{error.field}") for error in fate.errors))

    def _kill(self) -> None:
        """The process ends as in a power cut."""
        process, self._process, self._parts = self._process, None, None
        if process is not None:
            process.kill()
            process.reap()
            self._store.crash()
            self._behaviour.meter.stop(self._clock.read().now)

    def _use_up(self, span: UsedUpSlot) -> None:
        now, parts = self._clock.read().now, self._parts

        def write(tx: Tx) -> None:
            slot = tx[QuotaSlots].by_names([span.slot]).get(span.slot) or tx[QuotaSlots].add_new(
                span.slot, None, now=now
            )
            if slot is not None:
                tx[QuotaSlots].save_many([slot._replace(exhausted_until=span.ends_at)])
            if parts is not None:
                parts.apply(tx, Replan(span.slot, span.ends_at), now)

        self._store.run(write)
        if parts is not None:
            parts.engine.ring_bell()

    async def _assemble(self) -> Parts:
        job, behaviour = self._job, self._behaviour
        plain = RecordedAction(behaviour, perform)
        actions: dict[type[Any], Action] = dict.fromkeys((Call, Command, Dispatch, Http, Prompt), plain)
        money = replace(job.money, is_rise_watched=job.money.brake)  # a rise that stops nothing is only reported
        features: list[MakeFeature] = [partial(plug_money, Money(money)), self._plug_gates]
        if job.heartbeat is None:
            actions[Event] = plain
        else:
            features.append(partial(plug_heartbeat, HeartbeatFeature(job.heartbeat)))
        setup = Setup(
            limits=replace(Limits(concurrency_max=job.concurrency_max, labels=self._copied.labels), **_CALM),
            terms=job.terms,
            features=features,
            replaced=lambda performed: replaced(performed, behaviour),
            on_alert=lambda _: None,
        )
        return await assemble_with(self._store, self._clock, setup, actions, no_process, _IDENTITY)

    async def _plug_gates(self, context: FeatureContext) -> FeatureHooks:
        return gates_of(context.compilations, self._troubles.budgets)

    def _begin_straight(self, used_up: UsedUp) -> None:
        job, behaviour, troubles = self._job, self._behaviour, self._troubles
        self._straight = straight = self._store.run(
            lambda tx: grouped(tx, job, self._copied, behaviour, troubles, used_up)
        )
        for group in straight.groups:
            self._go_straight(straight, group)

    def _go_straight(self, straight: Grouped, group: Group) -> None:
        """Compute what needs no engine; what is left to it may be a single instant, so try again afterwards."""
        now = self._clock.read().now
        stretch = self._store.run(lambda tx: go_straight(tx, group, straight.rest, now))
        if stretch.runs:
            self._runs += stretch.runs
            self._owners += stretch.owners
            for at, charges in straight.budgets.charges(stretch.owners, stretch.runs):
                self._at(at, partial(self._book, straight.budgets, charges))
        again_at = group.tried_at(stretch.tried_until)
        if again_at is not None:
            self._at(again_at, partial(self._go_straight, straight, group))

    def _book(self, budgets: Budgets, charges: Sequence[Charge]) -> None:
        now = self._clock.read().now
        self._store.run(lambda tx: budgets.book(tx, charges, now))

    @property
    def is_crowded(self) -> bool:
        """Whether there may not have been capacity for all runs, those without the engine included."""
        return bool(self._runs) and self._behaviour.meter.peak(touching=True).running >= self._job.concurrency_max

    def used_up(self) -> UsedUp:
        """When budgets may have mattered for runs without the engine."""
        if self._straight is None or not self._straight.budgets.watched or not self._runs:
            return {}
        spent = [Spent(*one) for one in spent_in(self._store.tx)]
        spent += [
            Spent(run.started_at or run.due_at, owner_id, run.cost, run.tokens)
            for owner_id, run in zip(self._owners, self._runs, strict=True)
            if run.turns
        ]
        return self._straight.budgets.used_up(spent, self._used_up or {})

    def result(self) -> SimulatedPlan:
        """The rows of the ledger."""
        rows = chain(ledger_of(self._store.tx), self._runs)
        return SimulatedPlan(in_order(rows), self._behaviour.meter.peak())
