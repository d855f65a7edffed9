"""What a run will probably cost, and what budgets assume for attempts of unknown cost. What is assumed counts towards
limits, and is never shown as spent."""

from collections.abc import Sequence
from statistics import median

from wakeful.core.money.budgets import AGENT, ESTIMATED_FROM, EVERYTHING, SCHEDULE, Budget, Unit, Window, estimate
from wakeful.core.money.charges import Charge, Unknown
from wakeful.core.money.prices import nano
from wakeful.core.money.schedule_budget import ScheduleBudget
from wakeful.core.time.instants import Instant
from wakeful.features.money.terms import MoneyTerms
from wakeful.ports.charges import Charges
from wakeful.ports.store import Tx


def estimated_for(tx: Tx, terms: MoneyTerms, owner_id: int, agent: str, unit: Unit, *, now: Instant) -> int | None:
    """The estimate for a run: from the schedule's last known costs, else from the agent's, else from its settings."""
    known = tx[Charges].known
    costs = known(unit=unit, owner_id=owner_id, until=now, limit=ESTIMATED_FROM)
    costs = costs or known(unit=unit, agent=agent, until=now, limit=ESTIMATED_FROM)
    return terms.cost_per_run.get(agent) if not costs and unit == "usd" else estimate(costs)


def with_assumption(tx: Tx, charge: Charge, budget: ScheduleBudget | None, *, now: Instant) -> Charge:
    """An attempt that ended. If it had no estimate and its cost is unknown, what its agent's runs usually cost is
    assumed, else `perRun`, else nothing: everything that was left, which it reserved, would stop all other agents."""
    if charge.basis == "estimate":
        return charge
    if charge.cost is None:
        per_run = None if budget is None or budget.per_run is None else nano(budget.per_run)
        cost = 0 if charge.basis == "unpriced" else _typical(tx, charge, "usd", per_run, now)
        charge = charge._replace(held_cost=cost)
    if charge.tokens is None:
        tokens_per_run = None if budget is None else budget.tokens_per_run
        charge = charge._replace(held_tokens=_typical(tx, charge, "tokens", tokens_per_run, now))
    return charge


def _typical(tx: Tx, charge: Charge, unit: Unit, per_run: int | None, now: Instant) -> int:
    known = tx[Charges].known(unit=unit, agent=charge.agent, until=now, limit=ESTIMATED_FROM) if charge.agent else []
    return round(median(known)) if known else per_run or 0


def assumed_in(tx: Tx, budget: Budget) -> int:
    """The part of a budget's `spent` that is assumed."""
    unknown = tx[Charges].unknown(budget.unit, Window(budget.starts_at, budget.ends_at))
    return sum(row.assumed for row in in_scope(unknown, budget.scope))


def in_scope(unknown: Sequence[Unknown], scope: str) -> list[Unknown]:
    """Those that fall under a scope."""
    return [
        row
        for row in unknown
        if scope in (EVERYTHING, f"{SCHEDULE}{row.owner_id}")
        or (row.agent is not None and scope == f"{AGENT}{row.agent}")
    ]
