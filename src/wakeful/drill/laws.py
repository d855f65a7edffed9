"""Laws that relate definitions, ledger rows, and attempts seen from outside.

Theory of operation
-------------------
Each law is a small function. It takes rows of the ledger and attempts *seen from outside*, and yields a sentence for
everything that is wrong; no sentence, no violation. It knows nothing of the engine: what should be planned is counted
from the timing.

A `Seen` is an attempt as its target saw it. A `ghost` is an attempt whose node lost its lease while it ran: it may
continue for a while, because a frozen process cannot be stopped, but nothing it reports counts.

An `Era` is a stretch of time under one timing, so that an edit of the timing divides the past from the future.

The simulated worlds of the tests check more laws, with what only a simulation knows (`tests/worlds/laws.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.run.runs import NOT_RUN, OPEN, Attempt, Run, rung_index
from wakeful.core.schedule.policies import CRASHES_MAX
from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.timing import Timing, instants_after, next_after, tally

Ending: TypeAlias = Literal["done", "failed", "raised", "cancelled", "died"]

ENUMERATED_MAX: Final = 300
"""Stretches up to this long are counted by visiting every instant; longer ones by the timing's own count."""

NONE_UNCUT: Final[Mapping[int, Instant]] = MappingProxyType({})
CRASH_OUTCOMES: Final = frozenset({"crashed", "interrupted"})


class Era(NamedTuple):
    """The schedule had this timing from `after` (exclusive) until the next era."""

    after: Instant
    timing: Timing


class Seen(NamedTuple):
    """One attempt, as the world saw it from outside."""

    run_id: int
    schedule_id: int
    attempt: int
    key: str
    lane: str | None
    node: int  # the incarnation that performed it
    began_at: int  # true time
    ended_at: int | None = None
    ending: Ending | None = None
    is_backfill: bool = False  # for a past instant, on request: it runs alongside the regular ones
    is_ghost: bool = False  # its node had lost its lease, or was dead, before it ended


# -- L1: no silent gap ------------------------------------------------------------------------------------------------


def tiles(
    name: str,
    eras: Sequence[Era],
    rows: Iterable[Run],
    *,
    after: Instant,
    through: Instant,
    ran_ahead: frozenset[int] = frozenset(),
    uncut: Mapping[int, Instant] = NONE_UNCUT,
) -> Iterator[str]:
    """L1: the rows cover every instant in (after, through] exactly once, and each counts what it covers.

    `ran_ahead` names runs that happened while the clock was ahead: they may lie off the grid of a later edit. `uncut`
    names gaps of a timing that is no longer in force that lay across a border to which the clock came back, and that
    border: it is unknown how many of their instants lie on this side, and the instants beyond it were planned again.
    """
    cursor = after
    for row in sorted(rows, key=lambda row: (row.planned_at, row.run_id)):
        last = last_instant(row)
        if row.run_id in ran_ahead and not count_in(eras, row.planned_at - 1, row.planned_at):
            continue
        if row.planned_at <= cursor:
            yield f"L1 {name}: {describe(row)} covers again what was covered up to {at(cursor)}"
            cursor = max(cursor, last)
            continue
        if row.run_id in uncut:
            last = min(last, uncut[row.run_id])
        elif last > through and row.run_id not in ran_ahead:
            yield f"L1 {name}: {describe(row)} reaches beyond {at(through)}, up to where it is planned"
        expected = next_in(eras, cursor)
        if expected is not None and expected < row.planned_at:
            yield f"L1 {name}: no row covers {at(expected)}; the next one is {describe(row)}"
        elif expected is None or expected > row.planned_at:
            yield f"L1 {name}: {describe(row)} is not at a planned instant; the next one was {at(expected)}"
        if row.run_id not in uncut:
            yield from _counts_right(name, eras, row, last)
        cursor = last
    missing = next_in(eras, cursor)
    if missing is not None and missing <= through:
        yield f"L1 {name}: no row covers {at(missing)}, although it is planned through {at(through)}"


def _counts_right(name: str, eras: Sequence[Era], row: Run, last: Instant) -> Iterator[str]:
    if row.instants == 1 and row.planned_until is None:
        return
    counted = count_in(eras, row.planned_at - 1, last)
    if counted != row.instants:
        yield f"L1 {name}: {describe(row)} says {row.instants} instants; there are {counted}"
    if row.outcome not in NOT_RUN:
        yield f"L1 {name}: {describe(row)} ran, but covers more than one instant"


# -- L2: one run per instant ------------------------------------------------------------------------------------------


def one_row_per_instant(name: str, rows: Iterable[Run]) -> Iterator[str]:
    """L2: an occurrence is claimed once."""
    first: dict[int, Run] = {}
    for row in rows:
        other = first.setdefault(row.occurrence, row)
        if other.run_id != row.run_id:
            yield f"L2 {name}: {describe(row)} is a second run of the instant of {describe(other)}"


def attempts_are_bounded(name: str, run: Run, ended: Sequence[Attempt], seen: Sequence[Seen]) -> Iterator[str]:
    """L2: a crash costs at most one more attempt, and a second crash ends the run."""
    begun = len({attempt.attempt for attempt in seen})
    answered = sum(attempt.outcome not in CRASH_OUTCOMES for attempt in ended)
    lost = len(ended) - answered
    if begun > answered + CRASHES_MAX:
        yield (
            f"L2 {name}: {describe(run)} was begun {begun} times although only {answered} attempts were answered: "
            f"a crash costs one more attempt, never two"
        )
    if lost > 1:
        yield f"L2 {name}: {describe(run)} was tried again after {lost} crashes"
    if run.crashes >= CRASHES_MAX and run.outcome in OPEN:
        yield f"L2 {name}: {describe(run)} is still open after {run.crashes} crashes"
    if begun > run.attempt:
        yield f"L2 {name}: {describe(run)} was begun {begun} times and counts {run.attempt}"


def attempts_begin_once(name: str, seen: Sequence[Seen]) -> Iterator[str]:
    """L2: each attempt is begun by one node once, and all attempts of a run carry one key."""
    numbers: dict[int, Seen] = {}
    for attempt in seen:
        other = numbers.setdefault(attempt.attempt, attempt)
        if other is not attempt:
            where = f", on node {other.node} and on {attempt.node}" if other.node != attempt.node else ""
            yield f"L2 {name}: attempt {attempt.attempt} of run {attempt.run_id} began twice{where}"
        if attempt.key != seen[0].key:
            yield f"L2 {name}: run {attempt.run_id} has the keys {seen[0].key} and {attempt.key}"


def attempts_begin_in_order(name: str, seen: Sequence[Seen]) -> Iterator[str]:
    """L6: no attempt begins after a later one of the same run has begun: its node had already lost the run."""
    latest = 0
    for attempt in sorted(seen, key=lambda attempt: attempt.began_at):
        if attempt.attempt < latest:
            which = f"attempt {attempt.attempt} of run {attempt.run_id}"
            yield f"L6 {name}: {which} began at {at(attempt.began_at)}, after attempt {latest}"
        latest = max(latest, attempt.attempt)


def unknown_is_not_repeated(name: str, run: Run, ended: Sequence[Attempt], seen: Sequence[Seen]) -> Iterator[str]:
    """L2: with `onCrash: unknown`, what began is not begun again unless its end was reported."""
    answered = {attempt.attempt for attempt in ended if attempt.outcome not in CRASH_OUTCOMES}
    begun = sorted({attempt.attempt for attempt in seen})
    if len(seen) > len(begun) or not answered.issuperset(begun[:-1]):
        yield f"L2 {name}: {describe(run)} began {len(seen)} times, although its schedule says onCrash: unknown"


# -- L7: commit before acknowledging ----------------------------------------------------------------------------------


def begun_is_recorded(name: str, run: Run, ended: Sequence[Attempt], seen: Sequence[Seen]) -> Iterator[str]:
    """L7: that something may have been sent is on record before it is sent, so the record of an attempt whose node died
    never says that nothing was sent if its target saw it."""
    numbers = {attempt.attempt for attempt in seen}
    for attempt in ended:
        is_lost = attempt.outcome in CRASH_OUTCOMES and rung_index(attempt.rung) <= 0
        if is_lost and attempt.attempt in numbers:
            yield (
                f"L7 {name}: attempt {attempt.attempt} of {describe(run)} was seen to begin, and its record says that "
                "nothing was sent: what was written before it began was lost"
            )


# -- what the sentences are made of -----------------------------------------------------------------------------------


def next_in(eras: Sequence[Era], t: Instant) -> Instant | None:
    """The first instant after `t` that a schedule with this history has."""
    for index, era in enumerate(eras):
        until = eras[index + 1].after if index + 1 < len(eras) else None
        if until is not None and until <= t:
            continue
        instant = next_after(era.timing, max(t, era.after))
        if instant is not None and (until is None or instant <= until):
            return instant
    return None


def count_in(eras: Sequence[Era], after: Instant, until: Instant) -> int:
    """How many instants lie in (after, until]: by visiting them, and by the timing's own count beyond a few hundred."""
    count = 0
    for index, era in enumerate(eras):
        start = max(after, era.after)
        end = min(until, eras[index + 1].after) if index + 1 < len(eras) else until
        if end <= start:
            continue
        visited = 0
        for _ in takewhile(lambda instant, end=end: instant <= end, instants_after(era.timing, start)):  # type: ignore[misc]
            visited += 1
            if visited > ENUMERATED_MAX:
                visited = tally(era.timing, start, end).count
                break
        count += visited
    return count


def last_instant(row: Run) -> Instant:
    """The last instant a row covers."""
    return row.planned_at if row.planned_until is None else row.planned_until


def at(instant: Instant | None) -> str:
    """An instant as text."""
    return "never" if instant is None else format_instant(instant)


def describe(row: Run) -> str:
    """A row in a few words."""
    span = at(row.planned_at) if row.planned_until is None else f"{at(row.planned_at)}..{at(row.planned_until)}"
    reason = f"({row.reason})" if row.reason else ""
    stuck = ", stuck" if row.stuck else ""
    return f"run {row.run_id} [{span}, {row.trigger}, {row.outcome}{reason}, attempt {row.attempt}{stuck}]"
