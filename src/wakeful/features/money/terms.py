"""The money settings: prices, limits, and when people are warned."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from wakeful.core.money.budgets import AGENT, EVERYTHING, Limit
from wakeful.core.money.prices import Price, price_of
from wakeful.core.money.schedule_budget import ScheduleBudget
from wakeful.core.run.runs import Run
from wakeful.ports.store import Tx


class AgentPricing(NamedTuple):
    """What is known about an agent's cost."""

    model: str | None  # as configured
    reports_cost: bool  # whether its program says what a turn cost


@dataclass(frozen=True, slots=True)
class MoneyTerms:
    """`[budgets]`, `[prices]` and the agents' budgets."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    warn_at: float = 0.8
    brake: bool = False
    agents: Mapping[str, AgentPricing] = field(default_factory=dict)
    is_rise_watched: bool = True  # whether the cost of an agent's turns is compared with what is usual

    @property
    def shared(self) -> object:
        """What all nodes on a store must have in common: `[budgets]`. Agents and their budgets may differ by node."""
        return (tuple(limit for limit in self.limits if limit.scope == EVERYTHING), self.warn_at, self.brake)

    def has_prices(self, agent: str, model: str | None = None) -> bool:
        """Whether the cost of an agent's turns will be known."""
        known = self.agents.get(agent)
        if known is None:  # a function of this program: it may report any cost
            return True
        return known.reports_cost or price_of(model or known.model, self.prices) is not None


class RunTerms(NamedTuple):
    """The money part of a run's definition."""

    slug: str
    budget: ScheduleBudget | None
    is_one_shot: bool


TermsOf: TypeAlias = Callable[[Tx, Run], RunTerms | None]
"""The terms of a schedule's run; None for a run of something else."""


def effective(tx: Tx, terms: MoneyTerms) -> list[Limit]:
    """Global and agents' limits: those set by people, else those in the settings."""
    limits = {(limit.scope, limit.unit, limit.period): limit.amount for limit in terms.limits}
    limits |= {(row.scope, row.unit, row.period): row.amount for row in tx.budgets.limits()}
    return sorted(Limit(*key, amount) for key, amount in limits.items())


def applying(limits: list[Limit], agent: str | None) -> list[Limit]:
    """The limits that apply to this agent's turns."""
    scopes = {EVERYTHING} if agent is None else {EVERYTHING, f"{AGENT}{agent}"}
    return [limit for limit in limits if limit.scope in scopes]
