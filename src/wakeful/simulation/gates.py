"""A simulation's gates: used-up quotas, and budgets that the request declares used up."""

from collections.abc import Sequence

from wakeful.app.slots_of_runs import slot_of
from wakeful.core.money.budgets import AGENT, BUDGET, EVERYTHING
from wakeful.core.run.runs import Run
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.gates import Decision, Defer, Skip
from wakeful.core.simulation.request import UsedUpBudget
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Once
from wakeful.features.quota.gate import QuotaGate
from wakeful.features.schedules.compiled import Compilations, Compiled
from wakeful.ports.handlers import FeatureHooks, Gate
from wakeful.ports.store import Tx


def gates_of(compilations: Compilations, budgets: Sequence[UsedUpBudget]) -> FeatureHooks:
    """The gates of one simulation."""
    quota = QuotaGate(slot_of(compilations))
    gates = [used_up_budget(compilations, budgets)] if budgets else []
    return FeatureHooks(field_gates=[quota], gates=gates)


def used_up_budget(compilations: Compilations, spans: Sequence[UsedUpBudget]) -> Gate:
    """Keeps prompts from starting while a budget is used up, as the real gate does."""

    def gate(tx: Tx, run: Run, now: Instant) -> Decision:
        compiled = compilations.of_run(tx, run)
        if not isinstance(compiled, Compiled) or not isinstance(compiled.model.action, Prompt):
            return None
        agent = compiled.model.action.agent
        scopes = (EVERYTHING, f"{AGENT}{agent}", f"schedule:{compiled.slug}")
        ends = [span.ends_at for span in spans if span.scope in scopes and span.starts_at <= now < span.ends_at]
        if not ends:
            return None
        return Defer(max(ends), BUDGET) if isinstance(compiled.model.timing, Once) else Skip(BUDGET)

    return gate
