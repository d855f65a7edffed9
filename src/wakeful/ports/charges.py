"""What attempts used and cost."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.money.budgets import AGENT, SCHEDULE, Unit, Window
from wakeful.core.money.charges import Charge, CostRow, Unknown
from wakeful.core.money.spending import Spending
from wakeful.core.time.instants import Instant
from wakeful.ports.database import columns_of
from wakeful.ports.table import Rows

CostKey: TypeAlias = Literal["schedule", "agent", "model", "day"]


class DayOf(NamedTuple):
    """A local day, for totals by day."""

    day: str
    window: Window


# All attempts of some runs.
OF_RUNS = (
    f"SELECT {columns_of(Charge, 'charges')} FROM charges WHERE run_id IN :run_ids ORDER BY run_id, attempt FOR UPDATE"
)

# The agents of some runs' attempts.
AGENTS_OF = "SELECT run_id, attempt, agent FROM charges WHERE run_id IN :run_ids AND agent IS NOT NULL"

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

# The runs in which an agent was asked since a time, and whose attempt ended since a later one.
ENDED_SINCE = """
SELECT DISTINCT run_id FROM charges INDEXED BY charges_at
WHERE at >= :asked_since AND settled_at >= :since AND agent IS NOT NULL ORDER BY run_id
"""

# Whether an agent's last finished turns reported a cost, or had one by a price, newest first.
REPORTED = """
SELECT CASE WHEN cost IS NOT NULL AND priced <> 'settings' THEN 1 ELSE 0 END FROM charges INDEXED BY charges_of_agent
WHERE agent = :agent AND settled_at IS NOT NULL AND (cost IS NOT NULL OR priced = 'silent')
ORDER BY at DESC LIMIT :limit
"""

# What budgets count in a period, and the part of it that is known: of everything, of an agent, of an owner of runs.
_COUNTED = {
    ("usd", False): "coalesce(sum(coalesce(cost, held_cost)), 0)",
    ("usd", True): "coalesce(sum(cost), 0)",
    ("tokens", False): "coalesce(sum(coalesce(tokens, held_tokens)), 0)",
    ("tokens", True): "coalesce(sum(tokens), 0)",
}
_DURING = "at >= :starts_at AND at < :ends_at AND settled_at IS NOT NULL"
SPENT = {
    what: f"SELECT {counted} FROM charges INDEXED BY charges_at WHERE {_DURING}" for what, counted in _COUNTED.items()
}
SPENT_BY_AGENT = {
    what: f"SELECT {counted} FROM charges INDEXED BY charges_of_agent WHERE agent = :agent AND {_DURING}"
    for what, counted in _COUNTED.items()
}
SPENT_BY_OWNER = {
    what: f"SELECT {counted} FROM charges INDEXED BY charges_of_owner WHERE owner_id = :owner_id AND {_DURING}"
    for what, counted in _COUNTED.items()
}

# Attempts of unknown cost in a period, by owner and agent, and what budgets assume for them.
UNKNOWN = {
    unit: f"""
SELECT owner_id, agent, count(*), coalesce(sum({held}), 0) FROM charges INDEXED BY {index}
WHERE {column} IS NULL AND {_DURING} GROUP BY owner_id, agent ORDER BY owner_id, agent
"""
    for unit, column, held, index in (
        ("usd", "cost", "held_cost", "charges_unknown"),
        ("tokens", "tokens", "held_tokens", "charges_at"),
    )
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

# Totals of owners that have spent nothing for a long time.
FORGET_SPENDING = "DELETE FROM spending WHERE month_ends_at >= :since AND month_ends_at < :before"

_COLUMN: Final = {"schedule": "owner_id", "agent": "agent", "model": "model"}
_FIGURE: Final = {"usd": "cost", "tokens": "tokens"}


class Charges(Rows[Charge]):
    """A row for each attempt."""

    row, table, key = Charge, "charges", "run_id, attempt"

    def of_runs(self, run_ids: Sequence[int]) -> list[Charge]:
        """All attempts of these runs, in order."""
        return self._made(self._db.rows(OF_RUNS, run_ids=run_ids))

    def agents_of(self, run_ids: Sequence[int]) -> dict[tuple[int, int], str]:
        """The agents of these attempts, by run and attempt, without locking anything."""
        rows = self._db.rows(AGENTS_OF, run_ids=run_ids)
        return {(run_id, attempt): agent for run_id, attempt, agent in rows}

    def remove_attempt(self, run_id: int, attempt: int) -> None:
        """Remove the charge of an attempt that never reached its agent."""
        self._db.change(REMOVE, run_id=run_id, attempt=attempt)

    def known(
        self, *, unit: Unit, owner_id: int | None = None, agent: str | None = None, until: Instant, limit: int
    ) -> list[int]:
        """The last known costs or token counts of an owner or of an agent, newest first."""
        column = _FIGURE[unit]
        if owner_id is not None:
            rows = self._db.rows(KNOWN_OF_OWNER[column], owner_id=owner_id, until=until, limit=limit)
        else:
            rows = self._db.rows(KNOWN_OF_AGENT[column], agent=agent, until=until, limit=limit)
        return [figure for (figure,) in rows]

    def reported(self, agent: str, *, limit: int) -> list[bool]:
        """For each of an agent's last finished turns, newest first: whether its cost was reported, or followed from a
        price. Turns whose reports were lost are left out."""
        return [bool(is_known) for (is_known,) in self._db.rows(REPORTED, agent=agent, limit=limit)]

    def costs_of(self, agent: str, *, since: Instant, until: Instant, limit: int) -> list[tuple[Instant, int]]:
        """Times and known costs of an agent's attempts in [since, until), newest first."""
        rows = self._db.rows(COSTS_OF, agent=agent, since=since, until=until, limit=limit)
        return [(at, cost) for at, cost in rows]

    def ended_since(self, since: Instant, *, asked_since: Instant) -> list[int]:
        """The runs with an attempt of an agent that began since `asked_since`, and ended since `since`."""
        return [run_id for (run_id,) in self._db.rows(ENDED_SINCE, since=since, asked_since=asked_since)]

    def spent(self, scope: str, unit: Unit, window: Window, *, is_known: bool = False) -> int:
        """What budgets count for a scope in a period, without open attempts. `is_known`: without what is assumed for
        attempts of unknown cost."""
        what, during = (unit, is_known), {"starts_at": window.starts_at, "ends_at": window.ends_at}
        if scope.startswith(AGENT):
            rows = self._db.rows(SPENT_BY_AGENT[what], agent=scope.removeprefix(AGENT), **during)
        elif scope.startswith(SCHEDULE):
            rows = self._db.rows(SPENT_BY_OWNER[what], owner_id=int(scope.removeprefix(SCHEDULE)), **during)
        else:
            rows = self._db.rows(SPENT[what], **during)
        ((spent,),) = rows
        return int(spent)

    def unknown(self, unit: Unit, window: Window) -> list[Unknown]:
        """The attempts of unknown cost that ended, of a period, by owner and agent."""
        rows = self._db.rows(UNKNOWN[unit], starts_at=window.starts_at, ends_at=window.ends_at)
        return [Unknown(owner_id, agent, int(attempts), int(assumed)) for owner_id, agent, attempts, assumed in rows]

    def sums(self, by: CostKey, *, since: Instant, until: Instant, days: Sequence[DayOf] = ()) -> list[CostRow]:
        """Totals in [since, until), most expensive first; by day: in the order of `days`."""
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
        """Charges dated after `after`, or before `since`, were made while the clock was wrong: they belong to now.
        Returns their owners."""
        owner_ids = [owner_id for (owner_id,) in self._db.rows(MISDATED, after=after, since=since)]
        if owner_ids:
            self._db.change(REDATE, after=after, since=since, now=now)
        return owner_ids

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` charges made before `before`. Charges dated before `since` are kept: they will be dated
        again."""
        self._db.change(FORGET_SPENDING, before=before, since=since)
        run_ids = [run_id for (run_id,) in self._db.rows(OLD, before=before, since=since, limit=limit)]
        if not run_ids:
            return 0
        self._db.change(FORGET_RESERVATIONS, run_ids=run_ids)
        return self._db.change(FORGET, run_ids=run_ids)


class SpendingTotals(Rows[Spending]):
    """What owners of runs have spent in their current periods."""

    row, table, key = Spending, "spending", "owner_id"
