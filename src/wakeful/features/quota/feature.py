"""The quota feature: what plugs into the engine, and the operations used by REST and CLI."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, get_args

from wakeful.core.errors import FieldError
from wakeful.core.fields import shown
from wakeful.core.run.effects import Effect, QuotaReached
from wakeful.core.schedule.definition import Definition
from wakeful.core.slot.slot import Slot
from wakeful.core.slot.windows import UsageWindow
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import AfterReset
from wakeful.features.quota import queries
from wakeful.features.quota.commands import Commands
from wakeful.features.quota.gate import QuotaGate, SlotOf
from wakeful.features.quota.polls import PollAlarms, StatsAlarms
from wakeful.features.quota.reading import Apply, ReadingRecorder
from wakeful.features.quota.registry import Config, MakeProvider, ReadSlot, SlotRegistry
from wakeful.features.quota.sharing import Sharing
from wakeful.features.quota.upcoming import UpcomingWakes
from wakeful.features.quota.wake_runs import WakeRuns, WakeSpec
from wakeful.features.quota.wakes import WakeAlarms
from wakeful.features.quota.waking import WakeAction
from wakeful.features.quota.watch import SlotWatch
from wakeful.features.quota.why import WhySlot
from wakeful.ports.action import OrphanFate, Process
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import EngineHooks, FeatureHooks
from wakeful.ports.store import Store, Tx

log = logging.getLogger("wakeful.quota")

Guard: TypeAlias = Callable[[Slot | None], None]
"""Checks a slot before it is overwritten, and raises to refuse."""


class Quota:
    """The slots of one process."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        store_id: str,
        ring_bell: Callable[[], None],
        apply: Apply,
        slot_of: SlotOf,
        config: Config,
        make_provider: MakeProvider,
        read_slot: ReadSlot,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ring_bell = ring_bell
        self._registry = SlotRegistry(config, make_provider, read_slot)
        keeper = WakeRuns(self._registry, store_id=store_id)
        self._commands = Commands(self._registry, keeper, _hooks(apply))
        sharing = Sharing()
        self._recorder = notes = ReadingRecorder(apply, self._commands.close_run)
        action = WakeAction(self._registry, notes, sharing, store, clock, ring_bell)
        self._plug = FeatureHooks(
            alarms=[
                WakeAlarms(self._registry),
                PollAlarms(self._registry, notes, sharing, clock),
                StatsAlarms(self._registry, sharing, clock),
            ],
            keepers=[keeper],
            actions={WakeSpec: action},
            appliers={QuotaReached: _reached},
            field_gates=[QuotaGate(slot_of)],
            stored_checks=[self._check],
            services=[self, SlotWatch(clock, self.check_up)],
            upcoming=[UpcomingWakes(self._registry)],
            whys={"slot": WhySlot(self._registry)},
        )

    def plug(self) -> FeatureHooks:
        """The hooks for the kernel."""
        return self._plug

    def _check(self, tx: Tx, definition: Definition) -> Sequence[FieldError]:
        """Refuse unknown slots: they would never hold a run back, and have no resets."""
        timing = definition.timing
        named = [("slot", definition.slot)] if definition.slot is not None else []
        if isinstance(timing, AfterReset):
            named.append(("schedule.slot", timing.slot))
        if not named:
            return ()
        known = sorted({*self._registry.names, *(slot.name for slot in tx.slots.all())})
        cure = f"write one of {', '.join(known)}" if known else "there are none yet"
        return [
            FieldError(field, f"there is no slot {shown(name)}; {cure}, or add it under [slots]")
            for field, name in named
            if name not in known
        ]

    async def start(self) -> None:
        """Before the first tick: synchronise rows with the settings, and read every quota once."""
        await self._store.write(partial(self._commands.sync, now=self._now(), is_start=True))

    async def stop(self) -> None:
        await self._registry.close()

    async def change(self, config: Config) -> None:
        """Apply changed settings to all slots immediately."""
        self._registry.change(config)
        await self._store.write(partial(self._commands.sync, now=self._now(), is_start=False))
        self._ring_bell()

    async def check_up(self) -> None:
        """Restart what is stuck."""
        if await self._store.write(partial(self._commands.check_up, now=self._now())):
            self._ring_bell()

    # --- operations --------------------------------------------------------------------------------------------------

    async def all(self) -> list[dict[str, Any]]:
        return await self._store.read(partial(queries.all_slots, registry=self._registry, now=self._now()))

    async def get(self, name: str) -> dict[str, Any]:
        return await self._store.read(partial(queries.one_slot, registry=self._registry, name=name, now=self._now()))

    def check(self, name: str, data: Mapping[str, Any]) -> None:
        """Check a definition without storing it; raises `Invalid`, or `Conflict` if the settings define that slot."""
        self._registry.check(name, data)

    async def put(self, name: str, data: Mapping[str, Any], *, guard: Guard | None = None) -> bool:
        """Write a slot; returns whether it is new."""
        is_new = await self._store.write(
            partial(self._commands.put, name=name, data=data, now=self._now(), guard=guard or _unguarded)
        )
        self._ring_bell()
        return is_new

    def put_within(self, tx: Tx, name: str, data: Mapping[str, Any], *, now: Instant) -> None:
        """Write a slot in the caller's transaction; the caller rings the bell afterwards."""
        self._commands.put(tx, name=name, data=data, now=now, guard=_unguarded)

    def patch_within(self, tx: Tx, name: str, changes: Mapping[str, Any], *, now: Instant) -> None:
        """Change some fields of a slot in the caller's transaction; the caller rings the bell afterwards."""
        self._commands.patch(tx, name=name, changes=changes, now=now, guard=_unguarded)

    async def patch(self, name: str, changes: Mapping[str, Any], *, guard: Guard | None = None) -> None:
        await self._store.write(
            partial(self._commands.patch, name=name, changes=changes, now=self._now(), guard=guard or _unguarded)
        )
        self._ring_bell()

    async def remove(self, name: str) -> None:
        await self._store.write(partial(self._commands.remove, name=name, now=self._now()))

    async def wake(self, name: str) -> int:
        run_id = await self._store.write(partial(self._commands.wake, name=name, now=self._now()))
        self._ring_bell()
        return run_id

    async def poll(self, name: str) -> None:
        await self._store.write(partial(self._commands.poll, name=name, now=self._now()))
        self._ring_bell()

    async def report(self, agent: str, windows: Sequence[UsageWindow]) -> None:
        """Record the usage windows that an agent's turn reported. Errors do not fail the turn."""
        try:
            await self._store.write(lambda tx: self._commands.report(tx, self._recorder, agent, windows, self._now()))
        except Exception:
            log.warning("the usage windows of agent %s could not be recorded", agent, exc_info=True)

    async def resume(self, name: str) -> None:
        await self._store.write(partial(self._commands.resume, name=name, now=self._now()))
        self._ring_bell()

    def _now(self) -> Instant:
        return self._clock.read().now


def _reached(tx: Tx, effect: QuotaReached, now: Instant) -> None:
    """An agent reported the limit before a poll did: every run that uses this slot waits from now on. A slot that is
    locked elsewhere learns it from its next poll."""
    slot = tx.slots.try_lock(effect.slot)
    if slot is not None and effect.until > max(slot.exhausted_until or 0, now):
        tx.slots.save_many([slot._replace(exhausted_until=effect.until, updated_at=now)])


class _NoOrphans:
    async def end(self, process: Process) -> OrphanFate:
        return "elsewhere"


def _hooks(apply: Apply) -> EngineHooks:
    """What ending a run by a command needs from the engine: the applier of its effects."""
    appliers: dict[type[Any], Any] = dict.fromkeys(get_args(Effect), apply)
    return EngineHooks(alarms=(), keepers={}, actions={}, appliers=appliers, orphans=_NoOrphans())


def _unguarded(_: Slot | None) -> None:
    """Allows overwriting anything."""
