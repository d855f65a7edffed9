"""Changing budgets: limits set by a person, and agents that were stopped."""

from wakeful.core.errors import Invalid, refuse
from wakeful.core.fields import shown
from wakeful.core.kinds import DOLLARS_MAX
from wakeful.core.money.budgets import AGENT, EVERYTHING, Limit, Period
from wakeful.core.money.prices import nano
from wakeful.core.refusals import NotFound
from wakeful.core.run.effects import Recovered
from wakeful.core.time.instants import Instant
from wakeful.features.money.budget_rows import Brakes, SetLimit, SetLimits
from wakeful.features.money.terms import MoneyTerms
from wakeful.features.money.unpriced import ALLOW, Allowed, refused, unpriced_agents
from wakeful.ports.store import Tx


def set_limit(
    tx: Tx,
    terms: MoneyTerms,
    period: object,
    limit: object,
    agent: object,
    *,
    now: Instant,
    unpriced: object = None,
) -> None:
    """Set a limit in dollars, in place of the one in the settings; None removes it again. `unpriced`: "allow" sets it
    although it cannot apply to some of the agents; by default the settings decide."""
    if period not in ("day", "month"):
        refuse("period", f"{shown(period)} is not a period; write day or month")
    known: Period = "day" if period == "day" else "month"
    if agent is not None and not isinstance(agent, str):
        refuse("agent", f"{shown(agent)} is not a string; write the name of an agent")
    if agent is not None and agent not in terms.agents and terms.agents:
        refuse("agent", f"there is no agent {shown(agent)}; name one of {', '.join(sorted(terms.agents))}")
    if unpriced not in (None, "refuse", ALLOW):
        refuse("unpriced", f"{shown(unpriced)} is not known; write refuse or allow")
    scope = EVERYTHING if agent is None else f"{AGENT}{agent}"
    if limit is None:
        if not tx[SetLimits].remove_limit(scope, "usd", known):
            raise NotFound(f"no limit was set for {scope} per {known}; limits in wakeful.toml are changed there")
        return
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit <= DOLLARS_MAX:
        refuse("limit", f"{shown(limit)} is not an amount; write US dollars above 0, like 5.00")
    row = SetLimit(scope, "usd", known, nano(float(limit)), now, str(unpriced or terms.unpriced))
    if row.unpriced != ALLOW:
        allowed = Allowed(Limit(*row[:4]), None, is_allowed=False)
        found = [one.agent for one in unpriced_agents(tx, terms, [allowed], now=now)]
        if found:
            raise Invalid(*refused(terms, found, "agent" if agent is not None else "limit"))
    tx[SetLimits].put(row)


def release(tx: Tx, agent: str) -> Recovered:
    """Let an agent continue that was stopped because of its cost."""
    if not tx[Brakes].remove(agent):
        raise NotFound(f"agent '{agent}' is not stopped; `wakeful budget` lists those that are")
    return Recovered((f"brake:{agent}", f"expensive:{agent}"))
