"""L1 to L3 of the cadence as one property: whatever happens, and in whatever order, rows tile the planned instants.

The world below is the smallest that can hold a cadence: a clock, a ledger that is a dictionary from instant to row, and
the few lines with which the feature around the cadence gives runs their ids. Everything it checks, it finds by visiting
every instant.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import examples
from wakeful.core.run.runs import Run
from wakeful.core.run.settlement import Close, Policy, after_close
from wakeful.core.run.transitions import claimed, planned
from wakeful.core.schedule.cadence import (
    Cadence,
    Gap,
    Plan,
    Rules,
    Start,
    begin,
    due_at,
    is_spent,
    replan,
    resume,
    ring,
    turn_back,
)
from wakeful.core.schedule.policies import NO_RETRY
from wakeful.core.time.excluded_days import ExcludedDays
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from wakeful.core.time.timing import Cron, Every, Once, Times, Timing, instants_after, next_after

POLICY = Policy(NO_RETRY, "retry", errors_max=4, success=None)
# Around changes of the clock in these zones, both ways, and one ordinary morning.
STARTS = [
    parse_instant(text)
    for text in (
        "2026-03-28T20:00:00Z",
        "2026-10-24T20:00:00Z",
        "2026-03-08T03:00:00Z",
        "2026-04-04T10:00:00Z",
        "2026-01-30T09:00:00Z",
    )
]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"]
EXPRESSIONS = ["*/7 * * * *", "0 * * * *", "30 2 * * *", "15,45 1-3 * * *", "0 9 * * 1-5", "0 0 1 * *"]


@st.composite
def timings(draw: st.DrawFn, start: int) -> Timing:
    """Any kind of timing with instants."""
    zone = st.sampled_from(ZONES)
    return draw(
        st.one_of(
            st.builds(
                Every,
                st.sampled_from([20 * SECOND, MINUTE, 7 * MINUTE, HOUR, 25 * HOUR]),
                st.integers(start - DAY, start + 3 * HOUR),
            ),
            st.builds(Cron, st.sampled_from(EXPRESSIONS), zone),
            st.builds(Times, st.sampled_from([("02:30",), ("00:00", "01:15", "02:45", "23:59")]), zone),
            st.builds(Once, st.integers(start + 1, start + DAY)),
        )
    )


@st.composite
def rules(draw: st.DrawFn, timing: Timing) -> Rules:
    return Rules(
        timing,
        offset=draw(st.sampled_from([0, 0, 11 * SECOND])),
        catch_up=draw(st.sampled_from(["once", "skip", "all"])),
        catch_up_max=draw(st.integers(1, 4)),
        lateness_max=draw(st.sampled_from([None, None, 0, 30 * MINUTE, 5 * HOUR])),
        overlap=draw(st.sampled_from(["skip", "queue"])),
    )


ADVANCES = st.one_of(st.integers(0, 90 * SECOND), st.integers(0, 3 * HOUR), st.integers(0, 30 * HOUR))
STEPS = st.one_of(
    st.tuples(st.just("advance"), ADVANCES),
    st.tuples(st.just("advance"), ADVANCES),
    st.tuples(st.just("tick"), st.none()),
    st.tuples(st.just("tick"), st.none()),
    st.tuples(st.just("close"), st.sampled_from(["succeeded", "failed", "failed", "skipped", "unknown"])),
    st.tuples(st.just("close"), st.sampled_from(["succeeded", "failed"])),
    st.tuples(st.just("pause"), st.sampled_from([None, MINUTE, HOUR, DAY])),
    st.tuples(st.just("disable"), st.none()),
    st.tuples(st.just("run_now"), st.none()),
    st.tuples(st.just("resume"), st.none()),
    st.tuples(st.just("edit"), st.none()),
    st.tuples(st.just("back"), st.integers(MINUTE, 20 * HOUR)),
    st.tuples(st.just("exclude"), st.none()),
)


@st.composite
def exclusions(draw: st.DrawFn, now: int) -> ExcludedDays | None:
    """No day, or some of those around now."""
    today = now // DAY
    days = draw(st.sets(st.integers(today - 2, today + 4), max_size=4))
    return ExcludedDays(draw(st.sampled_from(ZONES)), tuple(sorted(days))) if days else None


def is_on(excluded: ExcludedDays | None, at: int) -> bool:
    """Whether the day in the zone is excluded, found without the code under test."""
    if excluded is None:
        return False
    shown = datetime.fromtimestamp(at / 1000, ZoneInfo(excluded.zone)).date()
    return (shown - date(1970, 1, 1)).days in excluded.days


def instants_in(timing: Timing, after: int, until: int) -> list[int]:
    """Every instant in (after, until], one by one."""
    if isinstance(timing, Every):
        anchor = timing.anchor or 0
        first = anchor if after < anchor else anchor + ((after - anchor) // timing.every + 1) * timing.every
        return list(range(first, until + 1, timing.every))
    found = []
    for instant in instants_after(timing, after):
        if instant > until:
            break
        found.append(instant)
    return found


@dataclass
class World:
    """One schedule, its clock and its ledger."""

    rules: Rules
    now: int
    excluded: ExcludedDays | None = None
    cadence: Cadence = field(init=False)
    ledger: dict[int, Start | Gap] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    last_id: int = 0

    def __post_init__(self) -> None:
        self.cadence = begin(1, 1, self.rules, now=self.now, state="active", reason=None)

    def taken(self) -> frozenset[int]:
        return frozenset(
            at for at, row in self.ledger.items() if isinstance(row, Start) and at > self.cadence.planned_through
        )

    def accept(self, plan: Plan, timing: Timing) -> None:
        """Check that the plan's rows are exactly the instants between the old border and the new one, then take it."""
        taken, after = self.taken(), self.cadence.planned_through
        expected = [at for at in instants_in(timing, after, plan.cadence.planned_through) if at not in taken]
        decided: list[int] = []
        cadence = plan.cadence
        for row in plan.rows:
            covered = [row.planned_at] if isinstance(row, Start) else self._covered(row, timing, taken)
            decided += covered
            for at in covered:
                assert at not in self.ledger, "L2: decided twice"
                self.ledger[at] = row
            cadence = self._with_id(cadence, row)
        assert decided == expected, "L1: rows tile the planned instants, in order"
        assert plan.cadence.planned_through >= after
        self.cadence = cadence
        self.check()

    def _covered(self, gap: Gap, timing: Timing, taken: frozenset[int]) -> list[int]:
        covered = [at for at in instants_in(timing, gap.first - 1, gap.last) if at not in taken]
        assert (gap.instants, gap.first, gap.last) == (len(covered), covered[0], covered[-1]), (
            "L1: counted like visited"
        )
        assert gap.outcome in ("skipped", "missed")
        assert (gap.blocked_by is not None) == (gap.reason == "blocked")
        return covered

    def _with_id(self, cadence: Cadence, row: Start | Gap) -> Cadence:
        self.last_id += 1
        cadence = cadence._replace(last_row_id=self.last_id)
        if isinstance(row, Gap):
            return cadence
        assert row.due_at <= self.now, "nothing starts before it is due"
        self.runs[self.last_id] = self._run(row)
        if row.behind is None:
            assert cadence.open_run_id is None, "one open run"
            return cadence._replace(open_run_id=self.last_id)
        assert self.rules.overlap == "queue" and cadence.queued_run_id is None and row.behind == cadence.open_run_id
        return cadence._replace(queued_run_id=self.last_id)

    def _run(self, start: Start) -> Run:
        run = planned(
            run_id=self.last_id,
            kind="schedule",
            schedule_id=1,
            version=1,
            planned_at=start.planned_at,
            due_at=start.due_at,
            trigger=start.trigger,
            lane=None,
        )
        return claimed(run, node_id=1, now=self.now, timeout=HOUR, rung="claimed")

    def check(self) -> None:
        cadence = self.cadence
        if cadence.state == "active":
            assert cadence.next_at == next_after(self.rules.timing, cadence.planned_through), "L3: on the grid"
        assert cadence.next_at is None or cadence.next_at > cadence.planned_through
        ahead = [at for at, row in self.ledger.items() if at > cadence.planned_through and isinstance(row, Gap)]
        assert not ahead, "L1: nothing is decided beyond the border"

    # -- what can happen ----------------------------------------------------------------------------------------------

    def advance(self, by: int) -> None:
        self.now += by

    def tick(self, _: Any) -> None:
        for _ring in range(50):
            due = due_at(self.cadence, self.rules)
            if due is None or due > self.now:
                return
            state = self.cadence.state
            plan = ring(
                self.cadence,
                self.rules,
                now=self.now,
                gap_reason="outage",
                taken=self.taken(),
                excluded=self.excluded,
            )
            assert state in ("active", "paused"), "L2: what is off never fires"
            self._check_excluded(plan)
            self.accept(plan, self.rules.timing)
            if is_spent(self.rules, self.cadence.next_at) and self.cadence.open_run_id is None:
                self.cadence = self.cadence._replace(state="done")
        raise AssertionError("L3: the next time is not after now")

    def _check_excluded(self, plan: Plan) -> None:
        for row in plan.rows:
            if isinstance(row, Start):
                assert not is_on(self.excluded, row.planned_at), "no instant on an excluded day runs"
            elif row.reason not in ("paused", "disabled"):
                covered = self._covered(row, self.rules.timing, self.taken())
                assert {is_on(self.excluded, at) for at in covered} == {row.reason == "excluded"}

    def exclude(self, excluded: ExcludedDays | None) -> None:
        self.excluded = excluded

    def run_now(self, _: Any) -> None:
        if self.cadence.open_run_id is None:
            self.last_id += 1
            self.runs[self.last_id] = self._run(Start(self.now, self.now, "manual"))
            self.cadence = self.cadence._replace(open_run_id=self.last_id, last_row_id=self.last_id)

    def close(self, outcome: Any) -> None:
        if self.cadence.open_run_id is None:
            return
        run = self.runs[self.cadence.open_run_id]
        close = Close(outcome, "claimed", None if outcome == "succeeded" else "boom")
        before = self.cadence
        self.cadence, _ = after_close(before, self.rules, POLICY, run, close, now=self.now)
        assert self.cadence.planned_through == before.planned_through, "L3: a run's end never moves the cadence"
        assert self.cadence.next_at == before.next_at
        self.check()

    def pause(self, lasts: int | None) -> None:
        if self.cadence.state == "active":
            until = None if lasts is None else self.now + lasts
            self.cadence = self.cadence._replace(state="paused", state_at=self.now, resume_at=until)

    def disable(self, _: Any) -> None:
        if self.cadence.state in ("active", "paused"):
            self.cadence = self.cadence._replace(state="disabled", state_at=self.now, resume_at=None)

    def resume(self, _: Any) -> None:
        if self.cadence.state in ("paused", "disabled"):
            plan = resume(self.cadence, self.rules, now=self.now, taken=self.taken())
            assert not any(isinstance(row, Start) for row in plan.rows), "nothing is caught up after a halt"
            self.accept(plan, self.rules.timing)

    def edit(self, new: Rules) -> None:
        if self.cadence.state == "done":
            return
        old, self.rules = self.rules, new
        plan = replan(self.cadence, old, new, now=self.now, taken=self.taken())
        self.accept(plan, old.timing)

    def back(self, by: int) -> None:
        """The clock goes back; gaps that lie ahead are void or cut, what ran stays."""
        self.now -= by
        if self.cadence.planned_through <= self.now:
            return
        self.ledger = {at: row for at, row in self.ledger.items() if at <= self.now or isinstance(row, Start)}
        self.cadence = turn_back(self.cadence, self.rules, now=self.now)
        self.check()


@pytest.mark.parametrize("steps_max", [12, 40])
@settings(max_examples=examples(250), deadline=None)
@given(data=st.data())
def test_whatever_happens_rows_tile_the_planned_instants(steps_max: int, data: st.DataObject) -> None:
    """L1, L2 and L3, for any timing, policy and sequence of events."""
    start = data.draw(st.sampled_from(STARTS))
    world = World(data.draw(rules(data.draw(timings(start)))), start)
    for name, argument in data.draw(st.lists(STEPS, min_size=3, max_size=steps_max)):
        if name == "exclude":
            argument = data.draw(exclusions(world.now))  # noqa: PLW2901 - drawn only when needed
        if name == "edit":
            argument = data.draw(rules(data.draw(timings(world.now))))  # noqa: PLW2901 - drawn only when needed
        getattr(world, name)(argument)
    world.tick(None)
    due = due_at(world.cadence, world.rules)
    assert due is None or due > world.now, "L3: strictly forward"


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_an_outage_of_any_length_is_decided_in_one_ring_unless_a_backlog_waits(data: st.DataObject) -> None:
    """L4: at most two rows and one start; only `all` leaves something for later, and at most catchUpMax of it."""
    start = data.draw(st.sampled_from(STARTS))
    chosen = data.draw(rules(data.draw(timings(start))))
    cadence = begin(1, 1, chosen, now=start, state="active", reason=None)
    now = start + data.draw(st.integers(0, 400 * DAY))
    due = due_at(cadence, chosen)
    if due is None or due > now:
        return
    plan = ring(cadence, chosen, now=now, gap_reason="outage", taken=frozenset())
    assert len(plan.rows) <= 2
    assert sum(isinstance(row, Start) for row in plan.rows) <= 1
    after = due_at(plan.cadence, chosen)
    if plan.cadence.catch_up_until is None:
        assert after is None or after > now
    else:
        assert chosen.catch_up == "all"
        waiting = instants_in(chosen.timing, plan.cadence.planned_through, plan.cadence.catch_up_until)
        assert 1 <= len(waiting) < chosen.catch_up_max


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_after_an_outage_the_latest_instant_that_is_not_excluded_is_caught_up(data: st.DataObject) -> None:
    """L1 and L4: one start at most, and as many rows as stretches of days; nothing due is left over."""
    start = data.draw(st.sampled_from(STARTS))
    chosen = replace(data.draw(rules(data.draw(timings(start)))), catch_up="once", lateness_max=None)
    excluded = data.draw(exclusions(start))
    world = World(chosen, start, excluded)
    world.advance(data.draw(st.integers(0, 6 * DAY)))
    cadence = world.cadence
    world.tick(None)
    due = instants_in(chosen.timing, cadence.planned_through, world.now - chosen.offset)
    ran = [at for at, row in world.ledger.items() if isinstance(row, Start)]
    assert ran == [at for at in due if not is_on(excluded, at)][-1:]
    assert sorted(world.ledger) == due
    assert len(set(world.ledger.values())) <= 2 + 2 * (0 if excluded is None else len(excluded.days))


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_reading_when_it_is_due_changes_nothing(data: st.DataObject) -> None:
    """L1: asked any number of times, at any moment, the answer and the cadence stay."""
    start = data.draw(st.sampled_from(STARTS))
    chosen = data.draw(rules(data.draw(timings(start))))
    cadence = begin(1, 1, chosen, now=start, state="active", reason=None)
    held = cadence._replace(backoff_until=data.draw(st.none() | st.integers(start, start + DAY)))
    first = due_at(held, chosen)
    assert due_at(held, chosen) == first
    if first is not None and held.next_at is not None:
        assert first >= held.next_at + chosen.offset
        assert held.backoff_until is None or first >= held.backoff_until
