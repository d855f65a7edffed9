"""Changing budgets: limits set by a person, and agents that were stopped."""

from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.fields import shown
from wakeful.core.kinds import DOLLARS_MAX
from wakeful.core.money.budgets import AGENT, EVERYTHING, Period
from wakeful.core.money.prices import nano
from wakeful.core.refusals import NotFound
from wakeful.core.run.effects import Recovered
from wakeful.core.time.instants import Instant
from wakeful.features.money.feature import no_prices_text
from wakeful.features.money.terms import MoneyTerms
from wakeful.ports.money import SetLimit
from wakeful.ports.store import Tx


def set_limit(tx: Tx, terms: MoneyTerms, period: object, limit: object, agent: object, *, now: Instant) -> None:
    """Set a limit in dollars, in place of the one in the settings; None removes it again."""
    if period not in ("day", "month"):
        refuse("period", f"{shown(period)} is not a period; write day or month")
    known: Period = "day" if period == "day" else "month"
    if agent is not None and not isinstance(agent, str):
        refuse("agent", f"{shown(agent)} is not a string; write the name of an agent")
    if agent is not None and agent not in terms.agents and terms.agents:
        refuse("agent", f"there is no agent {shown(agent)}; name one of {', '.join(sorted(terms.agents))}")
    scope = EVERYTHING if agent is None else f"{AGENT}{agent}"
    if limit is None:
        if not tx.budgets.remove_limit(scope, "usd", known):
            raise NotFound(f"no limit was set for {scope} per {known}; limits in wakeful.toml are changed there")
        return
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit <= DOLLARS_MAX:
        refuse("limit", f"{shown(limit)} is not an amount; write US dollars above 0, like 5.00")
    concerned = terms.agents if agent is None else [agent]
    for name in concerned:
        if not terms.has_prices(name):
            raise Invalid(FieldError("agent" if agent is not None else "limit", no_prices_text(terms, name, None)))
    tx.budgets.set_limit(SetLimit(scope, "usd", known, nano(float(limit)), now))


def release(tx: Tx, agent: str) -> Recovered:
    """Let an agent continue that was stopped because of its cost."""
    if not tx.budgets.remove_brake(agent):
        raise NotFound(f"agent '{agent}' is not stopped; `wakeful budget` lists those that are")
    return Recovered((f"brake:{agent}", f"expensive:{agent}"))
