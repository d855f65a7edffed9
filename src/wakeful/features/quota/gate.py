"""The quota gate: a run whose slot is exhausted waits for the reset, never lost and never run twice."""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from wakeful.core.run.runs import Run
from wakeful.core.schedule.gates import Decision, Defer, Skip
from wakeful.core.slot.windows import slot_name
from wakeful.core.time.instants import Instant
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Tx

QUOTA: Final = "quota"


class SlotsOfRun(NamedTuple):
    """The quota slots a run uses."""

    slot: str | None = None  # named by its schedule
    agent: str | None = None  # which may have its own slot


SlotOf: TypeAlias = Callable[[Tx, Run], SlotsOfRun]


class QuotaGate:
    """Checked before a schedule's run starts. A manual run is refused immediately instead of waiting."""

    def __init__(self, slot_of: SlotOf) -> None:
        self._slot_of = slot_of

    def __call__(self, tx: Tx, run: Run, now: Instant) -> Decision:
        named, agent = self._slot_of(tx, run)
        of_agent = None if agent is None else slot_name(agent)
        names = [name for name in (named, of_agent) if name is not None]
        slots = tx[QuotaSlots].by_names(names) if names else {}
        until = {name: slot.exhausted_until or 0 for name, slot in slots.items()}
        if run.trigger == "manual":
            # Nothing polls the slot of an agent: a manual run is how a person finds out that it works again.
            return Skip(QUOTA) if named is not None and until.get(named, 0) > now else None
        latest = max(until.values(), default=0)
        return Defer(latest, QUOTA) if latest > now else None
