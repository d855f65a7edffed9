"""Today: what needs attention, what runs, what comes next, what happened lately, and what it cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, NamedTuple

from wakeful.api.operation import Noun, Returns, read
from wakeful.api.parameters import Param
from wakeful.api.reading import time_of
from wakeful.app import attention
from wakeful.app.agents import missing_programs
from wakeful.app.attention import Attention
from wakeful.app.attention_of_budgets import budgets
from wakeful.core.description import Field, Object
from wakeful.core.money.budgets import window_of
from wakeful.core.money.prices import dollars
from wakeful.core.returned import At, kind_of, kind_of_object, returned
from wakeful.core.schedule.upcoming import FIRE, Kind, Upcoming, UpcomingPage
from wakeful.core.time.instants import DAY, INSTANT_MAX, Instant
from wakeful.core.time.timing_builders import as_given
from wakeful.features.delivery.alerts import alerts
from wakeful.features.money import queries as money
from wakeful.features.money.unpriced import Unpriced
from wakeful.features.money.used_up_budgets import UsedUpBudgets
from wakeful.features.schedules import queries
from wakeful.features.schedules.compiled import Compiled
from wakeful.features.schedules.health import Health
from wakeful.features.schedules.ledger import Happened, happened_since
from wakeful.features.schedules.run_views import RUN, RunView
from wakeful.ports.inbox import Inbox
from wakeful.ports.store import Tx

RUNNING_MAX: Final = 20
NEXT_MAX: Final = 8
AHEAD_MAX: Final = 64
"""How many starts are read to find the first one of each: what runs often must not crowd out the rest."""
NEXT_WITHIN: Final = 7 * DAY
TOLD_MAX: Final = 10
"""How many runs since the last visit are listed; all are counted."""


@dataclass(frozen=True, slots=True)
class TodayCounts:
    """How many runs run and wait, how many schedules fail and are late, and how many messages are unread."""

    running: int
    waiting: int
    failing: int
    late: int
    unread: int


class TodayFire(NamedTuple):
    """An upcoming start, and when the budget resets that it has to wait for."""

    due_at: Instant
    slug: str
    planned_at: Instant
    kind: Kind
    handler: str
    budget_frees_at: Instant | None


TODAY_FIRE: Final = Object(
    "TodayFire",
    "An upcoming start. With `budgetFreesAt`, a budget is used up until then: the start is skipped, and a one-time\n"
    "schedule waits.",
    [*FIRE, Field(kind_of(At | None), "", name="budgetFreesAt", attribute="budget_frees_at")],
    TodayFire,
)


@dataclass(frozen=True, slots=True)
class TodayCost:
    """What agents cost today, in the budgets' time zone."""

    cost: Annotated[float, "in US dollars; unknown costs are left out"]
    tokens: int
    runs: int
    unknown: Annotated[int, "number of runs whose cost is unknown"]
    unpriced: Annotated[list[Unpriced], "agents to which limits in dollars do not apply"]


@dataclass(frozen=True, slots=True)
class TodayView:
    """The state of everything, in short."""

    now: At
    attention: Annotated[list[Attention], "worst first; at most 20 of each kind"]
    counts: TodayCounts
    running: list[Annotated[RunView, kind_of_object(RUN)]]
    upcoming: Annotated[list[Annotated[TodayFire, kind_of_object(TODAY_FIRE)]], "the next start of each, soonest first"]
    happened: Happened
    cost: TodayCost
    is_echo: Annotated[bool, "whether the echo agent is the only one"]


TODAY: Final = returned(TodayView, name="Today")


class Today(Noun):
    """The state of everything in one view."""

    @read(
        "GET /api/today",
        "What needs attention, runs now, comes next, and happened",
        Returns(TODAY, "At this moment."),
        id="get_today",
        tag="daemon",
    )
    def today(
        self,
        tx: Tx,
        now: Instant,
        *,
        since: Annotated[
            Instant | datetime | str | None,
            Param("your last visit, for `happened`; default: a day ago", read=time_of("since")),
        ] = None,
    ) -> TodayView:
        """The cost does not grow with the ledger: each list is bounded, and read through an index."""
        start = now - DAY if since is None else as_given(since, "since")
        health = self._app._health_in(tx, now)
        return TodayView(
            now,
            self._attention(tx, health, now),
            TodayCounts(health.running, health.waiting, health.failing, health.late, tx[Inbox].unread()),
            queries.runs(tx, None, limit=RUNNING_MAX, outcome="running"),
            self._next_starts(tx, now),
            happened_since(tx, start, listed_max=TOLD_MAX),
            self._cost(tx, now),
            self._is_echo(),
        )

    def _attention(self, tx: Tx, health: Health, now: Instant) -> list[Attention]:
        """Every problem, worst first."""
        settings, terms = self._app._host.settings, self._app._terms
        missing = {} if settings is None else missing_programs(settings().loaded.settings.agents)
        opened = alerts(tx, is_open=True).alerts
        items = [
            *attention.missing_programs(missing),
            *attention.stuck_runs(tx),
            *attention.troubled_schedules(tx, opened, missing=missing, terms=terms, now=now),
            *attention.stopped_agents(tx),
            *budgets(
                self._app._budgets_in(tx, now).budgets,
                opened,
                warn_at=self._app._money_terms.warn_at,
                estimate=lambda view: money.estimate_of(tx, view, now=now),
            ),
            *attention.letters(tx, self._place_of),
            *attention.proposals(tx, now=now),
            *attention.other_findings(health.findings),
            *attention.halted_schedules(tx, terms=terms, now=now),
        ]
        return attention.worst_first([*items, *attention.incidents(opened, items)])

    def _place_of(self, channel: str) -> str | None:
        """Where the address of a channel is written, if there are settings."""
        return None if self._app._host.settings is None else self._app._delivery.registry.place_of(channel)

    def _next_starts(self, tx: Tx, now: Instant) -> list[TodayFire]:
        """The next start of each; if a budget will keep it from starting, when that budget resets."""
        until = min(now + NEXT_WITHIN, INSTANT_MAX)
        starts = _firsts(self._app._upcoming_in(tx, until=until, limit=AHEAD_MAX, now=now))
        frees_at = self._budgets_free_at(tx, {start.slug for start in starts if start.kind == "schedule"}, now)
        return [TodayFire(*start, _held_until(start, frees_at)) for start in starts]

    def _budgets_free_at(self, tx: Tx, slugs: set[str], now: Instant) -> Mapping[str, Instant]:
        """The schedules among these that a budget keeps from running, and until when."""
        known = tx.schedules.by_slugs(sorted(slugs))
        compiled = self._app._open.compilations.of(tx, [(row.schedule_id, row.version) for row in known.values()])
        used_up = UsedUpBudgets(tx, self._app._money_terms, self._app._money_zone, now)
        frees_at: dict[str, Instant] = {}
        for slug, row in known.items():
            current = compiled.get(row.schedule_id)
            budget = used_up.used_up(row.schedule_id, current.definition) if isinstance(current, Compiled) else None
            if budget is not None:
                frees_at[slug] = budget.frees_at
        return frees_at

    def _cost(self, tx: Tx, now: Instant) -> TodayCost:
        zone = self._app._money_zone
        total = money.cost(tx, "agent", since=window_of("day", zone, now).starts_at, zone=zone, now=now).total
        unpriced = self._app._unpriced_in(tx, now)
        return TodayCost(dollars(total.cost), total.tokens, total.runs, total.unknown, unpriced)

    def _is_echo(self) -> bool:
        settings = self._app._host.settings
        written = {} if settings is None else settings().loaded.settings.agents
        return bool(written) and all(agent.adapter == "echo" for agent in written.values())


def _held_until(start: Upcoming, frees_at: Mapping[str, Instant]) -> Instant | None:
    """When the budget resets that keeps a start from happening."""
    at = frees_at.get(start.slug) if start.kind == "schedule" else None
    return None if at is None or at <= start.due_at else at


def _firsts(ahead: UpcomingPage) -> list[Upcoming]:
    """The first start of each schedule, handler or slot."""
    firsts: dict[tuple[str, str], Upcoming] = {}
    for item in ahead.instants:
        firsts.setdefault((item.slug, item.handler), item)
    return list(firsts.values())[:NEXT_MAX]
