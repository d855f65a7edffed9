"""Counts wrong approval codes, in the transaction that refuses them (`core.self_scheduling.guesses`)."""

import json
from collections.abc import Mapping
from typing import Final

from wakeful.core.refusals import Conflict
from wakeful.core.self_scheduling.guesses import Guesses, after_wrong, current, is_locking, waits_until
from wakeful.core.time.instants import Instant, format_instant
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.ports.meta import Meta
from wakeful.ports.store import Tx

KEY: Final = "approvals:wrong-codes"


def refuse_after_many(tx: Tx, sender: str, *, now: Instant) -> None:
    """Refuse any code from a sender who sent too many wrong ones, so that a correct guess is worth nothing."""
    until = waits_until(_read(tx), sender, now)
    if until is not None:
        raise Conflict(
            f"too many wrong codes from {sender}; try again after {format_instant(until)}, "
            f"or decide on the command line: wakeful approvals"
        )


def count_wrong(tx: Tx, sender: str, *, now: Instant) -> str:
    """Count a wrong code; too many lock all outstanding codes. Returns what to add to the refusal."""
    guesses = after_wrong(_read(tx), sender, now)
    if not is_locking(guesses, now):
        _write(tx, guesses)
        return ""
    out = [row for row in tx[AgentProposals].pending(now=now) if row.code_digest is not None]
    tx[AgentProposals].save_many([row._replace(code_digest=None) for row in out])
    _write(tx, current(guesses, now))
    return (
        f". After too many wrong codes, all open codes ({len(out)}) are locked; decide on the command line"
        if out
        else ""
    )


def _read(tx: Tx) -> dict[str, Guesses]:
    return {sender: Guesses(*fields) for sender, fields in json.loads(tx[Meta].value(KEY) or "{}").items()}


def _write(tx: Tx, guesses: Mapping[str, Guesses]) -> None:
    tx[Meta].set(KEY, json.dumps(guesses))
