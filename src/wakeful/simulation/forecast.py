"""The forecast: one simulated plan, with ranges for what its turns cost."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from wakeful.app.simulation_job import SimulationJob
from wakeful.core.money.budgets import AGENT, BUDGET, EVERYTHING, Limit, window_of
from wakeful.core.money.prices import NANO
from wakeful.core.money.schedule_budget import limits_of
from wakeful.core.schedule.actions import Prompt
from wakeful.core.simulation.request import Troubles
from wakeful.core.simulation.results import (
    BudgetAtRisk,
    Collision,
    Expected,
    ForecastDay,
    ForecastSchedule,
    ForecastSums,
    PlanForecast,
    UsedUpWindow,
)  # fmt: skip
from wakeful.core.simulation.summary import Days, SimulatedRow, by_day, by_schedule
from wakeful.core.slot.slot import Slot, decode_reading
from wakeful.core.slot.windows import slot_name
from wakeful.core.time.instants import MINUTE, Instant, format_duration, format_instant
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.money.terms import MoneyTerms
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.simulation.answer import check
from wakeful.simulation.copying import Copied
from wakeful.simulation.plan import run_plan
from wakeful.simulation.ranges import Figures, Range, Rehearsed, figures_of

COLLISION_MIN: Final = MINUTE
"""Shorter waits for a lane do not count as collisions."""
LISTED_MAX: Final = 50
RISK_MIN: Final = 0.05


class Forecast(NamedTuple):
    """The data from which a forecast is built."""

    job: SimulationJob
    copied: Copied
    rows: Sequence[SimulatedRow]
    days: Days
    agents: Mapping[str, str]  # by slug
    turns: Mapping[str, Sequence[int]]  # by slug and day
    cost: Rehearsed
    tokens: Rehearsed


def forecast(job: SimulationJob, copied: Copied) -> PlanForecast:
    """Simulate the present plan, and summarize what to expect."""
    check(job, copied)
    request = job.request
    rows = run_plan(job, copied, troubles=Troubles()).rows
    days = Days(request.starts_at, request.ends_at, job.terms.default_zone)
    made = _made(job, copied, rows, days)
    by_date = by_day(rows, days)
    return {
        "from": format_instant(request.starts_at),
        "until": format_instant(request.ends_at),
        "timezone": job.terms.default_zone,
        "days": [_day(made, number, date, by_date[date].runs) for number, date in enumerate(days.dates)],
        "total": _sums(made, 0, len(days.dates), sum(day.runs for day in by_date.values())),
        "schedules": list(_schedules(made)),
        "unknownCosts": sum(sum(counts) for slug, counts in made.turns.items() if slug not in made.cost.figures),
        "collisions": _collisions(rows),
        "windows": list(_windows(job, copied, rows, made.agents)),
        "budgets": list(_budgets(made)),
    }


def _made(job: SimulationJob, copied: Copied, rows: Sequence[SimulatedRow], days: Days) -> Forecast:
    agents = _agents(job, copied)
    numbers = {date: number for number, date in enumerate(days.dates)}
    turns: dict[str, list[int]] = defaultdict(lambda: [0] * len(numbers))
    for row in rows:
        if row.turns:
            at = row.planned_at if row.started_at is None else row.started_at
            turns[row.slug][numbers[days.date_of(at)]] += row.turns
    cost, tokens = (_figures(copied, agents, name) for name in ("cost", "total"))
    rehearsed = [Rehearsed(turns, known, seed=job.request.seed, days=len(numbers)) for known in (cost, tokens)]
    return Forecast(job, copied, rows, days, agents, turns, *rehearsed)


def _agents(job: SimulationJob, copied: Copied) -> dict[str, str]:
    agents = {} if job.heartbeat is None else {HEARTBEAT: job.heartbeat.agent}
    for schedule in copied.schedules:
        compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
        if isinstance(compiled, Compiled) and isinstance(compiled.model.action, Prompt):
            agents[schedule.slug] = compiled.model.action.agent
    return agents


def _figures(copied: Copied, agents: Mapping[str, str], name: str) -> dict[str, Figures]:
    """What each schedule's turns cost or used, else its agent's turns."""
    own = {slug: _known(copied, slug, name) for slug in copied.records}
    of_agents: dict[str, list[int]] = defaultdict(list)
    for slug, values in own.items():
        if slug in agents:
            of_agents[agents[slug]] += values
    found = {slug: figures_of(own.get(slug) or of_agents[agents.get(slug, "")]) for slug in {*own, *agents}}
    return {slug: figures for slug, figures in found.items() if figures is not None}


def _known(copied: Copied, slug: str, name: str) -> list[int]:
    usages = [sample.usage for sample in copied.records[slug].samples if sample.usage is not None]
    values = [value for usage in usages if (value := usage.get(name)) is not None]
    return [round(value * NANO) if name == "cost" else round(value) for value in values]  # type: ignore[operator, call-overload]  # a number


def _sums(made: Forecast, first: int, last: int, runs: int) -> ForecastSums:
    low, expected, high = map(round, made.tokens.of_days(first, last))
    tokens: Expected = {"low": low, "expected": expected, "high": high}
    return {"runs": runs, "tokens": tokens, "cost": _cost(made.cost.of_days(first, last))}


def _cost(nanos: Range) -> Expected:
    """In US dollars."""
    return {"low": nanos.low / NANO, "expected": nanos.expected / NANO, "high": nanos.high / NANO}


def _day(made: Forecast, number: int, date: str, runs: int) -> ForecastDay:
    so_far = made.cost.of_days(min(number, 1), number + 1)  # of whole days: the first one is partial
    return {"date": date, **_sums(made, number, number + 1, runs), "costSoFar": _cost(so_far)}


def _schedules(made: Forecast) -> Iterator[ForecastSchedule]:
    for slug, sums in by_schedule(made.rows).items():
        turns, known = sum(made.turns.get(slug, ())), made.cost.figures.get(slug)
        cost = None if turns and known is None else (turns * known.mean / NANO if known is not None else 0.0)
        yield {"slug": slug, "runs": sums.runs, "turns": turns, "cost": cost}


def _collisions(rows: Sequence[SimulatedRow]) -> list[Collision]:
    """Schedules whose runs wait for a lane, the longest waits first."""
    waits: dict[tuple[str, str], list[tuple[int, Instant]]] = defaultdict(list)
    for row in rows:
        if row.lane is not None and row.started_at is not None and row.is_run:
            wait = row.started_at - row.due_at
            if wait >= COLLISION_MIN:
                waits[row.lane, row.slug].append((wait, row.due_at))
    found = sorted(waits.items(), key=lambda item: (-max(item[1])[0], item[0]))
    return [
        {
            "lane": lane,
            "slug": slug,
            "runs": len(times),
            "longest": format_duration(max(times)[0]),
            "first": format_instant(min(at for _, at in times)),
        }
        for (lane, slug), times in found[:LISTED_MAX]
    ]


def _windows(
    job: SimulationJob, copied: Copied, rows: Sequence[SimulatedRow], agents: Mapping[str, str]
) -> Iterator[UsedUpWindow]:
    """Quota windows that are used up, or will be before they reset, and when there is quota again."""
    for slot in copied.slots:
        ends_at = slot.exhausted_until if slot.exhausted_until is not None and slot.exhausted_until > job.now else None
        exhausted_at = job.now if ends_at is not None else _used_up_at(slot, job.now)
        resets_at = ends_at or slot.reset_at
        if exhausted_at is None or resets_at is None:
            continue
        concerned = sorted(
            {
                row.slug
                for row in rows
                if exhausted_at <= row.due_at < resets_at and slot.name in _slots(copied, row.slug, agents)
            }
        )
        yield {
            "slot": slot.name,
            "exhaustedAt": format_instant(exhausted_at),
            "resetsAt": format_instant(resets_at),
            "fits": format_instant(resets_at),
            "slugs": concerned,
        }


def _used_up_at(slot: Slot, now: Instant) -> Instant | None:
    """When the window is used up if usage continues at the same rate; None: not before its reset."""
    reading = decode_reading(slot.reading)
    if reading is None or slot.read_at is None or reading.reset_at is None or reading.reset_at <= now:
        return None
    if not reading.percentage or reading.window is None:
        return None
    passed = max(slot.read_at - (reading.reset_at - reading.window), MINUTE)
    at = slot.read_at + round(passed * (100 - reading.percentage) / reading.percentage)
    return max(at, now) if at < reading.reset_at else None


def _slots(copied: Copied, slug: str, agents: Mapping[str, str]) -> set[str]:
    names = {slot_name(agents[slug])} if slug in agents else set()
    schedule = next((schedule for schedule in copied.schedules if schedule.slug == slug), None)
    if schedule is not None:
        compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
        if isinstance(compiled, Compiled) and compiled.model.slot is not None:
            names.add(compiled.model.slot)
    return names


def _budgets(made: Forecast) -> Iterator[BudgetAtRisk]:
    """Days and months in which a budget may be used up."""
    for name, limit, slugs in _limits(made):
        rehearsed = made.cost if limit.unit == "usd" else made.tokens
        own = rehearsed.only(slugs)
        for first, last in _periods(made, limit):
            spent = _spent(made, limit, first)
            risk = own.share_above(first, last, limit.amount - spent)
            skipped = (
                _skipped(made, slugs, (first, last)) if _has_mattered(made, limit, slugs, (first, last), spent) else 0
            )
            if risk >= RISK_MIN or skipped:
                yield _at_risk(made, limit, name, own, (first, last), spent, risk, skipped)


def _has_mattered(made: Forecast, limit: Limit, slugs: frozenset[str], period: tuple[int, int], spent: int) -> bool:
    """Whether the simulation came so close to the limit that another turn may not have fit. Rows do not say which of
    several limits they were skipped for."""
    of_row = attrgetter("cost" if limit.unit == "usd" else "tokens")
    used = sum(map(of_row, _rows_of(made, slugs, period)))
    largest = max((of_row(row) // row.turns for row in made.rows if row.slug in slugs and row.turns), default=0)
    return largest == 0 or spent + used + largest > limit.amount  # 0: the estimates are unknown


def _skipped(made: Forecast, slugs: frozenset[str], period: tuple[int, int]) -> int:
    """How many instants were skipped because of a budget."""
    rows = _rows_of(made, slugs, period)
    return sum(row.instants for row in rows if (row.outcome, row.reason) == ("skipped", BUDGET))


def _rows_of(made: Forecast, slugs: frozenset[str], period: tuple[int, int]) -> list[SimulatedRow]:
    dates = set(made.days.dates[slice(*period)])
    return [row for row in made.rows if row.slug in slugs and made.days.date_of(row.planned_at) in dates]


def _at_risk(
    made: Forecast,
    limit: Limit,
    name: str,
    own: Rehearsed,
    period: tuple[int, int],
    spent: int,
    risk: float,
    skipped: int,
) -> BudgetAtRisk:
    found, unit = own.of_days(*period), NANO if limit.unit == "usd" else 1
    return {
        "scope": name,
        "period": limit.period,
        "unit": limit.unit,
        "date": made.days.dates[period[0]],
        "limit": limit.amount / unit,
        "spent": spent / unit,
        "expected": found.expected / unit,
        "high": found.high / unit,
        "risk": 1.0 if skipped else risk,
        "skipped": skipped,
    }


def _limits(made: Forecast) -> Iterator[tuple[str, Limit, frozenset[str]]]:
    """Each limit with its name for people, and the schedules it applies to."""
    for limit in _effective(made.copied, made.job.money):
        if limit.scope == EVERYTHING:
            yield limit.scope, limit, frozenset(made.agents)
        else:
            agent = limit.scope.removeprefix(AGENT)
            yield limit.scope, limit, frozenset(slug for slug, of in made.agents.items() if of == agent)
    for schedule in made.copied.schedules:
        compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
        budget = compiled.model.budget if isinstance(compiled, Compiled) else None
        for limit in [] if budget is None else limits_of(budget, schedule.schedule_id):
            yield f"schedule:{schedule.slug}", limit, frozenset({schedule.slug})


def _effective(copied: Copied, terms: MoneyTerms) -> list[Limit]:
    limits = {(limit.scope, limit.unit, limit.period): limit.amount for limit in terms.limits}
    limits |= {(row.scope, row.unit, row.period): row.amount for row in copied.money.limits}
    return sorted(Limit(*key, amount) for key, amount in limits.items())


def _periods(made: Forecast, limit: Limit) -> Iterator[tuple[int, int]]:
    """The days or months of the forecast, as ranges of days."""
    dates = made.days.dates
    if limit.period == "day":
        yield from ((number, number + 1) for number in range(len(dates)))
        return
    first = 0
    for number in range(1, len(dates) + 1):
        if number == len(dates) or dates[number][:7] != dates[first][:7]:
            yield first, number
            first = number


def _spent(made: Forecast, limit: Limit, first: int) -> int:
    """The amount spent before the forecast, in the period of its first day."""
    if first > 0:
        return 0
    window = window_of(limit.period, made.job.terms.default_zone, made.job.now)
    key = (limit.scope, limit.unit, limit.period, *window)
    rows = {(row.scope, row.unit, row.period, row.starts_at, row.ends_at): row.spent for row in made.copied.money.spent}
    return rows.get(key, 0)
