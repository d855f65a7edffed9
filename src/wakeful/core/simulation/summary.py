"""A simulation's result: its rows, totalled by schedule, day and lane."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from wakeful.core.money.budgets import window_of
from wakeful.core.money.prices import dollars
from wakeful.core.run.runs import ERRORS, NOT_RUN, OPEN, Outcome, Trigger
from wakeful.core.simulation.results import LaneWaits, SimulatedPeak, SimulatedRun, SimulatedSums
from wakeful.core.time.instants import SECOND, Duration, Instant, format_duration, format_instant, format_optional
from wakeful.core.time.zones import segment_at


class SimulatedRow(NamedTuple):
    """One row of the simulated ledger."""

    slug: str
    planned_at: Instant
    planned_until: Instant | None
    instants: int
    due_at: Instant
    trigger: Trigger
    started_at: Instant | None
    ended_at: Instant | None
    outcome: Outcome
    reason: str | None
    lane: str | None
    turns: int = 0  # attempts that an agent was paid for
    tokens: int = 0
    cost: int = 0  # of those that are known, in billionths of a dollar
    unknown: int = 0  # turns whose cost is unknown

    @property
    def is_run(self) -> bool:
        return self.outcome not in NOT_RUN

    def to_json(self) -> SimulatedRun:
        row: SimulatedRun = {
            "slug": self.slug,
            "plannedAt": format_instant(self.planned_at),
            "startedAt": format_optional(self.started_at),
            "endedAt": None if self.ended_at is None or not self.is_run else format_instant(self.ended_at),
            "trigger": self.trigger,
            "outcome": self.outcome,
            "reason": self.reason,
        }
        if self.planned_until is not None:
            row["count"], row["plannedUntil"] = self.instants, format_instant(self.planned_until)
        if self.turns:
            row["cost"] = None if self.unknown == self.turns else dollars(self.cost)
        return row


class Peak(NamedTuple):
    """The largest number of attempts in progress at the same time."""

    running: int
    at: Instant | None

    def to_json(self) -> SimulatedPeak:
        return {"running": self.running, "at": format_optional(self.at)}


class SimulatedPlan(NamedTuple):
    """A simulated plan."""

    rows: Sequence[SimulatedRow]
    peak: Peak


@dataclass(slots=True)
class Sums:
    """Counts of rows."""

    outcomes: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    tokens: int = 0
    cost: int = 0
    unknown: int = 0

    def add(self, row: SimulatedRow) -> None:
        if row.outcome == "skipped":
            self.skipped[row.reason or ""] += row.instants
        elif row.outcome == "missed":
            self.missed[row.reason or ""] += row.instants
        else:
            self.outcomes[row.outcome] += 1
        self.turns += row.turns
        self.tokens += row.tokens
        self.cost += row.cost
        self.unknown += row.unknown

    @property
    def runs(self) -> int:
        return self.outcomes.total()

    @property
    def known_cost(self) -> float | None:
        """In dollars; None if there were turns and the cost of none is known."""
        return None if self.turns and self.turns == self.unknown else dollars(self.cost)

    def to_json(self) -> SimulatedSums:
        return {
            "runs": self.runs,
            "succeeded": self.outcomes["succeeded"],
            "failed": sum(self.outcomes[outcome] for outcome in ERRORS),
            "open": sum(self.outcomes[outcome] for outcome in OPEN),
            "outcomes": dict(sorted(self.outcomes.items())),
            "skipped": dict(sorted(self.skipped.items())),
            "missed": dict(sorted(self.missed.items())),
            "tokens": self.tokens,
            "cost": self.known_cost,
            "unknownCosts": self.unknown,
        }


class Days:
    """The local days of a period."""

    def __init__(self, starts_at: Instant, ends_at: Instant, zone: str) -> None:
        self._starts: list[Instant] = []
        self.dates: list[str] = []
        at = starts_at
        while at < ends_at:
            window = window_of("day", zone, at)
            self._starts.append(window.starts_at)
            self.dates.append(_date((window.starts_at + window.ends_at) // 2, zone))
            at = window.ends_at

    def date_of(self, at: Instant) -> str:
        """The day of an instant; what is before the first day belongs to it."""
        return self.dates[max(bisect_right(self._starts, at) - 1, 0)]


def _date(noon: Instant, zone: str) -> str:
    second = noon // SECOND
    return datetime.fromtimestamp(second + segment_at(zone, second).offset, UTC).date().isoformat()


def by_schedule(rows: Iterable[SimulatedRow]) -> dict[str, Sums]:
    """Totals by slug, in order."""
    sums: dict[str, Sums] = {}
    for row in rows:
        known = sums.get(row.slug)
        if known is None:
            known = sums[row.slug] = Sums()
        known.add(row)
    return dict(sorted(sums.items()))


def by_day(rows: Iterable[SimulatedRow], days: Days) -> dict[str, Sums]:
    """Totals by local day, including days on which nothing happens."""
    sums = {date: Sums() for date in days.dates}
    for row in rows:
        sums[days.date_of(row.planned_at)].add(row)
    return sums


LANES_MAX: Final = 100


@dataclass(slots=True)
class LaneSums:
    """How long runs waited in one lane."""

    runs: int = 0
    waited: int = 0
    longest: Duration = 0
    total: Duration = 0

    def add(self, row: SimulatedRow) -> None:
        wait = 0 if row.started_at is None else row.started_at - row.due_at
        self.runs += 1
        self.waited += wait > 0
        self.longest = max(self.longest, wait)
        self.total += max(wait, 0)

    def to_json(self) -> LaneWaits:
        return {
            "runs": self.runs,
            "waited": self.waited,
            "longest": format_duration(self.longest),
            "total": format_duration(self.total),
        }


def by_lane(rows: Iterable[SimulatedRow]) -> dict[str, LaneSums]:
    """Waits by lane, the longest first."""
    lanes: dict[str, LaneSums] = {}
    for row in rows:
        if row.lane is not None and row.is_run:
            lanes.setdefault(row.lane, LaneSums()).add(row)
    return dict(sorted(lanes.items(), key=lambda lane: (-lane[1].total, lane[0]))[:LANES_MAX])


def in_order(rows: Iterable[SimulatedRow]) -> list[SimulatedRow]:
    """By planned time, then by slug."""
    return sorted(rows, key=lambda row: (row.planned_at, row.slug, row.due_at, row.outcome))
