"""The money feature: what it plugs in, and the operations for REST, the command line and Python."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from wakeful.core.errors import FieldError
from wakeful.core.money.budgets import AGENT, EVERYTHING
from wakeful.core.money.prices import priced_by
from wakeful.core.money.schedule_budget import needs_prices
from wakeful.core.run.effects import Effect
from wakeful.core.run.results import Done, Ending, Failed, Throttled, Unconfirmed
from wakeful.core.run.runs import Run
from wakeful.core.run.usage import usage_of
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.gates import Defer, Skip
from wakeful.core.time.instants import Instant
from wakeful.features.money.booking import Booking
from wakeful.features.money.reserving import Asked, Reserving
from wakeful.features.money.terms import MoneyTerms, TermsOf, effective
from wakeful.features.money.words import budget_name
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
        self.on_change: Callable[[], None] = lambda: None  # called after the terms have changed

    @property
    def zone(self) -> str:
        """The time zone of days and months."""
        return self._zone()

    def plug(self, *, terms_of: TermsOf, zone: Callable[[], str]) -> FeatureHooks:
        """The hooks for the kernel. `zone` is the time zone of days and months."""
        self._terms_of, self._zone = terms_of, zone
        return FeatureHooks(
            accounts=self,
            checks=[self._check],
            on_settings=[] if self._read is None else [self._changed],
        )

    # --- the accounts ------------------------------------------------------------------------------------------------

    def priced(self, ending: Ending) -> Ending:
        if not isinstance(ending, Done | Failed | Throttled | Unconfirmed) or ending.usage is None:
            return ending
        usage = priced_by(usage_of(ending.usage), self.terms.prices)
        return ending if usage == ending.usage else replace(ending, usage=usage)

    def reserve(
        self, tx: Tx, claims: Sequence[tuple[Run, Job | Ending]], *, now: Instant
    ) -> dict[int, Job | Defer | Skip]:
        turns = [
            (run, agent)
            for run, job in claims
            if isinstance(job, Job) and (agent := getattr(job.spec, "agent", None)) is not None
        ]
        if not turns:
            return {}
        asked = [Asked(run, agent, self._terms_of(tx, run)) for run, agent in turns]
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
        model = action.session_config.get("model")
        if field is None or self.terms.has_prices(action.agent, model if isinstance(model, str) else None):
            return ()
        return [FieldError(f"budget.{field}", no_prices_text(self.terms, action.agent, model))]

    def _changed(self, _old: Any, new: Any) -> None:
        if self._read is not None:
            self.terms = self._read(new)
            self.on_change()

    def used_up(self, tx: Tx, agent: str, now: Instant) -> str | None:
        """A note for a person whose message is answered although a budget is used up."""
        rows = {(row.scope, row.unit, row.period): row for row in tx.budgets.current(now)}
        for limit in effective(tx, self.terms):
            row = rows.get((limit.scope, limit.unit, limit.period))
            if row is None or limit.scope not in (EVERYTHING, f"{AGENT}{agent}"):
                continue
            if row.spent >= limit.amount or row.spent + row.reserved > limit.amount:
                return f"({budget_name(limit)} is used up; messages are still answered)"
        return None


def no_prices_text(terms: MoneyTerms, agent: str, model: object) -> str:
    """Why a budget in dollars cannot hold for an agent, and the cure."""
    known = terms.agents.get(agent)
    named = model or (None if known is None else known.model)
    if named is None:
        cure = f"set model of [agents.{agent}], and its price under [prices]"
    else:
        cure = f'add [prices."{named}"] with input and output in US dollars per million tokens'
    return f"agent '{agent}' does not report what its turns cost, and its model has no price; {cure}, or limit tokens"
