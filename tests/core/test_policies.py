"""Small decisions about failure, crash and pace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.run.runs import RUNGS, RungName
from wakeful.core.run.settlement import Policy
from wakeful.core.schedule.actions import Call, Command, Event, Http, Prompt
from wakeful.core.schedule.definition import Definition, policy_of, retry_of, rules_of
from wakeful.core.schedule.policies import (
    AGENT_RETRY,
    LADDER,
    NO_RETRY,
    Retry,
    after_crash,
    ladder_delay,
    retry_at,
    should_disable,
    stagger_offset,
)
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND
from wakeful.core.time.timing import Cron, Every, Once

NOW = 1_769_763_600_000
IDS = st.integers(-(2**63), 2**63 - 1)


def test_the_ladder_is_that_of_the_seed() -> None:
    """30 s, 1, 5, 15, 60 minutes, and no higher."""
    assert [ladder_delay(errors) for errors in range(8)] == [0, *LADDER, HOUR, HOUR]
    assert LADDER == (30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR)
    assert ladder_delay(-1) == 0
    assert ladder_delay(10**9) == HOUR


@given(st.integers(-5, 1000), st.integers(0, 1000))
def test_enough_errors_disable_and_zero_means_never(errors: int, errors_max: int) -> None:
    """At the limit, not beyond it."""
    assert should_disable(errors, errors_max) == (errors_max > 0 and errors >= errors_max)


@given(st.integers(0, 50), st.integers(1, 60), st.integers(1, DAY))
def test_so_many_retries_and_no_more_whatever_comes_next(times: int, failed: int, delay: int) -> None:
    """With a number, the next instant does not matter."""
    at = retry_at(Retry(times, delay), attempts_failed=failed, now=NOW, next_due_at=NOW + 1)
    assert at == (NOW + delay if failed <= times else None)


@given(st.integers(1, 10**6), st.integers(1, DAY), st.none() | st.integers(NOW - DAY, NOW + 2 * DAY))
def test_without_a_number_it_is_tried_until_the_next_instant(failed: int, delay: int, next_due_at: int | None) -> None:
    """A retry always comes before the instant that would replace it."""
    at = retry_at(Retry(None, delay), attempts_failed=failed, now=NOW, next_due_at=next_due_at)
    assert at in (None, NOW + delay)
    assert (at is None) == (next_due_at is not None and NOW + delay >= next_due_at)


@pytest.mark.parametrize("rung", [None, *RUNGS])
@pytest.mark.parametrize("on_crash", ["retry", "unknown"])
@pytest.mark.parametrize("crashes", [1, 2, 3])
@pytest.mark.parametrize("is_manual", [False, True])
def test_a_crash_is_judged_by_how_far_the_run_had_got(
    rung: RungName | None, on_crash: Any, crashes: int, is_manual: bool
) -> None:
    """The whole table."""
    nothing_sent = rung in (None, "claimed")
    if is_manual:
        expected = "failed" if nothing_sent else "unknown"
    elif crashes > 1:
        expected = "unknown"
    else:
        expected = "retry" if nothing_sent or on_crash == "retry" else "unknown"
    assert after_crash(rung, crashes=crashes, on_crash=on_crash, is_manual=is_manual) == expected


@given(IDS, st.integers(0, 400 * DAY), st.none() | st.integers(0, 400 * DAY))
def test_a_stagger_is_fixed_within_its_span_and_smaller_than_the_interval(
    schedule_id: int, stagger: int, gap: int | None
) -> None:
    """The same at every start, on every node."""
    offset = stagger_offset(schedule_id, stagger, gap)
    assert offset == stagger_offset(schedule_id, stagger, gap)
    assert offset == 0 or 0 < offset < stagger
    assert gap is None or offset == 0 or offset < gap


def test_staggers_spread() -> None:
    """A thousand schedules of one minute do not ring together, and each decile gets its share."""
    offsets = [stagger_offset(schedule_id, MINUTE, HOUR) for schedule_id in range(1, 1001)]
    deciles = [sum(offset // (MINUTE // 10) == decile for offset in offsets) for decile in range(10)]
    assert min(deciles) > 50


@pytest.mark.parametrize(
    ("timing", "below"),
    [(Every(10 * SECOND, NOW), 10 * SECOND), (Cron("*/5 * * * *", "UTC"), 5 * MINUTE), (Once(NOW), HOUR)],
    ids=["every", "cron", "once"],
)
def test_the_stagger_of_a_definition_stays_below_its_interval(timing: Any, below: int) -> None:
    """Even if more was asked for."""
    definition = Definition("a", timing, Call("x:y"), stagger=HOUR)
    offsets = {rules_of(definition, schedule_id).offset for schedule_id in range(1, 300)}
    assert max(offsets) < below
    assert len(offsets) > 200


def test_without_stagger_due_is_planned() -> None:
    """The default."""
    assert rules_of(Definition("a", Every(HOUR, NOW), Call("x:y")), 12345).offset == 0


def test_agents_are_tried_again_and_nothing_else_is_unless_its_owner_says_so() -> None:
    """Every 30 minutes until the next regular instant."""
    timing = Every(HOUR, NOW)
    assert Retry(None, 30 * MINUTE) == AGENT_RETRY
    for action in (Call("x:y"), Command(("true",)), Http("POST", "http://x/"), Event("hi")):
        assert retry_of(Definition("a", timing, action)) == NO_RETRY
    assert retry_of(Definition("a", timing, Prompt("hi"))) == AGENT_RETRY
    own = Retry(2, MINUTE)
    assert policy_of(Definition("a", timing, Prompt("hi"), retry=own)) == Policy(own, "retry", 5, None)


def test_rules_are_the_part_of_a_definition_that_plans() -> None:
    """Field by field."""
    definition = Definition(
        "a", Once(NOW), Call("x:y"), catch_up="all", catch_up_max=3, lateness_max=MINUTE, overlap="queue"
    )
    rules = rules_of(definition, 1)
    assert (rules.timing, rules.catch_up, rules.catch_up_max) == (Once(NOW), "all", 3)
    assert (rules.lateness_max, rules.overlap) == (MINUTE, "queue")
