"""The results of a run, and the comparison with the others."""

from dataclasses import dataclass, field
from statistics import median

from bench.lines import Figure
from bench.measures import MEASURES
from bench.plan import OURS
from bench.targets import TARGETS, Store, Target


@dataclass(slots=True)
class Results:
    """Values by measure, store and subject, one for each repeat; and what could not be measured, and why."""

    values: dict[tuple[str, Store], dict[str, list[float]]] = field(default_factory=dict)
    facts: dict[tuple[str, Store, str], dict[str, float | str]] = field(default_factory=dict)
    missing: dict[tuple[str, Store, str], str] = field(default_factory=dict)

    def add(self, store: Store, subject: str, figure: Figure) -> None:
        self.values.setdefault((figure.measure, store), {}).setdefault(subject, []).append(figure.value)
        self.facts[(figure.measure, store, subject)] = dict(figure.facts)

    def miss(self, measure: str, store: Store, subject: str, why: str) -> None:
        self.values.setdefault((measure, store), {})
        self.missing[(measure, store, subject)] = why

    def value(self, measure: str, store: Store, subject: str) -> float | None:
        """The median of the repeats."""
        values = self.values.get((measure, store), {}).get(subject)
        return median(values) if values else None

    def ratio(self, measure: str, store: Store, subject: str) -> float | None:
        """Ours divided by theirs."""
        ours, theirs = self.value(measure, store, OURS), self.value(measure, store, subject)
        return None if ours is None or not theirs else ours / theirs

    def best(self, measure: str, store: Store, peer: str) -> str | None:
        """The best figure of a peer that was measured in several setups."""
        ways = [way for way in self.values.get((measure, store), {}) if way.split(",")[0] == peer]
        choose = max if MEASURES[measure].better == "more" else min
        return choose(ways, key=lambda way: self.value(measure, store, way) or 0.0, default=None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target, the measured figure, and whether it is reached; None if it could not be measured."""

    target: Target
    reached: float | None
    is_reached: bool | None


def verdicts(results: Results) -> list[Verdict]:
    """Every target, in order."""
    return [_verdict(results, target) for target in TARGETS]


def _verdict(results: Results, target: Target) -> Verdict:
    if target.peer is None:
        reached = results.value(target.measure, target.store, OURS)
    else:
        way = results.best(target.measure, target.store, target.peer)
        reached = None if way is None else results.ratio(target.measure, target.store, way)
    if reached is None:
        return Verdict(target, None, None)
    is_enough = reached >= target.bound if MEASURES[target.measure].better == "more" else reached < target.bound
    return Verdict(target, reached, is_enough)
