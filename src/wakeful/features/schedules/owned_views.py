"""What an agent sees of what it owns."""

from wakeful.core.time.instants import Instant
from wakeful.features.schedules import owned, queries
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.features.schedules.queries import Choice, Page
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.views import ScheduleView, view_proposal
from wakeful.ports.store import Tx


def owned_view(tx: Tx, agent: str, slug: str, *, now: Instant, terms: Terms) -> ScheduleView:
    """One of an agent's schedules or proposals."""
    if owned.find(tx, agent, slug) is not None:
        return queries.get(tx, slug, now=now, terms=terms)
    proposal = owned.pending_of(tx, agent, slug, now)
    if proposal is None:
        raise owned.missing(slug)
    return view_proposal(proposal)


def owned_page(tx: Tx, agent: str, choice: Choice, *, now: Instant, terms: Terms) -> Page:
    """What an agent owns: schedules, including finished ones, and proposals, including changes to schedules."""
    if choice.owner not in (None, agent):
        return Page([], None)
    views = [queries.get(tx, row.slug, now=now, terms=terms) for row in owned.owned(tx, agent, is_live=False)]
    views += [view_proposal(row) for row in tx[AgentProposals].pending(now=now, owner=agent)]
    wanted = (choice.contains or "").casefold()
    shown = [
        view
        for view in sorted(views, key=lambda view: (view.slug, view.approval == "pending"))
        if wanted in f"{view.slug} {view.stored}".casefold()
        and choice.status in (None, view.status)
        and choice.is_finished in (None, view.is_finished)
    ]
    return Page(shown, None)
