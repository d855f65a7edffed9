"""An app's prices and budgets: plugged in from the settings, or from a Python program."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from wakeful.app.bootstrap import FeatureContext
from wakeful.core.money.budgets import AGENT, EVERYTHING, Limit
from wakeful.core.money.prices import Price, nano
from wakeful.core.run.runs import Run
from wakeful.core.time.timing import Once
from wakeful.features.money.feature import Money
from wakeful.features.money.terms import AgentPricing, MoneyTerms, RunTerms, TermsOf
from wakeful.features.schedules.compiled import KIND, Compilations, Compiled
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.store import Tx

if TYPE_CHECKING:
    from wakeful.config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Budgets and prices of a Python program, as `[budgets]` and `[prices]` in the settings."""

    day: float | None = None  # US dollars, over all agents
    month: float | None = None
    agents_day: Mapping[str, float] = field(default_factory=dict)  # by agent
    agents_month: Mapping[str, float] = field(default_factory=dict)
    cost_per_run: Mapping[str, float] = field(default_factory=dict)  # by agent, for runs that report no cost
    unpriced: Literal["refuse", "allow"] = "refuse"  # whether limits may be set that cannot apply to all agents
    warn_at: float = 0.8
    brake: bool = False
    prices: Mapping[str, Price] = field(default_factory=dict)  # by model

    def feature(self) -> Money:
        """The feature to plug in."""
        limits = [
            *_limits(EVERYTHING, self.day, self.month),
            *(limit for name, amount in self.agents_day.items() for limit in _limits(f"{AGENT}{name}", amount, None)),
            *(limit for name, amount in self.agents_month.items() for limit in _limits(f"{AGENT}{name}", None, amount)),
        ]
        per_run = {name: nano(amount) for name, amount in self.cost_per_run.items()}
        terms = MoneyTerms(
            dict(self.prices), tuple(sorted(limits)), self.warn_at, self.brake, {}, per_run, self.unpriced
        )
        return Money(terms)


def money_of(settings: "Settings") -> MoneyTerms:
    from wakeful.config.agents import reports_cost

    budgets = settings.budgets
    limits = _limits(EVERYTHING, budgets.day, budgets.month)
    agents: dict[str, AgentPricing] = {}
    for name, agent in settings.agents.items():
        limits += _limits(f"{AGENT}{name}", agent.budget_day, agent.budget_month)
        agents[name] = AgentPricing(agent.model, reports_cost(agent))
    prices = {model: Price(price.input, price.output, price.cached_input) for model, price in settings.prices.items()}
    per_run = {
        name: nano(agent.cost_per_run) for name, agent in settings.agents.items() if agent.cost_per_run is not None
    }
    limits = sorted(limits)
    return MoneyTerms(prices, tuple(limits), budgets.warn_at, budgets.brake, agents, per_run, budgets.unpriced)


def _limits(scope: str, day: float | None, month: float | None) -> list[Limit]:
    limits = [] if day is None else [Limit(scope, "usd", "day", nano(day))]
    return limits if month is None else [*limits, Limit(scope, "usd", "month", nano(month))]


async def plug_money(
    money: Money, context: FeatureContext, *, on_change: Callable[[], None] = lambda: None
) -> FeatureHooks:
    """Plug the money feature into an app; `on_change` is called after its terms have changed."""
    return money.plug(
        terms_of=terms_of(context.compilations),
        zone=lambda: context.terms.value.default_zone,
        on_change=on_change,
    )


def terms_of(compilations: Compilations) -> TermsOf:
    """The money part of a schedule's definition, for its runs."""

    def read(tx: Tx, run: Run) -> RunTerms | None:
        compiled = compilations.of_run(tx, run) if run.kind == KIND else None
        if not isinstance(compiled, Compiled):
            return None
        return RunTerms(compiled.slug, compiled.model.budget, isinstance(compiled.model.timing, Once))

    return read
