"""A simulated month is the month that really follows, row by row."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from forecasting.homes import Home
from wakeful.core.run.runs import Run
from wakeful.core.simulation.summary import SimulatedRow
from wakeful.core.time.instants import Instant, format_instant
from wakeful.features.schedules.compiled import Compiled
from wakeful.ports.charges import Charges
from wakeful.ports.store import Tx
from wakeful.simulation.copying import Copied
from wakeful.simulation.grouping import Grouped, grouped
from wakeful.simulation.plan import run_plan
from wakeful.simulation.straight import Group, Rest, Stretch, go_straight

# Home 48 differed as long as the copy's store needed fewer loop iterations than the real one.
SAMPLE = 48
CALM = 13
SHORT = {"days": 2, "history": 1}
LONG = {"days": 4}
RICH = ((CALM, SHORT), (1, LONG))  # waiting turns, beats and budgets are computed


def homes(sample: int, number: int) -> list[Any]:
    """Two days of one home; and four days of every home."""
    every = [pytest.param(seed, LONG, marks=pytest.mark.torture, id=f"{seed}") for seed in range(number)]
    return [pytest.param(sample, SHORT, id=f"{sample}-short"), *every]


@pytest.mark.parametrize(("seed", "size"), homes(SAMPLE, 50))
def test_simulated_days_are_what_really_happens(seed: int, size: dict[str, int], tmp_path: Path) -> None:
    """Fifty schedules of all kinds, with a history; drafts, outages, failing and slow targets, used-up quotas."""
    _assert_same(Home(seed, tmp_path, **size))


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(50))
def test_a_simulated_month_is_what_really_happens(seed: int, tmp_path: Path) -> None:
    """The same for a month, in fifty homes."""
    _assert_same(Home(seed, tmp_path))


@pytest.mark.parametrize(("seed", "size"), homes(CALM, 30))
def test_most_turns_of_a_calm_home_need_no_engine(
    seed: int, size: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns that wait in their lane, with a budget, and beats are computed; they are what really happens."""
    computed: list[tuple[Group, SimulatedRow]] = []

    def noted(tx: Tx, group: Group, rest: Rest, now: Instant) -> Stretch:
        stretch = go_straight(tx, group, rest, now)
        computed.extend((group, run) for run in stretch.runs)
        return stretch

    def forgotten(*given: Any) -> Grouped:
        computed.clear()  # a plan that is simulated again because of a budget
        return grouped(*given)

    monkeypatch.setattr("wakeful.simulation.payments.FEW", 0)  # budgets that are used up are found afterwards
    monkeypatch.setattr("wakeful.simulation.plan.go_straight", noted)
    monkeypatch.setattr("wakeful.simulation.plan.grouped", forgotten)
    rows = _assert_same(Home(seed, tmp_path, **size, is_calm=True))
    turns = [run for _, run in computed if run.turns]
    share = sum(run.turns for run in turns) / sum(row.turns for row in rows)
    assert share > (0.4 if (seed, size) in RICH else 0.1)
    if (seed, size) in RICH:
        assert any((run.started_at or 0) > run.due_at for run in turns)
        assert any(run.slug == "heartbeat" for run in turns)
        assert any(compiled.definition.budget for group, run in computed for compiled in _of(group, run))


def _of(group: Group, run: SimulatedRow) -> list[Compiled]:
    return [compiled for compiled in group.straight.values() if compiled.definition.slug == run.slug]


def _assert_same(home: Home) -> Sequence[SimulatedRow]:
    job = home.make_history()
    copied, troubles = home.copy(job), job.request.troubles
    plan = run_plan(job, copied, troubles=troubles, drafts=job.drafts)
    before: dict[int, Run] = home.read(_ledger)
    home.live_month(copied.records, troubles, {draft["slug"]: draft for draft in job.request.drafts})
    lived = [
        row for row in home.read(lambda tx: _rows(tx, before, copied, job.now)) if row.slug not in troubles.without
    ]
    assert len(plan.rows) > 20
    assert home.is_calm or {row.outcome for row in plan.rows} >= {"succeeded", "skipped"}
    simulated, happened = Counter(map(_shown, plan.rows)), Counter(map(_shown, lived))
    assert sorted((simulated - happened).elements()) == []
    assert sorted((happened - simulated).elements()) == []
    return plan.rows


def _ledger(tx: Tx) -> dict[int, Run]:
    rows: dict[int, Run] = {}
    before_id: int | None = None
    while page := tx.runs.page(before_id=before_id, limit=2_000):
        rows |= {run.run_id: run for run in page}
        before_id = page[-1].run_id
    return rows


def _rows(tx: Tx, before: Mapping[int, Run], copied: Copied, since: Instant) -> list[SimulatedRow]:
    """What was added to the ledger since, as a simulation says it."""
    ledger = _ledger(tx)
    names = {
        key: schedule.slug
        for key, schedule in tx.schedules.by_ids({run.schedule_id for run in ledger.values()}).items()
    }
    next_at = {key: cadence.next_at for key, cadence in copied.cadences.items()}
    if copied.heartbeat is not None:
        next_at[copied.heartbeat[1].schedule_id] = copied.heartbeat[1].next_at
    charges: dict[int, list[Any]] = {}
    for charge in tx[Charges].of_runs(sorted(ledger)):
        if charge.at >= since:
            charges.setdefault(charge.run_id, []).append(charge)
    rows: list[SimulatedRow] = []
    for row in ledger.values():
        run, was = row, before.get(row.run_id)
        if was is not None and was.instants < row.instants:  # a gap that went on
            count, first = row.instants - was.instants, next_at[row.schedule_id]
            assert first is not None
            until = row.planned_until if count > 1 else None
            run = row._replace(planned_at=first, due_at=first, instants=count, planned_until=until)
        elif was is not None and not was.is_open:
            continue
        paid = charges.get(run.run_id, [])
        rows.append(
            SimulatedRow(
                names.get(run.schedule_id, "heartbeat"),
                run.planned_at,
                run.planned_until,
                run.instants,
                run.due_at,
                run.trigger,
                run.started_at,
                run.ended_at,
                run.outcome,
                run.reason,
                run.lane,
                len(paid),
                sum(charge.tokens or 0 for charge in paid),
                sum(charge.cost or 0 for charge in paid),
                sum(charge.cost is None for charge in paid),
            )
        )
    return rows


def _shown(row: SimulatedRow) -> tuple[Any, ...]:
    """A row that people can read when the two differ."""

    def at(instant: Instant | None) -> str:
        return "" if instant is None else format_instant(instant)

    # A gap is written when it is noticed, and one that goes on keeps its first row.
    passed = (row.due_at, row.started_at, row.ended_at) if row.is_run else ()
    times = (at(row.planned_at), at(row.planned_until), *map(at, passed))
    what = (row.instants, row.trigger, row.outcome, row.reason or "", row.lane or "")
    return (row.slug, *times, *what, row.turns, row.tokens, row.cost, row.unknown)
