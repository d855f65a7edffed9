"""What a person is shown before they approve: all of it, and inert.

Text of an agent may try to look like something else: with line breaks, control characters, or characters that reverse
the direction of writing. Each line of it is quoted with a bar, and what cannot be seen is written out."""

import json
import unicodedata
from typing import Final

from wakeful.core.schedule.actions import Command, Prompt
from wakeful.core.schedule.definition_json import decode_definition, definition_to_json
from wakeful.core.self_scheduling.proposals import Proposal
from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.timing import next_n
from wakeful.core.time.timing_words import describe

SHOWN_MAX: Final = 3_000
"""A longer text does not fit a chat message, and cannot be approved there."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})


def visible(text: str) -> str:
    """The text with everything that cannot be seen written out, one quoted line for each of its lines."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(f"│ {''.join(map(_seen, line))}" for line in lines)


def _seen(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    return f"\\u{{{ord(character):x}}}"


def details(proposal: Proposal, *, now: Instant) -> list[str]:
    """What is proposed, line by line."""
    definition = decode_definition(proposal.definition)
    action = definition.action
    change = "a new schedule" if proposal.schedule_id is None else "a change of"
    lines = [f"{proposal.owner} proposes {change} {proposal.slug}", f"When: {describe(definition.timing)}"]
    following = next_n(definition.timing, now, 3)
    if following:
        lines.append(f"Next: {', '.join(format_instant(at) for at in following)}")
    if isinstance(action, Prompt):
        lines += ["Prompt:", visible(action.text)]
    elif isinstance(action, Command):
        lines += ["Command:", visible(json.dumps(list(action.argv), ensure_ascii=False))]
    else:
        lines += ["Action:", visible(json.dumps(definition_to_json(definition), ensure_ascii=False))]
    if proposal.note:
        lines += ["Note:", visible(proposal.note)]
    if proposal.run_id is not None:
        lines.append(f"Asked during run {proposal.run_id} of {proposal.run_slug}, depth {proposal.depth}")
    return lines


def request_text(proposal: Proposal, code: str, *, now: Instant) -> str:
    """The message to those who may approve by chat."""
    text = "\n".join(details(proposal, now=now))
    if len(text) > SHOWN_MAX:
        short = f"{proposal.owner} proposes {proposal.slug}, which is too long to be shown here."
        return f"{short}\nDecide on the command line: wakeful approvals show {proposal.proposal_id}"
    return f"{text}\n\nTo decide, send: approve {code}\nor: reject {code}"
