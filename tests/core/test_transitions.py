"""How a run's row changes, and that it changes in no other way."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.run.runs import RUNGS, TRANSITIONS, Outcome, Run, unplanned
from wakeful.core.run.settlement import Close, Wait
from wakeful.core.run.transitions import claimed, climbed, closed, ended_attempt, planned, started, waiting

NOW = 1_769_763_600_000
WAIT = Wait(NOW + 60_000, "retry", "failed", "sent", "boom")
DONE = Close("succeeded", "finished")
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def fresh(trigger: Any = "schedule", **changes: Any) -> Run:
    return planned(
        run_id=7,
        kind="schedule",
        schedule_id=3,
        version=2,
        planned_at=NOW,
        due_at=NOW + 5,
        trigger=trigger,
        lane="agent:default",
    )._replace(**changes)


def claim(run: Run, now: int = NOW + 10) -> Run:
    return claimed(run, node_id=1, now=now, timeout=1000, rung="claimed")


def changed(before: Run, after: Run) -> set[str]:
    return {name for name in Run._fields if getattr(before, name) != getattr(after, name)}


def test_a_planned_run_waits_for_its_due_time_under_the_key_of_its_instant() -> None:
    """The key (schedule, occurrence) is what makes it happen once (L2)."""
    run = fresh()
    assert (run.occurrence, run.planned_at, run.due_at, run.next_attempt_at) == (NOW, NOW, NOW + 5, NOW + 5)
    assert (run.outcome, run.attempt, run.fence, run.owner, run.priority, run.instants) == ("waiting", 0, 0, None, 1, 1)


def test_a_manual_run_has_a_key_of_its_own_and_a_person_s_priority() -> None:
    """So it can never take the place of an instant."""
    run = fresh("manual")
    assert (run.occurrence, run.priority, run.planned_at) == (unplanned(7, NOW), 0, NOW)


def test_claiming_begins_the_next_attempt_under_a_new_fence() -> None:
    """Attempt and fence grow by one each; the first start is kept."""
    first = claim(fresh())
    assert (first.outcome, first.attempt, first.fence, first.owner) == ("running", 1, 1, 1)
    assert (first.started_at, first.claimed_at, first.deadline_at) == (NOW + 10, NOW + 10, NOW + 1010)
    second = claimed(waiting(first, WAIT), node_id=2, now=NOW + 99, timeout=1000, rung="started")
    assert (second.attempt, second.fence, second.owner, second.rung) == (2, 2, 2, "started")
    assert (second.started_at, second.claimed_at) == (NOW + 10, NOW + 99)


@pytest.mark.parametrize("lane", [None, "agent:default"])
def test_a_run_that_starts_at_once_is_one_that_was_planned_and_then_claimed(lane: str | None) -> None:
    """The plain path builds the row in one step."""
    of_instant: dict[str, Any] = {
        "run_id": 7,
        "kind": "schedule",
        "schedule_id": 3,
        "version": 2,
        "planned_at": NOW,
        "due_at": NOW + 5,
        "lane": lane,
    }
    row = started(**of_instant, node_id=1, now=NOW + 10, timeout=1000, rung="started")
    in_two_steps = planned(**of_instant, trigger="schedule")
    assert row == claimed(in_two_steps, node_id=1, now=NOW + 10, timeout=1000, rung="started")


def test_claiming_forgets_the_ladder_and_the_process_of_the_attempt_before() -> None:
    """They belong to that attempt; what the run itself is stays."""
    before = fresh(ladder="{}", process="{}", reason="retry", error="boom", crashes=1, waits=2, result="kept")
    after = claim(before)
    assert (after.ladder, after.process, after.reason, after.next_attempt_at) == (None, None, None, None)
    assert changed(before, after) == {
        *("outcome", "reason", "rung", "attempt", "owner", "fence", "started_at", "claimed_at", "deadline_at"),
        *("next_attempt_at", "ladder", "process"),
    }


def test_waiting_lets_go_of_everything_and_keeps_what_was_learnt() -> None:
    """Nobody owns it between two attempts; only real waits and crashes are counted as such."""
    run = claim(fresh())._replace(process="{}", ladder="{}")
    rest = waiting(run, WAIT)
    assert (rest.outcome, rest.owner, rest.deadline_at, rest.process) == ("waiting", None, None, None)
    assert (rest.reason, rest.rung, rest.error, rest.next_attempt_at) == ("retry", "sent", "boom", NOW + 60_000)
    assert (rest.crashes, rest.waits, rest.attempt, rest.fence) == (0, 0, 1, 1)
    assert waiting(run, WAIT._replace(is_busy=True)).waits == 1
    assert waiting(run, WAIT._replace(is_crash=True)).crashes == 1


def test_waiting_never_moves_when_it_was_due() -> None:
    """A retry never moves the cadence (L3); lateness counts from the first due time."""
    rest = waiting(claim(fresh()), WAIT)
    assert (rest.due_at, rest.planned_at, rest.occurrence) == (NOW + 5, NOW, NOW)


def test_closing_ends_the_row() -> None:
    """No deadline, no next attempt; its owner shows where it ran."""
    row = closed(claim(fresh())._replace(process="{}"), DONE, now=NOW + 50, result='{"reply":"hi"}')
    assert (row.outcome, row.rung, row.ended_at, row.result) == ("succeeded", "finished", NOW + 50, '{"reply":"hi"}')
    assert (row.owner, row.deadline_at, row.next_attempt_at, row.process, row.stuck) == (1, None, None, None, 0)
    assert not row.is_open


def test_a_stuck_row_keeps_its_owner_and_its_process() -> None:
    """Whoever looks sees where it hangs; when it is freed it lets go of the process."""
    run = claim(fresh())._replace(process='{"pid":1}')
    row = closed(run, Close("unknown", "sent", "still there", stuck=True), now=NOW + 50, result=None)
    assert (row.outcome, row.owner, row.process, row.stuck) == ("unknown", 1, '{"pid":1}', 1)
    freed = closed(row, Close("timedOut", "sent"), now=NOW + 99, result=None)
    assert (freed.outcome, freed.owner, freed.process, freed.stuck) == ("timedOut", 1, None, 0)


def test_closing_without_a_result_keeps_the_one_it_had() -> None:
    """Late proof brings no reply, and takes none away."""
    run = claim(fresh(result="old"))
    assert closed(run, DONE, now=NOW, result=None).result == "old"


@pytest.mark.parametrize("before", OUTCOMES)
@pytest.mark.parametrize("after", [outcome for outcome in OUTCOMES if outcome not in ("running", "waiting")])
def test_a_close_the_table_does_not_allow_raises(before: Outcome, after: Outcome) -> None:
    """And one it allows does not."""
    run = fresh(outcome=before)
    if after in TRANSITIONS[before]:
        assert closed(run, Close(after, None), now=NOW, result=None).outcome == after
    else:
        with pytest.raises(AssertionError, match=f"from {before} to {after}"):
            closed(run, Close(after, None), now=NOW, result=None)


@pytest.mark.parametrize("before", OUTCOMES)
def test_only_a_running_run_waits_and_only_a_waiting_one_is_claimed(before: Outcome) -> None:
    """Claiming what runs, or what is closed, would be a second run of one instant (L2)."""
    run = fresh(outcome=before)
    if before != "running":
        with pytest.raises(AssertionError):
            waiting(run, WAIT)
    if before != "waiting":
        with pytest.raises(AssertionError):
            claim(run)


@given(st.lists(st.tuples(st.sampled_from(RUNGS), st.integers(0, 2**53)), max_size=8))
def test_the_ladder_remembers_when_each_rung_was_reached(climbs: list[tuple[Any, int]]) -> None:
    """As JSON; a rung reached again is reached later."""
    ladder = None
    for rung, at in climbs:
        ladder = climbed(ladder, rung, at)
    assert (ladder is None) == (not climbs)
    if ladder is not None:
        assert json.loads(ladder) == dict(climbs)


def test_an_ended_attempt_is_recorded_as_it_was() -> None:
    """Before the row goes on."""
    run = claim(fresh())
    attempt = ended_attempt(run, WAIT, now=NOW + 20)
    assert attempt == (7, 1, NOW + 10, NOW + 20, "failed", "sent", "boom", 1)


def test_an_id_that_is_given_again_makes_another_key() -> None:
    """A store that lost its last minutes counts from where it was; the moment tells the runs apart, in their order."""
    assert unplanned(7, NOW) != unplanned(7, NOW + 1)
    assert unplanned(8, NOW) < unplanned(7, NOW + 1) < 0
