"""The laws of what people are told: limits of lateness that hold, what happens next, and how far a run got."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from wakeful.core.run.runs import OUTSIDE_PLAN, Run, RungName, rung_index
from wakeful.core.schedule.cadence import Rules
from wakeful.core.schedule.policies import GRACE
from wakeful.core.time.instants import format_duration
from worlds.laws import Seen, Shift, describe

COUNTED = frozenset({None, "lane", "queued"})
"""What a run may wait for without an excuse: capacity, its lane, the previous run."""


def begins_in_time(name: str, row: Run, rules: Rules, waits: Collection[str | None]) -> Iterator[str]:
    """L4: a planned run that waited for capacity, its lane or the previous run begins within its limit, or not at
    all."""
    if rules.lateness_max is None or row.claimed_at is None or row.attempt != 1 or row.trigger in OUTSIDE_PLAN:
        return
    late = row.claimed_at - row.due_at
    if COUNTED.issuperset(waits) and late > max(rules.lateness_max, GRACE):
        limit = format_duration(rules.lateness_max)
        yield f"L4 {name}: {describe(row)} began {format_duration(late)} late; at most {limit} is allowed"


def missed_never_began(name: str, shift: Shift, seen: Sequence[Seen]) -> Iterator[str]:
    """L2: a run is missed only if no attempt of it was ever seen to begin."""
    if shift.after.outcome == "missed" and seen:
        yield f"L2 {name}: {describe(shift.after)} is missed, and attempt {seen[0].attempt} of it began"


def higher(one: RungName | None, other: RungName) -> RungName:
    """The higher of two rungs."""
    return other if one is None or rung_index(other) > rung_index(one) else one


def reached_is_the_highest(run: Run, shown: RungName | None, got: Collection[RungName]) -> Iterator[str]:
    """L8: what readers are shown as reached is never lower than what an attempt reached. That it was sent may turn out
    to be wrong, because its target never received it, and a claim may be taken back."""
    proven = [rung for rung in got if rung_index(rung) > rung_index("sent")]
    if proven and rung_index(shown) < max(map(rung_index, proven)):
        yield f"L8 {describe(run)} is shown as having reached {shown}, and its attempts got as far as {sorted(got)}"


def next_is_the_first(slug: str, shown: datetime | None, first: datetime | None) -> Iterator[str]:
    """L1: `nextRun` is the first entry that `/upcoming` has for a schedule."""
    if shown != first:
        yield f"L1 {slug}: its next run is shown as {shown}, and the first one that is upcoming as {first}"


def next_start_is_the_first(owner: str, shown: str | None, first: str | None) -> Iterator[str]:
    """L1: `nextWake` of a slot and `nextRun` of a workflow are the first entry that `/upcoming` has for it."""
    if shown != first:
        yield f"L1 {owner}: what it does next is shown as {shown}, and the first that is upcoming as {first}"
