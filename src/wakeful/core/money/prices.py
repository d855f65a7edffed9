"""Prices: what tokens cost.

Amounts are integers, in billionths of a US dollar (`NANO`): totals are exact, and a price of 0.11 dollars per million
tokens is 110 of them per token. `usage.cost` stays a decimal number of dollars, because that is what people read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wakeful.core.run.usage import Usage, is_cost

NANO: Final = 1_000_000_000
_PER_TOKEN: Final = NANO // 1_000_000

# What providers append to the name of a model: a date or a version, but not the name of another model.
_SUFFIX: Final = re.compile(r"([-@:](latest|\d{3,8}|v\d+|\d{4}-\d{2}-\d{2}))+")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float
    cached_input: float | None = None  # None: as `input`


Prices = Mapping[str, Price]


def nano(dollars: float) -> int:
    """An amount of dollars in billionths."""
    return round(dollars * NANO)


def dollars(amount: int) -> float:
    """Billionths as dollars."""
    return amount / NANO


def price_of(model: str | None, prices: Prices) -> Price | None:
    """The price of a model: by its name, without the provider before a slash, or without a date after it."""
    if model is None:
        return None
    for name in (model, model.rpartition("/")[2]):
        if name in prices:
            return prices[name]
        for known in prices:
            if name.startswith(known) and _SUFFIX.fullmatch(name, len(known)):
                return prices[known]
    return None


def cost_of(usage: Usage, price: Price) -> int | None:
    """The cost of a usage; None if its counts do not suffice, or cannot be right."""
    sent, received = usage.get("input"), usage.get("output")
    if sent is None or received is None:
        return None
    cached = min(usage.get("cachedInput", 0), sent)
    cached_price = price.input if price.cached_input is None else price.cached_input
    total = (sent - cached) * price.input + cached * cached_price + received * price.output
    cost = round(total * _PER_TOKEN)
    return cost if is_cost(dollars(cost)) else None


def priced_by(usage: Usage | None, prices: Prices) -> Usage | None:
    """The usage with a cost from the table, if it has no cost yet and its model has a price."""
    if usage is None or usage.get("cost") is not None:
        return usage
    price = price_of(usage.get("model"), prices)
    cost = None if price is None else cost_of(usage, price)
    if cost is None:
        return usage
    return {**usage, "cost": dollars(cost), "priced": "table"}


def with_cost_per_run(usage: Usage | None, cost: int | None) -> Usage | None:
    """The usage with the cost that the settings give each run of its agent, if it has no other."""
    if cost is None or (usage is not None and usage.get("cost") is not None):
        return usage
    return {**(usage or {}), "cost": dollars(cost), "priced": "settings"}
