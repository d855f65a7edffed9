"""Runs that started or succeeded together, as a sequence of rows that are made only if a listener needs them.

Most listeners need little: the ids of a run and its schedule, or what all runs of a batch have in common. These they
get from the claims, by `named` and `alike`. Both take any sequence of runs, so a listener need not know which it has.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, overload

from wakeful.core.run.runs import Run
from wakeful.ports.claims import Claim

_batch: Final = attrgetter("batch")


class PlainRuns(Sequence[Run]):
    """The rows of claims. Runs of one batch differ only in ids, schedules, lanes, deadlines and what is stored."""

    __slots__ = ("_rows", "claims", "row_of")

    def __init__(self, claims: Sequence[Claim], row_of: Callable[[Claim], Run]) -> None:
        self.claims = claims
        self.row_of = row_of
        self._rows: list[Run] | None = None

    def __len__(self) -> int:
        return len(self.claims)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | Sequence[Run]:
        return self._made()[index]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._made())

    def _made(self) -> list[Run]:
        if self._rows is None:
            self._rows = list(map(self.row_of, self.claims))
        return self._rows


def named(runs: Sequence[Run]) -> Sequence[Run | Claim]:
    """What names each run and its schedule: a row, or a claim."""
    return runs.claims if isinstance(runs, PlainRuns) else runs


def alike(runs: Sequence[Run]) -> Iterator[tuple[Run, int]]:
    """Rows that stand for one or more runs that differ only in what a batch leaves open, and for how many."""
    if not isinstance(runs, PlainRuns):
        for run in runs:
            yield run, 1
        return
    for _, group in groupby(runs.claims, key=_batch):
        claims = list(group)
        yield runs.row_of(claims[0]), len(claims)
