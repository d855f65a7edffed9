"""The quota gate: a run whose slot is exhausted waits for the reset, never lost and never run twice."""

from collections.abc import Callable
from typing import Final, TypeAlias

from wakeful.core.run.runs import Run
from wakeful.core.schedule.gates import Decision, Defer, Skip
from wakeful.core.time.instants import Instant
from wakeful.ports.store import Tx

QUOTA: Final = "quota"

SlotOf: TypeAlias = Callable[[Tx, Run], str | None]
"""The slot named by a run's schedule."""


class QuotaGate:
    """Checked before a schedule's run starts. A manual run is refused immediately instead of waiting."""

    def __init__(self, slot_of: SlotOf) -> None:
        self._slot_of = slot_of

    def __call__(self, tx: Tx, run: Run, now: Instant) -> Decision:
        name = self._slot_of(tx, run)
        slot = None if name is None else tx.slots.by_names([name]).get(name)
        until = None if slot is None else slot.exhausted_until
        if until is None or until <= now:
            return None
        return Skip(QUOTA) if run.trigger == "manual" else Defer(until, QUOTA)
