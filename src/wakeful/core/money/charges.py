"""Charges: what one attempt used and cost."""

from typing import Annotated, Literal, NamedTuple, TypeAlias

from wakeful.core.money.budgets import Unit
from wakeful.core.money.prices import dollars, nano
from wakeful.core.returned import kind
from wakeful.core.run.usage import Priced, Usage, priced
from wakeful.core.time.instants import Instant

Basis: TypeAlias = Literal["estimate", "rest", "unpriced"]
"""What an attempt's reservation is based on: its estimate, or everything that was left. `unpriced`: its cost cannot be
known, so limits in dollars do not apply to it."""


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
    priced: Priced | Literal["silent"]  # silent: its turn finished, and reported no cost
    held_cost: int  # the smallest reservation; once it has ended, what budgets assume if its cost is unknown
    held_tokens: int
    basis: Basis = "estimate"

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
    """The charge of an attempt that reserves. Its estimate is the same for all budgets; without one it reserves the
    rest of each."""
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


class Unknown(NamedTuple):
    """The attempts of one owner and agent whose cost is unknown."""

    owner_id: int
    agent: str | None
    attempts: int
    assumed: int  # what budgets count for them


class CostRow(NamedTuple):
    """The totals for one schedule, agent, model or day."""

    key: Annotated[str, "a slug, an agent, a model or a local date; empty: unknown"]
    runs: int
    tokens: Annotated[int, "all known tokens"]
    cost: Annotated[int, "all known costs, in US dollars", kind({"type": "number"}, dollars)]  # kept in billionths
    unknown: Annotated[int, "attempts whose cost is unknown; they are not in the sum"]
