"""What was spent, and budgets, for Python programs, REST and the command line."""

from datetime import datetime
from typing import Any

from wakeful.app.lifecycle import AppLifecycle
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.money.schedule_budget import limits_of
from wakeful.core.schedule.actions import Prompt
from wakeful.core.time.instants import DAY, Instant, format_instant
from wakeful.core.time.timing_builders import as_instant
from wakeful.features.money import commands, queries
from wakeful.features.money.queries import BudgetView, CostView, Limited
from wakeful.features.schedules.compiled import Compilations, Compiled
from wakeful.features.schedules.views import ScheduleView
from wakeful.ports.money import CostKey
from wakeful.ports.store import Tx

PAGE = 500
SINCE = 30 * DAY
BY: tuple[CostKey, ...] = ("schedule", "agent", "model", "day")


class Costs(AppLifecycle):
    """Costs and budgets."""

    async def cost(self, by: str = "schedule", *, since: datetime | str | None = None) -> CostView:
        """The cost since `since` (30 days ago by default), by schedule, agent, model or day."""
        key = next((known for known in BY if known == by), None)
        if key is None:
            refuse("by", f"{shown(by)} is not one of {', '.join(BY)}")
        now, zone = self._clock.read().now, self._money.zone
        start = now - SINCE if since is None else as_instant(since, "since")
        return await self._open.store.read(lambda tx: queries.cost(tx, key, since=start, zone=zone, now=now))

    async def cost_of_agents(self) -> dict[str, dict[str, float]]:
        """What each agent cost in the current day and month, in US dollars, by agent."""
        now, zone = self._clock.read().now, self._money.zone
        return await self._open.store.read(lambda tx: queries.cost_of_agents(tx, zone=zone, now=now))

    async def budgets(self) -> list[BudgetView]:
        """All budgets in their current periods."""
        return await self._open.store.read(self._budgets)

    async def budget_json(self) -> dict[str, Any]:
        """Budgets and stopped agents as JSON."""

        def look(tx: Tx) -> dict[str, Any]:
            return {
                "budgets": [view.to_json() for view in self._budgets(tx)],
                "stopped": [
                    {"agent": brake.agent, "since": format_instant(brake.at), "reason": brake.text}
                    for brake in tx.budgets.brakes().values()
                ],
            }

        return await self._open.store.read(look)

    async def set_budget(self, period: object, limit: object, *, agent: object = None) -> None:
        """Limit what all agents, or one, may cost per day or month, in US dollars; None removes the limit again."""
        now, terms = self._clock.read().now, self._money.terms
        await self._open.store.write(lambda tx: commands.set_limit(tx, terms, period, limit, agent, now=now))

    async def release_agent(self, agent: str) -> None:
        """Let an agent continue that was stopped because of its cost."""
        parts, now = self._open, self._clock.read().now

        def release(tx: Tx) -> None:
            parts.apply(tx, commands.release(tx, agent), now)

        await parts.store.write(release)
        parts.engine.ring_bell()

    async def cost_of(self, view: ScheduleView) -> dict[str, Any] | None:
        """The `cost` of a stored or new schedule; None if it has no prompt."""
        now, definition = self._clock.read().now, view.definition
        if definition is None or not isinstance(definition.action, Prompt):
            return None
        timing = self.terms.starting(definition.timing, definition)

        def look(tx: Tx) -> dict[str, Any] | None:
            schedule = tx.schedules.by_slugs([view.slug]).get(view.slug)
            schedule_id = None if schedule is None else schedule.schedule_id
            return queries.cost_of_schedule(tx, schedule_id, definition, timing, now=now)

        return await self._open.store.read(look)

    def _budgets(self, tx: Tx) -> list[BudgetView]:
        now: Instant = self._clock.read().now
        money = self._money
        return queries.budgets(tx, money.terms, limits_in(tx, self._open.compilations), zone=money.zone, now=now)


def limits_in(tx: Tx, compilations: Compilations) -> list[Limited]:
    """The limits that definitions name."""
    limited: list[Limited] = []
    after_id = 0
    while page := tx.schedules.with_budget(after_id=after_id, limit=PAGE):
        compiled = compilations.of(tx, [(row.schedule_id, row.version) for row in page])
        for row in page:
            known = compiled.get(row.schedule_id)
            budget = known.model.budget if isinstance(known, Compiled) else None
            if budget is not None:
                scope = f"schedule:{row.slug}"
                limited += [Limited(limit, scope, "definition") for limit in limits_of(budget, row.schedule_id)]
        after_id = page[-1].schedule_id
    return limited
