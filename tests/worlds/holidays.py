"""Excluded days in a world: some schedules have their own, and the settings of all nodes change now and then.

What is excluded is drawn from generators of its own. The law compares days as the standard library shows them.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from wakeful.core.run.runs import NOT_RUN, Run
from wakeful.core.schedule.cadence import Rules
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.exclude import EXCLUDED, Exclude
from wakeful.core.time.instants import DAY, MINUTE, Instant
from wakeful.core.time.timing import zone_of
from wakeful.features.schedules.rules import Terms
from wakeful.testing.virtual_clock import EPOCH

ZONE: Final = "UTC"
OWN: Final = 0.15
"""How many of the schedules have excluded days of their own."""


class Holidays(NamedTuple):
    """From now on, these are the excluded days of the settings."""

    at: int  # true time
    dates: tuple[str, ...]


def draw_holidays(rng: random.Random, *, days: float, per_day: float) -> list[Holidays]:
    """Changes of the settings: mostly of days close to the change."""
    changes = []
    for _ in range(int(days * per_day) + (rng.random() < days * per_day % 1)):
        at = rng.randrange(int(days * DAY))
        changes.append(Holidays(at, _dates(rng, EPOCH + at, most=rng.choice((0, 1, 2, 5)))))
    return changes


def with_own_days(rng: random.Random, written: dict[str, Any], now: Instant) -> dict[str, Any]:
    """The definition, perhaps with excluded days."""
    if rng.random() >= OWN:
        return written
    return {**written, "exclude": {"dates": list(_dates(rng, now, most=rng.randint(1, 6))) or ["2026-12-24"]}}


def _dates(rng: random.Random, now: Instant, *, most: int) -> tuple[str, ...]:
    first = datetime.fromtimestamp(now // 1000, UTC).date()
    return tuple(sorted({str(first + timedelta(days=rng.randrange(-1, 8))) for _ in range(most)}))


class Calendar:
    """What is excluded at present, and the law about it."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock  # true time
        self.exclude: Exclude | None = None
        self.changed_at = -MINUTE  # true time

    def change(self, dates: tuple[str, ...]) -> None:
        self.exclude = Exclude(dates) if dates else None
        self.changed_at = self._clock()

    def terms(self, terms: Terms) -> Terms:
        """The terms of a node."""
        return replace(terms, exclude=self.exclude)

    def starting(self, rules: Rules, definition: Definition | None) -> Rules:
        """The rules without the instants on excluded days."""
        if definition is None:
            return rules
        timing = self.terms(Terms(default_zone=ZONE)).starting(rules.timing, definition)
        return replace(rules, timing=timing)

    def judge(self, name: str, before: Run | None, row: Run, definition: Definition | None) -> Iterator[str]:
        """L2: no instant on an excluded day starts. L1: only such instants are skipped for that reason."""
        if definition is None or self._clock() - self.changed_at < MINUTE:
            return  # a decision made just before the change may be written just after it
        if before is None and row.outcome not in NOT_RUN and self._is_on(definition, row.planned_at):
            yield f"L2 {name}: run {row.run_id} of {_day(definition, row.planned_at)} started, and that day is excluded"
        if row.outcome == "skipped" and row.reason == EXCLUDED and before is None:
            for at in (row.planned_at, row.planned_until or row.planned_at):
                if not self._is_on(definition, at):
                    yield f"L1 {name}: row {row.run_id} skipped {_day(definition, at)}, and that day is not excluded"

    def _is_on(self, definition: Definition, at: Instant) -> bool:
        own = () if definition.exclude is None else definition.exclude.dates
        common = () if self.exclude is None else self.exclude.dates
        return str(_day(definition, at)) in (*own, *common)


def _day(definition: Definition, at: Instant) -> date:
    own = None if definition.exclude is None else definition.exclude.timezone
    zone = own or zone_of(definition.timing) or ZONE
    return datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).date()
