"""Charges, budgets and reservations."""

from collections.abc import Sequence
from typing import Final

from wakeful.core.money.budgets import AGENT, SCHEDULE, Budget, Limit, Period, Reservation, Unit, Window
from wakeful.core.money.charges import Charge, CostRow
from wakeful.core.money.spending import Spending
from wakeful.core.time.instants import Instant
from wakeful.ports.money import Brake, CostKey, DayOf, SetLimit
from wakeful.stores.shared.database import Database, Table

_CHARGES = Table("charges", Charge, key=("run_id", "attempt"))
_BUDGETS = Table(
    "budgets", Budget, key=("budget_id",), fixed=("scope", "unit", "period", "starts_at", "ends_at", "zone")
)
_RESERVATIONS = Table("reservations", Reservation, key=("run_id", "attempt", "budget_id"))
_LIMITS = Table("budget_limits", SetLimit, key=("scope", "unit", "period"))
_SPENDING = Table("spending", Spending, key=("owner_id",))
_BRAKES = Table("brakes", Brake, key=("agent",))

# All attempts of some runs.
OF_RUNS = f"SELECT {_CHARGES.columns} FROM charges WHERE run_id IN :run_ids ORDER BY run_id, attempt FOR UPDATE"

# Forget an attempt that never reached its agent.
REMOVE = "DELETE FROM charges WHERE run_id = :run_id AND attempt = :attempt"

# An attempt that used nothing says nothing about the next one: its model was not asked, or refused the request.
_USED = "(cost > 0 OR tokens > 0)"

# The last known figures of an owner of runs, or of an agent, newest first.
KNOWN_OF_OWNER = {
    column: f"""
SELECT {column} FROM charges INDEXED BY charges_of_owner
WHERE owner_id = :owner_id AND at <= :until AND settled_at IS NOT NULL AND {column} IS NOT NULL AND {_USED}
ORDER BY at DESC LIMIT :limit
"""
    for column in ("cost", "tokens")
}
KNOWN_OF_AGENT = {
    column: f"""
SELECT {column} FROM charges INDEXED BY charges_of_agent
WHERE agent = :agent AND at <= :until AND settled_at IS NOT NULL AND {column} IS NOT NULL AND {_USED}
ORDER BY at DESC LIMIT :limit
"""
    for column in ("cost", "tokens")
}

# When an agent's attempts began and what they cost.
COSTS_OF = f"""
SELECT at, cost FROM charges INDEXED BY charges_of_agent
WHERE agent = :agent AND at >= :since AND at < :until AND cost IS NOT NULL AND {_USED} ORDER BY at DESC LIMIT :limit
"""

# What budgets count in a period: of everything, of an agent, of an owner of runs.
_COUNTED = {
    "usd": "coalesce(sum(coalesce(cost, held_cost)), 0)",
    "tokens": "coalesce(sum(coalesce(tokens, held_tokens)), 0)",
}
_DURING = "at >= :starts_at AND at < :ends_at AND settled_at IS NOT NULL"
SPENT = {
    unit: f"SELECT {counted} FROM charges INDEXED BY charges_at WHERE {_DURING}" for unit, counted in _COUNTED.items()
}
SPENT_BY_AGENT = {
    unit: f"SELECT {counted} FROM charges INDEXED BY charges_of_agent WHERE agent = :agent AND {_DURING}"
    for unit, counted in _COUNTED.items()
}
SPENT_BY_OWNER = {
    unit: f"SELECT {counted} FROM charges INDEXED BY charges_of_owner WHERE owner_id = :owner_id AND {_DURING}"
    for unit, counted in _COUNTED.items()
}

# Totals of the charges that ended in a period, by one column.
_SUMS = """
count(DISTINCT run_id), coalesce(sum(tokens), 0), coalesce(sum(cost), 0), sum(CASE WHEN cost IS NULL THEN 1 ELSE 0 END)
"""
SUMS_BY = {
    column: f"""
SELECT {column}, {_SUMS} FROM charges INDEXED BY charges_at
WHERE at >= :since AND at < :until AND settled_at IS NOT NULL GROUP BY {column}
"""
    for column in ("owner_id", "agent", "model")
}
SUMS = f"""
SELECT {_SUMS} FROM charges INDEXED BY charges_at WHERE at >= :since AND at < :until AND settled_at IS NOT NULL
"""

# The owners whose charges lie ahead, or before the store existed.
MISDATED = """
SELECT owner_id FROM charges INDEXED BY charges_at WHERE at > :after
UNION SELECT owner_id FROM charges INDEXED BY charges_at WHERE at < :since
"""

# Date these now.
REDATE = "UPDATE charges SET at = :now WHERE at > :after OR at < :since"

# Old charges, and the deletion of a run's charges and reservations.
OLD = """
SELECT DISTINCT run_id FROM (
  SELECT run_id FROM charges INDEXED BY charges_at
  WHERE at >= :since AND at < :before AND settled_at IS NOT NULL ORDER BY at LIMIT :limit
) AS old
"""
FORGET = "DELETE FROM charges WHERE run_id IN :run_ids"
FORGET_RESERVATIONS = "DELETE FROM reservations WHERE run_id IN :run_ids"

# What owners have spent in their current periods.
SPENDING_OF = f"SELECT {_SPENDING.columns} FROM spending WHERE owner_id IN :owner_ids ORDER BY owner_id FOR UPDATE"

# Totals of owners that have spent nothing for a long time.
FORGET_SPENDING = "DELETE FROM spending WHERE month_ends_at >= :since AND month_ends_at < :before"

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
TAKE = f"SELECT {_BUDGETS.columns} {_OF_PERIOD} FOR UPDATE SKIP LOCKED"

# The rows of some scopes at a time, locked.
AT = f"""
SELECT {_BUDGETS.columns} FROM budgets
WHERE (scope IN :scopes AND starts_at <= :at AND ends_at > :at) OR budget_id IN :also ORDER BY budget_id FOR UPDATE
"""

# All rows at a time.
CURRENT = f"""
SELECT {_BUDGETS.columns} FROM budgets INDEXED BY budgets_ended
WHERE ends_at > :now AND starts_at <= :now ORDER BY scope, unit, period
"""

# Rows of periods that begin later, or ended before the store existed.
REMOVE_MISDATED = "DELETE FROM budgets WHERE starts_at > :now OR ends_at < :since"

# Rows of periods that ended long ago.
REMOVE_OLD = "DELETE FROM budgets WHERE ends_at < :before"

# Reservations of an attempt.
RESERVATIONS = f"""
SELECT {_RESERVATIONS.columns} FROM reservations WHERE run_id = :run_id AND attempt = :attempt ORDER BY budget_id
"""
RELEASE = "DELETE FROM reservations WHERE run_id = :run_id AND attempt = :attempt"

LIMITS = f"SELECT {_LIMITS.columns} FROM budget_limits ORDER BY scope, unit, period"
REMOVE_LIMIT = "DELETE FROM budget_limits WHERE scope = :scope AND unit = :unit AND period = :period"
BRAKES = f"SELECT {_BRAKES.columns} FROM brakes ORDER BY agent"
REMOVE_BRAKE = "DELETE FROM brakes WHERE agent = :agent"

_COLUMN: Final = {"schedule": "owner_id", "agent": "agent", "model": "model"}
_FIGURE: Final = {"usd": "cost", "tokens": "tokens"}


class SharedCharges:
    """See `ports.money.Charges`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def save_many(self, rows: Sequence[Charge]) -> None:
        self._db.upsert(_CHARGES, rows)

    def of_runs(self, run_ids: Sequence[int]) -> list[Charge]:
        return list(map(Charge._make, self._db.rows(OF_RUNS, run_ids=run_ids)))

    def remove(self, run_id: int, attempt: int) -> None:
        self._db.change(REMOVE, run_id=run_id, attempt=attempt)

    def known(
        self, *, unit: Unit, owner_id: int | None = None, agent: str | None = None, until: Instant, limit: int
    ) -> list[int]:
        column = _FIGURE[unit]
        if owner_id is not None:
            rows = self._db.rows(KNOWN_OF_OWNER[column], owner_id=owner_id, until=until, limit=limit)
        else:
            rows = self._db.rows(KNOWN_OF_AGENT[column], agent=agent, until=until, limit=limit)
        return [figure for (figure,) in rows]

    def costs_of(self, agent: str, *, since: Instant, until: Instant, limit: int) -> list[tuple[Instant, int]]:
        rows = self._db.rows(COSTS_OF, agent=agent, since=since, until=until, limit=limit)
        return [(at, cost) for at, cost in rows]

    def spent(self, scope: str, unit: Unit, window: Window) -> int:
        during = {"starts_at": window.starts_at, "ends_at": window.ends_at}
        if scope.startswith(AGENT):
            rows = self._db.rows(SPENT_BY_AGENT[unit], agent=scope.removeprefix(AGENT), **during)
        elif scope.startswith(SCHEDULE):
            rows = self._db.rows(SPENT_BY_OWNER[unit], owner_id=int(scope.removeprefix(SCHEDULE)), **during)
        else:
            rows = self._db.rows(SPENT[unit], **during)
        ((spent,),) = rows
        return int(spent)

    def sums(self, by: CostKey, *, since: Instant, until: Instant, days: Sequence[DayOf] = ()) -> list[CostRow]:
        if by == "day":
            found = [(day, *self._sum(max(at.starts_at, since), min(at.ends_at, until))) for day, at in days]
            return [CostRow(*row) for row in found if row[1]]
        rows = self._db.rows(SUMS_BY[_COLUMN[by]], since=since, until=until)
        sums = [CostRow("" if key is None else str(key), *map(int, figures)) for key, *figures in rows]
        return sorted(sums, key=lambda row: (-row.cost, -row.tokens, row.key))

    def _sum(self, since: Instant, until: Instant) -> tuple[int, int, int, int]:
        ((runs, tokens, cost, unknown),) = self._db.rows(SUMS, since=since, until=until)
        return int(runs), int(tokens), int(cost), int(unknown or 0)

    def redate(self, *, after: Instant, since: Instant, now: Instant) -> list[int]:
        owner_ids = [owner_id for (owner_id,) in self._db.rows(MISDATED, after=after, since=since)]
        if owner_ids:
            self._db.change(REDATE, after=after, since=since, now=now)
        return owner_ids

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        self._db.change(FORGET_SPENDING, before=before, since=since)
        run_ids = [run_id for (run_id,) in self._db.rows(OLD, before=before, since=since, limit=limit)]
        if not run_ids:
            return 0
        self._db.change(FORGET_RESERVATIONS, run_ids=run_ids)
        return self._db.change(FORGET, run_ids=run_ids)

    def spending_of(self, owner_ids: Sequence[int]) -> dict[int, Spending]:
        rows = self._db.rows(SPENDING_OF, owner_ids=owner_ids) if owner_ids else []
        return {row.owner_id: row for row in map(Spending._make, rows)}

    def save_spending(self, rows: Sequence[Spending]) -> None:
        self._db.upsert(_SPENDING, rows)


class SharedBudgets:
    """See `ports.money.Budgets`."""

    __slots__ = ("_charges", "_db")

    def __init__(self, db: Database, charges: SharedCharges) -> None:
        self._db = db
        self._charges = charges

    def open(self, limits: Sequence[tuple[Limit, Window, str]]) -> dict[Limit, Budget | None]:
        rows: dict[Limit, Budget | None] = {}
        for limit, window, zone in sorted(limits):
            of_period = {"scope": limit.scope, "unit": limit.unit, "period": limit.period, **window._asdict()}
            if not self._db.rows(EXISTS, **of_period):
                spent = self._charges.spent(limit.scope, limit.unit, window)
                self._db.change(CREATE, **of_period, zone=zone, spent=spent)
            found = self._db.rows(TAKE, **of_period)
            rows[limit] = Budget._make(found[0]) if found else None
        return rows

    def at(self, scopes: Sequence[str], at: Instant, *, also: Sequence[int] = ()) -> list[Budget]:
        return list(map(Budget._make, self._db.rows(AT, scopes=scopes, at=at, also=also)))

    def current(self, now: Instant) -> list[Budget]:
        return list(map(Budget._make, self._db.rows(CURRENT, now=now)))

    def save_many(self, rows: Sequence[Budget]) -> None:
        self._db.update(_BUDGETS, rows)

    def reserve(self, rows: Sequence[Reservation]) -> None:
        self._db.insert(_RESERVATIONS, rows)

    def reservations(self, run_id: int, attempt: int) -> list[Reservation]:
        return list(map(Reservation._make, self._db.rows(RESERVATIONS, run_id=run_id, attempt=attempt)))

    def release(self, run_id: int, attempt: int) -> None:
        self._db.change(RELEASE, run_id=run_id, attempt=attempt)

    def limits(self) -> list[SetLimit]:
        return list(map(SetLimit._make, self._db.rows(LIMITS)))

    def set_limit(self, row: SetLimit) -> None:
        self._db.upsert(_LIMITS, [row])

    def remove_limit(self, scope: str, unit: Unit, period: Period) -> bool:
        return self._db.change(REMOVE_LIMIT, scope=scope, unit=unit, period=period) > 0

    def brakes(self) -> dict[str, Brake]:
        return {row.agent: row for row in map(Brake._make, self._db.rows(BRAKES))}

    def set_brake(self, row: Brake) -> None:
        self._db.upsert(_BRAKES, [row])

    def remove_brake(self, agent: str) -> bool:
        return self._db.change(REMOVE_BRAKE, agent=agent) > 0

    def remove_misdated(self, *, since: Instant, now: Instant) -> None:
        self._db.change(REMOVE_MISDATED, since=since, now=now)

    def prune(self, *, before: Instant) -> None:
        self._db.change(REMOVE_OLD, before=before)
