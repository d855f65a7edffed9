"""Money as an inhabitant: agents that cost something, budgets over them, and people who change the limits.

It owns no action of its own where a heartbeat lives: then it measures what that one's agent does."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from wakeful.app.bootstrap import FeatureContext
from wakeful.app.money import plug_money
from wakeful.core.heartbeat.conversations import is_conversation
from wakeful.core.money.budgets import AGENT, EVERYTHING, SCHEDULE, Limit
from wakeful.core.money.prices import NANO
from wakeful.core.run.results import Done, Failed, Result, Throttled
from wakeful.core.run.runs import Run, RungName
from wakeful.core.run.usage import Usage
from wakeful.core.schedule.actions import Http, Prompt
from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.engine.membership import kept_since
from wakeful.features.money.commands import set_limit
from wakeful.features.money.feature import Money
from wakeful.features.money.terms import MoneyTerms
from wakeful.ports.action import Action, Fire, Ladder
from wakeful.ports.charges import Charges
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.store import Tx
from worlds import money_laws as laws
from worlds import unknown_cost_laws
from worlds.inhabitants import Act, Boot, Surroundings, Touch, draw_times
from worlds.performers import reply_of
from worlds.system import AGENTS, CHECKED_AT, budget_for

NAME: Final = "money"
ACCOUNT: Final = "account"
_DATES: Final = "SELECT run_id, attempt, at FROM charges"
LOST: Final = 0.03
"""How often the report of a turn is lost."""


class Metered:
    """The agent on one boot: what it does is another's business, what it costs is seen here."""

    is_local = False

    def __init__(self, purse: "Purse", inner: Action) -> None:
        self._purse = purse
        self._inner = inner

    def proves(self, spec: Prompt) -> RungName:
        return "finished"

    def check(self, spec: Prompt) -> str | None:
        return None

    async def perform(self, spec: Prompt, fire: Fire, ladder: Ladder) -> Result:
        result = await self._inner.perform(spec, fire, ladder)
        # The simulated answer to a message says nothing of being sent, so a crash may free what it cost.
        if not isinstance(result, Done | Failed | Throttled) or is_conversation(fire.slug):
            return result
        if isinstance(result, Done):
            result = self._purse.replied(fire, result)
        used = self._purse.draw_usage(fire, spec.agent)
        return result if used is None else replace(result, usage=used)

    async def close(self) -> None:
        """Nothing is held."""


class Checked:
    """Requests on one boot: those of checks are answered here, because no attempt begins with them."""

    is_local = False

    def __init__(self, purse: "Purse", requests: Action, boot: Boot) -> None:
        self._purse = purse
        self._requests = requests
        self._boot = boot

    def proves(self, spec: Any) -> RungName:
        return "finished"

    def check(self, spec: Any) -> str | None:
        return None

    async def perform(self, spec: Http, fire: Fire, ladder: Ladder) -> Result:
        if spec.url != CHECKED_AT:
            return await self._requests.perform(spec, fire, ladder)
        wait, result = self._purse.draw_check()
        await self._boot.clock.sleep(wait)
        return result

    async def close(self) -> None:
        await self._requests.close()


class Purse:
    """The money of a world: which limits were ever set, and what each turn really used."""

    name = NAME
    touches: Sequence[Touch] = (Touch("budgets", ACCOUNT, "budget_id"), Touch("charges", ACCOUNT, "run_id"))

    def __init__(
        self,
        rng: random.Random,
        world: Surroundings,
        agent: Any,
        *,
        days: float,
        per_day: float,
    ) -> None:
        self._rng = rng
        self._world = world
        self._agent = agent  # the inhabitant whose agent is measured; None: there is none
        self._days = days
        self._per_day = per_day
        self.silent = rng.choice((None, AGENTS[-1]))
        """An agent that never reports what its turns cost."""
        self._open: set[tuple[int, int]] = set()
        self._reported: dict[str, unknown_cost_laws.Reported] = {}
        self._costs = rng.choice(((0.3,), (0.05, 0.1, 0.4), (0.01, 2.5)))
        self.limits = (
            Limit(EVERYTHING, "usd", "day", 2 * NANO),
            Limit(EVERYTHING, "usd", "month", 30 * NANO),
            Limit(f"{AGENT}{AGENTS[0]}", "usd", "day", NANO),
        )
        self._highest: dict[tuple[str, str], int] = {(one.scope, one.period): one.amount for one in self.limits}
        self.checks = 0
        self._served: dict[tuple[int, int], int] = {}
        self._charges: list[tuple[int, int, int | None]] = []
        self._pruned_before: Instant = 0
        self._dates: dict[tuple[int, int], Instant] = {}
        self._redated_at: Instant = -1
        self._begun: dict[tuple[int, int], Instant] = {}

    # -- life ---------------------------------------------------------------------------------------------------------

    def move_in(self, boot: Boot) -> "MoneyTenant":
        return MoneyTenant(self, boot)

    def actions(self, boot: Boot, requests: Action) -> Mapping[type[Any], Action]:
        inner = requests if self._agent is None else self._agent.actions(boot, requests)[Prompt]
        return {Prompt: Metered(self, inner), Http: Checked(self, requests, boot)}

    def draw_acts(self, near: Sequence[int]) -> list[Act]:
        times = draw_times(self._rng, per_day=min(self._per_day, 2), days=self._days, near=near)
        return [Act(at, NAME, "limit", self._rng.random()) for at in times]

    def figures(self) -> Mapping[str, int]:
        unknown = sum(tokens is None for _, _, tokens in self._charges)
        return {
            "checks": self.checks,
            "turns paid": len(self._served),
            "attempts charged": len(self._charges),
            "costs unknown": unknown,
        }

    def draw_usage(self, fire: Fire, agent: str) -> Usage | None:
        """What a turn used, and whether anyone hears of it."""
        tokens = 100 + self._rng.randrange(1_000)
        self._served[fire.run_id, fire.attempt] = tokens
        self._begun[fire.run_id, fire.attempt] = self._world.wall.read()
        if self._rng.random() < LOST or agent == self.silent:
            return None
        return {"input": tokens - 10, "output": 10, "total": tokens, "cost": self._rng.choice(self._costs)}

    def replied(self, fire: Fire, done: Done) -> Done:
        """What an agent says that has no heartbeat: its output, and mostly a reply beside it."""
        if self._agent is not None:
            return done
        return replace(done, reply=reply_of(fire.run_id) if fire.run_id % 4 else None)

    def draw_check(self) -> tuple[Duration, Result]:
        """How long a check takes, and what it finds: mostly nothing."""
        self.checks += 1
        found: Result = self._rng.choices((Done(), Done(output="news"), Failed("HTTP 500")), (6, 2, 1))[0]
        return self._rng.randrange(90 * SECOND), found

    def draw_limit(self, draw: float) -> tuple[str, float, str | None]:
        """Another limit: its period, dollars, and agent."""
        period, agent = ("day", AGENTS[0]) if draw < 0.4 else ("day", None) if draw < 0.8 else ("month", None)
        amount = 0.5 + round(draw * 10 % 4, 1)
        scope = EVERYTHING if agent is None else f"{AGENT}{agent}"
        self._highest[scope, period] = max(self._highest[scope, period], round(amount * NANO))
        return period, amount, agent

    # -- what the store says ------------------------------------------------------------------------------------------

    def look(
        self, touched: Mapping[str, frozenset[int]], runs: Mapping[int, Run], *, now: Instant, pruned_before: Instant
    ) -> Iterator[str]:
        self._pruned_before = max(self._pruned_before, pruned_before)
        if ACCOUNT not in touched:
            return
        yield from self._notice_redating(now)
        yield from laws.is_reserved(self._rows)
        yield from unknown_cost_laws.is_modest(self._rows)
        yield from self._notice_unpriced()
        for budget in laws.sums_of(self._rows, now):
            yield from laws.sums_add_up(budget)
            if not budget.starts_at <= self._redated_at < budget.ends_at:
                yield from laws.holds(budget, self._limit_of(budget))

    def _notice_unpriced(self) -> Iterator[str]:
        """The attempts that began with this commit."""
        attempts, before = unknown_cost_laws.attempts_open(self._rows), self._reported
        self._reported = unknown_cost_laws.reported_by(self._rows)
        opened = {key: found for key, found in attempts.items() if key not in self._open}
        self._open = set(attempts)
        yield from unknown_cost_laws.is_marked(opened, before, self._reported)

    def _notice_redating(self, now: Instant) -> Iterator[str]:
        """The clock was wrong, for days perhaps: what was spent on them, each within its limit, is of today now."""
        before = self._dates
        self._dates = {(run_id, attempt): at for run_id, attempt, at in self._rows(_DATES)}
        if any(before.get(key, at) != at for key, at in self._dates.items()):
            self._redated_at = now
        yield from laws.keeps_its_date(before, self._dates, kept_since(self._world.seen_tx))

    def ticked(self, *, now: Instant, is_asleep: bool, ahead_max: Duration) -> Iterator[str]:
        return iter(())

    def last_look(self) -> Iterator[str]:
        """What was reported is in the ledger, unless it was pruned by a clock that was ahead. What was spent before the
        clock was set is kept."""
        self._charges = charges = laws.charges_of(self._rows)
        known = {(run_id, attempt) for run_id, attempt, _ in charges}
        since = kept_since(self._world.seen_tx)
        kept = {
            key: tokens
            for key, tokens in self._served.items()
            if key in known or not since <= self._begun[key] < self._pruned_before
        }
        yield from laws.ledger_agrees(charges, kept)
        yield from laws.spending_agrees(self._rows)

    def _limit_of(self, budget: laws.BudgetSums) -> int:
        if not budget.scope.startswith(SCHEDULE):
            return self._highest[budget.scope, budget.period]
        found = self._world.seen_tx.schedules.by_ids([int(budget.scope.removeprefix(SCHEDULE))])
        (schedule,) = found.values()
        return round(budget_for(schedule.slug)["perDay"] * NANO)

    def _rows(self, sql: str, **given: Any) -> Any:
        tx: Any = self._world.seen_tx
        return tx[Charges]._db.rows(sql, **given)


class MoneyTenant:
    """The real accounts on one boot."""

    def __init__(self, purse: Purse, boot: Boot) -> None:
        self._purse = purse
        self._boot = boot
        self._feature = Money(MoneyTerms(limits=purse.limits))
        self._context: FeatureContext | None = None

    async def plug(self, context: FeatureContext) -> FeatureHooks:
        self._context = context
        return await plug_money(self._feature, context)

    async def act(self, act: Act) -> None:
        if self._context is None:
            return
        period, amount, agent = self._purse.draw_limit(act.draw)
        now = self._boot.clock.read().now

        def change(tx: Tx) -> None:
            set_limit(tx, self._feature.terms, period, amount, agent, now=now)

        await self._context.store.write(change)
