"""The quota feature: what plugs into the engine, and the commands on its slots."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

from wakeful.core.errors import FieldError
from wakeful.core.fields import shown
from wakeful.core.run.effects import Effect, QuotaReached
from wakeful.core.schedule.definition import Definition
from wakeful.core.slot.windows import UsageWindow
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import AfterReset
from wakeful.features.quota.commands import Commands
from wakeful.features.quota.gate import QuotaGate, SlotOf
from wakeful.features.quota.polls import Polls, Statistics
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
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Store, Tx

log = logging.getLogger("wakeful.quota")


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
        self.registry = SlotRegistry(config, make_provider, read_slot)
        keeper = WakeRuns(self.registry, store_id=store_id)
        self.commands = Commands(self.registry, keeper, _hooks(apply))
        sharing = Sharing()
        self._recorder = notes = ReadingRecorder(apply, self.commands.close_run, self.commands.drop_wake)
        action = WakeAction(self.registry, notes, sharing, store, clock, ring_bell)
        self._plug = FeatureHooks(
            alarms=[WakeAlarms(self.registry)],
            chores=[Polls(self.registry, notes, sharing), Statistics(self.registry, sharing)],
            keepers=[keeper],
            actions={WakeSpec: action},
            appliers={QuotaReached: _reached},
            field_gates=[QuotaGate(slot_of)],
            stored_checks=[self._check],
            services=[self, SlotWatch(clock, self.check_up)],
            upcoming=[UpcomingWakes(self.registry)],
            whys={"slot": WhySlot(self.registry)},
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
        known = sorted({*self.registry.names, *(slot.name for slot in tx[QuotaSlots].all())})
        cure = f"write one of {', '.join(known)}" if known else "there are none yet"
        return [
            FieldError(field, f"there is no slot {shown(name)}; {cure}, or add it under [slots]")
            for field, name in named
            if name not in known
        ]

    async def start(self) -> None:
        """Before the first tick: synchronise rows with the settings, and read every quota once."""
        await self._store.write(partial(self.commands.sync, now=self._now(), is_start=True))

    async def stop(self) -> None:
        await self.registry.close()

    async def change(self, config: Config) -> None:
        """Apply changed settings to all slots immediately."""
        self.registry.change(config)
        await self._store.write(partial(self.commands.sync, now=self._now(), is_start=False))
        self._ring_bell()

    async def check_up(self) -> None:
        """Restart what is stuck."""
        if await self._store.write(partial(self.commands.check_up, now=self._now())):
            self._ring_bell()

    async def report(self, agent: str, windows: Sequence[UsageWindow]) -> None:
        """Record the usage windows that an agent's turn reported. Errors do not fail the turn."""
        try:
            await self._store.write(lambda tx: self.commands.report(tx, self._recorder, agent, windows, self._now()))
        except Exception:
            log.warning("the usage windows of agent %s could not be recorded", agent, exc_info=True)

    def _now(self) -> Instant:
        return self._clock.read().now


def _reached(tx: Tx, effect: QuotaReached, now: Instant) -> None:
    """An agent reported the limit before a poll did: every run that uses this slot waits from now on. A slot that is
    locked elsewhere learns it from its next poll."""
    slot = tx[QuotaSlots].try_lock(effect.slot)
    if slot is not None and effect.until > max(slot.exhausted_until or 0, now):
        tx[QuotaSlots].save_many([slot._replace(exhausted_until=effect.until, updated_at=now)])


async def _no_orphan(process: Process) -> OrphanFate:
    return "elsewhere"


def _hooks(apply: Apply) -> EngineHooks:
    """What ending a run by a command needs from the engine: the applier of its effects."""
    appliers: dict[type[Any], Any] = dict.fromkeys(get_args(Effect), apply)
    return EngineHooks(alarms=(), keepers={}, actions={}, appliers=appliers, end_orphan=_no_orphan)
