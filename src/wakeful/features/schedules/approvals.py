"""People's decisions on agents' proposals.

A decision is about one proposal, which never changes, so it is about exactly what was shown. Approving writes the
definition as any other edit; planning starts then. A single time that passed meanwhile becomes `missed(approval)`.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from wakeful.core.errors import Invalid
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.effects import Deliver, Effect
from wakeful.core.schedule.cadence import Gap, Plan, begin
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import decode_definition, encode_definition
from wakeful.core.self_scheduling.proposals import Decision, Ownership, Proposal, code_digest
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Once, is_past, resolved
from wakeful.features.schedules import commands, owned
from wakeful.features.schedules.alarms import alarm_of, decided, record
from wakeful.features.schedules.approval_texts import request_text
from wakeful.features.schedules.checks import Conditions, check
from wakeful.features.schedules.compiled import compile_definition
from wakeful.features.schedules.owned_stops import forget_removals
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.features.schedules.rules import Terms
from wakeful.ports import event_data, events
from wakeful.ports.changes import Report
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import NewSchedule, Tx

MISSED: Final = "approval"


class WrongCode(NotFound):
    """No proposal waits for this code."""


class Decided(NamedTuple):
    """A decision, and what it led to."""

    proposal: Proposal
    is_missed: bool = False  # approved, but its only time had passed
    before: Definition | None = None  # the schedule that it changed


def asking(
    approvers: Sequence[str], apply: Callable[[Tx, Effect, Instant], bool], *, terms: Terms, now: Instant
) -> owned.AskPerson:
    """A function that sends a proposal with its code to each approver (`channel:to`), in the transaction that writes
    it."""

    def ask(tx: Tx, proposal: Proposal, code: str) -> None:
        text = request_text(proposal, base_of(tx, proposal), code, terms=terms, now=now)
        for approver in approvers:
            channel, _, to = approver.partition(":")
            apply(tx, Deliver(text, channel, to or None, slug=proposal.slug, is_note=True), now)

    return ask


def proposal_by_id(tx: Tx, proposal_id: str) -> Proposal:
    proposal = tx[AgentProposals].get(proposal_id)
    if proposal is None:
        raise NotFound(f"there is no proposal {proposal_id!r}; see wakeful approvals")
    return proposal


def proposal_by_code(tx: Tx, code: str, *, now: Instant) -> Proposal:
    """The proposal that was shown with this code; a code is used once."""
    for pending in tx[AgentProposals].pending(now=now):
        if pending.code_digest is not None and pending.code_digest == code_digest(code, pending):
            proposal = tx[AgentProposals].get(pending.proposal_id)
            if proposal is not None:
                return proposal
    raise WrongCode(
        "this code is not valid: it was used, has expired, or the proposal has changed; see wakeful approvals"
    )


def decide(
    tx: Tx,
    proposal: Proposal,
    decision: Decision,
    *,
    by: str,
    conditions: Conditions,
    hooks: EngineHooks,
    now: Instant,
) -> Decided:
    """Approve or reject a proposal."""
    status = proposal.status_at(now)
    if status != "pending":
        raise Conflict(f"proposal {proposal.proposal_id} was {status}; it cannot be decided again")
    tx[Ownerships].lock_owner(proposal.owner)
    is_missed, before = False, base_of(tx, proposal)
    if decision == "approve":
        is_missed = _apply(tx, proposal, conditions, hooks, now)
        forget_removals(tx, proposal, now=now)
    status = "approved" if decision == "approve" else "rejected"
    closed = proposal._replace(status=status, decided_at=now, decided_by=by, code_digest=None)
    tx[AgentProposals].save_many([closed])
    decided = event_data.Decided(closed.proposal_id, closed.owner, status, by)
    tx.report(Report(events.SCHEDULE_DECIDED, decided, slug=closed.slug))
    return Decided(closed, is_missed, before)


def _apply(tx: Tx, proposal: Proposal, conditions: Conditions, hooks: EngineHooks, now: Instant) -> bool:
    """Write the proposed definition; returns whether its only time has passed."""
    definition = decode_definition(proposal.definition)
    existing = tx.schedules.by_slugs([proposal.slug]).get(proposal.slug)
    if proposal.kind == "run" and existing is not None and existing.schedule_id == proposal.schedule_id:
        commands.force_once(tx, proposal.slug, now=now)
        return False
    if proposal.schedule_id is not None and (
        existing is None or existing.schedule_id != proposal.schedule_id or existing.version != proposal.base_version
    ):
        raise Conflict(
            f"{proposal.slug} has changed since this was proposed; reject it, so that it can be proposed again"
        )
    if proposal.schedule_id is None and existing is not None:
        raise Conflict(f"a schedule {proposal.slug} exists now; reject this proposal")
    checked = check(definition, conditions, now=now)
    if is_past(definition.timing, now):
        if existing is None:
            _write_missed(tx, proposal, checked.definition, now)
        return True
    (put,) = commands.put_many(tx, [checked], hooks=hooks, now=now)
    if isinstance(put, Invalid):
        raise put
    if put.is_created:
        tx[Ownerships].put(_ownership(proposal, put.schedule_id, now))
    elif tx[Ownerships].among([put.schedule_id]):  # a person's schedule stays a person's
        owned.deepen(tx, put.schedule_id, proposal.depth)
    return False


def _write_missed(tx: Tx, proposal: Proposal, definition: Definition, now: Instant) -> None:
    """Record in the ledger and its incident that a schedule's only time passed while it waited."""
    assert isinstance(definition.timing, Once)  # noqa: S101 - only a single time can be past
    at = resolved(definition.timing.at)
    (schedule_id,) = tx.schedules.add_many([NewSchedule(definition.slug, encode_definition(definition), 0, now)])
    if schedule_id is None:
        raise Conflict(f"a schedule {definition.slug} exists now; reject this proposal")
    compiled = compile_definition(schedule_id, 1, definition)
    cadence = begin(schedule_id, 1, compiled.rules, now=at - 1, state="active", reason=None)
    tx.cadences.add_many([cadence])
    tx.alarms.set_many([alarm_of(cadence, compiled)])  # an edit that revives it moves an existing alarm
    over = cadence._replace(planned_through=at, next_at=None, state="done", state_at=now)
    plan = Plan((Gap(at, at, 1, "missed", MISSED),), over)
    record(tx, [decided(plan, compiled, cadence)], now=now)
    tx[Ownerships].put(_ownership(proposal, schedule_id, now))


def _ownership(proposal: Proposal, schedule_id: int, now: Instant) -> Ownership:
    lineage = proposal.lineage
    return Ownership(
        schedule_id, proposal.owner, proposal.kind, lineage.run_id, lineage.slug, lineage.depth, "approved", now
    )


def base_of(tx: Tx, proposal: Proposal) -> Definition | None:
    """The schedule that a proposal would change, as it is now."""
    if proposal.schedule_id is None:
        return None
    schedule = tx.schedules.by_ids([proposal.schedule_id]).get(proposal.schedule_id)
    return None if schedule is None else decode_definition(schedule.definition)
