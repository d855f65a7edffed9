"""Proposals: what an agent wrote and a person has not decided on.

Theory of operation: a proposal is a row of its own, outside the schedules. Nothing of it is planned, so nothing can run
before it is approved. It never changes: when the agent writes something else under the same slug, the old one is
`replaced` and there is a new one with a new id and a new code. So a decision by id or by code is always about the text
that was shown. A proposal that is a week old counts as expired, without anything having to happen at that time.

    pending --> approved | rejected | withdrawn (by the agent) | replaced | (by age) expired
"""

import hashlib
import json
import re
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import DAY, Duration, Instant
from wakeful.core.time.timing import Every

ProposalStatus: TypeAlias = Literal["pending", "approved", "rejected", "withdrawn", "replaced", "expired"]
OwnedKind: TypeAlias = Literal["schedule", "wake"]
Decision: TypeAlias = Literal["approve", "reject"]

EXPIRES: Final[Duration] = 7 * DAY
CODE_LENGTH: Final = 8
_ANSWER: Final = re.compile(r"\s*/?(approve|reject)\s+([A-Za-z0-9]{8})\s*[.!]?\s*", re.IGNORECASE | re.ASCII)
_ATTEMPT: Final = re.compile(r"\s*/?(approve|reject)\b", re.IGNORECASE | re.ASCII)


class Lineage(NamedTuple):
    """The run that made something, and how deep the chain of agents that made it is."""

    run_id: int | None
    slug: str | None
    depth: int


class Proposal(NamedTuple):
    """A row of its table, in the order of the columns."""

    proposal_id: str
    owner: str
    slug: str
    kind: OwnedKind
    definition: str  # canonical JSON
    schedule_id: int | None  # of the schedule it would change; None: a new one
    base_version: int | None  # of that schedule
    note: str | None
    run_id: int | None
    run_slug: str | None
    depth: int
    status: ProposalStatus
    asked_at: Instant
    expires_at: Instant
    decided_at: Instant | None
    decided_by: str | None
    code_digest: str | None

    def status_at(self, now: Instant) -> ProposalStatus:
        """Its status, by its age too."""
        return "expired" if self.status == "pending" and self.expires_at <= now else self.status

    @property
    def lineage(self) -> Lineage:
        return Lineage(self.run_id, self.run_slug, self.depth)


class Ownership(NamedTuple):
    """Who owns a schedule that an agent made, in the order of the columns. A schedule of a person has none."""

    schedule_id: int
    owner: str
    kind: OwnedKind
    run_id: int | None
    run_slug: str | None
    depth: int
    approval: Literal["approved"] | None  # None: it needed none
    created_at: Instant

    @property
    def lineage(self) -> Lineage:
        return Lineage(self.run_id, self.run_slug, self.depth)


def code_digest(code: str, proposal: Proposal) -> str:
    """What is stored of a code: it is bound to everything that was shown with it."""
    shown = proposal._replace(status="pending", decided_at=None, decided_by=None, code_digest=None)
    return hashlib.sha256(json.dumps([code.upper(), *shown], ensure_ascii=False).encode()).hexdigest()


def read_answer(text: str) -> tuple[Decision, str] | None:
    """The decision and the code of a chat message such as `approve 7KQ2MXRA`; None if it is none."""
    found = _ANSWER.fullmatch(text)
    if found is None:
        return None
    return ("approve" if found[1].lower() == "approve" else "reject"), found[2].upper()


def looks_like_answer(text: str) -> bool:
    """Whether a text begins like a decision."""
    return _ATTEMPT.match(text) is not None


def is_same(a: Definition, b: Definition) -> bool:
    """Whether two definitions of an agent say the same: when it expires, and where an interval begins, do not count."""
    return a.slug == b.slug and is_near_copy(a, b) and _rest(a) == _rest(b)


def is_near_copy(a: Definition, b: Definition) -> bool:
    """Whether two schedules do the same at the same times, under whatever name."""
    return _timing(a) == _timing(b) and _action(a) == _action(b)


def _timing(definition: Definition) -> object:
    timing = definition.timing
    return ("every", timing.every) if isinstance(timing, Every) else timing


def _action(definition: Definition) -> object:
    action = definition.action
    text = getattr(action, "text", None)
    if not isinstance(text, str):
        return action
    words = " ".join(re.findall(r"\w+", text.casefold()))
    return type(action), words or text, getattr(action, "agent", None)


def _rest(definition: Definition) -> tuple[object, ...]:
    return definition.deliver, definition.timeout, definition.action
