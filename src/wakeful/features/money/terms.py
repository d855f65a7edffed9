"""The money settings: prices, limits, and when people are warned."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from wakeful.core.money.budgets import AGENT, EVERYTHING, Limit
from wakeful.core.money.prices import Price, price_of
from wakeful.core.money.schedule_budget import ScheduleBudget
from wakeful.core.run.runs import Run
from wakeful.features.money.budget_rows import SetLimits
from wakeful.ports.store import Tx

Reports: TypeAlias = Literal["always", "maybe", "never"]
"""Whether an agent's program says what a turn cost. A function, or a program with `usage_key`, may."""

OnUnpriced: TypeAlias = Literal["refuse", "allow"]
"""Whether a limit in dollars may be set while there are agents for which it cannot hold."""


class AgentPricing(NamedTuple):
    """What the settings say about an agent's cost."""

    model: str | None  # as configured
    reports: Reports


@dataclass(frozen=True, slots=True)
class MoneyTerms:
    """`[budgets]`, `[prices]` and the agents' budgets."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    warn_at: float = 0.8
    brake: bool = False
    agents: Mapping[str, AgentPricing] = field(default_factory=dict)
    cost_per_run: Mapping[str, int] = field(default_factory=dict)  # by agent, in billionths of a dollar
    unpriced: OnUnpriced = "refuse"
    is_rise_watched: bool = True  # whether the cost of an agent's turns is compared with what is usual

    @property
    def shared(self) -> object:
        """What all nodes on a store must have in common: `[budgets]`. Agents and their budgets may differ by node."""
        return (tuple(limit for limit in self.limits if limit.scope == EVERYTHING), self.warn_at, self.brake)

    def has_prices(self, agent: str, model: str | None = None) -> bool:
        """Whether the cost of an agent's turns will be known, by the settings."""
        known = self.agents.get(agent)
        if agent in self.cost_per_run or (known is not None and known.reports == "always"):
            return True
        return price_of(model or (None if known is None else known.model), self.prices) is not None

    def may_report(self, agent: str) -> bool:
        """Whether an agent may report what its turns cost. A function of this program may."""
        known = self.agents.get(agent)
        return known is None or known.reports != "never"


class RunTerms(NamedTuple):
    """The money part of a run's definition."""

    slug: str
    budget: ScheduleBudget | None
    is_one_shot: bool


TermsOf: TypeAlias = Callable[[Tx, Run], RunTerms | None]
"""The terms of a schedule's run; None for a run of something else."""


def model_of(spec: Any) -> str | None:
    """The model that a turn names, if any: a prompt's, or the heartbeat's."""
    model = getattr(spec, "session_config", {}).get("model")
    return model if isinstance(model, str) else None


def effective(tx: Tx, terms: MoneyTerms) -> list[Limit]:
    """Global and agents' limits: those set by people, else those in the settings."""
    limits = {(limit.scope, limit.unit, limit.period): limit.amount for limit in terms.limits}
    limits |= {(row.scope, row.unit, row.period): row.amount for row in tx[SetLimits].all()}
    return sorted(Limit(*key, amount) for key, amount in limits.items())


def applying(limits: list[Limit], agent: str | None) -> list[Limit]:
    """The limits that apply to this agent's turns."""
    scopes = {EVERYTHING} if agent is None else {EVERYTHING, f"{AGENT}{agent}"}
    return [limit for limit in limits if limit.scope in scopes]
