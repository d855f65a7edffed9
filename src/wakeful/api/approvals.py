"""Agents' proposals, and people's decisions on them. Agents may not ask for them."""

import logging
from typing import Annotated

from wakeful.api.operation import Noun, Returns, perform, read
from wakeful.api.parameters import Param
from wakeful.core.errors import Invalid, refuse
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.self_scheduling.proposals import Decision
from wakeful.core.time.instants import Instant
from wakeful.features.schedules import approvals
from wakeful.features.schedules.approval_views import DECIDED, PROPOSALS, DecidedView, Proposals, view_decided, waiting
from wakeful.ports.store import Tx

log = logging.getLogger("wakeful.approvals")

ProposalPath = Annotated[
    str, Param(name="id", schema={"type": "string", "examples": ["p1f3a9c2e"], "pattern": "^p[0-9a-f]{8}$"})
]


class Approvals(Noun):
    """What agents proposed."""

    @read(
        "GET /api/approvals",
        "List what agents proposed",
        Returns(PROPOSALS, "What waits for a person, by slug."),
        id="list_approvals",
    )
    def proposals(self, tx: Tx, now: Instant) -> Proposals:
        return waiting(tx, terms=self._app._terms, now=now)

    @perform(
        "POST /api/approvals/{id}",
        "Approve or reject a proposal",
        Returns(DECIDED, "The proposal as decided."),
        refuses=(404, 409),
        least="admin",
        id="decide",
        body_name="Decision",
        body_says="A person's decision.",
    )
    async def decide(
        self,
        proposal_id: ProposalPath,
        decision: Annotated[Decision, Param(unchecked=True, missing="write approve or reject")],
    ) -> DecidedView:
        """A decision is final. 409 if the proposal was decided, replaced, or has expired."""
        if decision not in ("approve", "reject"):
            refuse("decision", f"{decision!r} is not one of approve, reject")
        by = self._actor.name or "unknown"
        conditions, hooks, terms = self._app._open.conditions, self._app._open.hooks, self._app._terms

        def write(tx: Tx, now: Instant) -> DecidedView:
            proposal = approvals.proposal_by_id(tx, proposal_id)
            done = approvals.decide(tx, proposal, decision, by=by, conditions=conditions, hooks=hooks, now=now)
            return view_decided(done, terms=terms, now=now)

        try:
            decided = await self._app._command(write)
        except (Conflict, NotFound, Invalid) as refused:
            log.warning("%s of %s by %s refused: %s", decision, proposal_id[:40], by, refused)
            raise
        log.info("%s %s by %s: %s", decision, proposal_id, by, decided.proposal.slug)
        return decided
