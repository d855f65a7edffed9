"""Proposals as people see them before and after their decision."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.refusals import NotFound
from wakeful.core.returned import BESIDE, At, Named, kind, returned
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import decode_definition, definition_to_json
from wakeful.core.self_scheduling.proposals import Lineage, Proposal, ProposalStatus
from wakeful.core.time.instants import DAY, Instant
from wakeful.core.time.timing import next_n, tally
from wakeful.core.time.timing_words import describe
from wakeful.features.schedules import queries
from wakeful.features.schedules.approval_texts import Change, changes_of
from wakeful.features.schedules.approvals import Decided, base_of
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.features.schedules.rules import Terms
from wakeful.ports.store import Tx

TIMES_SHOWN: Final = 5
ESTIMATED: Final = 30 * DAY
Wish: TypeAlias = Literal["create", "edit", "run"]
_DEFINITION: Final = kind({"type": "object", "additionalProperties": True}, definition_to_json)


@dataclass(frozen=True, slots=True)
class ProposalView:
    """Something an agent proposed."""

    proposal_id: Annotated[str, Named("id")]
    owner: Annotated[str, "the agent"]
    slug: str
    change: Annotated[Wish, "run: one run of the schedule as it is"]
    definition: Annotated[Definition, _DEFINITION]
    changes: Annotated[list[Change], "what differs from now, or from the defaults"]
    understood: Annotated[str, "when it would run, in words"]
    note: str | None
    next_times: Annotated[list[At], "its next five times if it were approved now", Named("next")]
    estimate: Annotated[float | None, "expected cost of 30 days in USD; null: unknown"]
    lineage: Lineage
    status: ProposalStatus
    asked_at: At
    expires_at: At


@dataclass(frozen=True, slots=True)
class Proposals:
    """Proposals that wait for a person."""

    proposals: Annotated[list[ProposalView], Named("approvals")]


class DecidedView(NamedTuple):
    """A proposal after the decision."""

    proposal: Annotated[ProposalView, BESIDE]
    is_missed: Annotated[bool, "it was approved, but its only time had passed", Named("missed")]


PROPOSAL: Final = returned(ProposalView, name="Approval")
PROPOSALS: Final = returned(Proposals, name="Approvals")
DECIDED: Final = returned(DecidedView, name="Decided")


def waiting(tx: Tx, *, terms: Terms, now: Instant) -> Proposals:
    """The proposals that wait for a person, in slug order."""
    rows = tx[AgentProposals].pending(now=now)
    return Proposals(
        [
            view_of(row, base_of(tx, row), terms=terms, now=now, estimate=estimate_of(tx, row, terms=terms, now=now))
            for row in rows
        ]
    )


def view_decided(done: Decided, *, terms: Terms, now: Instant) -> DecidedView:
    """A decision as people see it."""
    return DecidedView(view_of(done.proposal, done.before, terms=terms, now=now, estimate=None), done.is_missed)


def view_of(
    proposal: Proposal, before: Definition | None, *, terms: Terms, now: Instant, estimate: float | None
) -> ProposalView:
    """A proposal, and what differs from the schedule that it would change."""
    definition = decode_definition(proposal.definition)
    return ProposalView(
        proposal_id=proposal.proposal_id,
        owner=proposal.owner,
        slug=proposal.slug,
        change="run" if proposal.kind == "run" else "create" if proposal.schedule_id is None else "edit",
        definition=definition,
        changes=changes_of(proposal, before),
        understood=describe(definition.timing),
        note=proposal.note,
        next_times=list(next_n(terms.starting(definition.timing, definition), now, TIMES_SHOWN)),
        estimate=estimate,
        lineage=proposal.lineage,
        status=proposal.status_at(now),
        asked_at=proposal.asked_at,
        expires_at=proposal.expires_at,
    )


def estimate_of(tx: Tx, proposal: Proposal, *, terms: Terms, now: Instant) -> float | None:
    """The estimated cost for 30 days: the planned runs, at the recorded mean of the schedule it changes or comes from.
    None if no cost is known."""
    slug = proposal.slug if proposal.schedule_id is not None else proposal.run_slug
    mean = None if slug is None else mean_cost(tx, slug, now=now)
    definition = decode_definition(proposal.definition)
    runs = tally(terms.starting(definition.timing, definition), now, now + ESTIMATED).count
    return None if mean is None else mean * runs


def mean_cost(tx: Tx, slug: str, *, now: Instant) -> float | None:
    """The mean cost of the runs of the last 30 days that reported one."""
    try:
        stats = queries.stats(tx, slug, since=max(0, now - ESTIMATED), now=now, terms=Terms())
    except NotFound:
        return None
    ran = sum(count for outcome, count in stats.counts.items() if outcome not in ("skipped", "missed"))
    return None if stats.cost is None or not ran else stats.cost / ran
