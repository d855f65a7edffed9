"""What was spent, what is left, and what a schedule will cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from wakeful.core.money.budgets import AGENT, ESTIMATED_FROM, SCHEDULE, Limit, Unit, Window, estimate, window_of
from wakeful.core.money.charges import CostRow
from wakeful.core.money.prices import dollars
from wakeful.core.money.spending import cost_json
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import DAY, SECOND, Instant, format_instant
from wakeful.core.time.timing import Timing, tally
from wakeful.core.time.zones import segment_at
from wakeful.features.money.booking import reached_incident, warning_incident
from wakeful.features.money.terms import MoneyTerms, effective
from wakeful.ports.money import CostKey, DayOf
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


@dataclass(frozen=True, slots=True)
class BudgetView:
    """One budget in its current period."""

    scope: str  # all, agent:NAME or schedule:SLUG
    unit: Unit
    period: str
    limit: int
    spent: int
    reserved: int
    frees_at: Instant
    zone: str
    origin: Origin
    incidents: tuple[str, ...] = ()  # the names of the incidents that report it
    ledger_scope: str = ""  # the scope in the ledger: schedules by id

    def to_json(self) -> dict[str, Any]:
        def amount(value: int) -> float | int:
            return dollars(value) if self.unit == "usd" else value

        return {
            "scope": self.scope,
            "limit": amount(self.limit),
            "unit": self.unit,
            "period": self.period,
            "spent": amount(self.spent),
            "reserved": amount(self.reserved),
            "freesAt": format_instant(self.frees_at),
            "zone": self.zone,
            "origin": self.origin,
        }


def cost_of_agents(tx: Tx, *, zone: str, now: Instant) -> dict[str, dict[str, float]]:
    """What each agent cost in the current day and month, in dollars; agents that cost nothing are left out."""
    day, month = window_of("day", zone, now), window_of("month", zone, now)
    today = {row.key: row.cost for row in tx.charges.sums("agent", since=day.starts_at, until=day.ends_at)}
    return {
        row.key: {"today": dollars(today.get(row.key, 0)), "month": dollars(row.cost)}
        for row in tx.charges.sums("agent", since=month.starts_at, until=month.ends_at)
    }


def budgets(tx: Tx, terms: MoneyTerms, of_schedules: Sequence[Limited], *, zone: str, now: Instant) -> list[BudgetView]:
    """All budgets; `of_schedules` are the budgets in definitions."""
    set_by_people = {(row.scope, row.unit, row.period) for row in tx.budgets.limits()}
    limited = [
        Limited(limit, limit.scope, "set" if (limit.scope, limit.unit, limit.period) in set_by_people else "settings")
        for limit in effective(tx, terms)
    ]
    rows = {(row.scope, row.unit, row.period, row.starts_at, row.ends_at): row for row in tx.budgets.current(now)}
    views: list[BudgetView] = []
    for limit, scope, origin in [*limited, *of_schedules]:
        window = window_of(limit.period, zone, now)
        row = rows.get((limit.scope, limit.unit, limit.period, *window))
        spent = tx.charges.spent(limit.scope, limit.unit, window) if row is None else row.spent
        reserved = 0 if row is None else row.reserved
        views.append(
            BudgetView(
                scope,
                limit.unit,
                limit.period,
                limit.amount,
                spent,
                reserved,
                window.ends_at,
                zone,
                origin,
                (reached_incident(limit), warning_incident(limit)),
                limit.scope,
            )
        )
    return views


def estimate_of(tx: Tx, view: BudgetView, *, now: Instant) -> int | None:
    """What one more run in a budget of a schedule or an agent reserves; None if it is unknown."""
    scope, known = view.ledger_scope, tx.charges.known
    if scope.startswith(SCHEDULE):
        owner_id = int(scope.removeprefix(SCHEDULE))
        return estimate(known(unit=view.unit, owner_id=owner_id, until=now, limit=ESTIMATED_FROM))
    if scope.startswith(AGENT):
        return estimate(known(unit=view.unit, agent=scope.removeprefix(AGENT), until=now, limit=ESTIMATED_FROM))
    return None


@dataclass(frozen=True, slots=True)
class CostView:
    """Costs by key, and the total."""

    by: CostKey
    rows: list[CostRow]

    def to_json(self) -> dict[str, Any]:
        total = CostRow("total", *(sum(getattr(row, name) for row in self.rows) for name in _SUMMED))
        return {"by": self.by, "rows": [_row(row) for row in self.rows], "total": _row(total)}


_SUMMED: Final = ("runs", "tokens", "cost", "unknown")


def _row(row: CostRow) -> dict[str, Any]:
    return {**row._asdict(), "cost": dollars(row.cost)}


def cost(tx: Tx, by: CostKey, *, since: Instant, zone: str, now: Instant) -> CostView:
    """The cost since `since`, by schedule, agent, model or day."""
    days = _days(since, zone, now) if by == "day" else ()
    rows = tx.charges.sums(by, since=since, until=now + SECOND, days=days)
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
    tx: Tx, schedule_id: int | None, definition: Definition, timing: Timing, *, now: Instant
) -> dict[str, Any]:
    """A prompt schedule's `cost`: today, this month, its last run, and a month at the present rate. Without an id, the
    schedule is about to be written. `timing` has no instants on excluded days."""
    spent = None if schedule_id is None else tx.charges.spending_of([schedule_id]).get(schedule_id)
    return {**cost_json(spent, now), "perMonth": _per_month(tx, schedule_id, definition, timing, now=now)}


def expected_cost(tx: Tx, schedule_id: int | None, definition: Definition, *, now: Instant) -> float | None:
    """What a run will cost: the mean of the last known costs of its schedule, else of its agent. None: unknown. Only
    prompts cost something."""
    if not isinstance(definition.action, Prompt):
        return 0
    known: list[int] = []
    if schedule_id is not None:
        known = tx.charges.known(unit="usd", owner_id=schedule_id, until=now, limit=ESTIMATED_FROM)
    if not known:
        known = tx.charges.known(unit="usd", agent=definition.action.agent, until=now, limit=ESTIMATED_FROM)
    return sum(known) / len(known) if known else None


def _per_month(
    tx: Tx, schedule_id: int | None, definition: Definition, timing: Timing, *, now: Instant
) -> dict[str, Any]:
    """Runs in the next 30 days, and their cost at the average of the last runs, else of the agent's last runs."""
    runs = tally(timing, now, now + MONTH).count
    each = expected_cost(tx, schedule_id, definition, now=now)
    return {"runs": runs, "cost": None if each is None else dollars(round(each * runs))}
