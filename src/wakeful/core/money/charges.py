"""Charges: what one attempt used and cost."""

from typing import NamedTuple

from wakeful.core.money.budgets import Unit
from wakeful.core.money.prices import nano
from wakeful.core.run.usage import Priced, Usage, priced
from wakeful.core.time.instants import Instant


class Charge(NamedTuple):
    """One attempt: a row of `charges`, in the order of its columns."""

    run_id: int
    attempt: int
    owner_id: int
    agent: str | None
    model: str | None
    at: Instant  # when it was claimed: its cost belongs to the period of this time
    settled_at: Instant | None  # None while it is open
    input: int | None
    cached_input: int | None
    output: int | None
    reasoning: int | None
    tokens: int | None
    cost: int | None  # in billionths of a dollar; None: unknown
    priced: Priced
    held_cost: int  # the smallest reservation; counts as its cost if that stays unknown
    held_tokens: int

    @property
    def charged_cost(self) -> int:
        """What budgets count."""
        return self.held_cost if self.cost is None else self.cost

    @property
    def charged_tokens(self) -> int:
        return self.held_tokens if self.tokens is None else self.tokens


def opened(run_id: int, attempt: int, owner_id: int, agent: str | None, at: Instant) -> Charge:
    """The charge of an attempt that begins."""
    blank = (None, None, None, None, None, None)
    return Charge(run_id, attempt, owner_id, agent, None, at, None, *blank, "unknown", 0, 0)


def holding(charge: Charge, unit: Unit, amount: int) -> Charge:
    """The charge of an attempt that reserves. Without an estimate it reserves the rest of each budget, and the
    smallest of them is what it can have cost at most: a lost report must not use up a month."""
    if not amount:
        return charge
    if unit == "usd":
        return charge._replace(held_cost=min(charge.held_cost or amount, amount))
    return charge._replace(held_tokens=min(charge.held_tokens or amount, amount))


def settled(charge: Charge, usage: Usage | None, now: Instant) -> Charge:
    """The charge of an attempt that ended. What is not known stays as it was: a late report adds to it."""
    if usage is None:
        return charge._replace(settled_at=now)
    cost = usage.get("cost")
    return charge._replace(
        settled_at=now,
        model=usage.get("model", charge.model),
        input=usage.get("input", charge.input),
        cached_input=usage.get("cachedInput", charge.cached_input),
        output=usage.get("output", charge.output),
        reasoning=usage.get("reasoning", charge.reasoning),
        tokens=usage.get("total", charge.tokens),
        cost=charge.cost if cost is None else nano(cost),
        priced=charge.priced if cost is None else priced(usage),
    )


class CostRow(NamedTuple):
    """The totals for one schedule, agent, model or day."""

    key: str
    runs: int
    tokens: int
    cost: int  # of what is known, in billionths of a dollar
    unknown: int  # attempts whose cost is unknown
