"""Files are not a way around approval: what may have been written by an agent waits for a person.

A definition file that appears or changes, or a `last-run.json` that asks for a run, while an agent works on this
machine or shortly after, becomes a proposal of that agent, no matter who owns the slug. Which program wrote a file
cannot be known, so the time decides.
"""

import json
from typing import Any, Final, NamedTuple

from wakeful.core.schedule.definition_json import decode_definition, encode_definition
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.self_scheduling.proposals import OwnedKind, Proposal
from wakeful.core.time.instants import MINUTE, Duration, Instant
from wakeful.core.time.timing_json import ANCHORED_AT
from wakeful.features.schedules.approval_texts import change_lines, changes_of, visible
from wakeful.features.schedules.calling_runs import Keepers, agent_at_work
from wakeful.features.schedules.checks import Checked
from wakeful.features.schedules.owned import Actor, AskPerson, propose
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.features.schedules.proposing import proposed_text
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import Schedule, Tx

AFTER_RUN: Final[Duration] = MINUTE
"""How long after an agent's run a changed file may still be its work."""
LOOKED_BACK: Final = 20


class Asking(NamedTuple):
    """What a proposal from a file needs."""

    keepers: Keepers
    host: str
    since: Instant  # an agent that ended before cannot have written the file
    terms: SelfSchedulingTerms
    ask: AskPerson


class Waits(NamedTuple):
    """A file that waits for a person, or that one refused."""

    proposal: Proposal
    short: str
    text: str  # with the difference


def propose_definition(tx: Tx, checked: Checked, asking: Asking, *, now: Instant) -> Waits | bool:
    """The proposal for a definition file; True if it may be applied, False if the approval of the proposal did that."""
    definition = checked.definition
    existing = tx.schedules.by_slugs([definition.slug]).get(definition.slug)
    if existing is not None and definition.enabled is None and encode_definition(definition) == existing.definition:
        return True
    text, what = proposed_text(definition), "a definition file that changed" if existing else "a new definition file"
    newest = _newest(tx, definition.slug, "schedule")
    if newest is not None and _shape(newest.definition) == _shape(text) and newest.status != "withdrawn":
        if newest.status != "approved":
            return _waits(newest, existing, now)  # also after the run has ended: the file is still the same
        if existing is not None and _is_in_effect(existing, text):
            return _agent_at_work(tx, asking) is None
    return _ask(tx, checked, existing, "schedule", what, asking, newest, now) or True


def propose_run(tx: Tx, slug: str, written: str, checked: Checked, asking: Asking, *, now: Instant) -> Waits | bool:
    """The proposal for a `last-run.json` that asks for a run; True if the run may start, False if it was started when
    the proposal was approved."""
    existing = tx.schedules.by_slugs([slug]).get(slug)
    note, newest = f"last-run.json asks for a run: nextRun {written}", _newest(tx, slug, "run")
    if existing is None:
        return True
    if newest is not None and newest.note == note:
        return False if newest.status == "approved" else _waits(newest, existing, now)
    return _ask(tx, checked, existing, "run", note, asking, newest, now) or True


def _is_in_effect(existing: Schedule, text: str) -> bool:
    """Whether the schedule is as the file says. An approval permits one change: if a person changed it since, the same
    text is a new one."""
    return _shape(existing.definition) == {name: value for name, value in _shape(text).items() if name != "enabled"}


def _agent_at_work(tx: Tx, asking: Asking) -> Actor | None:
    return agent_at_work(tx, asking.keepers, host=asking.host, since=asking.since)


def _shape(text: str) -> dict[str, Any]:
    """A definition without the anchor of an interval, which is set again whenever a file without one is read."""
    data: dict[str, Any] = json.loads(text)
    if isinstance(data.get("schedule"), dict):
        for name in ("anchor", ANCHORED_AT):
            data["schedule"].pop(name, None)
    return data


def _newest(tx: Tx, slug: str, kind: OwnedKind) -> Proposal | None:
    return next((row for row in tx[AgentProposals].of_slug(slug, limit=LOOKED_BACK) if row.kind == kind), None)


def _ask(
    tx: Tx,
    checked: Checked,
    existing: Schedule | None,
    kind: OwnedKind,
    note: str,
    asking: Asking,
    newest: Proposal | None,
    now: Instant,
) -> Waits | None:
    actor = _agent_at_work(tx, asking)
    if actor is None:
        return None
    tx[Ownerships].lock_owner(actor.agent)
    if newest is not None and newest.status_at(now) == "pending":
        tx[AgentProposals].save_many([newest._replace(status="replaced", decided_at=now, decided_by=actor.agent)])
    made = propose(tx, actor, existing, checked.definition, kind, note, asking.terms, asking.ask, now)
    return _waits(made, existing, now)


def _waits(proposal: Proposal, existing: Schedule | None, now: Instant) -> Waits:
    """What is shown beside the file."""
    status, by = proposal.status_at(now), proposal.owner
    during = "" if proposal.run_id is None else f" (run {proposal.run_id} of {proposal.run_slug})"
    short = f"{by} was at work on this machine{during} when this was written, so a person has to approve it"
    if status == "pending":
        short += f": wakeful approvals approve {proposal.proposal_id}"
    else:
        short += f": it was {status}; change the file to try again"
    if proposal.kind == "run":
        return Waits(proposal, short, f"{short}\n{proposal.note}")
    before = None if existing is None else decode_definition(existing.definition)
    lines = change_lines(changes_of(proposal, before), is_new=existing is None)
    proposed = decode_definition(proposal.definition).action
    wanted = getattr(proposed, "text", None)
    if isinstance(wanted, str):
        lines += ["prompt in the file:", visible(wanted)]
    return Waits(proposal, short, "\n".join([short, "", *lines]))
