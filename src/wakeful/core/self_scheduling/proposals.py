"""Proposals: what an agent wrote and a person has not decided on.

Theory of operation: a proposal is a separate row, outside the schedules. Nothing of it is planned, so nothing can run
before it is approved. It never changes: when the agent writes something else under the same slug, the old one is
`replaced` and there is a new one with a new id and a new code. So a decision by id or by code is always about the text
that was shown. A proposal that is a week old counts as expired, without anything having to happen at that time.

    pending --> approved | rejected | withdrawn (by the agent) | replaced | (by age) expired
"""

import hashlib
import json
import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.returned import RunId
from wakeful.core.schedule.actions import ActionSpec, action_to_json
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import DAY, Duration, Instant
from wakeful.core.time.spacing import shortest_gap
from wakeful.core.time.timing import Cron, Every, Once, Times, Timing, next_n

ProposalStatus: TypeAlias = Literal["pending", "approved", "rejected", "withdrawn", "replaced", "expired"]
OwnedKind: TypeAlias = Literal["schedule", "wake", "run"]
"""`run`: a proposal only, for one run of an existing schedule."""
Decision: TypeAlias = Literal["approve", "reject"]

EXPIRES: Final[Duration] = 7 * DAY
CODE_LENGTH: Final = 8
ALIKE: Final = 0.8
"""The share of words that two proposals must have in common for a rejection of one to cover the other."""
SAMPLED: Final[tuple[Instant, ...]] = (1_767_225_600_000, 1_782_864_000_000)  # 2026-01-01 and 2026-07-01
_BLANK: Final = "\u115f\u1160\u2800"  # they show as nothing
_ANSWER: Final = re.compile(r"\s*/?(approve|reject)\s+([A-Za-z0-9]{8})\s*[.!]?\s*", re.IGNORECASE | re.ASCII)


class Lineage(NamedTuple):
    """The run that made something."""

    run_id: RunId | None
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
        """The status at `now`: an old proposal has expired."""
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
    """The stored digest of a code, which is bound to everything that was shown with it."""
    shown = proposal._replace(status="pending", decided_at=None, decided_by=None, code_digest=None)
    return hashlib.sha256(json.dumps([code.upper(), *shown], ensure_ascii=False).encode()).hexdigest()


def read_answer(text: str) -> tuple[Decision, str] | None:
    """The decision and the code of a chat message such as `approve 7KQ2MXRA`; None if the message is not a decision."""
    match = _ANSWER.fullmatch(text)
    if match is None:
        return None
    return ("approve" if match[1].lower() == "approve" else "reject"), match[2].upper()


def is_same(a: Definition, b: Definition) -> bool:
    """Whether two of an agent's definitions say the same: when it expires, and where an interval begins, do not
    count."""
    return a.slug == b.slug and is_near_copy(a, b) and _rest(a) == _rest(b)


def is_near_copy(a: Definition, b: Definition) -> bool:
    """Whether two schedules do the same at the same times, under whatever name."""
    return _timing(a) == _timing(b) and _action(a) == _action(b)


def is_repeat(rejected: Definition, again: Definition) -> bool:
    """Whether this is what a person rejected, or nearly: most words are the same, and it would run about as often."""
    if type(rejected.action) is not type(again.action):
        return False
    old, new = Counter(_words(rejected.action)), Counter(_words(again.action))
    is_alike = 2 * (old & new).total() >= ALIKE * (old.total() + new.total())
    return is_alike and _is_as_often(rejected.timing, again.timing)


def _is_as_often(a: Timing, b: Timing) -> bool:
    if isinstance(a, Once) or isinstance(b, Once):
        return isinstance(a, Once) and isinstance(b, Once) and abs((a.at or 0) - (b.at or 0)) <= DAY
    gaps = shortest_gap(a), shortest_gap(b)
    return None in gaps or max(gap or 0 for gap in gaps) <= 2 * min(gap or 0 for gap in gaps)


def _timing(definition: Definition) -> object:
    timing = definition.timing
    if isinstance(timing, Every):
        return "every", timing.every
    return _times(timing) if isinstance(timing, Cron | Times) else timing


@lru_cache(maxsize=1024)
def _times(timing: Cron | Times) -> tuple[Instant, ...]:
    """The first times of two half-years: they are the same however the expression and the zone are written."""
    return tuple(at for start in SAMPLED for at in next_n(timing, start, 8))


def _action(definition: Definition) -> object:
    action = definition.action
    text = getattr(action, "text", None)
    if not isinstance(text, str):
        return action
    return type(action), _words(action) or text, getattr(action, "agent", None)


def _words(action: ActionSpec) -> tuple[str, ...]:
    """An action's words, without what does not change how they read."""
    text = getattr(action, "text", None)
    plain = unicodedata.normalize("NFKC", text if isinstance(text, str) else json.dumps(action_to_json(action)))
    seen = "".join(char for char in plain if unicodedata.category(char) not in ("Cf", "Mn") and char not in _BLANK)
    return tuple(re.findall(r"\w+", seen.casefold()))


def _rest(definition: Definition) -> tuple[object, ...]:
    return definition.deliver, definition.timeout, definition.action, definition.exclude
