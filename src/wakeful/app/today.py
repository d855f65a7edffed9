"""Today: what needs attention, what runs, what comes next, what happened lately, and what it cost."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wakeful.app import attention
from wakeful.app.attention import Attention
from wakeful.app.costs import Costs
from wakeful.app.queries import AppQueries
from wakeful.core.money.budgets import UsedUp, window_of
from wakeful.core.run.runs import ERRORS
from wakeful.core.schedule.upcoming import Upcoming, UpcomingPage
from wakeful.core.time.instants import DAY, INSTANT_MAX, Instant, format_instant
from wakeful.features.delivery import alerts
from wakeful.features.money import queries as money
from wakeful.features.money.used_up_budgets import UsedUpBudgets
from wakeful.features.schedules import ledger, queries
from wakeful.features.schedules.compiled import Compiled
from wakeful.features.schedules.health import Health
from wakeful.features.schedules.ledger import Happened
from wakeful.features.schedules.views import RunView
from wakeful.ports.store import Tx

RUNNING_MAX: Final = 20
NEXT_MAX: Final = 8
AHEAD_MAX: Final = 64
"""How many starts are read to find the first one of each: what runs often must not crowd out the rest."""
NEXT_WITHIN: Final = 7 * DAY
TOLD_MAX: Final = 10
"""How many runs since the last visit are listed; all are counted."""


@dataclass(frozen=True, slots=True)
class TodayView:
    """Everything the first view of the page shows."""

    now: Instant
    health: Health
    attention: Sequence[Attention]
    running: Sequence[RunView]
    upcoming: UpcomingPage
    happened: Happened
    since: Instant
    unread: int
    cost: Mapping[str, Any]
    used_up: Mapping[str, UsedUp]  # by slug, of what comes next

    def counts(self) -> dict[str, int]:
        """How many runs and schedules are in which state."""
        health = self.health
        return {
            "running": health.running,
            "waiting": health.waiting,
            "failing": health.failing,
            "late": health.late,
            "unread": self.unread,
        }


class Today(AppQueries, Costs):
    """The state of everything in one view."""

    async def today(
        self,
        *,
        since: Instant | None = None,
        missing: Mapping[str, str] | None = None,
        places: Mapping[str, str] | None = None,
    ) -> TodayView:
        """Build the view. `since`: the last visit, by default a day ago. `missing`: agents without their program, and
        the error. `places`: where `agents.NAME` and `channels.NAME` are written, for cures."""
        now = self._clock.read().now
        start = now - DAY if since is None else since
        health = await self.health()
        upcoming = _firsts(await self.upcoming(min(now + NEXT_WITHIN, INSTANT_MAX), limit=AHEAD_MAX))

        def look(tx: Tx) -> TodayView:
            today = window_of("day", self._money.zone, now)
            cost = money.cost(tx, "agent", since=today.starts_at, zone=self._money.zone, now=now)
            return TodayView(
                now,
                health,
                [
                    *attention.missing_programs(missing or {}, places or {}),
                    *self._attention(tx, health, missing or {}, places or {}, now),
                ],
                queries.runs(tx, None, limit=RUNNING_MAX, outcome="running"),
                upcoming,
                ledger.happened_since(tx, start, listed_max=TOLD_MAX),
                start,
                tx.inbox.unread(),
                cost.to_json()["total"],
                self._used_up_next(tx, upcoming, now),
            )

        return await self._open.store.read(look)

    def _used_up_next(self, tx: Tx, ahead: UpcomingPage, now: Instant) -> dict[str, UsedUp]:
        """The schedules among these that a budget keeps from running."""
        known = tx.schedules.by_slugs(sorted({item.slug for item in ahead.instants if item.kind == "schedule"}))
        compiled = self._open.compilations.of(tx, [(row.schedule_id, row.version) for row in known.values()])
        budgets = UsedUpBudgets(tx, self._money.terms, self._money.zone, now)
        by_slug: dict[str, UsedUp] = {}
        for slug, row in known.items():
            current = compiled.get(row.schedule_id)
            used_up = budgets.used_up(row.schedule_id, current.definition) if isinstance(current, Compiled) else None
            if used_up is not None:
                by_slug[slug] = used_up
        return by_slug

    def _attention(
        self, tx: Tx, health: Health, missing: Container[str], places: Mapping[str, str], now: Instant
    ) -> list[Attention]:
        opened = alerts.alerts(tx, is_open=True)
        items = [
            *attention.stuck_runs(tx),
            *attention.troubled_schedules(tx, opened, missing=missing, terms=self.terms, now=now),
            *attention.stopped_agents(tx),
            *attention.budgets(
                self._budgets(tx),
                opened,
                warn_at=self._money.terms.warn_at,
                estimate=lambda view: money.estimate_of(tx, view, now=now),
            ),
            *attention.letters(tx, places),
            *attention.proposals(tx, now=now),
            *attention.other_findings(health.findings),
            *attention.halted_schedules(tx, terms=self.terms, now=now),
        ]
        return attention.worst_first([*items, *attention.incidents(opened, items)])


def happened_json(happened: Happened, since: Instant) -> dict[str, Any]:
    """The summary of what happened, as JSON."""
    counts: Counter[str] = happened.counts
    return {
        "since": format_instant(since),
        "counts": dict(counts),
        "failed": sum(counts[outcome] for outcome in ERRORS),
        "isCut": happened.is_cut,
        "runs": [run.to_json() for run in happened.listed],
    }


def _firsts(ahead: UpcomingPage) -> UpcomingPage:
    """The first start of each schedule, handler or slot."""
    firsts: dict[tuple[str, str], Upcoming] = {}
    for item in ahead.instants:
        firsts.setdefault((item.slug, item.handler), item)
    return ahead._replace(instants=list(firsts.values())[:NEXT_MAX])
