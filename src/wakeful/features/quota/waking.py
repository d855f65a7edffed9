"""The wake action: checks whether a wake is needed, sends it, and reports its progress."""

from collections.abc import Callable
from typing import Any, Final

from wakeful.core.run.results import Done, Failed, Result, Throttled
from wakeful.core.run.runs import RungName
from wakeful.core.slot.slot import ReadFailure, Reading
from wakeful.core.slot.wakes import WARM, is_needed, may_wake
from wakeful.features.quota.reading import ReadingRecorder
from wakeful.features.quota.registry import Defined, SlotRegistry
from wakeful.features.quota.sharing import Sharing
from wakeful.features.quota.wake_runs import REFUSED, SENT, UNREACHABLE, WakeSpec
from wakeful.ports.action import FencedOff, Fire, Ladder
from wakeful.ports.clock import Clock
from wakeful.ports.quota import QuotaProvider, WakeFailure
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Store, Tx

PRE_CHECK: Final = "wake.pre-check"


class WakeAction:
    """Performs `WakeSpec`."""

    is_local = False

    def __init__(
        self,
        registry: SlotRegistry,
        notes: ReadingRecorder,
        sharing: Sharing,
        store: Store,
        clock: Clock,
        on_read: Callable[[], None],
    ) -> None:
        self._registry = registry
        self._notes = notes
        self._sharing = sharing
        self._store = store
        self._clock = clock
        self._on_read = on_read

    def proves(self, spec: Any) -> RungName:
        return "finished"

    def check(self, spec: Any) -> str | None:
        return None

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        wanted: WakeSpec = spec
        provider = await self._store.read(lambda tx: self._provider(tx, wanted.slot))
        if provider is None:
            return Failed("its slot was removed or is no longer usable", permanent=True, output=REFUSED)
        if not provider.can_wake:
            return Failed(f"slot {wanted.slot} has no wake configured", permanent=True, output=REFUSED)
        if wanted.reads_first:
            ended = await self._look(wanted, provider)
            if ended is not None:
                return ended
        await ladder.climb("sent")  # refused if the slot was disabled meanwhile: that closed the run
        failure = await self._sharing.ask(("wake", provider.mark), lambda: provider.wake(wanted.action, fire, ladder))
        return _result(failure)

    async def close(self) -> None:
        """Providers are closed by the registry."""

    async def _look(self, wanted: WakeSpec, provider: QuotaProvider) -> Result | None:
        """The pre-check: a result if no wake is needed, else None. A quota that cannot be read is woken anyway."""
        reading = await self._sharing.ask(("read", provider.mark), lambda: provider.read(PRE_CHECK))
        if isinstance(reading, ReadFailure):
            return Failed(reading.error, permanent=True, output=REFUSED) if reading.kind == "refused" else None
        now = self._clock.read().now
        may_go_on = await self._store.write(lambda tx: self._note(tx, wanted.slot, provider.mark, reading))
        self._on_read()
        if not may_go_on:
            raise FencedOff(f"slot {wanted.slot} was disabled, and the run of this wake is closed")
        return None if is_needed(reading, now) else Done("claimed", output=WARM)

    def _note(self, tx: Tx, name: str, mark: str, reading: Reading) -> bool:
        """Record the reading; returns False if it disabled the slot, which closed this run."""
        known = tx[QuotaSlots].by_names([name]).get(name)
        slot = None if known is None else tx[QuotaSlots].lock([known.slot_id]).get(known.slot_id)
        defined = None if slot is None or slot.key_mark != mark else self._registry.of(slot)
        if slot is None or not isinstance(defined, Defined):
            return True
        has_statistics = defined.provider.has_statistics
        now = self._clock.read().now
        after = self._notes.note_reading(tx, slot, defined.rules, reading, now=now, has_statistics=has_statistics)
        return may_wake(after, defined.rules)

    def _provider(self, tx: Tx, name: str) -> QuotaProvider | None:
        slot = tx[QuotaSlots].by_names([name]).get(name)
        defined = None if slot is None else self._registry.of(slot)
        return defined.provider if isinstance(defined, Defined) else None


def _result(failure: WakeFailure | None) -> Result:
    if failure is None:
        return Done("accepted", output=SENT)
    if failure.is_unreachable:
        return Failed(failure.error, output=UNREACHABLE)
    if failure.until is not None:
        return Throttled(failure.error, failure.until)
    return Failed(failure.error)
