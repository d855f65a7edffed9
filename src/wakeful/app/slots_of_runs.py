"""Which quota slots a schedule's run depends on."""

from wakeful.core.run.runs import Run
from wakeful.core.schedule.actions import Prompt
from wakeful.features.quota.gate import SlotOf, SlotsOfRun
from wakeful.features.schedules.compiled import Compilations, Compiled
from wakeful.ports.store import Tx


def slot_of(compilations: Compilations) -> SlotOf:
    """Returns a function that looks up the slot named by a run's schedule, and its agent."""

    def read(tx: Tx, run: Run) -> SlotsOfRun:
        compiled = compilations.of_run(tx, run)
        if not isinstance(compiled, Compiled):
            return SlotsOfRun()
        action = compiled.model.action
        return SlotsOfRun(compiled.model.slot, action.agent if isinstance(action, Prompt) else None)

    return read
