"""What each schedule has spent in the current day and month, kept up to date with its charges.

A list of schedules shows these totals, so they must not be added up from the ledger each time. There is one row per
owner of runs, with the periods that its totals belong to. A period that has ended counts as nothing spent; the next
charge begins the new one from the ledger, and so it does if the time zone has changed. What budgets assume for attempts
of unknown cost is not spent, and is not in these totals.
"""

from typing import Annotated, NamedTuple, NotRequired, TypedDict

from wakeful.core.money.budgets import Window
from wakeful.core.money.charges import Charge
from wakeful.core.money.prices import dollars
from wakeful.core.time.instants import Instant


class Spending(NamedTuple):
    """The totals for one owner of runs: a row of `spending`, in the order of its columns. Costs are in billionths."""

    owner_id: int
    day_starts_at: Instant
    day_ends_at: Instant
    day_cost: int
    month_starts_at: Instant
    month_ends_at: Instant
    month_cost: int
    last_run_id: int
    last_cost: int | None  # of all attempts of the last run; None: unknown

    @property
    def day(self) -> Window:
        return Window(self.day_starts_at, self.day_ends_at)

    @property
    def month(self) -> Window:
        return Window(self.month_starts_at, self.month_ends_at)


class MonthlyCost(TypedDict):
    """The cost of 30 days at the present rate."""

    runs: int
    cost: Annotated[float | None, "at the average of the last runs; null if that is unknown"]


class ScheduleCost(TypedDict):
    """The cost of a schedule's runs, in US dollars."""

    today: float
    month: float
    lastRun: Annotated[float | None, "null if it is unknown"]
    perMonth: NotRequired[Annotated[MonthlyCost | None, "of a schedule with a prompt; not in lists"]]


def cost_json(spending: Spending | None, now: Instant) -> ScheduleCost:
    """A schedule's `cost`: what it spent today and this month, and what its last run cost."""
    if spending is None:
        return {"today": 0.0, "month": 0.0, "lastRun": None}
    return {
        "today": dollars(spending.day_cost if _contains(spending.day, now) else 0),
        "month": dollars(spending.month_cost if _contains(spending.month, now) else 0),
        "lastRun": None if spending.last_cost is None else dollars(spending.last_cost),
    }


def added_cost(before: Charge, after: Charge) -> int:
    """The amount a charge adds to the totals; negative if it is corrected downwards."""
    return (after.cost or 0) - (0 if before.settled_at is None else before.cost or 0)


def last_cost(spending: Spending | None, before: Charge, after: Charge) -> int | None:
    """The cost of the last run, after one of its attempts was charged."""
    if spending is None or spending.last_run_id != after.run_id:
        return after.cost
    if before.settled_at is not None and before.cost is not None and after.cost is not None:
        return (spending.last_cost or 0) - before.cost + after.cost  # corrected by a late report
    known = [cost for cost in (spending.last_cost, after.cost) if cost is not None]
    return sum(known) if known else None


def _contains(window: Window, now: Instant) -> bool:
    return window.starts_at <= now < window.ends_at
