"""Costs and budgets: what can be asked of them."""

from datetime import datetime
from typing import Annotated, Literal

from wakeful.api.operation import Blocking, Noun, Returns, read, write
from wakeful.api.parameters import Param
from wakeful.api.reading import time_of
from wakeful.core.money.budgets import Period
from wakeful.core.time.instants import DAY, Instant
from wakeful.core.time.timing_builders import as_instant
from wakeful.features.money import commands, queries
from wakeful.features.money.queries import BUDGETS, COST, Budgets, CostView
from wakeful.ports.charges import CostKey
from wakeful.ports.store import Tx

ALL = Returns(BUDGETS, "All budgets.")


class Money(Noun):
    """What agents cost, and what they may cost."""

    @read("GET /api/cost", "What agents cost", Returns(COST, "The most expensive first; days in order."), id="get_cost")
    def cost(
        self,
        tx: Tx,
        now: Instant,
        by: Annotated[CostKey, Param("what to sum by")] = "schedule",
        *,
        since: Annotated[datetime | str | None, Param("a time; default: 30 days ago", read=time_of("since"))] = None,
    ) -> CostView:
        start = now - 30 * DAY if since is None else as_instant(since, "since")
        return queries.cost(tx, by, since=start, zone=self._app._money_zone, now=now)

    @read(
        "GET /api/budget",
        "List the budgets",
        Returns(BUDGETS, "Limits, amounts spent and reserved, and when they reset."),
        id="get_budget",
    )
    def budgets(self, tx: Tx, now: Instant) -> Budgets:
        return self._app._budgets_in(tx, now)

    @write(
        "PUT /api/budget",
        "Set a budget",
        ALL,
        refuses=(404,),
        least="admin",
        id="put_budget",
        body_name="NewBudget",
        body_says="A limit in US dollars, for all agents or for one.",
    )
    def set_budget(
        self,
        tx: Tx,
        now: Instant,
        period: Annotated[Period, Param(unchecked=True)],
        limit: Annotated[
            float | None,
            Param(
                "null: the limit in the settings applies again",
                missing="write an amount in US dollars, or null for the limit in the settings",
            ),
        ],
        *,
        agent: Annotated[str | None, Param("default: all agents together")] = None,
        unpriced: Annotated[
            Literal["refuse", "allow"] | None,
            Param(
                "allow: set it although it cannot apply to agents of unknown cost; default: the settings",
                unchecked=True,
            ),
        ] = None,
    ) -> Budgets:
        """A limit for all agents, or for one, in place of the one in the settings. It takes effect immediately. It is
        refused if the cost of an agent cannot be known, unless `unpriced` is `allow`."""
        commands.set_limit(tx, self._app._money_terms, period, limit, agent, now=now, unpriced=unpriced)
        return self._app._budgets_in(tx, now)

    @write("POST /api/budget/{agent}/release", "Release a stopped agent", ALL, refuses=(404,), id="release_agent")
    def release(
        self,
        tx: Tx,
        now: Instant,
        agent: Annotated[str, Param("the agent", schema={"type": "string", "examples": ["default"]})],
    ) -> Budgets:
        """For an agent that was stopped because its turns cost ten times the usual."""
        self._app._open.apply(tx, commands.release(tx, agent), now)
        return self._app._budgets_in(tx, now)


class BlockingMoney(Money, Blocking):
    """Costs and budgets, for programs without an event loop."""
