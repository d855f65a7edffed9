"""Names of 0.2 that are deprecated: they work in this version, warn, and are gone in 0.4."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from wakeful.api.actors import Actor
from wakeful.api.deprecation import warn_of
from wakeful.api.ledger import Ledger
from wakeful.api.old_delivering import OldDelivering
from wakeful.api.today import TodayView
from wakeful.app.agents import AgentState
from wakeful.app.heartbeat import HeartbeatState
from wakeful.app.with_cost import estimated_cost
from wakeful.core.money.budgets import Period
from wakeful.core.time.instants import Instant
from wakeful.features.delivery.alerts import AlertView
from wakeful.features.delivery.views import DeliveryView
from wakeful.features.heartbeat.commands import Given, WakeResult
from wakeful.features.money.queries import BUDGETS, BudgetView, cost_of_agents
from wakeful.features.schedules import queries
from wakeful.features.schedules.backfilling import PastInstants
from wakeful.features.schedules.health import Finding, Health
from wakeful.features.schedules.queries import NodeStatus
from wakeful.features.schedules.run_views import RunView
from wakeful.ports.heartbeats import SystemEvent

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful


class OldNames:
    """What 0.2 had as methods of the app."""

    async def budgets(self) -> list[BudgetView]:
        """Deprecated: `app.money.budgets`."""
        warn_of("budgets", "money.budgets")
        return (await self._app.money.budgets()).budgets

    async def budget_json(self) -> dict[str, Any]:
        """Deprecated: `app.money.budgets`."""
        warn_of("budget_json", "money.budgets")
        return BUDGETS.write(await self._app.money.budgets())

    async def set_budget(
        self, period: Period, limit: float | None, *, agent: str | None = None, unpriced: Any = None
    ) -> None:
        """Deprecated: `app.money.set_budget`."""
        warn_of("set_budget", "money.set_budget")
        await self._app.money.set_budget(period, limit, agent=agent, unpriced=unpriced)

    async def release_agent(self, agent: str) -> None:
        """Deprecated: `app.money.release`."""
        warn_of("release_agent", "money.release")
        await self._app.money.release(agent)

    # --- people -------------------------------------------------------------------------------------------------------

    @property
    def delivering(self) -> OldDelivering:
        """Deprecated: `app.people`."""
        warn_of("delivering", "people")
        return OldDelivering(self._app.people)

    async def deliver(self, text: str, *, channel: str | None = None, to: str | None = None) -> DeliveryView:
        """Deprecated: `app.people.send`."""
        warn_of("deliver", "people.send")
        return await self._app.people.send(text, channel=channel, to=to)

    async def message(self, channel: str, to: str, text: str) -> None:
        """Deprecated: `app.people.receive`."""
        warn_of("message", "people.receive")
        await self._app.people.receive(channel, to, text)

    async def today(
        self,
        *,
        since: datetime | str | Instant | None = None,
        missing: Mapping[str, str] | None = None,
        places: Mapping[str, str] | None = None,
    ) -> TodayView:
        """Deprecated: `app.people.today`. `missing` and `places` have no effect: the app knows them."""
        warn_of("today", "people.today")
        return await self._app.people.today(since=since)

    async def alerts(self, *, limit: int = 50, is_open: bool = False) -> list[AlertView]:
        """Deprecated: `app.people.alerts`."""
        warn_of("alerts", "people.alerts")
        return (await self._app.people.alerts(limit=limit, is_open=is_open)).alerts

    async def acknowledge_alert(self, alert_id: str) -> None:
        """Deprecated: `app.people.acknowledge`."""
        warn_of("acknowledge_alert", "people.acknowledge")
        await self._app.people.acknowledge(alert_id)

    # --- turns --------------------------------------------------------------------------------------------------------

    async def agents(self) -> list[AgentState]:
        """Deprecated: `app.turns.agents`."""
        warn_of("agents", "turns.agents")
        return (await self._app.turns.agents()).agents

    async def test_agent(self, name: str, prompt: str | None = None) -> RunView:
        """Deprecated: `app.turns.test_agent`."""
        warn_of("test_agent", "turns.test_agent")
        run_id = (await self._app.turns.test_agent(name, prompt=prompt)).run_id
        return await self._app._look(lambda tx, _: queries.run(tx, run_id))

    async def cost_of_agents(self) -> dict[str, dict[str, float]]:
        """Deprecated: `app.turns.agents`."""
        warn_of("cost_of_agents", "turns.agents")
        costs = await self._app._look(lambda tx, now: cost_of_agents(tx, zone=self._app._money_zone, now=now))
        return {name: {"today": cost.today, "month": cost.month} for name, cost in costs.items()}

    async def wake(
        self,
        reason: Given = "manual",
        text: str | None = None,
        context_key: str | None = None,
        *,
        run: tuple[int, str] | None = None,
    ) -> WakeResult:
        """Deprecated: `app.turns.wake`."""
        warn_of("wake", "turns.wake")
        run_id, token = run or (None, None)
        key = None if text is None else context_key
        return await self._app.turns.wake(reason, text, key, run_id=run_id, token=token)

    async def heartbeat(self) -> HeartbeatState:
        """Deprecated: `app.turns.heartbeat`."""
        warn_of("heartbeat", "turns.heartbeat")
        return await self._app.turns.heartbeat()

    async def system_events(self) -> list[SystemEvent]:
        """Deprecated: `app.turns.system_events`."""
        warn_of("system_events", "turns.system_events")
        return (await self._app.turns.system_events()).events

    # --- system -------------------------------------------------------------------------------------------------------

    async def pulse(self) -> NodeStatus:
        """Deprecated: `app.system.nodes`, and `app.system.health` for runs that are stuck."""
        warn_of("pulse", "system.nodes")
        return await self._app._pulse()

    async def health(self) -> Health:
        """Deprecated: `app.system.health`."""
        warn_of("health", "system.health")
        return await self._app._health()

    async def is_writable(self) -> Finding:
        """Deprecated: `app.system.health`."""
        warn_of("is_writable", "system.health")
        return await self._app._is_writable()

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def get_run(self, run_id: int) -> RunView:
        """Deprecated: `app.ledger.get`."""
        warn_of("get_run", "ledger.get")
        return await self._app.ledger.get(run_id)

    async def request_run(self, slug: str) -> int:
        """Deprecated: `app.schedules.run`."""
        warn_of("request_run", "schedules.run")
        return (await self._app.schedules.run(slug)).run_id

    async def check_replay(self, run_id: int) -> str:
        """Deprecated: `app.ledger.replay` with `dry_run`."""
        warn_of("check_replay", "ledger.replay(…, dry_run=True)")
        return next(iter(cast(PastInstants, await self._app.ledger.replay(run_id, dry_run=True)).by_slug))

    async def replay_missed(
        self, since: datetime | str, slug: str | None = None, *, apply: bool = False, by: str = ""
    ) -> dict[str, int]:
        """Deprecated: `app.ledger.replay_missed`."""
        warn_of("replay_missed", "ledger.replay_missed")
        ledger = Ledger(self._app, Actor(name=by))
        return (await ledger.replay_missed(since, slug, dry_run=not apply)).by_slug

    async def stop_backfill(self, slug: str) -> int:
        """Deprecated: `app.ledger.stop_backfill`."""
        warn_of("stop_backfill", "ledger.stop_backfill")
        return (await self._app.ledger.stop_backfill(slug)).left

    async def estimated_cost(self, by_slug: Mapping[str, int]) -> float | None:
        """Deprecated: the `estimate` of `app.ledger.backfill` with `dry_run`."""
        warn_of("estimated_cost", "ledger.backfill(…, dry_run=True)")
        money = self._app._money_terms
        return await self._app._look(lambda tx, now: estimated_cost(tx, by_slug, money, now=now))

    @property
    def _app(self) -> "Wakeful":
        return cast("Wakeful", self)
