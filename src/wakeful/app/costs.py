"""What was spent, and budgets, for Python programs, REST and the command line."""

from wakeful.app.lifecycle import AppLifecycle
from wakeful.app.with_cost import with_cost
from wakeful.core.money.schedule_budget import limits_of
from wakeful.core.money.spending import ScheduleCost
from wakeful.core.schedule.actions import Prompt
from wakeful.core.time.instants import Instant
from wakeful.features.money import queries
from wakeful.features.money.budget_rows import Brakes
from wakeful.features.money.queries import Limited
from wakeful.features.money.terms import MoneyTerms
from wakeful.features.money.unpriced import Unpriced
from wakeful.features.schedules.compiled import Compilations, Compiled
from wakeful.features.schedules.views import ScheduleView
from wakeful.ports.store import Tx

PAGE = 500


class Costs(AppLifecycle):
    """Costs and budgets."""

    def _budgets_in(self, tx: Tx, now: Instant) -> queries.Budgets:
        """All budgets in their current periods, agents without a known cost, and stopped agents."""
        money = self._money
        views = queries.budgets(tx, money.terms, limits_in(tx, self._open.compilations), zone=money.zone, now=now)
        stopped = [queries.StoppedAgent(brake.agent, brake.at, brake.text) for brake in tx[Brakes].all().values()]
        return queries.Budgets(views, self._unpriced_in(tx, now), stopped)

    async def _cost_of(self, view: ScheduleView) -> ScheduleCost | None:
        """The `cost` of a stored or new schedule; None if it has no prompt."""
        now, terms, money = self._clock.read().now, self._terms, self._money.terms
        return (await self._open.store.read(lambda tx: with_cost(tx, view, terms=terms, money=money, now=now))).cost

    @property
    def _money_zone(self) -> str:
        return self._money.zone

    @property
    def _money_terms(self) -> MoneyTerms:
        return self._money.terms

    def _unpriced_in(self, tx: Tx, now: Instant) -> list[Unpriced]:
        """Agents to which limits in dollars cannot apply."""
        return unpriced_in(tx, self._money.terms, self._open.compilations, now=now)


def unpriced_in(tx: Tx, terms: MoneyTerms, compilations: Compilations, *, now: Instant) -> list[Unpriced]:
    """Agents to which limits in dollars cannot apply."""
    return queries.unpriced(tx, terms, limits_in(tx, compilations), now=now)


def limits_in(tx: Tx, compilations: Compilations) -> list[Limited]:
    """The limits that definitions name."""
    limited: list[Limited] = []
    after_id = 0
    while page := tx.schedules.with_budget(after_id=after_id, limit=PAGE):
        compiled = compilations.of(tx, [(row.schedule_id, row.version) for row in page])
        for row in page:
            known = compiled.get(row.schedule_id)
            if isinstance(known, Compiled) and (budget := known.model.budget) is not None:
                scope, action = f"schedule:{row.slug}", known.model.action
                agent = action.agent if isinstance(action, Prompt) else None
                limited += [Limited(limit, scope, "definition", agent) for limit in limits_of(budget, row.schedule_id)]
        after_id = page[-1].schedule_id
    return limited
