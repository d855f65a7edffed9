"""Charges and budgets in the store.

A row of `budgets` is the lock of that budget. It is the last lock a claim takes, and a claim never waits for it; so
settling may lock it before it applies effects.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from wakeful.core.money.budgets import Budget, Limit, Period, Reservation, Unit, Window
from wakeful.core.money.charges import Charge, CostRow
from wakeful.core.money.spending import Spending
from wakeful.core.time.instants import Instant

CostKey: TypeAlias = Literal["schedule", "agent", "model", "day"]


class DayOf(NamedTuple):
    """A local day, for totals by day."""

    day: str
    window: Window


class SetLimit(NamedTuple):
    """A limit that a person set, in place of the one in the settings."""

    scope: str
    unit: Unit
    period: Period
    amount: int
    set_at: Instant


class Brake(NamedTuple):
    """An agent that was stopped because of its cost."""

    agent: str
    at: Instant
    text: str


class Charges(Protocol):
    """What attempts used and cost."""

    def save_many(self, rows: Sequence[Charge]) -> None:
        """Insert or replace."""
        ...

    def of_runs(self, run_ids: Sequence[int]) -> list[Charge]:
        """All attempts of these runs, in order."""
        ...

    def remove(self, run_id: int, attempt: int) -> None:
        """Remove the charge of an attempt that never reached its agent."""
        ...

    def known(
        self, *, unit: Unit, owner_id: int | None = None, agent: str | None = None, until: Instant, limit: int
    ) -> list[int]:
        """The last known costs or token counts of an owner or of an agent, newest first."""
        ...

    def costs_of(self, agent: str, *, since: Instant, until: Instant, limit: int) -> list[tuple[Instant, int]]:
        """Times and known costs of an agent's attempts in [since, until), newest first."""
        ...

    def spent(self, scope: str, unit: Unit, window: Window) -> int:
        """The amount charged to a scope in a period, without open attempts."""
        ...

    def sums(self, by: CostKey, *, since: Instant, until: Instant, days: Sequence[DayOf] = ()) -> list[CostRow]:
        """Totals in [since, until), most expensive first; by day: in the order of `days`."""
        ...

    def redate(self, *, after: Instant, since: Instant, now: Instant) -> list[int]:
        """Charges dated after `after`, or before `since`, were made while the clock was wrong: they belong to now.
        Returns their owners."""
        ...

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` charges made before `before`. Charges dated before `since` are kept: they will be dated
        again."""
        ...

    def spending_of(self, owner_ids: Sequence[int]) -> dict[int, Spending]:
        """What these owners have spent in their current periods, locked in their order; a read transaction reads."""
        ...

    def save_spending(self, rows: Sequence[Spending]) -> None:
        """Insert or replace."""
        ...


class Budgets(Protocol):
    """Budgets, limits set by people, and agents that were stopped."""

    def open(self, limits: Sequence[tuple[Limit, Window, str]]) -> dict[Limit, Budget | None]:
        """The rows of these limits for these periods and zones, created if missing, locked in their order. None for a
        row that another transaction holds: this never waits."""
        ...

    def at(self, scopes: Sequence[str], at: Instant, *, also: Sequence[int] = ()) -> list[Budget]:
        """The rows of these scopes whose period contains the time, and some by id; locked in id order."""
        ...

    def current(self, now: Instant) -> list[Budget]:
        """All rows whose period contains now; only read."""
        ...

    def save_many(self, rows: Sequence[Budget]) -> None: ...

    def reserve(self, rows: Sequence[Reservation]) -> None: ...

    def reservations(self, run_id: int, attempt: int) -> list[Reservation]: ...

    def release(self, run_id: int, attempt: int) -> None:
        """Remove the reservations of an attempt."""
        ...

    def limits(self) -> list[SetLimit]:
        """The limits that people set."""
        ...

    def set_limit(self, row: SetLimit) -> None: ...

    def remove_limit(self, scope: str, unit: Unit, period: Period) -> bool: ...

    def brakes(self) -> dict[str, Brake]: ...

    def set_brake(self, row: Brake) -> None: ...

    def remove_brake(self, agent: str) -> bool: ...

    def remove_misdated(self, *, since: Instant, now: Instant) -> None:
        """Remove rows of periods that begin after now or ended before `since`: the clock was wrong when they were
        created."""
        ...

    def prune(self, *, before: Instant) -> None: ...
