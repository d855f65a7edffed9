"""Budgets: how much may be spent in a day or a month, and whether a run still fits.

Theory of operation
-------------------
A *limit* belongs to a scope (everything, an agent, a schedule), a unit (dollars or tokens) and a period (day or month).
The periods of a limit are calendar days and months in a zone. Each has a row with two totals: what was spent, and what
runs in progress have reserved.

A run reserves its *estimate* when it is claimed: the 90th percentile of what its schedule cost lately, else of what its
agent cost. Without any estimate it reserves everything that is left, so that it runs alone. It fits if spent, reserved
and its own amount stay within the limit, or if nothing was spent or reserved yet: an estimate above the limit must not
stop a schedule forever. So a limit is exceeded by one run at most. When the attempt ends, its reservation is replaced
by what it cost. If that is unknown, its estimate is assumed; without an estimate, what the agent's runs usually cost.

A limit in dollars does not apply to an agent whose cost cannot be known: it has no price and reports no cost. What it
reserves would be a guess, which would keep agents of known cost from running.

A cost belongs to the period in which its attempt began. The row of a period starts with what the ledger says was spent
in it. A changed zone or a corrected clock therefore neither gives a budget twice nor uses one up.
"""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.core.time.zones import segment_at, wall_to_second

Unit: TypeAlias = Literal["usd", "tokens"]
Period: TypeAlias = Literal["day", "month"]

EVERYTHING: Final = "all"
AGENT: Final = "agent:"
SCHEDULE: Final = "schedule:"

BUDGET: Final = "budget"
"""The reason for a run that a budget keeps from starting."""

ESTIMATED_FROM: Final = 20
"""How many known costs an estimate is made from."""

LOCKED: Final[Duration] = SECOND
"""How long a run waits if another transaction holds the budget."""

RESERVED: Final[Duration] = 5 * SECOND
"""How long a run waits that will fit if runs in progress cost less than they reserved."""


class Limit(NamedTuple):
    """How much may be spent. Sorted, limits are in the order in which their rows are locked."""

    scope: str
    unit: Unit
    period: Period
    amount: int  # billionths of a dollar, or tokens


class Budget(NamedTuple):
    """A limit's period: a row of `budgets`, in the order of its columns."""

    budget_id: int
    scope: str
    unit: Unit
    period: Period
    starts_at: Instant
    ends_at: Instant
    zone: str
    spent: int
    reserved: int


class Reservation(NamedTuple):
    """What an open attempt has reserved in a budget."""

    run_id: int
    attempt: int
    budget_id: int
    amount: int


class Window(NamedTuple):
    """The instants [starts_at, ends_at) of a period."""

    starts_at: Instant
    ends_at: Instant


class UsedUp(NamedTuple):
    """A budget that keeps a schedule from running."""

    frees_at: Instant
    text: str


def window_of(period: Period, zone: str, now: Instant) -> Window:
    """The local day or month of an instant."""
    second = now // SECOND
    local = datetime.fromtimestamp(second + segment_at(zone, second).offset, UTC)
    first = local.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "month":
        first = first.replace(day=1)
        later = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    else:
        later = datetime.fromtimestamp(first.timestamp() + 86_400, UTC)
    # A day without a midnight begins at its first instant; in a repeated hour the first midnight counts.
    starts, ends = (wall_to_second(zone, int(day.timestamp())) for day in (first, later))
    return Window(starts * SECOND, ends * SECOND)


def estimate(costs: Sequence[int]) -> int | None:
    """The 90th percentile of the last known costs; None without any."""
    return sorted(costs)[math.ceil(len(costs) * 0.9) - 1] if costs else None


Fit: TypeAlias = Literal["fits", "reserved", "used up"]


def amount_needed(budget: Budget, limit: int, estimated: int | None) -> int:
    """What a run reserves: its estimate, or everything that is left."""
    return max(limit - budget.spent - budget.reserved, 0) if estimated is None else estimated


def fit(budget: Budget, limit: int, estimated: int | None) -> Fit:
    """Whether a run may reserve; `reserved`: not now, but possibly when runs in progress have ended."""
    left = limit - budget.spent
    needed = 1 if estimated is None else estimated
    if needed == 0:
        return "fits"  # it costs nothing
    if (budget.spent == 0 and budget.reserved == 0) or needed <= left - budget.reserved:
        return "fits"
    return "reserved" if needed <= left or budget.spent == 0 else "used up"
