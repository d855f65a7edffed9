"""Forecasts for Python programs, REST and the command line, and how the last one compared with what happened."""

import json
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

from wakeful.app.costs import unpriced_in
from wakeful.app.forecast_rows import Forecasts, StoredForecast
from wakeful.app.simulating import Simulations
from wakeful.core.errors import Invalid, refuse
from wakeful.core.fields import shown
from wakeful.core.money.budgets import window_of
from wakeful.core.money.prices import dollars
from wakeful.core.returned import TimeText, kind_of
from wakeful.core.simulation.request import SimulationRequest, Troubles
from wakeful.core.simulation.results import Expected, From, PlanForecast
from wakeful.core.simulation.summary import Days
from wakeful.core.time.instants import DAY, Instant, format_instant
from wakeful.features.money.unpriced import UNPRICED, Unpriced
from wakeful.ports.charges import Charges
from wakeful.ports.store import Tx

log = logging.getLogger("wakeful")

DAYS: Final = 7
DAYS_MAX: Final = 92
KEPT: Final = 60 * DAY


class ComparedCost(Expected):
    """A forecast and what happened."""

    actual: float


class Accuracy(From):
    """How the last forecast compared with what happened."""

    madeAt: TimeText  # noqa: N815 - its name in JSON
    until: TimeText
    days: Annotated[int, "full days that have passed"]
    cost: ComparedCost
    turns: int
    error: Annotated[float | None, "0.1: it was 10 % too high"]
    within: Annotated[bool, "whether what happened was within the range"]


class Forecast(PlanForecast):
    """What to expect."""

    unpriced: Annotated[list[dict[str, Any]], "agents to which limits in dollars do not apply", kind_of(list[Unpriced])]
    accuracy: Accuracy | None


class Forecasting(Simulations):
    """What to expect."""

    _forecasts: Mapping[int, Forecast] = MappingProxyType({})  # the last one by its number of days

    async def forecast(self, days: int = DAYS) -> Forecast:
        """The coming days (7): expected runs, tokens and cost with ranges from the 5th to the 95th percentile,
        collisions, quota windows and budgets at risk; and how the last forecast compared with what happened.

        The first forecast of a week that is made on a day is stored, to be compared later."""
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= DAYS_MAX:
            refuse("days", f"{shown(days)} is not a number of days; give 1 to {DAYS_MAX}")
        now, zone = self._clock.read().now, self._open.conditions.default_zone
        request = SimulationRequest(now, now + days * DAY, 0, Troubles())
        expected: PlanForecast = json.loads(await self._answered("forecast", request, now))
        if days >= DAYS:
            await self._open.store.write(lambda tx: _store(tx, expected, now, zone))

        def complete(tx: Tx) -> Forecast:
            unpriced = unpriced_in(tx, self._money.terms, self._open.compilations, now=now)
            known = accuracy(tx, now=now, zone=zone)
            return {**expected, "unpriced": [UNPRICED.write(agent) for agent in unpriced], "accuracy": known}

        made = await self._open.store.read(complete)
        self._forecasts = {**self._forecasts, days: made}
        return made

    async def _forecast_daily(self) -> bool:
        """Make and store today's forecast, unless there is one."""
        now, zone = self._clock.read().now, self._open.conditions.default_zone
        today = Days(now, now + 1, zone).dates[0]

        def is_needed(tx: Tx) -> bool:
            return tx.schedules.count() > 0 and tx[Forecasts].get(today) is None

        if not await self._open.store.read(is_needed):
            return False
        try:
            await self.forecast()
        except Invalid as refused:  # more instants than a simulation may have
            log.info("no forecast today: %s", refused)
            return False
        return True


def _store(tx: Tx, made: PlanForecast, now: Instant, zone: str) -> None:
    """Store a forecast's whole days, without the partial first and last ones."""
    whole = made["days"][1:-1]
    if not whole:
        return
    kept = [{"date": day["date"], "runs": day["runs"], "cost": day["costSoFar"]} for day in whole]
    ends_at = window_of("day", zone, now).ends_at
    for _ in kept:
        ends_at = window_of("day", zone, ends_at).ends_at
    tx[Forecasts].forget(before=now - KEPT)
    tx[Forecasts].add_first(StoredForecast(made["days"][0]["date"], now, ends_at, json.dumps(kept)))


def accuracy(tx: Tx, *, now: Instant, zone: str) -> Accuracy | None:
    """How the last forecast compares with what happened on its past days; None if there is none yet."""
    compared = [made for row in tx[Forecasts].since(now - KEPT) if (made := _compared(tx, row, now, zone)) is not None]
    return max(compared, key=lambda comparison: (comparison["days"], comparison["madeAt"])) if compared else None


def _compared(tx: Tx, row: StoredForecast, now: Instant, zone: str) -> Accuracy | None:
    starts_at = window_of("day", zone, row.made_at).ends_at
    passed: list[Mapping[str, Any]] = []
    at = starts_at
    for day in json.loads(row.body):
        ends_at = window_of("day", zone, at).ends_at
        if ends_at > now:
            break
        passed.append(day)
        at = ends_at
    if not passed:
        return None
    actual = tx[Charges].sums("agent", since=starts_at, until=at)
    cost, turns = dollars(sum(row.cost for row in actual)), sum(row.runs for row in actual)
    expected, low, high = (passed[-1]["cost"][name] for name in ("expected", "low", "high"))
    return {
        "madeAt": format_instant(row.made_at),
        "from": format_instant(starts_at),
        "until": format_instant(at),
        "days": len(passed),
        "cost": {"low": low, "expected": expected, "high": high, "actual": cost},
        "turns": turns,
        "error": None if cost == 0 else (expected - cost) / cost,
        "within": low <= cost <= high,
    }
