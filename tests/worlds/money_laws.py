"""The laws of money, as questions about the rows of a store and about what an agent really used."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

Rows: TypeAlias = Callable[..., Any]
"""Runs a query with named values."""


class BudgetSums(NamedTuple):
    """A budget, and what its rows add up to."""

    scope: str
    period: str
    starts_at: int
    ends_at: int
    spent: int
    reserved: int
    counted: int  # by the charges of its period
    held: int  # by the reservations of open attempts
    dearest: int  # the largest amount of one attempt
    above: int  # by how much attempts exceeded their estimate that were in progress when the last one was admitted
    forced: int  # messages of people, which no budget stops


def sums_add_up(budget: BudgetSums) -> Iterator[str]:
    """What a budget says is what the ledger says."""
    if budget.spent != budget.counted:
        yield f"L7 money: budget {budget.scope}: {budget.spent} spent, and the charges say {budget.counted}"
    if budget.reserved != budget.held:
        yield f"L7 money: budget {budget.scope}: {budget.reserved} reserved, and open attempts hold {budget.held}"


def holds(budget: BudgetSums, limit: int) -> Iterator[str]:
    """Spent and reserved never exceed a limit by more than one run, where no run costs more than it reserved; else by
    what those in progress cost more."""
    total = budget.spent + budget.reserved
    if total > limit + budget.dearest + budget.above + budget.forced:
        yield (
            f"L4 money: budget {budget.scope} per {budget.period}: {total} spent or reserved, with a limit of {limit}, "
            f"runs of {budget.dearest}, {budget.above} above estimates, {budget.forced} for messages"
        )


def is_reserved(rows: Rows) -> Iterator[str]:
    """Every attempt in progress has reserved something, unless its cost cannot be known; only a person's message may
    find nothing left."""
    for run_id, attempt in rows(_UNRESERVED):
        yield f"L4 money: attempt {run_id, attempt} is in progress, and has reserved nothing"


def ledger_agrees(
    charges: Sequence[tuple[int, int, int | None]], served: Mapping[tuple[int, int], int]
) -> Iterator[str]:
    """Every attempt that the model server answered is charged with its tokens, or its report was lost and is shown as
    unknown; nothing else is charged."""
    known = {(run_id, attempt): tokens for run_id, attempt, tokens in charges}
    for key, tokens in served.items():
        if key not in known:
            yield f"L7 money: attempt {key} used {tokens} tokens, and has no charge"
        elif known[key] is not None and known[key] != tokens:
            yield f"L7 money: attempt {key} used {tokens} tokens, and is charged {known[key]}"
    for key, charged in known.items():
        if charged and key not in served:
            yield f"L7 money: attempt {key} is charged {charged} tokens, and was never served"


def keeps_its_date(
    before: Mapping[tuple[int, int], int], after: Mapping[tuple[int, int], int], since: int
) -> Iterator[str]:
    """A clock that is not set yet moves no charge to before the store existed, where no budget counts it."""
    for key, at in after.items():
        if at < since <= before.get(key, at):
            yield f"L7 money: attempt {key} was charged at {before[key]}, and is dated {at} now"


def spending_agrees(rows: Rows) -> Iterator[str]:
    """What lists show as spent is what the charges say; what is assumed for unknown costs is not spent."""
    for owner_id, day, counted_day, month, counted_month in rows(_SPENDING):
        if (day, month) != (counted_day, counted_month):
            counted = f"{counted_day}, {counted_month}"
            yield f"L7 money: owner {owner_id}: {day}, {month} spent, and the charges say {counted}"


def charges_of(rows: Rows) -> list[tuple[int, int, int | None]]:
    """Run, attempt and tokens of every charge."""
    return [
        (run_id, attempt, tokens) for run_id, attempt, tokens in rows("SELECT run_id, attempt, tokens FROM charges")
    ]


def sums_of(rows: Rows, now: int) -> list[BudgetSums]:
    """The sums of all dollar budgets of current and later periods."""
    return [BudgetSums(*row) for row in rows(_SUMS, now=now)]


_OWN: Final = """(scope = 'all' OR scope = 'agent:' || agent OR scope = 'schedule:' || owner_id)
  AND at >= starts_at AND at < ends_at"""
_SUMS: Final = f"""
SELECT scope, period, starts_at, ends_at, spent, reserved,
  (SELECT coalesce(sum(coalesce(cost, held_cost)), 0) FROM charges AS c
   WHERE settled_at IS NOT NULL AND {_OWN}),
  (SELECT coalesce(sum(amount), 0) FROM reservations AS r JOIN charges AS c USING (run_id, attempt)
   WHERE r.budget_id = budgets.budget_id AND c.settled_at IS NULL),
  (SELECT coalesce(max(max(coalesce(cost, 0), held_cost)), 0) FROM charges AS c WHERE {_OWN}),
  (SELECT coalesce(sum(max(cost - held_cost, 0)), 0) FROM charges AS c WHERE {_OWN} AND settled_at >=
    (SELECT max(at) FROM charges AS c WHERE {_OWN})),
  (SELECT coalesce(sum(coalesce(cost, held_cost)), 0) FROM charges AS c JOIN runs USING (run_id)
   WHERE {_OWN} AND kind = 'message')
FROM budgets WHERE unit = 'usd' AND ends_at > :now
"""
_UNRESERVED: Final = """
SELECT run_id, c.attempt FROM charges AS c JOIN runs USING (run_id) WHERE settled_at IS NULL AND kind <> 'message'
  AND basis <> 'unpriced'
  AND NOT EXISTS (SELECT 1 FROM reservations AS r WHERE r.run_id = c.run_id AND r.attempt = c.attempt AND amount > 0)
"""
_SPENDING: Final = """
SELECT owner_id, day_cost,
  (SELECT coalesce(sum(cost), 0) FROM charges AS c
   WHERE c.owner_id = spending.owner_id AND settled_at IS NOT NULL AND at >= day_starts_at AND at < day_ends_at),
  month_cost,
  (SELECT coalesce(sum(cost), 0) FROM charges AS c
   WHERE c.owner_id = spending.owner_id AND settled_at IS NOT NULL AND at >= month_starts_at AND at < month_ends_at)
FROM spending
"""
