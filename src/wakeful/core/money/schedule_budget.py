"""A schedule's `budget`."""

from dataclasses import dataclass
from typing import Annotated, Final

from wakeful.core.description import Field, described
from wakeful.core.fields import Fields
from wakeful.core.kinds import DOLLARS, nested, whole
from wakeful.core.money.budgets import SCHEDULE, Limit
from wakeful.core.money.prices import nano

_NONE: Final = "no limit"


@dataclass(frozen=True, slots=True)
class ScheduleBudget:
    """The maximum cost of a schedule. A time that does not fit into the budget is skipped; a one-shot waits."""

    per_run: Annotated[
        float | None,
        Field(
            DOLLARS,
            "maximum cost of one run; passed to programs that enforce it, otherwise reported if exceeded",
            "Per run, in USD",
            usual=_NONE,
        ),
    ] = None
    per_day: Annotated[float | None, Field(DOLLARS, "maximum cost per day", "Per day, in USD", usual=_NONE)] = None
    per_month: Annotated[float | None, Field(DOLLARS, "maximum cost per month", "Per month, in USD", usual=_NONE)] = (
        None
    )
    tokens_per_run: Annotated[
        int | None, Field(whole(1), "maximum tokens of one run; reported if exceeded", "Tokens per run", usual=_NONE)
    ] = None
    tokens_per_day: Annotated[int | None, Field(whole(1), "maximum tokens per day", "Tokens per day", usual=_NONE)] = (
        None
    )


def _not_empty(fields: Fields, budget: ScheduleBudget) -> None:
    if budget == ScheduleBudget():
        fields.fail("perDay", 'is missing; name a limit, for example {"perDay": 1.00}, or leave budget out')


BUDGET: Final = described(ScheduleBudget, name="Budget", says=ScheduleBudget.__doc__ or "", check=_not_empty)
BUDGET_KIND: Final = nested(BUDGET)


def limits_of(budget: ScheduleBudget, schedule_id: int) -> list[Limit]:
    """Its limits per day and month."""
    scope = f"{SCHEDULE}{schedule_id}"
    limits: list[Limit] = []
    if budget.per_day is not None:
        limits.append(Limit(scope, "usd", "day", nano(budget.per_day)))
    if budget.per_month is not None:
        limits.append(Limit(scope, "usd", "month", nano(budget.per_month)))
    if budget.tokens_per_day is not None:
        limits.append(Limit(scope, "tokens", "day", budget.tokens_per_day))
    return limits


def needs_prices(budget: ScheduleBudget) -> str | None:
    """The first field in dollars, if there is one."""
    named = {"perRun": budget.per_run, "perDay": budget.per_day, "perMonth": budget.per_month}
    return next((name for name, amount in named.items() if amount is not None), None)
