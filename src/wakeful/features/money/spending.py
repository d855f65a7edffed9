"""Tracks what owners of runs have spent in the current day and month."""

from collections.abc import Sequence

from wakeful.core.money.budgets import SCHEDULE, Period, Window, window_of
from wakeful.core.money.charges import Charge
from wakeful.core.money.spending import Spending, added_cost, last_cost
from wakeful.core.time.instants import Instant
from wakeful.ports.charges import Charges, SpendingTotals
from wakeful.ports.store import Tx


class SpendingSums:
    """The owners' totals in one settlement."""

    def __init__(self, tx: Tx, owner_ids: Sequence[int], zone: str, now: Instant) -> None:
        self._tx = tx
        self._rows = tx[SpendingTotals].lock(sorted(set(owner_ids))) if owner_ids else {}
        self._changed: dict[int, Spending] = {}
        self._day, self._month = window_of("day", zone, now), window_of("month", zone, now)

    def add(self, before: Charge, after: Charge) -> None:
        """An attempt was charged."""
        owner_id = after.owner_id
        row = self._changed.get(owner_id, self._rows.get(owner_id))
        day = self._sum("day", self._day, row, before, after)
        month = self._sum("month", self._month, row, before, after)
        last = last_cost(row, before, after)
        self._changed[owner_id] = Spending(owner_id, *self._day, day, *self._month, month, after.run_id, last)

    def _sum(self, period: Period, window: Window, row: Spending | None, before: Charge, after: Charge) -> int:
        """A period's total with this charge. A new period starts with the ledger's total."""
        known = None if row is None else getattr(row, period)
        if row is None or known != window:
            return self._tx[Charges].spent(f"{SCHEDULE}{after.owner_id}", "usd", window, is_known=True)
        is_counted = window.starts_at <= after.at < window.ends_at
        cost: int = row.day_cost if period == "day" else row.month_cost
        return cost + (added_cost(before, after) if is_counted else 0)

    def save(self) -> None:
        if self._changed:
            self._tx[SpendingTotals].put_many([self._changed[owner_id] for owner_id in sorted(self._changed)])


def recount(tx: Tx, owner_ids: Sequence[int], zone: str, now: Instant) -> None:
    """The clock was wrong: the totals of these owners, whose charges are dated now, are recounted from the ledger."""
    day, month = window_of("day", zone, now), window_of("month", zone, now)
    rows = [
        Spending(
            row.owner_id,
            *day,
            tx[Charges].spent(f"{SCHEDULE}{row.owner_id}", "usd", day, is_known=True),
            *month,
            tx[Charges].spent(f"{SCHEDULE}{row.owner_id}", "usd", month, is_known=True),
            row.last_run_id,
            row.last_cost,
        )
        for row in tx[SpendingTotals].lock(sorted(owner_ids)).values()
    ]
    tx[SpendingTotals].put_many(rows)
