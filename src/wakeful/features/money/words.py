"""Amounts and budgets in words."""

from wakeful.core.money.budgets import AGENT, EVERYTHING, SCHEDULE, Budget, Limit, Unit
from wakeful.core.money.prices import NANO
from wakeful.core.time.instants import format_instant

_PERIODS = {"day": "daily", "month": "monthly"}


def amount_text(amount: int, unit: Unit) -> str:
    """An amount as people write it; small ones keep their first two digits."""
    if unit == "tokens":
        return f"{amount:,} tokens"
    dollars = amount / NANO
    return f"{dollars:.2f} USD" if dollars == 0 or dollars >= 0.01 else f"{dollars:.2g} USD"


def budget_name(limit: Limit | Budget, slug: str | None = None) -> str:
    """The budget in words: "the daily budget of agent coder"."""
    name = f"the {_PERIODS[limit.period]} budget"
    if limit.scope == EVERYTHING:
        return f"{name} of all agents"
    if limit.scope.startswith(AGENT):
        return f"{name} of agent {limit.scope.removeprefix(AGENT)}"
    return f"{name} of {slug or 'schedule ' + limit.scope.removeprefix(SCHEDULE)}"


def spent_text(spent: int, assumed: int, limit: Limit) -> str:
    """What was spent of a limit; what is assumed for runs of unknown cost is named apart."""
    known = f"{amount_text(spent - assumed, limit.unit)} of {amount_text(limit.amount, limit.unit)} spent"
    unknown = f", {amount_text(assumed, limit.unit)} assumed for runs of unknown cost" if assumed else ""
    return known + unknown


def used_up_text(limit: Limit, budget: Budget, estimated: int | None, slug: str | None, *, assumed: int) -> str:
    """Why a run does not fit, and when it will. `assumed` is part of the budget's `spent`."""
    unit = limit.unit
    reserved = f", {amount_text(budget.reserved, unit)} reserved by runs in progress" if budget.reserved else ""
    needs = "" if estimated is None else f", and a run is estimated at {amount_text(estimated, unit)}"
    spent = f"{spent_text(budget.spent, assumed, limit)}{reserved}{needs}"
    return f"{budget_name(limit, slug)} is used up ({spent}); it resets at {format_instant(budget.ends_at)}"
