"""The text a person sees before approving: complete, and inert. An agent's text may try to look like something else:
with line breaks, control characters, or characters that reverse the direction of writing. Each line of it is quoted
with a bar, and what cannot be seen is written out."""

import json
import unicodedata
from collections.abc import Iterable
from typing import Annotated, Any, Final, NamedTuple

from wakeful.core.returned import returned
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import ACTIONS, decode_definition, definition_to_json
from wakeful.core.self_scheduling.proposals import Proposal
from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.timing import next_n
from wakeful.core.time.timing_words import describe
from wakeful.features.schedules.rules import Terms

SHOWN_MAX: Final = 3_000
"""Longer text does not fit into a chat message, and cannot be approved by chat."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and symbols that are invisible."""
_SELECTORS: Final = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
"""Variation selectors: they are not shown, and can carry hidden text."""


class Change(NamedTuple):
    """A field that a proposal sets."""

    field: str
    old: Annotated[Any, "its value now; null: the default, or a new schedule"]
    new: Annotated[Any, "its value if approved; null: the default"]


CHANGE: Final = returned(Change, name="ProposedField")


def visible(text: str) -> str:
    """The text with invisible characters written out, each line quoted."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(f"│ {''.join(map(_seen, line))}" for line in lines)


def _seen(character: str) -> str:
    is_blank = character in _BLANK or any(ord(character) in selectors for selectors in _SELECTORS)
    is_odd_space = unicodedata.category(character) == "Zs" and character != " "
    if not is_blank and not is_odd_space and unicodedata.category(character) not in _HIDDEN:
        return character
    return f"\\u{{{ord(character):x}}}"


def changes_of(proposal: Proposal, before: Definition | None) -> list[Change]:
    """Every field that is not a default; for a changed schedule, every field that would differ."""
    new = definition_to_json(decode_definition(proposal.definition))
    old = {} if before is None else definition_to_json(before)
    names = [name for name in (*new, *(name for name in old if name not in new)) if name != "slug"]
    return [Change(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def change_lines(changes: Iterable[Change], *, is_new: bool) -> list[str]:
    """A proposal's fields, line by line, except those with their own lines."""
    lines: list[str] = []
    for field, old, new in changes:
        if is_new and field not in ("schedule", *ACTIONS):
            lines.append(f"{field}: {_one_line(new)}")
        elif not is_new and isinstance(old, str) and field in ACTIONS:
            lines += [f"{field} until now:", visible(old)]
        elif not is_new:
            lines.append(f"{field}: {_one_line(old)} → {_one_line(new)}")
    return lines


def difference(change: Change, *, most: int) -> str:
    """A changed field on one line, each value at most this long."""
    old, new = (text if len(text) <= most else f"{text[:most]}…" for text in map(_one_line, (change.old, change.new)))
    return f"{change.field}: {old} → {new}"


def _one_line(value: Any) -> str:
    return "(default)" if value is None else "".join(map(_seen, json.dumps(value, ensure_ascii=False)))


def action_lines(definition: dict[str, Any]) -> list[str]:
    """What a definition does: its prompt as text, anything else as JSON."""
    (name,) = (name for name in ACTIONS if name in definition)
    value = definition[name]
    return [f"{name}:", visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))]


def details(proposal: Proposal, before: Definition | None, *, terms: Terms, now: Instant) -> list[str]:
    """The proposal, line by line; `before` is the schedule it would change."""
    definition = decode_definition(proposal.definition)
    change = "a new schedule" if proposal.schedule_id is None else "a change of"
    change = "one run of" if proposal.kind == "run" else change
    lines = [f"{proposal.owner} proposes {change} {proposal.slug}", f"when: {describe(definition.timing)}"]
    following = next_n(terms.starting(definition.timing, definition), now, 3)
    if following:
        lines.append(f"next: {', '.join(format_instant(at) for at in following)}")
    lines += action_lines(definition_to_json(definition))
    lines += change_lines(changes_of(proposal, before), is_new=proposal.schedule_id is None)
    if proposal.note:
        lines += ["note:", visible(proposal.note)]
    if proposal.run_id is not None:
        lines.append(f"asked during run {proposal.run_id} of {proposal.run_slug}, depth {proposal.depth}")
    return lines


def request_text(proposal: Proposal, before: Definition | None, code: str, *, terms: Terms, now: Instant) -> str:
    """The message to those who may approve by chat."""
    text = "\n".join(details(proposal, before, terms=terms, now=now))
    if len(text) > SHOWN_MAX:
        short = f"{proposal.owner} proposes {proposal.slug}, which is too long to be shown here."
        return f"{short}\nDecide on the command line: wakeful approvals show {proposal.proposal_id}"
    return f"{text}\n\nTo decide, send: approve {code}\nor: reject {code}"
