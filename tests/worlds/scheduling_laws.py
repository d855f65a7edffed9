"""The laws of agents that schedule themselves, as questions about what they own and what they proposed."""

from collections.abc import Iterator, Mapping, Sequence

from wakeful.core.schedule.definition import Definition
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.self_scheduling.proposals import Ownership, Proposal
from wakeful.core.time.instants import DAY, Instant
from wakeful.core.time.timing import Every, Once


def may_pass(kind: str, definition: Definition, depth: int, terms: SelfSchedulingTerms) -> bool:
    """Whether an agent may have written this without a person."""
    if terms.approval == "never":
        return True
    if kind == "wake":
        return terms.approval == "recurring" or depth == 1
    return terms.approval == "recurring" and isinstance(definition.timing, Once)


def is_approved(
    slug: str, row: Ownership, definition: Definition, approved: Sequence[Definition], terms: SelfSchedulingTerms
) -> Iterator[str]:
    """S1: what is planned for an agent is what a person approved, or what needed no approval."""
    if may_pass(row.kind, definition, row.depth, terms):
        return
    if not any(_says(one) == _says(definition) for one in approved):
        yield f"S1 {slug}: {row.owner} has it planned as {_says(definition)}, and no person approved that"


def _says(definition: Definition) -> tuple[object, ...]:
    """What a person approves: a change keeps the grid of an interval, so where it begins does not count."""
    timing = definition.timing
    return timing.every if isinstance(timing, Every) else timing, definition.action, definition.expires_at


def is_not_back(slug: str, row: Ownership, removed_at: Instant | None) -> Iterator[str]:
    """S2: what a person removed comes back only through a person."""
    if removed_at is not None and row.approval is None:
        yield f"S2 {slug}: a person removed it, and {row.owner} has created it again without one"


def are_few(agent: str, live: int, waiting: int, terms: SelfSchedulingTerms) -> Iterator[str]:
    """S3: schedules and proposals together are at most `schedules_max`."""
    if live + waiting > terms.schedules_max:
        yield f"S3 {agent}: {live} schedules and {waiting} proposals, and {terms.schedules_max} may be"


def wakes_are_few(agent: str, made: Sequence[Ownership], terms: SelfSchedulingTerms, now: Instant) -> Iterator[str]:
    """S3: an agent wakes itself at most `wakes_per_day` times in a day."""
    wakes = [row for row in made if row.kind == "wake" and now - DAY < row.created_at <= now]
    if len(wakes) > terms.wakes_per_day:
        yield f"S3 {agent}: {len(wakes)} wakes within a day, and {terms.wakes_per_day} may be"


def is_not_deep(slug: str, depth: int, parent: int | None, terms: SelfSchedulingTerms) -> Iterator[str]:
    """S4: every link of a chain is one deeper, and the chain ends."""
    if depth > terms.depth_max:
        yield f"S4 {slug}: it is {depth} deep, and {terms.depth_max} may be"
    if parent is not None and depth <= parent:
        yield f"S4 {slug}: it is {depth} deep, and was made by a run that is {parent} deep"


def is_in_its_namespace(slug: str, owner: str) -> Iterator[str]:
    """S5: an agent owns nothing outside of its own names."""
    if not slug.startswith(f"{owner}."):
        yield f"S5 {slug}: it belongs to {owner}"


def leaves_others_alone(
    agent: str, what: str, before: Mapping[str, object], after: Mapping[str, object]
) -> Iterator[str]:
    """S5: what an agent does changes nothing that it does not own."""
    for slug in before.keys() | after.keys():
        if before.get(slug) != after.get(slug):
            yield f"S5 {agent}: {what} changed {slug}: {before.get(slug)} is now {after.get(slug)}"


def ends(slug: str, definition: Definition) -> Iterator[str]:
    """S6: everything an agent owns ends."""
    if definition.expires_at is None and not isinstance(definition.timing, Once):
        yield f"S6 {slug}: it has no end"


def is_asked_once(proposals: Sequence[Proposal]) -> Iterator[str]:
    """S6: there is one proposal for a slug."""
    slugs = [row.slug for row in proposals]
    for slug in {slug for slug in slugs if slugs.count(slug) > 1}:
        yield f"S6 {slug}: {slugs.count(slug)} proposals wait for it"
