"""Reserving: the last step of a claim. A turn starts only if every budget it falls under allows it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from wakeful.core.money.budgets import (
    BUDGET,
    LOCKED,
    RESERVED,
    Budget,
    Limit,
    Reservation,
    Window,
    amount_needed,
    fit,
    window_of,
)
from wakeful.core.money.charges import Charge, holding, opened
from wakeful.core.money.schedule_budget import limits_of
from wakeful.core.run.runs import Run
from wakeful.core.schedule.gates import Defer, Skip
from wakeful.core.time.instants import HOUR, MINUTE, Instant
from wakeful.engine.membership import kept_since
from wakeful.features.money.budget_rows import Brake, Brakes, BudgetPeriods, Reservations
from wakeful.features.money.estimates import assumed_in, estimated_for
from wakeful.features.money.spending import recount
from wakeful.features.money.terms import MoneyTerms, RunTerms, applying, effective
from wakeful.features.money.unpriced import is_priced
from wakeful.features.money.words import used_up_text
from wakeful.ports.charges import Charges
from wakeful.ports.store import Tx

MESSAGE: Final = "message"
"""The kind of the runs that answer a person: no budget stops them."""

BRAKE: Final = "brake"
"""The reason for a run whose agent was stopped because of its cost."""

AHEAD: Final = MINUTE
"""Charges dated later than this were made by a clock that was wrong."""


class Asked(NamedTuple):
    """A turn that is about to start."""

    run: Run
    agent: str
    terms: RunTerms | None
    model: str | None = None  # as the prompt names it


class Reserving:
    """Reserves for the turns of one claim."""

    def __init__(self, tx: Tx, terms: MoneyTerms, zone: str, now: Instant) -> None:
        self._tx = tx
        self._zone = zone
        self._now = now
        self._terms = terms
        self._limits = effective(tx, terms)
        self._priced: dict[tuple[str, str | None], bool] = {}
        self._brakes = tx[Brakes].all()
        since = kept_since(tx)
        if now >= since:  # else the clock is not set yet, and the dates that lie ahead of it are right
            redated = tx[Charges].redate(after=now + AHEAD, since=since, now=now)
            if redated:
                _recount(tx, redated, zone, since=since, now=now)

    def reserve(self, asked: Sequence[Asked]) -> dict[int, Defer | Skip]:
        """Decide in order. Returns the turns that may not start."""
        refused: dict[int, Defer | Skip] = {}
        for turn in asked:
            decision = self._decide(turn)
            if decision is not None:
                refused[turn.run.run_id] = decision
        return refused

    def _decide(self, turn: Asked) -> Defer | Skip | None:
        run, is_message = turn.run, turn.run.kind == MESSAGE
        brake = self._brakes.get(turn.agent)
        if brake is not None and not is_message:
            return _braked(turn, brake, self._now)
        charge = opened(run.run_id, run.attempt, run.schedule_id, turn.agent, run.claimed_at or self._now)
        limits = applying(self._limits, turn.agent)
        if turn.terms is not None and turn.terms.budget is not None:
            limits += limits_of(turn.terms.budget, run.schedule_id)
        if any(limit.unit == "usd" for limit in limits) and not self._is_priced(turn):
            limits = [limit for limit in limits if limit.unit != "usd"]
            charge = charge._replace(basis="unpriced")
        if limits:
            decision, charge = self._fit(turn, sorted(limits), charge, is_forced=is_message)
            if decision is not None:
                return decision
        self._tx[Charges].put_many([charge])
        return None

    def _fit(
        self, turn: Asked, limits: Sequence[Limit], charge: Charge, *, is_forced: bool
    ) -> tuple[Defer | Skip | None, Charge]:
        periods = [(limit, window_of(limit.period, self._zone, self._now), self._zone) for limit in limits]
        budgets = self._tx[BudgetPeriods].open(periods)
        held: list[tuple[Budget, int]] = []
        for limit in limits:
            budget = budgets[limit]
            if budget is None:
                return Defer(self._now + LOCKED, BUDGET), charge
            estimated = self._estimate(turn, limit)
            verdict = fit(budget, limit.amount, estimated)
            if verdict != "fits" and not is_forced:
                is_open = verdict == "reserved"
                assumed = assumed_in(self._tx, budget)
                return _refused(turn, limit, budget, estimated, assumed, self._now, is_open=is_open), charge
            amount = amount_needed(budget, limit.amount, estimated)
            if estimated is None and charge.basis == "estimate":
                charge = charge._replace(basis="rest")
            held.append((budget._replace(reserved=budget.reserved + amount), amount))
            charge = holding(charge, limit.unit, amount)
        self._tx[BudgetPeriods].save_many([budget for budget, _ in held])
        run = turn.run
        self._tx[Reservations].add_many(
            [Reservation(run.run_id, run.attempt, budget.budget_id, amount) for budget, amount in held if amount]
        )
        return None, charge

    def _estimate(self, turn: Asked, limit: Limit) -> int | None:
        owner_id = turn.run.schedule_id
        return estimated_for(self._tx, self._terms, owner_id, turn.agent, limit.unit, now=self._now)

    def _is_priced(self, turn: Asked) -> bool:
        key = (turn.agent, turn.model)
        if key not in self._priced:
            self._priced[key] = is_priced(self._tx, self._terms, *key)
        return self._priced[key]


def _recount(tx: Tx, owner_ids: Sequence[int], zone: str, *, since: Instant, now: Instant) -> None:
    """The clock was wrong: amounts spent meanwhile count for the current periods, and later periods start over."""
    tx[BudgetPeriods].remove_misdated(since=since, now=now)
    rows = tx[BudgetPeriods].current(now)
    tx[BudgetPeriods].save_many(
        [row._replace(spent=tx[Charges].spent(row.scope, row.unit, _window(row))) for row in sorted(rows)]
    )

    recount(tx, owner_ids, zone, now)


def _window(row: Budget) -> Window:
    return Window(row.starts_at, row.ends_at)


def _refused(
    turn: Asked, limit: Limit, budget: Budget, estimated: int | None, assumed: int, now: Instant, *, is_open: bool
) -> Defer | Skip:
    """A one-shot waits until the budget frees, an instant of a recurring schedule is skipped. If runs in progress may
    leave enough, both wait for them to end. A manual run never waits."""
    text = used_up_text(limit, budget, estimated, None if turn.terms is None else turn.terms.slug, assumed=assumed)
    if turn.run.trigger == "manual":
        return Skip(BUDGET, text)
    if is_open:
        return Defer(now + RESERVED, BUDGET, text)
    if turn.terms is not None and turn.terms.is_one_shot:
        return Defer(budget.ends_at, BUDGET, text)
    return Skip(BUDGET, text)


def _braked(turn: Asked, brake: Brake, now: Instant) -> Defer | Skip:
    text = f"agent {turn.agent} is stopped: {brake.text}; to release it: wakeful budget release {turn.agent}"
    if turn.terms is not None and turn.terms.is_one_shot and turn.run.trigger != "manual":
        return Defer(now + HOUR, BRAKE, text)
    return Skip(BRAKE, text)
