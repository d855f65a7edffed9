"""New proposal rows, with their ids and codes."""

import json
import secrets
from typing import Final

from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import encode_definition
from wakeful.core.self_scheduling.proposals import CODE_LENGTH, EXPIRES, Lineage, OwnedKind, Proposal, code_digest
from wakeful.core.time.instants import Instant
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.ports import events
from wakeful.ports.changes import Report
from wakeful.ports.event_data import Proposed
from wakeful.ports.store import Schedule, Tx

_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""The characters in codes, without those that are easily confused."""


def add_proposal(
    tx: Tx,
    owner: str,
    lineage: Lineage,
    existing: Schedule | None,
    definition: Definition,
    kind: OwnedKind,
    note: str | None,
    code: str | None,
    now: Instant,
) -> Proposal:
    """Write a proposal; `existing` is the schedule it would change."""
    proposal = Proposal(
        proposal_id=new_proposal_id(),
        owner=owner,
        slug=definition.slug,
        kind=kind,
        definition=proposed_text(definition),
        schedule_id=None if existing is None else existing.schedule_id,
        base_version=None if existing is None else existing.version,
        note=note,
        run_id=lineage.run_id,
        run_slug=lineage.slug,
        depth=lineage.depth,
        status="pending",
        asked_at=now,
        expires_at=now + EXPIRES,
        decided_at=None,
        decided_by=None,
        code_digest=None,
    )
    if code is not None:
        proposal = proposal._replace(code_digest=code_digest(code, proposal))
    tx[AgentProposals].add(proposal)
    tx.report(Report(events.SCHEDULE_PROPOSED, Proposed(proposal.proposal_id, owner), slug=proposal.slug))
    return proposal


def proposed_text(definition: Definition) -> str:
    """The text of a proposed definition; a file may also ask to enable or disable the schedule."""
    text = encode_definition(definition)
    if definition.enabled is None:
        return text
    return json.dumps({**json.loads(text), "enabled": definition.enabled}, separators=(",", ":"), ensure_ascii=False)


def new_proposal_id() -> str:
    return f"p{secrets.token_hex(4)}"


def new_code() -> str:
    """A code for one decision by chat."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(CODE_LENGTH))
