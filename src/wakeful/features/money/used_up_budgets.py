"""Which schedules a budget keeps from running, as of now: for `why` and for what comes next. Nothing here writes."""

from wakeful.core.money.budgets import Budget, Limit, UsedUp, fit, window_of
from wakeful.core.money.schedule_budget import limits_of
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import Instant
from wakeful.features.money.budget_rows import BudgetPeriods
from wakeful.features.money.estimates import assumed_in, estimated_for
from wakeful.features.money.terms import MoneyTerms, applying, effective, model_of
from wakeful.features.money.unpriced import is_priced
from wakeful.features.money.words import used_up_text
from wakeful.ports.charges import Charges
from wakeful.ports.store import Tx


class UsedUpBudgets:
    """The budgets at one time, read once for several schedules."""

    def __init__(self, tx: Tx, terms: MoneyTerms, zone: str, now: Instant) -> None:
        self._tx = tx
        self._zone = zone
        self._now = now
        self._terms = terms
        self._limits = effective(tx, terms)
        self._rows = {(row.scope, row.unit, row.period, row.starts_at): row for row in tx[BudgetPeriods].current(now)}

    def used_up(self, schedule_id: int, definition: Definition) -> UsedUp | None:
        """The used-up budget that frees last, with the text that its skipped runs will have; None if a run fits."""
        action = definition.action
        if not isinstance(action, Prompt):
            return None
        limits = applying(self._limits, action.agent)
        if definition.budget is not None:
            limits += limits_of(definition.budget, schedule_id)
        if any(limit.unit == "usd" for limit in limits) and not is_priced(
            self._tx, self._terms, action.agent, model_of(action)
        ):
            limits = [limit for limit in limits if limit.unit != "usd"]
        budgets: list[UsedUp] = []
        for limit in sorted(limits):
            budget = self._current(limit)
            estimated = self._estimate(limit, schedule_id, action.agent) if budget.spent else None
            if fit(budget, limit.amount, estimated) == "used up":
                text = used_up_text(limit, budget, estimated, definition.slug, assumed=assumed_in(self._tx, budget))
                budgets.append(UsedUp(budget.ends_at, text))
        return max(budgets, key=lambda budget: budget.frees_at, default=None)

    def _current(self, limit: Limit) -> Budget:
        window = window_of(limit.period, self._zone, self._now)
        row = self._rows.get((limit.scope, limit.unit, limit.period, window.starts_at))
        if row is not None:
            return row
        spent = self._tx[Charges].spent(limit.scope, limit.unit, window)
        return Budget(0, limit.scope, limit.unit, limit.period, *window, self._zone, spent, 0)

    def _estimate(self, limit: Limit, schedule_id: int, agent: str) -> int | None:
        return estimated_for(self._tx, self._terms, schedule_id, agent, limit.unit, now=self._now)
