"""Schedules that a person removed or stopped: an agent gets them back only through a person, whatever `approval` says.

A removal is remembered as a rejected proposal, as is an agent's own removal of what a person had stopped. The two are
told apart by who decided: the first has to be approved again, the second is refused for a week."""

from typing import Final

from wakeful.core.schedule.cadence import Cadence
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import decode_definition
from wakeful.core.self_scheduling.proposals import Lineage, Ownership, Proposal, is_repeat
from wakeful.core.time.instants import DAY, Instant
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.features.schedules.proposing import add_proposal
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import Schedule, Tx

BY_AGENT: Final = "paused by its agent"
STOPPED: Final = "stopped"
"""In place of who decided: an agent deleted what a person had stopped."""
REMOVED: Final = "removed"
"""In place of who decided: a person removed it."""
KEPT_FOR: Final = 90 * DAY
"""How long decided proposals are kept, and removals with them."""


def remember_removal(tx: Tx, slug: str, *, now: Instant) -> None:
    """Remember that a person removed a schedule: an agent's unfinished one does not come back without a person."""
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    owner = None if schedule is None else tx[Ownerships].among([schedule.schedule_id]).get(schedule.schedule_id)
    if schedule is None or owner is None:
        return
    tx[Ownerships].lock_owner(owner.owner)
    if _cadence(tx, schedule).state != "done":
        _remember(tx, owner, schedule, REMOVED, now)


def remember_stop(tx: Tx, agent: str, schedule: Schedule, now: Instant) -> None:
    """Remember that an agent removed its own schedule. If a person had stopped it, it cannot be created again."""
    if is_stopped(_cadence(tx, schedule)):
        _remember(tx, tx[Ownerships].among([schedule.schedule_id])[schedule.schedule_id], schedule, STOPPED, now)


def is_stopped(cadence: Cadence) -> bool:
    """Whether someone other than its agent stopped the schedule."""
    return cadence.state not in ("active", "done") and cadence.state_reason != BY_AGENT


def needs_person(tx: Tx, agent: str, definition: Definition, others: list[Schedule], *, now: Instant) -> bool:
    """Whether a person removed this schedule or a similar one, or stopped a similar one among `others`."""
    for removal in _removals(tx, agent, now):
        if removal.slug == definition.slug or is_repeat(decode_definition(removal.definition), definition):
            return True
    return any(
        schedule.slug != definition.slug
        and is_repeat(decode_definition(schedule.definition), definition)
        and is_stopped(_cadence(tx, schedule))
        for schedule in others
    )


def forget_removals(tx: Tx, approved: Proposal, *, now: Instant) -> None:
    """A person approved this slug after all: forget that it was removed."""
    over = [row for row in _removals(tx, approved.owner, now) if row.slug == approved.slug]
    tx[AgentProposals].save_many([row._replace(status="replaced") for row in over])


def _removals(tx: Tx, agent: str, now: Instant) -> list[Proposal]:
    return [row for row in tx[AgentProposals].rejected(agent, since=now - KEPT_FOR) if row.decided_by == REMOVED]


def _remember(tx: Tx, owner: Ownership, schedule: Schedule, why: str, now: Instant) -> None:
    definition, lineage = decode_definition(schedule.definition), Lineage(None, None, 1)
    row = add_proposal(tx, owner.owner, lineage, schedule, definition, owner.kind, None, None, now)
    tx[AgentProposals].save_many([row._replace(status="rejected", decided_at=now, decided_by=why)])


def _cadence(tx: Tx, schedule: Schedule) -> Cadence:
    return tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id]
