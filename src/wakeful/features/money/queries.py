"""What was spent, what is left, and what a schedule will cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, NamedTuple

from wakeful.core.money.budgets import AGENT, ESTIMATED_FROM, SCHEDULE, Limit, Period, Unit, Window, estimate, window_of
from wakeful.core.money.charges import CostRow, Unknown
from wakeful.core.money.prices import dollars
from wakeful.core.money.spending import MonthlyCost, ScheduleCost, cost_json
from wakeful.core.returned import INTERNAL, At, Named, returned
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import DAY, SECOND, Instant
from wakeful.core.time.timing import Timing, tally
from wakeful.core.time.zones import segment_at
from wakeful.features.money.booking import reached_incident, warning_incident
from wakeful.features.money.budget_rows import BudgetPeriods, SetLimits
from wakeful.features.money.estimates import in_scope
from wakeful.features.money.terms import MoneyTerms, effective
from wakeful.features.money.unpriced import ALLOW, NAMED_MAX, Allowed, Unpriced, unpriced_agents
from wakeful.ports.charges import Charges, CostKey, DayOf, SpendingTotals
from wakeful.ports.names import names_of
from wakeful.ports.store import Tx

DAYS_MAX: Final = 366
MONTH: Final = 30 * DAY

Origin = Literal["settings", "set", "definition"]


class Limited(NamedTuple):
    """A limit, its name for people, and where it comes from."""

    limit: Limit
    scope: str
    origin: Origin
    agent: str | None = None  # of a schedule


@dataclass(frozen=True, slots=True)
class BudgetView:
    """A limit and what is left of it in the current period."""

    scope: Annotated[str, "all, agent:NAME or schedule:SLUG"]
    unit: Unit
    period: Period
    limit: Annotated[int, INTERNAL]
    spent: Annotated[int, INTERNAL]  # as far as it is known
    reserved: Annotated[int, INTERNAL]
    frees_at: Annotated[At, "when the next period begins"]
    zone: Annotated[str, "the time zone of its days and months"]
    origin: Annotated[Origin, "where the limit comes from; set: by a person"]
    incidents: Annotated[tuple[str, ...], INTERNAL]  # the names of the incidents that report it
    ledger_scope: Annotated[str, INTERNAL]  # the scope in the ledger: schedules by id
    assumed: Annotated[int, INTERNAL]  # what the limit counts for attempts of unknown cost
    unknown: Annotated[int, "attempts of unknown cost; they are not in `spent`"]
    unknown_of: Annotated[tuple[str, ...], "the schedules they belong to; at most 10"]

    @property
    def counted(self) -> int:
        """What counts towards the limit."""
        return self.spent + self.assumed + self.reserved

    @property
    def shown_limit(self) -> float:
        return self._shown(self.limit)

    @property
    def shown_spent(self) -> float:
        return self._shown(self.spent)

    @property
    def shown_assumed(self) -> float:
        return self._shown(self.assumed)

    @property
    def shown_reserved(self) -> float:
        return self._shown(self.reserved)

    def _shown(self, amount: int) -> float:
        """An amount in dollars or tokens."""
        return dollars(amount) if self.unit == "usd" else amount


BUDGET: Final = returned(
    BudgetView,
    name="BudgetRow",
    properties={
        "shown_limit": Annotated[float, Named("limit"), "in US dollars, or tokens"],
        "shown_spent": Annotated[float, Named("spent"), "known costs"],
        "shown_assumed": Annotated[float, Named("assumed"), "what the limit counts for attempts of unknown cost"],
        "shown_reserved": Annotated[float, Named("reserved"), "by runs in progress"],
    },
)


@dataclass(frozen=True, slots=True)
class StoppedAgent:
    """An agent that was stopped because of its cost."""

    agent: str
    since: At
    reason: str


@dataclass(frozen=True, slots=True)
class Budgets:
    """All budgets."""

    budgets: list[BudgetView]
    unpriced: Annotated[list[Unpriced], "agents to which limits in dollars do not apply"]
    stopped: list[StoppedAgent]


BUDGETS: Final = returned(Budgets)


@dataclass(frozen=True, slots=True)
class AgentCost:
    """What its turns cost, in US dollars."""

    today: float
    month: float


def cost_of_agents(tx: Tx, *, zone: str, now: Instant) -> dict[str, AgentCost]:
    """What each agent cost in the current day and month, in dollars; agents that cost nothing are left out."""
    day, month = window_of("day", zone, now), window_of("month", zone, now)
    today = {row.key: row.cost for row in tx[Charges].sums("agent", since=day.starts_at, until=day.ends_at)}
    return {
        row.key: AgentCost(dollars(today.get(row.key, 0)), dollars(row.cost))
        for row in tx[Charges].sums("agent", since=month.starts_at, until=month.ends_at)
    }


def budgets(tx: Tx, terms: MoneyTerms, of_schedules: Sequence[Limited], *, zone: str, now: Instant) -> list[BudgetView]:
    """All budgets; `of_schedules` are the budgets in definitions."""
    set_by_people = {(row.scope, row.unit, row.period) for row in tx[SetLimits].all()}
    limited = [
        Limited(limit, limit.scope, "set" if (limit.scope, limit.unit, limit.period) in set_by_people else "settings")
        for limit in effective(tx, terms)
    ]
    rows = {
        (row.scope, row.unit, row.period, row.starts_at, row.ends_at): row for row in tx[BudgetPeriods].current(now)
    }
    views: list[BudgetView] = []
    unknown: dict[tuple[Unit, Window], list[Unknown]] = {}
    for limit, scope, origin, _ in [*limited, *of_schedules]:
        window = window_of(limit.period, zone, now)
        row = rows.get((limit.scope, limit.unit, limit.period, *window))
        counted = tx[Charges].spent(limit.scope, limit.unit, window) if row is None else row.spent
        key = (limit.unit, window)
        unknown[key] = unknown[key] if key in unknown else tx[Charges].unknown(*key)
        own = in_scope(unknown[key], limit.scope)
        assumed = sum(part.assumed for part in own)
        views.append(
            BudgetView(
                scope,
                limit.unit,
                limit.period,
                limit.amount,
                counted - assumed,
                0 if row is None else row.reserved,
                window.ends_at,
                zone,
                origin,
                (reached_incident(limit), warning_incident(limit)),
                limit.scope,
                assumed,
                sum(part.attempts for part in own),
                tuple(sorted(names_of(tx, [part.owner_id for part in own[:NAMED_MAX]]).values())) if own else (),
            )
        )
    return views


def unpriced(tx: Tx, terms: MoneyTerms, of_schedules: Sequence[Limited], *, now: Instant) -> list[Unpriced]:
    """The agents to which none of the limits in dollars that concern them can apply."""
    stored = {(row.scope, row.unit, row.period): row.unpriced == ALLOW for row in tx[SetLimits].all()}
    is_allowed = terms.unpriced == ALLOW
    limits = [Allowed(limit, None, stored.get(limit[:3], is_allowed)) for limit in effective(tx, terms)]
    limits += [Allowed(limited.limit, limited.agent, is_allowed) for limited in of_schedules]
    return unpriced_agents(tx, terms, limits, now=now)


def estimate_of(tx: Tx, view: BudgetView, *, now: Instant) -> int | None:
    """What one more run in a budget of a schedule or an agent reserves; None if it is unknown."""
    scope, known = view.ledger_scope, tx[Charges].known
    if scope.startswith(SCHEDULE):
        owner_id = int(scope.removeprefix(SCHEDULE))
        return estimate(known(unit=view.unit, owner_id=owner_id, until=now, limit=ESTIMATED_FROM))
    if scope.startswith(AGENT):
        return estimate(known(unit=view.unit, agent=scope.removeprefix(AGENT), until=now, limit=ESTIMATED_FROM))
    return None


@dataclass(frozen=True, slots=True)
class CostView:
    """What was spent."""

    by: CostKey
    rows: list[CostRow]

    @property
    def total(self) -> CostRow:
        return CostRow("total", *(sum(getattr(row, name) for row in self.rows) for name in _SUMMED))

    def to_json(self) -> dict[str, Any]:
        return COST.write(self)


_SUMMED: Final = ("runs", "tokens", "cost", "unknown")


COST: Final = returned(CostView, name="Cost", properties={"total": CostRow})


def cost(tx: Tx, by: CostKey, *, since: Instant, zone: str, now: Instant) -> CostView:
    """The cost since `since`, by schedule, agent, model or day."""
    days = _days(since, zone, now) if by == "day" else ()
    rows = tx[Charges].sums(by, since=since, until=now + SECOND, days=days)
    if by == "schedule":
        names = names_of(tx, [int(row.key) for row in rows])
        rows = [row._replace(key=names.get(int(row.key), row.key)) for row in rows]
    return CostView(by, rows)


def _days(since: Instant, zone: str, now: Instant) -> list[DayOf]:
    """The local days from a time until today, oldest first, at most a year."""
    at, days = max(since, now - DAYS_MAX * DAY), list[DayOf]()
    while at <= now:
        window = window_of("day", zone, at)
        days.append(DayOf(_date(window, zone), window))
        at = window.ends_at
    return days


def _date(window: Window, zone: str) -> str:
    second = (window.starts_at + window.ends_at) // 2 // SECOND  # noon: no clock change moves it to another date
    return datetime.fromtimestamp(second + segment_at(zone, second).offset, UTC).date().isoformat()


def cost_of_schedule(
    tx: Tx, terms: MoneyTerms, schedule_id: int | None, definition: Definition, timing: Timing, *, now: Instant
) -> ScheduleCost:
    """A prompt schedule's `cost`: today, this month, its last run, and a month at the present rate. Without an id, the
    schedule is about to be written. `timing` has no instants on excluded days."""
    spent = None if schedule_id is None else tx[SpendingTotals].lock([schedule_id]).get(schedule_id)
    return {**cost_json(spent, now), "perMonth": _per_month(tx, terms, schedule_id, definition, timing, now=now)}


def expected_cost(
    tx: Tx, terms: MoneyTerms, schedule_id: int | None, definition: Definition, *, now: Instant
) -> float | None:
    """What a run will cost: the mean of the last known costs of its schedule, else of its agent, else what its settings
    say. None: unknown. Only prompts cost something."""
    if not isinstance(definition.action, Prompt):
        return 0
    known: list[int] = []
    if schedule_id is not None:
        known = tx[Charges].known(unit="usd", owner_id=schedule_id, until=now, limit=ESTIMATED_FROM)
    if not known:
        known = tx[Charges].known(unit="usd", agent=definition.action.agent, until=now, limit=ESTIMATED_FROM)
    return sum(known) / len(known) if known else terms.cost_per_run.get(definition.action.agent)


def _per_month(
    tx: Tx, terms: MoneyTerms, schedule_id: int | None, definition: Definition, timing: Timing, *, now: Instant
) -> MonthlyCost:
    """Runs in the next 30 days, and their cost at the average of the last runs, else of the agent's last runs."""
    runs = tally(timing, now, now + MONTH).count
    each = expected_cost(tx, terms, schedule_id, definition, now=now)
    return {"runs": runs, "cost": None if each is None else dollars(round(each * runs))}
