"""Booking: an attempt ended. Its reservation is freed, its cost is booked, and people are told what matters."""

from collections.abc import Sequence
from statistics import median
from typing import Final

from wakeful.core.money.budgets import AGENT, BUDGET, EVERYTHING, SCHEDULE, Budget, Limit
from wakeful.core.money.charges import Charge, opened, settled
from wakeful.core.money.prices import nano, with_cost_per_run
from wakeful.core.money.schedule_budget import limits_of
from wakeful.core.run.effects import Alert, Effect, Recovered
from wakeful.core.run.results import Busy, Done, Dropped, Ending, Failed, Lost, NotBegun, Throttled
from wakeful.core.run.runs import Run, rung_index
from wakeful.core.run.usage import usage_of
from wakeful.core.time.instants import DAY, HOUR, Duration, Instant, format_instant
from wakeful.features.money.budget_rows import Brake, Brakes, BudgetPeriods, Reservations
from wakeful.features.money.estimates import assumed_in, with_assumption
from wakeful.features.money.spending import SpendingSums
from wakeful.features.money.terms import MoneyTerms, RunTerms, applying, effective
from wakeful.features.money.words import amount_text, budget_name, spent_text
from wakeful.ports.charges import Charges
from wakeful.ports.handlers import Booked
from wakeful.ports.store import Tx

EXPENSIVE: Final = 5
"""People are alerted when an agent's turns cost this many times its median."""

BRAKE_AT: Final = 10
"""The agent is stopped at this many times its median, if the settings say so."""

COMPARED: Final[Duration] = HOUR
BASELINE: Final[Duration] = 30 * DAY
BASELINE_MIN: Final = 10  # turns; with fewer there is no usual cost yet
BASELINE_MAX: Final = 500
TURNS_MIN: Final = 2  # one expensive turn is not a trend


class Booking:
    """Books the attempts of one settlement."""

    def __init__(self, tx: Tx, terms: MoneyTerms, zone: str, now: Instant) -> None:
        self._tx = tx
        self._zone = zone
        self._terms = terms
        self._now = now
        self._limits = effective(tx, terms)

    def book(self, ended: Sequence[tuple[Booked, RunTerms | None]]) -> list[Effect]:
        charges = self._tx[Charges].of_runs(sorted({booked.run.run_id for booked, _ in ended}))
        known = {(charge.run_id, charge.attempt): charge for charge in charges}
        spending = SpendingSums(self._tx, [booked.run.schedule_id for booked, _ in ended], self._zone, self._now)
        effects: list[Effect] = []
        for booked, run_terms in sorted(ended, key=lambda pair: pair[0].run.run_id):
            limits = self._limits_of(booked.run, booked.settled.agent, run_terms)
            if isinstance(booked.ending, Dropped) and booked.ending.reason == BUDGET:
                effects += self._told_of_skip(booked.ending, limits)
                continue
            charge = known.get((booked.run.run_id, booked.run.attempt))
            after = self._book(booked, charge, run_terms, spending)
            if after is None:
                continue
            effects += self._after(booked.run, after, limits, run_terms)
        spending.save()
        return effects

    def _book(
        self, booked: Booked, charge: Charge | None, run_terms: RunTerms | None, spending: SpendingSums
    ) -> Charge | None:
        """Free and book; None if there is nothing to book."""
        run, usage = booked.run, usage_of(getattr(booked.ending, "usage", None))
        if charge is None:
            if usage is None:
                return None
            charge = opened(run.run_id, run.attempt, run.schedule_id, booked.settled.agent, run.claimed_at or self._now)
        elif charge.settled_at is not None and usage is None:
            return None
        if usage is None and never_asked(run, booked.ending):
            self._free(charge)
            return None
        usage = with_cost_per_run(usage, self._terms.cost_per_run.get(charge.agent or ""))
        after = settled(charge, usage, self._now)
        if charge.settled_at is None:
            if after.cost is None and isinstance(booked.ending, Done):
                after = after._replace(priced="silent")
            budget = None if run_terms is None else run_terms.budget
            after = with_assumption(self._tx, after, budget, now=self._now)
        self._move(charge, after)
        self._tx[Charges].put_many([after])
        spending.add(charge, after)
        return after

    def _free(self, charge: Charge) -> None:
        """The agent was not asked, so the attempt cost nothing."""
        held = self._held(charge)
        if held:
            rows = self._tx[BudgetPeriods].at(_scopes(charge), charge.at, also=sorted(held))
            self._tx[BudgetPeriods].save_many(
                [row._replace(reserved=row.reserved - held.get(row.budget_id, 0)) for row in rows]
            )
            self._tx[Reservations].release(charge.run_id, charge.attempt)
        self._tx[Charges].remove_attempt(charge.run_id, charge.attempt)

    def _held(self, charge: Charge) -> dict[int, int]:
        """What the attempt has reserved, by budget."""
        if not charge.held_cost and not charge.held_tokens:
            return {}  # the common case: there is no budget
        return {row.budget_id: row.amount for row in self._tx[Reservations].of_attempt(charge.run_id, charge.attempt)}

    def _move(self, before: Charge, after: Charge) -> None:
        """Update the totals of all budgets that the attempt falls under."""
        held = self._held(before)
        rows = self._tx[BudgetPeriods].at(_scopes(before), before.at, also=sorted(held))
        if not rows:
            return
        is_open = before.settled_at is None
        moved: list[Budget] = []
        for row in rows:
            freed = held.get(row.budget_id, 0) if is_open else 0
            was = 0 if is_open else _counted(before, row)
            is_counted = row.starts_at <= before.at < row.ends_at
            spent = row.spent + (_counted(after, row) - was if is_counted else 0)
            moved.append(row._replace(spent=spent, reserved=row.reserved - freed))
        self._tx[BudgetPeriods].save_many(moved)
        if held:
            self._tx[Reservations].release(before.run_id, before.attempt)

    def _limits_of(self, run: Run, agent: str | None, run_terms: RunTerms | None) -> list[Limit]:
        limits = applying(self._limits, agent)
        if run_terms is not None and run_terms.budget is not None:
            limits += limits_of(run_terms.budget, run.schedule_id)
        return limits

    def _told_of_skip(self, dropped: Dropped, limits: Sequence[Limit]) -> list[Effect]:
        """Report that a run did not fit: to people, the budget is used up."""
        text = dropped.error or "a budget is used up"
        named = [limit for limit in limits if budget_name(limit) in text or limit.scope.startswith(SCHEDULE)]
        return [Alert(reached_incident(limit), text) for limit in named[:1]]

    def _after(self, run: Run, charge: Charge, limits: Sequence[Limit], run_terms: RunTerms | None) -> list[Effect]:
        effects: list[Effect] = []
        slug = None if run_terms is None else run_terms.slug
        if limits:
            rows = {
                (row.scope, row.unit, row.period): row for row in self._tx[BudgetPeriods].at(_scopes(charge), charge.at)
            }
            for limit in limits:
                row = rows.get((limit.scope, limit.unit, limit.period))
                if row is not None and row.ends_at > self._now:
                    effects += self._told_of_sums(limit, row, slug)
        if run_terms is not None and run_terms.budget is not None:
            effects += self._told_of_run(run, run_terms)
        if charge.agent is not None and charge.cost and self._terms.is_rise_watched:
            effects += self._told_of_rise(charge.agent)
        return effects

    def _told_of_sums(self, limit: Limit, row: Budget, slug: str | None) -> list[Effect]:
        if row.spent < self._terms.warn_at * limit.amount:
            return [Recovered((reached_incident(limit), warning_incident(limit)))]
        spent = spent_text(row.spent, assumed_in(self._tx, row), limit)
        name, frees = budget_name(limit, slug), format_instant(row.ends_at)
        if row.spent >= limit.amount:
            return [Alert(reached_incident(limit), f"{name} is used up: {spent}; it resets at {frees}")]
        return [Alert(warning_incident(limit), f"{name} is nearly used up: {spent}; it resets at {frees}")]

    def _told_of_run(self, run: Run, run_terms: RunTerms) -> list[Effect]:
        """A run that cost more than `perRun` allows is reported once it has happened."""
        budget = run_terms.budget
        if budget is None or (budget.per_run is None and budget.tokens_per_run is None):
            return []
        attempts = self._tx[Charges].of_runs([run.run_id])
        cost, tokens = sum(attempt.cost or 0 for attempt in attempts), sum(attempt.tokens or 0 for attempt in attempts)
        name = f"over-budget:{run.schedule_id}"
        if budget.per_run is not None and cost > nano(budget.per_run):
            allowed = amount_text(nano(budget.per_run), "usd")
            return [Alert(name, f"run {run.run_id} cost {amount_text(cost, 'usd')}; budget.perRun is {allowed}")]
        if budget.tokens_per_run is not None and tokens > budget.tokens_per_run:
            allowed = amount_text(budget.tokens_per_run, "tokens")
            return [Alert(name, f"run {run.run_id} used {tokens:,} tokens; budget.tokensPerRun is {allowed}")]
        return [Recovered((name,))]

    def _told_of_rise(self, agent: str) -> list[Effect]:
        """Compare the last hour with what is usual for this agent."""
        since = self._now - COMPARED
        recent = [
            cost for _, cost in self._tx[Charges].costs_of(agent, since=since, until=self._now + 1, limit=BASELINE_MAX)
        ]
        if len(recent) < TURNS_MIN:
            return []
        usual = self._tx[Charges].costs_of(agent, since=since - BASELINE, until=since, limit=BASELINE_MAX)
        if len(usual) < BASELINE_MIN:
            return []
        typical = median(cost for _, cost in usual)
        name = f"expensive:{agent}"
        if typical <= 0 or min(recent) <= EXPENSIVE * typical:
            return [Recovered((name,))] if typical > 0 else []
        times = round(min(recent) / typical, 1)
        text = (
            f"agent {agent}: each of its {len(recent)} turns in the last hour cost at least {times:g} times the usual "
            f"{amount_text(round(typical), 'usd')}"
        )
        if not self._terms.brake or min(recent) <= BRAKE_AT * typical:
            return [Alert(name, text)]
        if agent not in self._tx[Brakes].all():
            self._tx[Brakes].put(Brake(agent, self._now, text.partition(": ")[2]))
        stopped = f"{text}. It is stopped; to release it: wakeful budget release {agent}"
        return [Alert(f"brake:{agent}", stopped)]


def reached_incident(limit: Limit) -> str:
    """The name of the incident for a used-up budget."""
    return f"budget:{limit.scope}/{limit.unit}/{limit.period}"


def warning_incident(limit: Limit) -> str:
    """The name of the incident for a nearly used-up budget."""
    return f"budget-warning:{limit.scope}/{limit.unit}/{limit.period}"


def _scopes(charge: Charge) -> list[str]:
    agent = [] if charge.agent is None else [f"{AGENT}{charge.agent}"]
    return [EVERYTHING, *agent, f"{SCHEDULE}{charge.owner_id}"]


def _counted(charge: Charge, row: Budget) -> int:
    """The amount a budget counts: the cost, or what is assumed if the cost is unknown."""
    return charge.charged_cost if row.unit == "usd" else charge.charged_tokens


def never_asked(run: Run, ending: Ending) -> bool:
    """Whether it is certain that no model was asked: the target refused, or nothing was sent."""
    if isinstance(ending, Busy | NotBegun | Throttled) or (isinstance(ending, Failed) and ending.is_refused):
        return True
    if isinstance(ending, Lost) and not ending.is_reached:
        return False  # the agent has no record of it, but its model may have been asked
    rung = ending.rung if isinstance(ending, Failed) and ending.rung is not None else run.rung
    return rung_index(rung) <= rung_index("claimed")
