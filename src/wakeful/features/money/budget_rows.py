"""Budgets by period, what attempts have reserved in them, limits set by people, and agents that were stopped.

A row of `budgets` is the lock of that budget. It is the last lock a claim takes, and a claim never waits for it; so
settling may lock it before it applies effects.
"""

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.core.money.budgets import Budget, Limit, Period, Reservation, Unit, Window
from wakeful.core.time.instants import Instant
from wakeful.ports.charges import Charges
from wakeful.ports.database import columns_of
from wakeful.ports.table import Rows

_COLUMNS = columns_of(Budget, "budgets")


class SetLimit(NamedTuple):
    """A limit that a person set, in place of the one in the settings."""

    scope: str
    unit: Unit
    period: Period
    amount: int
    set_at: Instant
    unpriced: str = ""  # "allow": although it does not hold for agents of unknown cost; empty: set by 0.2


class Brake(NamedTuple):
    """An agent that was stopped because of its cost."""

    agent: str
    at: Instant
    text: str


# Create a period's row, unless it exists.
CREATE = """
INSERT INTO budgets (scope, unit, period, starts_at, ends_at, zone, spent, reserved)
VALUES (:scope, :unit, :period, :starts_at, :ends_at, :zone, :spent, 0)
ON CONFLICT (scope, unit, period, starts_at, ends_at) DO NOTHING
"""

_OF_PERIOD = """
FROM budgets WHERE scope = :scope AND unit = :unit AND period = :period AND starts_at = :starts_at
  AND ends_at = :ends_at
"""

# Whether a period's row exists.
EXISTS = f"SELECT 1 {_OF_PERIOD}"

# A period's row, locked, unless another transaction holds it.
TAKE = f"SELECT {_COLUMNS} {_OF_PERIOD} FOR UPDATE SKIP LOCKED"

# The rows of some scopes at a time, locked.
AT = f"""
SELECT {_COLUMNS} FROM budgets
WHERE (scope IN :scopes AND starts_at <= :at AND ends_at > :at) OR budget_id IN :also ORDER BY budget_id FOR UPDATE
"""

# All rows at a time.
CURRENT = f"""
SELECT {_COLUMNS} FROM budgets INDEXED BY budgets_ended
WHERE ends_at > :now AND starts_at <= :now ORDER BY scope, unit, period
"""

# Rows of periods that begin later, or ended before the store existed.
REMOVE_MISDATED = "DELETE FROM budgets WHERE starts_at > :now OR ends_at < :since"

# Rows of periods that ended long ago.
REMOVE_OLD = "DELETE FROM budgets WHERE ends_at < :before"

# Reservations of an attempt.
RESERVATIONS = f"""
SELECT {columns_of(Reservation, "reservations")} FROM reservations WHERE run_id = :run_id AND attempt = :attempt
ORDER BY budget_id
"""
RELEASE = "DELETE FROM reservations WHERE run_id = :run_id AND attempt = :attempt"

LIMITS = f"SELECT {columns_of(SetLimit, 'budget_limits')} FROM budget_limits ORDER BY scope, unit, period"
REMOVE_LIMIT = "DELETE FROM budget_limits WHERE scope = :scope AND unit = :unit AND period = :period"
BRAKES = f"SELECT {columns_of(Brake, 'brakes')} FROM brakes ORDER BY agent"


class BudgetPeriods(Rows[Budget]):
    """A row for each limit and period."""

    row, table, key, is_numbered = Budget, "budgets", "budget_id", True
    fixed = ("scope", "unit", "period", "starts_at", "ends_at", "zone")

    def open(self, limits: Sequence[tuple[Limit, Window, str]]) -> dict[Limit, Budget | None]:
        """The rows of these limits for these periods and zones, created if missing, locked in their order. None for a
        row that another transaction holds: this never waits."""
        rows: dict[Limit, Budget | None] = {}
        for limit, window, zone in sorted(limits):
            of_period = {"scope": limit.scope, "unit": limit.unit, "period": limit.period, **window._asdict()}
            if not self._db.rows(EXISTS, **of_period):
                spent = Charges(self._db).spent(limit.scope, limit.unit, window)
                self._db.change(CREATE, **of_period, zone=zone, spent=spent)
            found = self._db.rows(TAKE, **of_period)
            rows[limit] = Budget._make(found[0]) if found else None
        return rows

    def at(self, scopes: Sequence[str], at: Instant, *, also: Sequence[int] = ()) -> list[Budget]:
        """The rows of these scopes whose period contains the time, and some by id; locked in id order."""
        return self._made(self._db.rows(AT, scopes=scopes, at=at, also=also))

    def current(self, now: Instant) -> list[Budget]:
        """All rows whose period contains now; only read."""
        return self._made(self._db.rows(CURRENT, now=now))

    def remove_misdated(self, *, since: Instant, now: Instant) -> None:
        """Remove rows of periods that begin after now or ended before `since`: the clock was wrong when they were
        created."""
        self._db.change(REMOVE_MISDATED, since=since, now=now)

    def forget(self, *, before: Instant) -> None:
        """Delete rows of periods that ended before `before`."""
        self._db.change(REMOVE_OLD, before=before)


class Reservations(Rows[Reservation]):
    """What open attempts have reserved."""

    row, table, key = Reservation, "reservations", "run_id, attempt, budget_id"

    def of_attempt(self, run_id: int, attempt: int) -> list[Reservation]:
        """What an attempt has reserved."""
        return self._made(self._db.rows(RESERVATIONS, run_id=run_id, attempt=attempt))

    def release(self, run_id: int, attempt: int) -> None:
        """Remove the reservations of an attempt."""
        self._db.change(RELEASE, run_id=run_id, attempt=attempt)


class SetLimits(Rows[SetLimit]):
    """The limits that people set."""

    row, table, key = SetLimit, "budget_limits", "scope, unit, period"

    def all(self) -> list[SetLimit]:
        """All of them, in the order of their keys."""
        return self._made(self._db.rows(LIMITS))

    def remove_limit(self, scope: str, unit: Unit, period: Period) -> bool:
        """Delete a limit; False if there is none."""
        return self._db.change(REMOVE_LIMIT, scope=scope, unit=unit, period=period) > 0


class Brakes(Rows[Brake]):
    """The agents that were stopped because of their cost."""

    row, table, key = Brake, "brakes", "agent"

    def all(self) -> dict[str, Brake]:
        """All of them, by agent."""
        return {row.agent: row for row in self._made(self._db.rows(BRAKES))}
