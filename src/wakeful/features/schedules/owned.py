"""Schedules written by agents: one place decides for every entry point (MCP, REST with an agent's token, the command
line in a run).

An agent sees and changes what it owns. A new schedule, or a change of one, passes its limits; then it is written, or it
becomes a proposal that a person decides on (`approvals`). All of it happens in one transaction under the agent's lock.
"""

from collections.abc import Callable, Collection
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.errors import Invalid
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.schedule.definition import Definition, DeliverTo
from wakeful.core.schedule.definition_json import decode_definition
from wakeful.core.schedule.health import BY_PERSON
from wakeful.core.self_scheduling import limits
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.self_scheduling.proposals import (
    EXPIRES,
    Lineage,
    OwnedKind,
    Ownership,
    Proposal,
    is_near_copy,
    is_repeat,
    is_same,
)
from wakeful.core.time.instants import DAY, HOUR, Instant, format_instant
from wakeful.core.time.timing import Once, next_after
from wakeful.features.schedules import commands
from wakeful.features.schedules.checks import Checked, refuse_excluded, refuse_past, refuse_short_lateness
from wakeful.features.schedules.owned_edits import edited
from wakeful.features.schedules.owned_stops import (
    BY_AGENT,
    KEPT_FOR,
    REMOVED,
    STOPPED,
    needs_person,
    remember_stop,
)
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.features.schedules.proposing import add_proposal, new_code
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import Schedule, Tx

REJECTED_FOR: Final = EXPIRES
"""How long a rejected schedule cannot be proposed again."""

Result: TypeAlias = Literal["created", "updated", "unchanged", "pending"]
AskPerson: TypeAlias = Callable[[Tx, Proposal, str], None]
"""Sends a proposal and its code to those who may approve by chat."""


class Actor(NamedTuple):
    """An agent that calls, and the run it calls from, if any."""

    agent: str
    run_id: int | None = None
    run_slug: str | None = None
    depth: int = 0  # of that run: 0 if a person made what it runs
    reply_to: DeliverTo | tuple[DeliverTo, ...] | None = None  # where the reply of that run goes
    is_agent_run: bool = True  # False: the run of a command, which may only report, wake, and call wake_me


class Written(NamedTuple):
    """The result of a write."""

    result: Result
    slug: str
    proposal: Proposal | None = None
    is_copy: bool = False  # it exists under this other slug


def put(
    tx: Tx,
    actor: Actor,
    checked: Checked,
    *,
    kind: OwnedKind,
    note: str | None,
    given: Collection[str],
    terms: SelfSchedulingTerms,
    hooks: EngineHooks,
    ask: AskPerson,
    now: Instant,
) -> Written:
    """Write an agent's schedule: created, updated, left unchanged, or proposed."""
    tx[Ownerships].lock_owner(actor.agent)
    tx[AgentProposals].forget(before=now - KEPT_FOR)
    slug = checked.definition.slug
    existing = _existing(tx, actor.agent, slug, kind, now)
    was_live = existing is not None and _is_live(tx, existing)
    limits.check_horizon(checked.definition, terms, now)
    before = None if existing is None else decode_definition(existing.definition)
    if before is not None:
        checked = checked._replace(definition=edited(before, checked.definition, given, is_live=was_live))
    definition = checked.definition
    same = _same_again(tx, actor.agent, existing, definition, now)
    if same is not None:
        return same
    again = _same_wake(tx, actor, definition, now) if kind == "wake" else None
    if again is not None:
        return again
    refuse_past(definition, now)
    refuse_excluded(checked)
    if before is None or before.lateness_max != definition.lateness_max:
        refuse_short_lateness(definition)
    limits.check_interval(definition, terms)
    depth = actor.depth + 1
    limits.check_depth(depth, terms)
    if kind != "wake" and not was_live and not _is_pending(tx, actor.agent, slug, now):
        limits.check_number(_count(tx, actor.agent, now), terms)
    is_asked = limits.wake_needs_approval(depth, terms) if kind == "wake" else limits.needs_approval(definition, terms)
    is_asked = is_asked or needs_person(tx, actor.agent, definition, owned(tx, actor.agent), now=now)
    if existing is None and (kind == "wake" or not is_asked):
        limits.check_wakes(_started(tx, actor.agent, definition, now), terms)
    if is_asked:
        limits.check_proposals(tx[AgentProposals].asked_since(actor.agent, now - HOUR), terms)
        _close_pending(tx, actor.agent, slug, now)
        return Written("pending", slug, propose(tx, actor, existing, definition, kind, note, terms, ask, now))
    (done,) = commands.put_many(tx, [checked], hooks=hooks, now=now)
    if isinstance(done, Invalid):
        raise done
    _close_pending(tx, actor.agent, slug, now)
    if existing is None:
        lineage = (actor.run_id, actor.run_slug, depth)
        tx[Ownerships].put(Ownership(done.schedule_id, actor.agent, kind, *lineage, None, now))
        return Written("created", slug)
    _check_spacing(tx, existing, terms, now)
    deepen(tx, done.schedule_id, depth)
    return Written("updated", slug)


def deepen(tx: Tx, schedule_id: int, depth: int) -> None:
    """Set a schedule's depth to that of the deepest run that wrote it, so that a chain of changes ends as well."""
    row = tx[Ownerships].among([schedule_id])[schedule_id]
    if depth > row.depth:
        tx[Ownerships].put(row._replace(depth=depth))


def _check_spacing(tx: Tx, before: Schedule, terms: SelfSchedulingTerms, now: Instant) -> None:
    """Refuse a change of times that leads to a run too soon after the last one. The stored times count: a change keeps
    the grid of an interval."""
    cadence = tx.cadences.lock([before.schedule_id])[before.schedule_id]
    last = now if cadence.open_run_id is not None or cadence.queued_run_id is not None else cadence.last_run_at
    stored = tx.schedules.by_ids([before.schedule_id])[before.schedule_id]
    timing = decode_definition(stored.definition).timing
    if last is None or timing == decode_definition(before.definition).timing:
        return
    limits.check_spacing(last, next_after(timing, now), terms)


def _started(tx: Tx, agent: str, definition: Definition, now: Instant) -> int:
    """What counts against `wakes_per_day`: one-time turns that needed no approval; for a recurring schedule, those that
    were created and removed again."""
    is_once = isinstance(definition.timing, Once)
    made = tx[Ownerships].made_since(agent, now - DAY)
    schedules = tx.schedules.by_ids([row.schedule_id for row in made])
    count = 0
    for row in made:
        schedule = schedules.get(row.schedule_id)
        if row.kind == "wake":
            count += is_once
        elif schedule is not None and row.approval is None:
            is_one = isinstance(decode_definition(schedule.definition).timing, Once)
            count += schedule.deleted_at is not None or (is_once and is_one)
    return count + (tx[AgentProposals].wakes_pending(agent, since=now - DAY) if is_once else 0)


def _existing(tx: Tx, agent: str, slug: str, kind: OwnedKind, now: Instant) -> Schedule | None:
    """The schedule with that slug, if the agent owns it. A person's schedule in the agent's namespace does not
    count."""
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    proposal = pending_of(tx, agent, slug, now)
    owner = None if schedule is None else tx[Ownerships].among([schedule.schedule_id]).get(schedule.schedule_id)
    if schedule is not None and (owner is None or owner.owner != agent):
        raise Conflict(f"the slug {slug!r} cannot be used; choose another name")
    if kind == "schedule" and any(row is not None and row.kind == "wake" for row in (owner, proposal)):
        raise Conflict(f"{slug} is a wake_me, which cannot be changed; delete it, or choose another name")
    return schedule


def _same_again(tx: Tx, agent: str, existing: Schedule | None, definition: Definition, now: Instant) -> Written | None:
    """Whether the schedule already exists under this or another name; if so, nothing is written or extended."""
    slug = definition.slug
    waiting = tx[AgentProposals].pending(now=now, owner=agent)
    for proposal in waiting:
        if proposal.slug == slug and is_same(decode_definition(proposal.definition), definition):
            return Written("pending", slug, proposal)
    if existing is not None and is_same(decode_definition(existing.definition), definition) and _is_live(tx, existing):
        _close_pending(tx, agent, slug, now)
        return Written("unchanged", slug)
    for proposal in waiting:
        if proposal.slug != slug and is_near_copy(decode_definition(proposal.definition), definition):
            return Written("pending", proposal.slug, proposal, is_copy=True)
    if existing is None:
        for schedule in owned(tx, agent):
            if is_near_copy(decode_definition(schedule.definition), definition):
                return Written("unchanged", schedule.slug, is_copy=True)
    _refuse_rejected(tx, agent, definition, now)
    return None


def _same_wake(tx: Tx, actor: Actor, definition: Definition, now: Instant) -> Written | None:
    """An existing `wake_me` with the same text from the same run, as after a crash: both count as one."""
    rows = {} if actor.run_id is None else {row.schedule_id: row for row in tx[Ownerships].of_owner(actor.agent)}
    same = [row.schedule_id for row in rows.values() if row.kind == "wake" and row.run_id == actor.run_id]
    for schedule in tx.schedules.by_ids(same).values():
        known = decode_definition(schedule.definition)
        if known.action == definition.action and _is_live(tx, schedule):
            return Written("unchanged", schedule.slug)
    return None


def _refuse_rejected(tx: Tx, agent: str, definition: Definition, now: Instant) -> None:
    for proposal in tx[AgentProposals].rejected(agent, since=now - REJECTED_FOR):
        if proposal.decided_by == REMOVED:
            continue  # a person has to approve it again
        at, is_stop = format_instant(proposal.decided_at or now), proposal.decided_by == STOPPED
        is_here = is_stop and proposal.slug == definition.slug
        if is_here or is_repeat(decode_definition(proposal.definition), definition):
            what = (
                "this was waiting for a person after it was stopped, and was deleted"
                if is_stop
                else "a person rejected this"
            )
            raise Conflict(f"{what} at {at}; do not propose it again within a week; ask a person to add it")


def _is_live(tx: Tx, schedule: Schedule) -> bool:
    return tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id].state != "done"


def owned(tx: Tx, agent: str, *, is_live: bool = True) -> list[Schedule]:
    """An agent's schedules: live ones only, or finished ones too; `wake_me` excluded."""
    rows = {row.schedule_id: row for row in tx[Ownerships].of_owner(agent)}
    schedules = tx.schedules.by_ids(rows)
    cadences = tx.cadences.lock(sorted(rows)) if is_live else {}
    return [
        schedule
        for schedule_id, schedule in sorted(schedules.items())
        if schedule.deleted_at is None
        and (not is_live or (cadences[schedule_id].state != "done" and rows[schedule_id].kind == "schedule"))
    ]


def _count(tx: Tx, agent: str, now: Instant) -> int:
    """How many schedules an agent has, including those that wait for approval."""
    live = {schedule.schedule_id for schedule in owned(tx, agent)}
    waiting = [row for row in tx[AgentProposals].pending(now=now, owner=agent) if row.kind != "wake"]
    return len(live) + len([row for row in waiting if row.schedule_id not in live])


def _is_pending(tx: Tx, agent: str, slug: str, now: Instant) -> bool:
    return any(row.slug == slug for row in tx[AgentProposals].pending(now=now, owner=agent))


def _close_pending(
    tx: Tx, agent: str, slug: str, now: Instant, status: Literal["replaced", "withdrawn"] = "replaced"
) -> list[Proposal]:
    rows = [row for row in tx[AgentProposals].pending(now=now, owner=agent) if row.slug == slug]
    tx[AgentProposals].save_many([row._replace(status=status, decided_at=now, decided_by=agent) for row in rows])
    return rows


def propose(
    tx: Tx,
    actor: Actor,
    existing: Schedule | None,
    definition: Definition,
    kind: OwnedKind,
    note: str | None,
    terms: SelfSchedulingTerms,
    ask: AskPerson,
    now: Instant,
) -> Proposal:
    """Write a new proposal and send it to the approvers with a code; nothing is planned."""
    code = new_code() if terms.approvers else None
    lineage = Lineage(actor.run_id, actor.run_slug, actor.depth + 1)
    proposal = add_proposal(tx, actor.agent, lineage, existing, definition, kind, note, code, now)
    if code is not None:
        ask(tx, proposal, code)
    return proposal


def find(tx: Tx, agent: str, slug: str) -> Schedule | None:
    """The agent's own schedule with that slug; None if it has none, even if someone else does."""
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    owner = None if schedule is None else tx[Ownerships].among([schedule.schedule_id]).get(schedule.schedule_id)
    return schedule if owner is not None and owner.owner == agent else None


def of_agents(tx: Tx, slugs: Collection[str]) -> frozenset[str]:
    """Those of the slugs that belong to agents."""
    schedules = tx.schedules.by_slugs(sorted(slugs))
    owners = tx[Ownerships].among(schedule.schedule_id for schedule in schedules.values())
    return frozenset(slug for slug, schedule in schedules.items() if schedule.schedule_id in owners)


def pending_of(tx: Tx, agent: str, slug: str, now: Instant) -> Proposal | None:
    return next((row for row in tx[AgentProposals].pending(now=now, owner=agent) if row.slug == slug), None)


def pause(tx: Tx, agent: str, slug: str, *, hooks: EngineHooks, now: Instant) -> None:
    """Pause one of the agent's schedules. A person's pause stays a person's."""
    _own(tx, agent, slug, now)
    schedule = tx.schedules.by_slugs([slug])[slug]
    if tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id].state != "paused":
        commands.pause(tx, slug, hooks=hooks, now=now, reason=BY_AGENT)


def resume(tx: Tx, agent: str, slug: str, *, now: Instant) -> None:
    """Resume one of the agent's schedules, unless a person stopped it."""
    _own(tx, agent, slug, now)
    schedule = tx.schedules.by_slugs([slug])[slug]
    cadence = tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id]
    if cadence.state == "active":
        return
    if cadence.state != "paused" or cadence.state_reason != BY_AGENT:
        stopped = "it was stopped because of errors" if cadence.state != "paused" else "a person paused it"
        if cadence.state == "disabled" and cadence.state_reason == BY_PERSON:
            stopped = "a person disabled it"
        raise Conflict(f"{slug} is {cadence.state}: {stopped}, so only a person can resume it; ask them")
    commands.resume_schedule(tx, slug, now=now)


def remove(tx: Tx, agent: str, slug: str, *, hooks: EngineHooks, now: Instant) -> None:
    """Remove one of the agent's schedules, and withdraw proposals for it."""
    tx[Ownerships].lock_owner(agent)
    withdrawn = _close_pending(tx, agent, slug, now, "withdrawn")
    schedule = find(tx, agent, slug)
    if schedule is not None:
        remember_stop(tx, agent, schedule, now)
        commands.remove(tx, slug, hooks=hooks, now=now)
    elif not withdrawn:
        raise missing(slug)


def _own(tx: Tx, agent: str, slug: str, now: Instant) -> None:
    tx[Ownerships].lock_owner(agent)
    if find(tx, agent, slug) is not None:
        return
    if pending_of(tx, agent, slug, now) is not None:
        raise Conflict(f"{slug} waits for a person's approval; it does not run, and can only be deleted or changed")
    raise missing(slug)


def missing(slug: str) -> NotFound:
    return NotFound(f"you have no schedule {slug!r}; list_schedules shows those you have")
