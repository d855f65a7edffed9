"""Agents whose cost cannot be known: they have no price and report no cost. Limits in dollars do not apply to them.

A function, or a program whose output may contain a cost, is given the benefit of the doubt until three of its turns
have finished without one. As soon as it reports a cost, limits apply to it again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from wakeful.core.errors import FieldError
from wakeful.core.money.budgets import AGENT, ESTIMATED_FROM, EVERYTHING, Limit, Window
from wakeful.core.returned import INTERNAL, returned
from wakeful.core.time.instants import DAY, SECOND, Duration, Instant
from wakeful.features.money.terms import MoneyTerms
from wakeful.ports.charges import Charges
from wakeful.ports.names import names_of
from wakeful.ports.store import Tx

NAMED_MAX: Final = 10
NAMED_WITHIN: Final[Duration] = 7 * DAY
ALLOW: Final = "allow"
SILENT_MIN: Final = 3
"""After this many turns without a cost, and none with one, an agent that may report its cost is taken at its silence.
One report can be lost."""


def is_priced(tx: Tx, terms: MoneyTerms, agent: str, model: str | None = None) -> bool:
    """Whether the cost of an agent's turns is known, or may still become known."""
    if terms.has_prices(agent, model):
        return True
    reported = tx[Charges].reported(agent, limit=ESTIMATED_FROM)
    return any(reported) or (len(reported) < SILENT_MIN and terms.may_report(agent))


class Allowed(NamedTuple):
    """A limit in dollars, and whether a person allowed that it does not hold for agents of unknown cost."""

    limit: Limit
    agent: str | None  # the agent of the schedule that it belongs to
    is_allowed: bool

    def concerns(self, agent: str) -> bool:
        scope = self.limit.scope
        return scope == EVERYTHING or scope == f"{AGENT}{agent}" or self.agent == agent


@dataclass(frozen=True, slots=True)
class Unpriced:
    """An agent whose cost cannot be known, so that limits in dollars do not apply to it."""

    agent: str
    slugs: Annotated[tuple[str, ...], "whose runs of the last days have an unknown cost; at most 10"]
    is_allowed: Annotated[bool, INTERNAL]  # by the person who set the limit
    cure: Annotated[str, "what to write so that its cost is known"]

    @property
    def sentence(self) -> str:
        named = f" ({', '.join(self.slugs)})" if self.slugs else ""
        return (
            f"limits in dollars do not apply to agent {self.agent}{named}: it reports no cost and its model has no "
            "price"
        )


UNPRICED: Final = returned(
    Unpriced,
    name="UnpricedAgent",
    says="An agent whose cost cannot be known: it has no price, reports no cost, and has no `cost_per_run`.",
    properties={"sentence": str},
)


def unpriced_agents(tx: Tx, terms: MoneyTerms, limits: Sequence[Allowed], *, now: Instant) -> list[Unpriced]:
    """The agents under these limits to which they cannot apply."""
    dollars = [allowed for allowed in limits if allowed.limit.unit == "usd"]
    if not dollars:
        return []
    unknown = tx[Charges].unknown("usd", Window(now - NAMED_WITHIN, now + SECOND))
    owners: dict[str, list[int]] = {}
    for row in unknown:
        if row.agent is not None:
            owners.setdefault(row.agent, []).append(row.owner_id)
    found: list[Unpriced] = []
    for agent in sorted({*terms.agents, *owners}):
        applying = [allowed.is_allowed for allowed in dollars if allowed.concerns(agent)]
        if applying and not is_priced(tx, terms, agent):
            owner_ids = owners.get(agent, [])[:NAMED_MAX]
            slugs = tuple(sorted(names_of(tx, owner_ids).values())) if owner_ids else ()
            found.append(Unpriced(agent, slugs, all(applying), price_cure(terms, agent)))
    return found


def price_cure(terms: MoneyTerms, agent: str, model: object = None) -> str:
    """What to write so that an agent's cost is known."""
    known = terms.agents.get(agent)
    if known is None:
        return f'return what a turn cost as usage, or set Budgets(cost_per_run={{"{agent}": 0.05}}); 0 if it is free'
    lines = f"write cost_per_run = 0.05 (US dollars; 0 if it is free) under [agents.{agent}]"
    named = model or known.model
    return f'{lines}, or [prices."{named}"] with input and output' if named else lines


def refused(terms: MoneyTerms, agents: Iterable[str], field: str) -> list[FieldError]:
    """One error per agent to which a limit in dollars cannot apply."""
    return [
        FieldError(
            field,
            f"agent '{agent}' does not report what its turns cost, and its model has no price; "
            f'{price_cure(terms, agent)}; or set unpriced to "allow": the limit then does not apply to it',
        )
        for agent in agents
    ]
