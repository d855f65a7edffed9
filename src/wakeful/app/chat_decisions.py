"""People's decisions on proposals, as `approve CODE` in a chat."""

import logging

from wakeful.app.bootstrap import Parts
from wakeful.core.errors import Invalid
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.effects import ChatDecision, Deliver
from wakeful.core.time.instants import Instant
from wakeful.features.schedules import approvals, guessing
from wakeful.ports.store import Tx

log = logging.getLogger("wakeful.approvals")


def decide_by_chat(tx: Tx, answer: ChatDecision, parts: Parts, now: Instant) -> None:
    """Apply a decision from a chat; the sender is always told the result."""
    who = f"{answer.channel}:{answer.sender}"
    conditions, hooks = parts.conditions, parts.hooks
    try:
        if who not in parts.self_scheduling.value.approvers:
            raise Conflict(f"{who} is not among the approvers; add it to [alerts] approvers in wakeful.toml")
        guessing.refuse_after_many(tx, who, now=now)
        proposal = approvals.proposal_by_code(tx, answer.code, now=now)
        done = approvals.decide(tx, proposal, answer.decision, by=who, conditions=conditions, hooks=hooks, now=now)
        said = f"{done.proposal.slug} was {done.proposal.status}."
        if done.is_missed:
            said += " Its time has passed, so it will not run."
        log.info("%s %s by %s: %s", answer.decision, done.proposal.proposal_id, who, done.proposal.slug)
    except approvals.WrongCode as wrong:
        locked = guessing.count_wrong(tx, who, now=now)
        log.warning("%s by chat from %s refused: %s%s", answer.decision, who, wrong, locked)
        said = f"Nothing was changed: {wrong}{locked}"
    except (Conflict, NotFound, Invalid) as refused:
        log.warning("%s by chat from %s refused: %s", answer.decision, who, refused)
        said = f"Nothing was changed: {refused}"
    parts.apply(tx, Deliver(said, answer.channel, answer.to, is_note=True), now)
