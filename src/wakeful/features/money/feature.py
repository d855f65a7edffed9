"""The money feature: what it plugs in, and the operations for REST, the command line and Python."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from wakeful.core.errors import FieldError
from wakeful.core.money.budgets import AGENT, EVERYTHING
from wakeful.core.money.prices import priced_by, with_cost_per_run
from wakeful.core.money.schedule_budget import needs_prices
from wakeful.core.run.effects import Effect
from wakeful.core.run.results import Done, Ending, Failed, Throttled, Unconfirmed
from wakeful.core.run.runs import Run
from wakeful.core.run.usage import usage_of
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.gates import Defer, Skip
from wakeful.core.time.instants import Instant
from wakeful.features.money.booking import Booking, never_asked
from wakeful.features.money.budget_rows import BudgetPeriods
from wakeful.features.money.reserving import Asked, Reserving
from wakeful.features.money.terms import MoneyTerms, TermsOf, effective, model_of
from wakeful.features.money.unpriced import is_priced, price_cure
from wakeful.features.money.words import budget_name
from wakeful.ports.charges import Charges
from wakeful.ports.handlers import Booked, FeatureHooks, Job
from wakeful.ports.store import Tx


class Money:
    """One process's prices, budgets and accounts."""

    def __init__(
        self,
        terms: MoneyTerms | None = None,
        *,
        read: Callable[[Any], MoneyTerms] | None = None,
    ) -> None:
        self.terms = terms or MoneyTerms()
        self._read = read  # reads the terms from changed settings
        self._terms_of: TermsOf = lambda _tx, _run: None
        self._zone: Callable[[], str] = lambda: "UTC"
        self._on_change: Callable[[], None] = lambda: None

    @property
    def zone(self) -> str:
        """The time zone of days and months."""
        return self._zone()

    def plug(self, *, terms_of: TermsOf, zone: Callable[[], str], on_change: Callable[[], None]) -> FeatureHooks:
        """The hooks for the kernel. `zone` is the time zone of days and months; `on_change` is called after the terms
        have changed."""
        self._terms_of, self._zone, self._on_change = terms_of, zone, on_change
        return FeatureHooks(
            accounts=self,
            checks=[self._check],
            on_settings=[] if self._read is None else [self._changed],
        )

    # --- the accounts ------------------------------------------------------------------------------------------------

    def priced(self, tx: Tx, ended: Sequence[tuple[Run, Ending]]) -> list[tuple[Run, Ending]]:
        rates = self.terms.cost_per_run
        agents = tx[Charges].agents_of([run.run_id for run, _ in ended]) if rates and ended else {}
        return [
            (run, self._priced(run, ending, rates.get(agents.get((run.run_id, run.attempt), ""))))
            for run, ending in ended
        ]

    def _priced(self, run: Run, ending: Ending, per_run: int | None) -> Ending:
        if not isinstance(ending, Done | Failed | Throttled | Unconfirmed):
            return ending
        usage = priced_by(usage_of(ending.usage), self.terms.prices)
        if usage is not None or not never_asked(run, ending):
            usage = with_cost_per_run(usage, per_run)
        return ending if usage == ending.usage else replace(ending, usage=usage)

    def reserve(
        self, tx: Tx, claims: Sequence[tuple[Run, Job | Ending]], *, now: Instant
    ) -> dict[int, Job | Defer | Skip]:
        turns = [
            (run, agent, job.spec)
            for run, job in claims
            if isinstance(job, Job) and (agent := getattr(job.spec, "agent", None)) is not None
        ]
        if not turns:
            return {}
        asked = [Asked(run, agent, self._terms_of(tx, run), model_of(spec)) for run, agent, spec in turns]
        return {**Reserving(tx, self.terms, self._zone(), now).reserve(asked)}

    def book(self, tx: Tx, ended: Sequence[Booked], *, now: Instant) -> tuple[Effect, ...]:
        own = [
            (booked, self._terms_of(tx, booked.run))
            for booked in ended
            if booked.settled.agent is not None or getattr(booked.ending, "usage", None) is not None
        ]
        return tuple(Booking(tx, self.terms, self._zone(), now).book(own)) if own else ()

    # --- definitions and settings ------------------------------------------------------------------------------------

    def _check(self, definition: Definition) -> Sequence[FieldError]:
        """A budget in dollars needs an agent whose cost will be known."""
        budget, action = definition.budget, definition.action
        if budget is None or not isinstance(action, Prompt):
            return ()
        field = needs_prices(budget)
        model, terms = model_of(action), self.terms
        if field is None or terms.has_prices(action.agent, model) or terms.may_report(action.agent):
            return ()
        cure = f"{price_cure(terms, action.agent, model)}; or limit tokens"
        text = f"agent '{action.agent}' does not report what its turns cost, and its model has no price; {cure}"
        return [FieldError(f"budget.{field}", text)]

    def _changed(self, _old: Any, new: Any) -> None:
        if self._read is not None:
            self.terms = self._read(new)
            self._on_change()

    def used_up(self, tx: Tx, agent: str, now: Instant) -> str | None:
        """A note for a person whose message is answered although a budget is used up."""
        if not is_priced(tx, self.terms, agent):
            return None
        rows = {(row.scope, row.unit, row.period): row for row in tx[BudgetPeriods].current(now)}
        for limit in effective(tx, self.terms):
            row = rows.get((limit.scope, limit.unit, limit.period))
            if row is None or limit.scope not in (EVERYTHING, f"{AGENT}{agent}"):
                continue
            if row.spent >= limit.amount or row.spent + row.reserved > limit.amount:
                return f"({budget_name(limit)} is used up; messages are still answered)"
        return None
