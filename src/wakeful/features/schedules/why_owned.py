"""`why` for agents' schedules: who made the schedule, in which run, and what it waits for."""

import re
from dataclasses import replace
from typing import Any, Final, TypeVar

from wakeful.core.self_scheduling.proposals import Lineage, Proposal
from wakeful.core.time.instants import format_instant
from wakeful.features.schedules.views import LINEAGE
from wakeful.features.schedules.why import Why
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import Tx

_USED_UP: Final = re.compile(r"the \w+ budget of [^();]* is used up \(.*?\);")
_T = TypeVar("_T")


def without_figures(shown: _T) -> _T:
    """Text or JSON for an agent: how much others spent is left out."""
    value: Any = shown
    if isinstance(value, str):
        value = _USED_UP.sub("a budget is used up;", value)
    elif isinstance(value, dict):
        value = {name: without_figures(item) for name, item in value.items()}
    elif isinstance(value, list):
        value = [without_figures(item) for item in value]
    done: _T = value
    return done


def origin(owner: str, lineage: Lineage) -> str:
    """`created by coder during run 812`."""
    return f"created by {owner}" + ("" if lineage.run_id is None else f" during run {lineage.run_id}")


def why_waits(proposal: Proposal) -> Why:
    """Why a proposal does not run."""
    asked, ends = format_instant(proposal.asked_at), format_instant(proposal.expires_at)
    sentence = (
        f"{proposal.slug} does not run: it was {origin(proposal.owner, proposal.lineage)} at {asked} and waits for a "
        f"person to approve it, until {ends} (wakeful approvals approve {proposal.proposal_id})"
    )
    facts = {
        "cause": "approval",
        "slug": proposal.slug,
        "owner": proposal.owner,
        "lineage": LINEAGE.write(proposal.lineage),
        "proposal": proposal.proposal_id,
    }
    return Why(sentence, facts)


def with_origin(tx: Tx, slug: str, explanation: Why) -> Why:
    """The explanation, with who made the schedule if an agent did."""
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    known = None if schedule is None else tx[Ownerships].among([schedule.schedule_id]).get(schedule.schedule_id)
    if known is None:
        return explanation
    facts = {**explanation.facts, "owner": known.owner, "lineage": LINEAGE.write(known.lineage)}
    return replace(explanation, sentence=f"{explanation.sentence} ({origin(known.owner, known.lineage)})", facts=facts)
