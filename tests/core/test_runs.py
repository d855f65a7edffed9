"""The run: its table of transitions, its rungs, and the row of a stretch."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.run.runs import (
    ERRORS,
    NOT_RUN,
    OPEN,
    RUNGS,
    TRANSITIONS,
    Outcome,
    RungName,
    may_become,
    rung_index,
    stretch,
)
from wakeful.core.run.settlement import Close
from wakeful.core.run.transitions import claimed, never_begun, planned

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
FINAL = {"succeeded", "failed", "timedOut", "cancelled", "skipped", "missed"}
OPEN_TO_LATE_PROOF = {"unknown", "unconfirmed"}


def test_the_table_is_closed() -> None:
    """Every outcome has its line, and no line names anything else."""
    assert set(TRANSITIONS) == set(OUTCOMES)
    assert {target for targets in TRANSITIONS.values() for target in targets} <= set(OUTCOMES)


def test_every_outcome_is_of_exactly_one_kind() -> None:
    """Open, an error, not run, a success, or cancelled."""
    assert OPEN | ERRORS | NOT_RUN | {"succeeded", "cancelled"} == set(OUTCOMES)
    assert len(OPEN) + len(ERRORS) + len(NOT_RUN) + 2 == len(OUTCOMES)


@pytest.mark.parametrize("outcome", sorted(FINAL))
def test_what_is_final_stays(outcome: Outcome) -> None:
    """A restart never re-runs what is settled (L2)."""
    assert not any(may_become(outcome, target) for target in OUTCOMES)


@pytest.mark.parametrize("outcome", sorted(OPEN_TO_LATE_PROOF))
def test_late_proof_turns_the_unproven_into_what_it_was_and_never_opens_it_again(outcome: Outcome) -> None:
    """Succeeded or failed at least; running or waiting never."""
    assert may_become(outcome, "succeeded") and may_become(outcome, "failed")
    assert not TRANSITIONS[outcome] & (OPEN | NOT_RUN | OPEN_TO_LATE_PROOF)


def test_nothing_but_a_waiting_run_starts_and_nothing_becomes_itself() -> None:
    """A run is claimed from waiting; claiming it again would be two attempts at once."""
    assert [outcome for outcome in OUTCOMES if may_become(outcome, "running")] == ["waiting"]
    assert not any(may_become(outcome, outcome) for outcome in OUTCOMES)


def test_a_run_that_started_is_never_missed() -> None:
    """A claim may find that it is too late. What was sent, or tried before, is not missed."""
    run = planned(
        run_id=1, kind="schedule", schedule_id=1, version=1, planned_at=0, due_at=0, trigger="schedule", lane=None
    )
    claim = claimed(run, node_id=1, now=9, timeout=0, rung="claimed")
    missed = never_begun(claim, Close("missed", "claimed", None, "lane"), now=9)
    assert (missed.outcome, missed.attempt, missed.started_at, missed.rung) == ("missed", 0, None, None)
    for begun in (claim._replace(rung="sent"), claim._replace(attempt=2)):
        with pytest.raises(AssertionError, match="has begun"):
            never_begun(begun, Close("missed", "claimed", None, "lane"), now=9)


def test_rungs_rise_in_the_order_of_the_ladder() -> None:
    """None lies below all of them."""
    rungs: tuple[RungName | None, ...] = (None, *get_args(RungName))
    assert get_args(RungName) == RUNGS
    assert [rung_index(rung) for rung in rungs] == [-1, 0, 1, 2, 3, 4]


@given(st.integers(0, 10**12), st.integers(1, 10**9), st.integers(0, 10**6))
def test_a_stretch_is_closed_from_the_start_and_counts_its_instants(first: int, instants: int, extra: int) -> None:
    """One row, whatever it covers; a single instant has no end of its own."""
    last = first + (extra if instants > 1 else 0)
    row = stretch(
        run_id=5,
        kind="schedule",
        schedule_id=1,
        version=2,
        first=first,
        last=last,
        instants=instants,
        outcome="missed",
        reason="outage",
        now=last + 1,
        blocked_by=4,
    )
    assert (row.occurrence, row.planned_at, row.instants) == (first, first, instants)
    assert row.planned_until == (last if instants > 1 else None)
    assert (row.outcome, row.reason, row.blocked_by) == ("missed", "outage", 4)
    assert not row.is_open and row.ended_at == last + 1
    assert (row.attempt, row.fence, row.owner, row.started_at, row.next_attempt_at) == (0, 0, None, None, None)
