"""Ranges: how much a number of turns may cost, according to the record.

Theory of operation
-------------------
The expected cost of k turns is k times the mean of the recorded ones. The range has two sources: each turn varies, and
the mean itself is only known from n turns. Both matter equally if a week is forecast from a recorded week. So each of
some hundred *rehearsals* first draws a mean that the record allows, then the turns. The 5th and the 95th percentile of
the rehearsals are the range. Few turns are drawn one by one from the record, because costs are skewed; many turns are
drawn as their sum, which is nearly normal.
"""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

REHEARSALS: Final = 400
LOW, HIGH = 0.05, 0.95
ONE_BY_ONE_MAX: Final = 12
FEW: Final = 3
"""With fewer recorded turns than this, their spread is meaningless, so half the mean is used instead."""


CAUTION: Final = 1.1
"""Costs are skewed: a record seldom contains the largest. Without this, the ranges of a hundred recorded weeks
contained what followed 89 times; with it, 92 times."""


class Figures(NamedTuple):
    """What recorded turns cost, or how many tokens they used."""

    values: tuple[int, ...]
    mean: float
    spread: float  # of one turn
    doubt: float  # of the mean


def figures_of(values: Sequence[int]) -> Figures | None:
    """The figures of recorded values; None if there are none."""
    n = len(values)
    if n == 0:
        return None
    mean = sum(values) / n
    if n < FEW:
        return Figures(tuple(values), mean, mean / 2, mean / 2)
    spread = CAUTION * math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    heavy = (n - 1) / (n - 3) if n > 3 else 3.0  # of few values the spread is uncertain too
    return Figures(tuple(values), mean, spread, spread * math.sqrt(heavy / n))


class Range(NamedTuple):
    """What to expect."""

    low: float
    expected: float
    high: float


class Rehearsed:
    """The rehearsals for some owners over some days: totals by day."""

    def __init__(
        self, turns: Mapping[str, Sequence[int]], figures: Mapping[str, Figures], *, seed: int, days: int
    ) -> None:
        """`turns` are the numbers of turns by owner and day."""
        self._turns = turns
        self.figures = figures
        self._seed = seed
        self._rng = random.Random(seed)  # noqa: S311 - a forecast is no secret
        self.days = days
        self.expected = [
            sum(counts[day] * figures[owner].mean for owner, counts in turns.items() if owner in figures)
            for day in range(self.days)
        ]
        self.sums = [self._rehearse() for _ in range(REHEARSALS)]

    def _rehearse(self) -> list[float]:
        sums = [0.0] * self.days
        for owner, counts in self._turns.items():
            known = self.figures.get(owner)
            if known is None:
                continue
            shift = self._rng.gauss(0, known.doubt)
            for day, count in enumerate(counts):
                if count:
                    sums[day] += max(self._drawn(known, count) + count * shift, 0.0)
        return sums

    def _drawn(self, known: Figures, count: int) -> float:
        if count <= ONE_BY_ONE_MAX and len(known.values) >= FEW:
            return float(sum(self._rng.choices(known.values, k=count)))
        return self._rng.gauss(count * known.mean, known.spread * math.sqrt(count))

    def only(self, owners: frozenset[str]) -> "Rehearsed":
        """The rehearsals for some of the owners."""
        if owners >= self._turns.keys():
            return self
        turns = {owner: counts for owner, counts in self._turns.items() if owner in owners}
        return Rehearsed(turns, self.figures, seed=self._seed, days=self.days)

    def of_days(self, first: int, last: int) -> Range:
        """The range of the total over the days [first, last)."""
        return range_of([sum(sums[first:last]) for sums in self.sums], sum(self.expected[first:last]))

    def share_above(self, first: int, last: int, limit: float) -> float:
        """The share of rehearsals in which the total over these days exceeds a limit."""
        return sum(sum(sums[first:last]) > limit for sums in self.sums) / len(self.sums)


def range_of(sums: Sequence[float], expected: float) -> Range:
    """The range of rehearsed totals around the expected value."""
    ordered = sorted(sums)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in (LOW, HIGH))
    return Range(min(low, expected), expected, max(high, expected))
