"""Sends a proposal to the people who may approve it by chat."""

from collections.abc import Callable, Sequence

from wakeful.core.run.effects import Deliver, Effect
from wakeful.core.self_scheduling.proposals import Proposal
from wakeful.core.time.instants import Instant
from wakeful.features.schedules.approval_texts import request_text
from wakeful.features.schedules.approvals import base_of
from wakeful.features.schedules.owned import AskPerson
from wakeful.features.schedules.rules import Terms
from wakeful.ports.store import Tx


def asking(
    approvers: Sequence[str], apply: Callable[[Tx, Effect, Instant], bool], *, terms: Terms, now: Instant
) -> AskPerson:
    """A function that sends a proposal with its code to each approver (`channel:to`), in the transaction that writes
    it."""

    def ask(tx: Tx, proposal: Proposal, code: str) -> None:
        text = request_text(proposal, base_of(tx, proposal), code, terms=terms, now=now)
        for approver in approvers:
            channel, _, to = approver.partition(":")
            apply(tx, Deliver(text, channel, to or None, slug=proposal.slug, is_note=True), now)

    return ask
