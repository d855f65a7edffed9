"""The laws of money, as questions about the rows of a store and about what an agent really cost."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class BudgetSums(NamedTuple):
    """A budget, and what its rows add up to."""

    scope: str
    spent: int
    reserved: int
    counted: int  # by the charges of its period
    held: int  # by the reservations of open attempts
    dearest: int  # the largest amount of one attempt


def sums_add_up(budget: BudgetSums) -> Iterator[str]:
    """What a budget says is what the ledger says."""
    if budget.spent != budget.counted:
        yield f"budget {budget.scope}: {budget.spent} spent, and the charges say {budget.counted}"
    if budget.reserved != budget.held:
        yield f"budget {budget.scope}: {budget.reserved} reserved, and open attempts hold {budget.held}"


def holds(budget: BudgetSums, limit: int) -> Iterator[str]:
    """Spent and reserved never exceed a limit by more than one run."""
    if budget.spent + budget.reserved > limit + budget.dearest:
        total = budget.spent + budget.reserved
        yield f"budget {budget.scope}: {total} spent or reserved, with a limit of {limit} and runs of {budget.dearest}"


def ledger_agrees(
    charges: Sequence[tuple[int, int, int | None]], served: Mapping[tuple[int, int], int]
) -> Iterator[str]:
    """Every attempt that the model server answered is charged with its tokens, or its report was lost and is shown as
    unknown; nothing else is charged."""
    known = {(run_id, attempt): tokens for run_id, attempt, tokens in charges}
    for key, tokens in served.items():
        if key not in known:
            yield f"attempt {key} used {tokens} tokens, and has no charge"
        elif known[key] is not None and known[key] != tokens:
            yield f"attempt {key} used {tokens} tokens, and is charged {known[key]}"
    for key, charged in known.items():
        if charged and key not in served:
            yield f"attempt {key} is charged {charged} tokens, and was never served"


def sums_of(rows: Any) -> list[BudgetSums]:
    """The sums of all budgets in a SQLite store, by a function that runs a query."""
    return [
        BudgetSums(*row)
        for row in rows(
            """
SELECT scope, spent, reserved,
  (SELECT coalesce(sum(coalesce(cost, (SELECT amount FROM reservations AS r WHERE r.run_id = c.run_id
     AND r.attempt = c.attempt AND r.budget_id = budgets.budget_id), held_cost)), 0) FROM charges AS c
   WHERE settled_at IS NOT NULL AND at >= starts_at AND at < ends_at
     AND (scope = 'all' OR scope = 'agent:' || agent OR scope = 'schedule:' || owner_id)),
  (SELECT coalesce(sum(amount), 0) FROM reservations AS r JOIN charges AS c USING (run_id, attempt)
   WHERE r.budget_id = budgets.budget_id AND c.settled_at IS NULL),
  (SELECT coalesce(max(max(coalesce(cost, 0), held_cost)), 0) FROM charges AS c WHERE at >= starts_at AND at < ends_at)
FROM budgets WHERE unit = 'usd'
"""
        )
    ]
