"""How a change affects the plan: two simulations with the same seed, compared run by run."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from wakeful.core.money.prices import dollars
from wakeful.core.simulation.results import ChangedSchedule, OnlyInOne, PlanDifference
from wakeful.core.simulation.summary import SimulatedRow, Sums, by_schedule
from wakeful.core.time.instants import Instant, format_instant

NAMED_MAX: Final = 3
"""How many schedules the sentence names."""

Key = tuple[str, Instant, str]


class Changed(NamedTuple):
    """One schedule whose runs end differently, start at another time, or cost something else."""

    slug: str
    ends: int  # runs with another outcome or reason
    starts: int  # runs that start at another time
    before: Sums
    after: Sums

    def to_json(self) -> ChangedSchedule:
        return {
            "slug": self.slug,
            "outcomes": self.ends,
            "starts": self.starts,
            "before": self.before.to_json(),
            "after": self.after.to_json(),
        }


class Counted(NamedTuple):
    """Runs of one schedule that are only in one of the two plans."""

    slug: str
    runs: int
    first: Instant

    def to_json(self) -> OnlyInOne:
        return {"slug": self.slug, "runs": self.runs, "first": format_instant(self.first)}


class Difference(NamedTuple):
    """The difference between two plans."""

    added: Sequence[Counted] = ()
    removed: Sequence[Counted] = ()
    changed: Sequence[Changed] = ()
    cost: int = 0  # how much more it costs, in billionths of a dollar

    def to_json(self) -> PlanDifference:
        return {
            "sentence": sentence(self),
            "added": [row.to_json() for row in self.added],
            "removed": [row.to_json() for row in self.removed],
            "changed": [row.to_json() for row in self.changed],
            "cost": dollars(self.cost),
        }


def compare(before: Sequence[SimulatedRow], after: Sequence[SimulatedRow]) -> Difference:
    """Compare two plans."""
    old, new = _keyed(before), _keyed(after)
    added = _only(new, old)
    removed = _only(old, new)
    ends, starts = Counter[str](), Counter[str]()
    for key, row in new.items():
        was = old.get(key)
        if was is None:
            continue
        ends[row.slug] += (was.outcome, was.reason, was.instants) != (row.outcome, row.reason, row.instants)
        starts[row.slug] += was.is_run and row.is_run and was.started_at != row.started_at
    sums_before, sums_after = by_schedule(before), by_schedule(after)
    changed = [
        Changed(slug, ends[slug], starts[slug], sums_before.get(slug, Sums()), sums_after.get(slug, Sums()))
        for slug in sorted(ends)
        if ends[slug] or starts[slug]
    ]
    cost = sum(row.cost for row in after) - sum(row.cost for row in before)
    return Difference(added, removed, changed, cost)


def _keyed(rows: Iterable[SimulatedRow]) -> dict[Key, SimulatedRow]:
    return {(row.slug, row.planned_at, row.trigger): row for row in rows}


def _only(rows: Mapping[Key, SimulatedRow], others: Mapping[Key, SimulatedRow]) -> list[Counted]:
    """The runs in one plan whose instant has no row in the other, by schedule."""
    found: dict[str, list[Instant]] = {}
    for key, row in rows.items():
        if row.is_run and key not in others:
            found.setdefault(row.slug, []).append(row.planned_at)
    return [Counted(slug, len(times), min(times)) for slug, times in sorted(found.items())]


def sentence(difference: Difference) -> str:
    parts = [
        *_runs(difference.added, "more"),
        *_runs(difference.removed, "fewer"),
        *_counted({changed.slug: changed.ends for changed in difference.changed}, "end differently"),
        *_counted({changed.slug: changed.starts for changed in difference.changed}, "start at another time"),
    ]
    amount = abs(dollars(difference.cost))
    if amount >= 0.005:
        parts.append(f"the cost is {amount:.2f} USD {'higher' if difference.cost > 0 else 'lower'}")
    return f"{'; '.join(parts)}." if parts else "Nothing changes."


def _runs(counted: Sequence[Counted], word: str) -> list[str]:
    total = sum(row.runs for row in counted)
    if total == 0:
        return []
    return [f"{total} {word} {'run' if total == 1 else 'runs'}{_of({row.slug: row.runs for row in counted})}"]


def _counted(counts: Mapping[str, int], what: str) -> list[str]:
    known = {slug: count for slug, count in counts.items() if count}
    total = sum(known.values())
    if total == 0:
        return []
    verb = what if total > 1 else what.replace("end ", "ends ").replace("start ", "starts ")
    return [f"{total} {'run' if total == 1 else 'runs'}{_of(known)} {verb}"]


def _of(counts: Mapping[str, int]) -> str:
    """The schedules, those with the most runs first."""
    named = sorted(counts, key=lambda slug: (-counts[slug], slug))
    more = f" and {len(named) - NAMED_MAX} more" if len(named) > NAMED_MAX else ""
    return f" of {', '.join(named[:NAMED_MAX])}{more}"
