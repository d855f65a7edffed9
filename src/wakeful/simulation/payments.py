"""What runs without the engine cost, and the budgets they fall under.

No run without the engine asks its budgets. They allow it as long as each period's limit exceeds what was spent until
then, and what all schedules under it can have reserved at once. Whether that held is known afterwards, when the charges
of both are counted together (`used_up`). From the first moment at which it did not, until the end of the period, the
schedules under that limit are left to the engine, and the plan is simulated again. The engine then knows everything
that was spent before: it is booked when a stretch ends.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple, TypeAlias

from wakeful.core.money.budgets import AGENT, EVERYTHING, SCHEDULE, Limit, Unit, window_of
from wakeful.core.money.charges import Charge, opened
from wakeful.core.money.prices import Prices, nano, priced_by
from wakeful.core.money.schedule_budget import ScheduleBudget, limits_of
from wakeful.core.run.usage import Usage, usage_of
from wakeful.core.simulation.request import Span
from wakeful.core.simulation.summary import SimulatedRow
from wakeful.core.time.instants import DAY, INSTANT_MAX, Instant
from wakeful.features.money.budget_rows import BudgetPeriods
from wakeful.ports.charges import Charges
from wakeful.ports.store import Tx

FEW: Final = 1_000
"""A limit under which there are so few turns does not make a plan worth simulating twice."""
MONTH: Final = 30 * DAY
ALWAYS: Final = Span(0, INSTANT_MAX)

UsedUp: TypeAlias = Mapping[Limit, Sequence[Span]]
"""When the engine decides because a limit may matter."""

_NOTHING: Final = (0, 0, 0, 0)
_UNKNOWN: Final = (1, 0, 0, 1)
_IDS_FROM: Final = -(1 << 60)  # of charges that belong to no row; those that were copied are above


class _Figures(NamedTuple):
    """What a usage counts as."""

    usage: Usage  # kept, so that its id is not used again
    cost: int | None
    tokens: int | None
    paid: tuple[int, int, int, int]


class Payments:
    """What attempts cost. Each recorded usage is read once."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._known: dict[int, _Figures] = {}

    def of(self, usage: Usage | None, *, is_turn: bool) -> tuple[int, int, int, int]:
        """Turns, tokens, cost, and turns whose cost is unknown, as a row counts them."""
        if usage is None:
            return _UNKNOWN if is_turn else _NOTHING
        return self._figures(usage).paid

    def figure(self, usage: Usage | None, unit: Unit) -> int | None:
        """What a budget counts; None: unknown."""
        if usage is None:
            return None
        return self._figures(usage).cost if unit == "usd" else self._figures(usage).tokens

    def _figures(self, usage: Usage) -> _Figures:
        known = self._known.get(id(usage))
        if known is None:
            priced = priced_by(usage_of(usage), self._prices) or {}
            dollars, tokens = priced.get("cost"), priced.get("total")
            cost = None if dollars is None else nano(dollars)
            known = _Figures(usage, cost, tokens, (1, tokens or 0, cost or 0, int(cost is None)))
            self._known[id(usage)] = known
        return known


class Spent(NamedTuple):
    """What an attempt cost, or what its budgets count if that is unknown."""

    at: Instant
    owner_id: int
    cost: int
    tokens: int


class Owner(NamedTuple):
    """A schedule or the heartbeat, and what its recorded attempts used."""

    owner_id: int
    agent: str | None
    usages: Sequence[Usage | None]
    instants: int  # in the simulated period
    budget: ScheduleBudget | None = None
    is_unpriced: bool = False  # limits in dollars do not apply to it

    @property
    def is_paid(self) -> bool:
        return self.agent is not None or any(usage is not None for usage in self.usages)


class Watched(NamedTuple):
    """A limit, and the owners of runs under it."""

    limit: Limit
    owners: frozenset[int]
    unknown: frozenset[int]  # those whose attempts may have unknown costs: budgets then count an estimate
    estimated: frozenset[int]  # those whose estimate may be made from the costs of other schedules
    reserved_max: int | None  # what all of them can have reserved at once; None: there is nothing to estimate it from
    spent: int  # before the simulation, in its first period
    is_left: bool  # whether the engine decides anyway: few turns, which probably use it up

    @property
    def is_enough(self) -> bool:
        """Whether a period begins with enough for all of them."""
        return self.reserved_max is not None and self.reserved_max <= self.limit.amount and not self.is_left


class Budgets:
    """The limits of a plan."""

    def __init__(
        self,
        limits: Iterable[Limit],
        owners: Sequence[Owner],
        charges: Iterable[Charge],
        spent: Mapping[Limit, int],
        payments: Payments,
        *,
        zone: str,
        starts_at: Instant,
        ends_at: Instant,
    ) -> None:
        self._payments = payments
        self._zone = zone
        self._starts_at = starts_at
        self._ends_at = ends_at
        self._agents = {owner.owner_id: owner.agent for owner in owners}
        self._ids = count(_IDS_FROM)
        self._owners = owners
        self._charges = [charge for charge in charges if charge.settled_at is not None]
        self._spent = spent
        own = [limit for owner in owners if owner.budget for limit in limits_of(owner.budget, owner.owner_id)]
        self.watched = [self._watched(limit) for limit in (*limits, *own)]
        limited = frozenset().union(*(watched.owners for watched in self.watched))
        # Without own costs, an estimate is made from the last turns of the agent: these are then booked one by one.
        estimated = frozenset().union(*(watched.estimated for watched in self.watched))
        agents = {owner.agent for owner in owners if owner.owner_id in estimated}
        self._single = frozenset(owner.owner_id for owner in owners if owner.agent in agents)
        self._booked = limited | self._single

    def closed(self, owner_id: int, used_up: UsedUp) -> Iterator[Span]:
        """When a limit may matter for this owner's runs."""
        for watched in self.watched:
            if owner_id in watched.owners:
                yield from used_up.get(watched.limit, ())
                if owner_id in watched.unknown or not watched.is_enough:
                    yield ALWAYS

    def used_up(self, spent: Iterable[Spent], before: UsedUp) -> UsedUp:
        """When a limit may have mattered in each of its periods, and the engine did not decide before."""
        found: dict[Limit, list[Span]] = {}
        by_owner: dict[int, list[Spent]] = {}
        for one in spent:
            by_owner.setdefault(one.owner_id, []).append(one)
        for watched in self.watched:
            if watched.is_enough:
                own = sorted(one for owner_id in watched.owners for one in by_owner.get(owner_id, ()))
                spans = list(self._used_up(watched, own, before.get(watched.limit, ())))
                if spans:
                    found[watched.limit] = spans
        return found

    def _used_up(self, watched: Watched, spent: Sequence[Spent], before: Sequence[Span]) -> Iterator[Span]:
        limit, sum_, ends_at, closed_at = watched.limit, 0, 0, 0
        for one in spent:
            if one.at >= ends_at:
                window = window_of(limit.period, self._zone, one.at)
                ends_at = window.ends_at
                sum_ = watched.spent if window.starts_at <= self._starts_at else 0
                closed_at = min((span.starts_at for span in before if span.ends_at == ends_at), default=ends_at)
            sum_ += one.cost if limit.unit == "usd" else one.tokens
            if one.at < closed_at and sum_ + (watched.reserved_max or 0) > limit.amount:
                closed_at = one.at
                yield Span(one.at, ends_at)

    def charges(self, owners: Sequence[int], runs: Sequence[SimulatedRow]) -> Iterator[tuple[Instant, list[Charge]]]:
        """What the engine must know of these runs because of a limit, and when."""
        paid = [
            (self._charge(owner_id, run), owner_id in self._single)
            for owner_id, run in zip(owners, runs, strict=True)
            if run.turns and owner_id in self._booked
        ]
        together = [charge for charge, is_single in paid if not is_single]
        if together:
            yield max(charge.settled_at or 0 for charge in together), together
        yield from ((charge.settled_at or 0, [charge]) for charge, is_single in paid if is_single)

    def book(self, tx: Tx, paid: Sequence[Charge], now: Instant) -> None:
        """Tell the engine what was spent without it."""
        tx[Charges].put_many(paid)
        moved = []
        for row in tx[BudgetPeriods].current(now):
            scoped = [
                charge for charge in paid if row.starts_at <= charge.at < row.ends_at and row.scope in _scopes(charge)
            ]
            amount = sum(charge.charged_cost if row.unit == "usd" else charge.charged_tokens for charge in scoped)
            if amount:
                moved.append(row._replace(spent=row.spent + amount))
        tx[BudgetPeriods].save_many(moved)

    def _charge(self, owner_id: int, run: SimulatedRow) -> Charge:
        charge = opened(next(self._ids), 1, owner_id, self._agents[owner_id], run.started_at or run.due_at)
        cost = None if run.unknown else run.cost
        is_silent = cost is None and run.outcome == "succeeded"
        charge = charge._replace(settled_at=run.ended_at, tokens=run.tokens or None, cost=cost)
        return charge._replace(priced="silent") if is_silent else charge

    def _watched(self, limit: Limit) -> Watched:
        owners = [owner for owner in self._owners if _is_under(owner, limit)]
        unknown = frozenset(
            owner.owner_id
            for owner in owners
            if owner.agent is not None and not self._are_known(owner.usages, limit.unit)
        )
        largest = [self._largest(owner, limit.unit) for owner in owners]
        reserved_max = None if None in largest else sum(amount or 0 for amount in largest)
        ids = frozenset(owner.owner_id for owner in owners)
        spent = self._spent.get(limit._replace(amount=0), 0)
        expected = spent + self._expected(owners, limit) + (reserved_max or 0)
        is_left = expected > limit.amount and sum(owner.instants for owner in owners) <= FEW
        estimated = frozenset(
            owner.owner_id
            for owner in owners
            if owner.agent is not None and not any(_is_known(charge, limit.unit) for charge in self._of(owner.owner_id))
        )
        return Watched(limit, ids, unknown, unknown | estimated, reserved_max, spent, is_left)

    def _of(self, owner_id: int) -> list[Charge]:
        return [charge for charge in self._charges if charge.owner_id == owner_id]

    def _expected(self, owners: Sequence[Owner], limit: Limit) -> float:
        """What these owners will spend in one period, on average."""
        total = 0.0
        for owner in owners:
            known = [
                figure for usage in owner.usages if (figure := self._payments.figure(usage, limit.unit)) is not None
            ]
            total += owner.instants * sum(known) / len(known) if known else 0
        length = self._ends_at - self._starts_at
        return total * min(1.0, (DAY if limit.period == "day" else MONTH) / length)

    def _are_known(self, usages: Sequence[Usage | None], unit: Unit) -> bool:
        return bool(usages) and all(self._payments.figure(usage, unit) is not None for usage in usages)

    def _largest(self, owner: Owner, unit: Unit) -> int | None:
        """The highest estimate that a run can have; None if it may have none."""
        if owner.agent is None:
            return 0  # no turn, so it reserves nothing
        recorded = [
            (charge.cost if unit == "usd" else charge.tokens) or 0
            for charge in self._charges
            if (owner.agent == charge.agent or owner.owner_id == charge.owner_id) and _is_known(charge, unit)
        ]
        if not recorded:
            return None
        others = [one for one in self._owners if one.agent == owner.agent]
        drawn = [self._payments.figure(usage, unit) or 0 for one in others for usage in one.usages]
        return max(recorded + drawn)


def _is_known(charge: Charge, unit: Unit) -> bool:
    """Whether an estimate is made from it."""
    return (charge.cost if unit == "usd" else charge.tokens) is not None and bool(charge.cost or charge.tokens)


def _is_under(owner: Owner, limit: Limit) -> bool:
    return owner.is_paid and limit.scope in _scopes(owner) and not (owner.is_unpriced and limit.unit == "usd")


def _scopes(of: Owner | Charge) -> tuple[str, ...]:
    return (EVERYTHING, f"{AGENT}{of.agent}", f"{SCHEDULE}{of.owner_id}")
