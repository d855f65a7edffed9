"""New proposal rows, with their ids and codes."""

import secrets
from dataclasses import replace
from typing import Final

from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import encode_definition
from wakeful.core.self_scheduling.proposals import CODE_LENGTH, EXPIRES, Lineage, OwnedKind, Proposal, code_digest
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import Report
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
        definition=encode_definition(replace(definition, enabled=None)),
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
    tx.proposals.add(proposal)
    data = {"proposalId": proposal.proposal_id, "owner": owner}
    tx.report(Report("schedules", "proposed", data, slug=proposal.slug))
    return proposal


def new_proposal_id() -> str:
    return f"p{secrets.token_hex(4)}"


def new_code() -> str:
    """A code for one decision by chat."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(CODE_LENGTH))
