"""What a ringing alarm means: which instants start, which do not, and why."""

from __future__ import annotations

from typing import Any

import pytest

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
from wakeful.core.schedule.policies import GRACE, CatchUp
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from wakeful.core.time.timing import AfterReset, Cron, Every, Manual, Once, Times, Timing

T0 = parse_instant("2026-01-30T09:00:00Z")
NOTHING: frozenset[int] = frozenset()
HOURLY = Every(HOUR, T0)
TEN_MINUTELY = Every(10 * MINUTE, T0)
MINUTELY = Every(MINUTE, T0)
POLICIES: list[CatchUp] = ["once", "skip", "all"]


def rules_for(timing: Timing, **options: Any) -> Rules:
    return Rules(timing, **options)


def active(rules: Rules, **changes: Any) -> Cadence:
    """A schedule written at T0: everything up to then is decided."""
    return begin(1, 1, rules, now=T0, state="active", reason=None)._replace(**changes)


def rung(cadence: Cadence, rules: Rules, now: int, taken: frozenset[int] = NOTHING, reason: str = "outage") -> Plan:
    return ring(cadence, rules, now=now, gap_reason=reason, taken=taken)


def opened(plan: Plan, run_id: int) -> Cadence:
    """The cadence once the run it started has an id, as `record` writes it."""
    assert isinstance(plan.rows[-1], Start)
    return plan.cadence._replace(open_run_id=run_id, last_row_id=run_id)


def closed(cadence: Cadence) -> Cadence:
    return cadence._replace(open_run_id=None)


# -- on time ----------------------------------------------------------------------------------------------------------


def test_a_new_schedule_is_planned_through_now_and_next_is_after_it() -> None:
    """Nothing before it was written counts, and an instant exactly now has passed."""
    cadence = active(rules_for(HOURLY))
    assert (cadence.planned_through, cadence.next_at) == (T0, T0 + HOUR)
    assert due_at(cadence, rules_for(HOURLY)) == T0 + HOUR


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("late", [0, 1, GRACE])
def test_a_late_instant_within_a_minute_is_never_a_misfire(policy: CatchUp, late: int) -> None:
    """Whatever the policy, and whatever maxLateness says."""
    rules = rules_for(HOURLY, catch_up=policy, lateness_max=0)
    plan = rung(active(rules), rules, T0 + HOUR + late)
    assert plan.rows == (Start(T0 + HOUR, T0 + HOUR, "schedule"),)
    assert (plan.cadence.planned_through, plan.cadence.next_at) == (T0 + HOUR, T0 + 2 * HOUR)


def test_a_millisecond_beyond_the_minute_is_late() -> None:
    """`skip` misses it, `once` catches it up."""
    skip, once = rules_for(HOURLY, catch_up="skip"), rules_for(HOURLY)
    now = T0 + HOUR + GRACE + 1
    assert rung(active(skip), skip, now).rows == (Gap(T0 + HOUR, T0 + HOUR, 1, "missed", "outage"),)
    assert rung(active(once), once, now).rows == (Start(T0 + HOUR, T0 + HOUR, "catchUp"),)


@pytest.mark.parametrize("policy", ["once", "skip"])
def test_several_due_within_the_minute_become_one_run(policy: CatchUp) -> None:
    """The newest starts on time; the older ones are coalesced, not missed."""
    rules = rules_for(Every(10 * SECOND, T0), catch_up=policy)
    plan = rung(active(rules), rules, T0 + 35 * SECOND)
    assert plan.rows == (
        Gap(T0 + 10 * SECOND, T0 + 20 * SECOND, 2, "skipped", "coalesced"),
        Start(T0 + 30 * SECOND, T0 + 30 * SECOND, "schedule"),
    )


def test_all_coalesces_what_it_may_not_catch_up_within_the_minute() -> None:
    """Beyond catchUpMax, but on time: no misfire, so not missed."""
    rules = rules_for(Every(10 * SECOND, T0), catch_up="all", catch_up_max=1)
    plan = rung(active(rules), rules, T0 + 35 * SECOND)
    assert [row[3:5] for row in plan.rows if isinstance(row, Gap)] == [("skipped", "coalesced")]


def test_an_alarm_that_rings_too_early_decides_nothing() -> None:
    """The next instant is not due, so nothing moves."""
    rules = rules_for(HOURLY)
    assert rung(active(rules), rules, T0 + HOUR - 1) == Plan((), active(rules))


@pytest.mark.parametrize("timing", [Manual(), AfterReset("glm")])
def test_a_timing_without_instants_never_rings(timing: Timing) -> None:
    """And is not done either: something else brings its next time."""
    rules = rules_for(timing)
    cadence = active(rules)
    assert due_at(cadence, rules) is None
    assert not is_spent(rules, cadence.next_at)
    assert rung(cadence, rules, T0 + DAY).rows == ()


# -- catch-up ---------------------------------------------------------------------------------------------------------


def test_once_runs_the_latest_missed_instant_and_counts_the_older_as_one_row() -> None:
    """The reason is the one the engine gives: an outage, or a clock that jumped."""
    rules = rules_for(HOURLY)
    plan = rung(active(rules), rules, T0 + 5 * HOUR + 30 * MINUTE, reason="clock")
    assert plan.rows == (
        Gap(T0 + HOUR, T0 + 4 * HOUR, 4, "missed", "clock"),
        Start(T0 + 5 * HOUR, T0 + 5 * HOUR, "catchUp"),
    )
    assert plan.cadence.next_at == T0 + 6 * HOUR


def test_skip_misses_everything_late_in_one_row() -> None:
    """Nothing is caught up."""
    rules = rules_for(HOURLY, catch_up="skip")
    plan = rung(active(rules), rules, T0 + 5 * HOUR + 30 * MINUTE)
    assert plan.rows == (Gap(T0 + HOUR, T0 + 5 * HOUR, 5, "missed", "outage"),)


def test_skip_still_starts_the_newest_when_that_is_on_time() -> None:
    """Coming back at the full hour, the full hour runs."""
    rules = rules_for(HOURLY, catch_up="skip")
    plan = rung(active(rules), rules, T0 + 5 * HOUR + 20 * SECOND)
    assert plan.rows == (
        Gap(T0 + HOUR, T0 + 4 * HOUR, 4, "missed", "outage"),
        Start(T0 + 5 * HOUR, T0 + 5 * HOUR, "schedule"),
    )


@pytest.mark.parametrize(("late", "runs"), [(10 * MINUTE, True), (10 * MINUTE + 1, False)])
def test_nothing_later_than_max_lateness_is_caught_up(late: int, runs: bool) -> None:
    """Field note 12: the alert of 11:00 does not fire at 22:00."""
    rules = rules_for(HOURLY, lateness_max=10 * MINUTE)
    plan = rung(active(rules), rules, T0 + 3 * HOUR + late)
    assert isinstance(plan.rows[-1], Start) is runs
    assert plan.cadence.planned_through == T0 + 3 * HOUR


def test_a_year_of_silence_is_one_row() -> None:
    """Counted, not enumerated (L4)."""
    rules = rules_for(Every(10 * SECOND, T0))
    plan = rung(active(rules), rules, T0 + 365 * DAY)
    gap, start = plan.rows
    assert isinstance(gap, Gap) and gap.instants == 365 * 8640 - 1
    assert isinstance(start, Start) and start.planned_at == T0 + 365 * DAY


def test_all_runs_the_oldest_first_one_by_one() -> None:
    """The next one starts when the one before has closed; the alarm is silent meanwhile."""
    rules = rules_for(TEN_MINUTELY, catch_up="all")
    now = T0 + 35 * MINUTE
    plan = rung(active(rules), rules, now)
    started = []
    while plan.rows:
        start = plan.rows[-1]
        assert isinstance(start, Start) and len(plan.rows) == 1
        started.append((start.planned_at, start.trigger))
        cadence = opened(plan, len(started))
        now += SECOND
        assert due_at(cadence, rules) in (None, T0 + 40 * MINUTE)
        cadence = closed(cadence)
        plan = rung(cadence, rules, now)
    assert started == [(T0 + 10 * n * MINUTE, "catchUp") for n in (1, 2, 3)]
    assert (cadence.catch_up_until, due_at(cadence, rules)) == (None, T0 + 40 * MINUTE)


def test_all_catches_up_at_most_catch_up_max() -> None:
    """The newest of them; what is older is one missed row."""
    rules = rules_for(TEN_MINUTELY, catch_up="all", catch_up_max=3)
    plan = rung(active(rules), rules, T0 + 65 * MINUTE)
    assert plan.rows == (
        Gap(T0 + 10 * MINUTE, T0 + 30 * MINUTE, 3, "missed", "outage"),
        Start(T0 + 40 * MINUTE, T0 + 40 * MINUTE, "catchUp"),
    )
    assert plan.cadence.catch_up_until == T0 + 60 * MINUTE


def test_a_backlog_that_became_longer_is_cut_to_catch_up_max() -> None:
    """Days that are no longer excluded, or a lower limit: what is left is a new backlog (seed 10012)."""
    rules = rules_for(TEN_MINUTELY, catch_up="all", catch_up_max=3)
    cadence = active(rules, catch_up_until=T0 + 60 * MINUTE)
    plan = rung(cadence, rules, T0 + 65 * MINUTE)
    assert plan.rows == (
        Gap(T0 + 10 * MINUTE, T0 + 30 * MINUTE, 3, "missed", "outage"),
        Start(T0 + 40 * MINUTE, T0 + 40 * MINUTE, "catchUp"),
    )
    assert plan.cadence.catch_up_until == T0 + 60 * MINUTE


def test_all_leaves_out_what_is_later_than_max_lateness() -> None:
    """The oldest that may still run comes first."""
    rules = rules_for(TEN_MINUTELY, catch_up="all", lateness_max=20 * MINUTE)
    plan = rung(active(rules), rules, T0 + 55 * MINUTE)
    assert plan.rows == (
        Gap(T0 + 10 * MINUTE, T0 + 30 * MINUTE, 3, "missed", "outage"),
        Start(T0 + 40 * MINUTE, T0 + 40 * MINUTE, "catchUp"),
    )


def test_all_misses_everything_when_all_of_it_is_too_late() -> None:
    """Then there is no backlog."""
    rules = rules_for(HOURLY, catch_up="all", lateness_max=MINUTE)
    plan = rung(active(rules), rules, T0 + 2 * HOUR + 5 * MINUTE)
    assert plan.rows == (Gap(T0 + HOUR, T0 + 2 * HOUR, 2, "missed", "outage"),)
    assert plan.cadence.catch_up_until is None


def test_a_backlog_skips_at_once_what_ran_on_a_clock_that_was_ahead() -> None:
    """However many there are: the next one that did not run starts, or nothing if all of them did."""
    rules = rules_for(TEN_MINUTELY, catch_up="all")
    cadence = active(rules, catch_up_until=T0 + 60 * MINUTE)
    now = T0 + 65 * MINUTE
    plan = rung(cadence, rules, now, taken=frozenset(T0 + n * 10 * MINUTE for n in (1, 2, 3, 4)))
    assert [row.planned_at for row in plan.rows if isinstance(row, Start)] == [T0 + 50 * MINUTE]
    assert plan.cadence.planned_through == T0 + 50 * MINUTE
    plan = rung(cadence, rules, now, taken=frozenset(T0 + n * 10 * MINUTE for n in range(1, 7)))
    assert (plan.rows, plan.cadence.next_at) == ((), T0 + 70 * MINUTE)


def test_a_backlog_that_became_too_late_while_it_ran_is_missed_after_all() -> None:
    """maxLateness is about when a run starts, not about when its backlog began."""
    rules = rules_for(TEN_MINUTELY, catch_up="all", lateness_max=30 * MINUTE)
    cadence = closed(opened(rung(active(rules), rules, T0 + 38 * MINUTE), 1))
    plan = rung(cadence, rules, T0 + 52 * MINUTE)
    assert plan.rows == (
        Gap(T0 + 20 * MINUTE, T0 + 20 * MINUTE, 1, "missed", "outage"),
        Start(T0 + 30 * MINUTE, T0 + 30 * MINUTE, "catchUp"),
    )
    plan = rung(cadence, rules, T0 + 3 * HOUR)
    assert plan.rows == (Gap(T0 + 20 * MINUTE, T0 + 30 * MINUTE, 2, "missed", "outage"),)
    assert plan.cadence.planned_through == T0 + 30 * MINUTE


def test_the_next_of_a_backlog_starts_if_it_is_exactly_as_late_as_it_may_be() -> None:
    """Those before it are missed, it is not."""
    rules = rules_for(TEN_MINUTELY, catch_up="all", lateness_max=30 * MINUTE)
    cadence = closed(opened(rung(active(rules), rules, T0 + 38 * MINUTE), 1))
    assert rung(cadence, rules, T0 + 60 * MINUTE).rows[-1] == Start(T0 + 30 * MINUTE, T0 + 30 * MINUTE, "catchUp")


def test_a_backlog_within_the_minute_is_not_too_late_whatever_max_lateness_says() -> None:
    """Being late by up to a minute is never a misfire."""
    rules = rules_for(Every(10 * SECOND, T0), catch_up="all", lateness_max=0)
    assert rung(active(rules), rules, T0 + 35 * SECOND).rows == (Start(T0 + 10 * SECOND, T0 + 10 * SECOND, "catchUp"),)


def test_a_backlog_begun_under_all_leaves_no_catch_up_to_the_policy_after_it() -> None:
    """Edited to `once` meanwhile: what fell on the backlog's runs is blocked all the same."""
    rules = rules_for(TEN_MINUTELY, catch_up="all")
    cadence = closed(opened(rung(active(rules), rules, T0 + 29 * MINUTE), 1))
    cadence = closed(opened(rung(cadence, rules, T0 + 45 * MINUTE), 2))
    plan = rung(cadence, rules_for(TEN_MINUTELY), T0 + 45 * MINUTE)
    assert plan.rows == (Gap(T0 + 30 * MINUTE, T0 + 40 * MINUTE, 2, "skipped", "blocked", 2),)


def test_what_falls_due_while_the_backlog_runs_is_blocked_by_it() -> None:
    """It fell on open runs. It is recorded as soon as the last run of the backlog has started, not when that closes."""
    rules = rules_for(TEN_MINUTELY, catch_up="all")
    cadence = closed(opened(rung(active(rules), rules, T0 + 29 * MINUTE), 1))
    cadence = opened(rung(cadence, rules, T0 + 45 * MINUTE), 2)
    assert due_at(cadence, rules) == T0 + 30 * MINUTE
    plan = rung(cadence, rules, T0 + 45 * MINUTE)
    assert plan.rows == (Gap(T0 + 30 * MINUTE, T0 + 40 * MINUTE, 2, "skipped", "blocked", 2),)
    assert plan.cadence.catch_up_until is None
    assert due_at(plan.cadence, rules) == T0 + 50 * MINUTE


def test_an_instant_on_time_after_the_backlog_starts() -> None:
    """Those before it fell on the backlog's runs; it did not."""
    rules = rules_for(TEN_MINUTELY, catch_up="all")
    cadence = closed(opened(rung(active(rules), rules, T0 + 29 * MINUTE), 1))
    cadence = closed(opened(rung(cadence, rules, T0 + 40 * MINUTE), 2))
    plan = rung(cadence, rules, T0 + 40 * MINUTE + SECOND)
    assert plan.rows == (
        Gap(T0 + 30 * MINUTE, T0 + 30 * MINUTE, 1, "skipped", "blocked", 2),
        Start(T0 + 40 * MINUTE, T0 + 40 * MINUTE, "schedule"),
    )


def test_an_instant_falling_on_the_last_run_of_a_backlog_is_decided_when_it_is_due() -> None:
    """However long that run takes, the ledger is not silent about it."""
    rules = rules_for(TEN_MINUTELY, catch_up="all")
    cadence = closed(opened(rung(active(rules), rules, T0 + 29 * MINUTE), 1))
    cadence = opened(rung(cadence, rules, T0 + 29 * MINUTE + SECOND), 2)
    assert due_at(cadence, rules) == T0 + 30 * MINUTE
    assert rung(cadence, rules, T0 + 30 * MINUTE).rows == (
        Gap(T0 + 30 * MINUTE, T0 + 30 * MINUTE, 1, "skipped", "blocked", 2),
    )


def test_an_error_in_a_backlog_delays_the_rest_of_it_and_throws_nothing_away() -> None:
    """`all` means all: the delay passes, and the next of the backlog runs."""
    rules = rules_for(TEN_MINUTELY, catch_up="all")
    now = T0 + 35 * MINUTE
    cadence = closed(opened(rung(active(rules), rules, now), 1))._replace(backoff_until=now + 30 * SECOND)
    assert due_at(cadence, rules) == now + 30 * SECOND
    plan = rung(cadence, rules, now + 30 * SECOND)
    assert plan.rows == (Start(T0 + 20 * MINUTE, now + 30 * SECOND, "catchUp"),)


# -- open runs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_an_instant_on_an_open_run_is_skipped_and_says_which(policy: CatchUp) -> None:
    """skipped(blocked by run X)."""
    rules = rules_for(HOURLY, catch_up=policy)
    plan = rung(active(rules, open_run_id=7), rules, T0 + HOUR)
    assert plan.rows == (Gap(T0 + HOUR, T0 + HOUR, 1, "skipped", "blocked", 7),)


def test_several_instants_on_an_open_run_within_the_minute_are_one_blocked_row() -> None:
    """One counted row."""
    rules = rules_for(Every(10 * SECOND, T0))
    plan = rung(active(rules, open_run_id=7), rules, T0 + 35 * SECOND)
    assert plan.rows == (Gap(T0 + 10 * SECOND, T0 + 30 * SECOND, 3, "skipped", "blocked", 7),)


@pytest.mark.parametrize("policy", POLICIES)
def test_after_an_outage_with_an_open_run_the_newest_is_blocked_and_the_older_are_missed(policy: CatchUp) -> None:
    """Nobody was there to see what the older ones fell on."""
    rules = rules_for(HOURLY, catch_up=policy)
    plan = rung(active(rules, open_run_id=7), rules, T0 + 4 * HOUR + 30 * MINUTE)
    assert plan.rows == (
        Gap(T0 + HOUR, T0 + 3 * HOUR, 3, "missed", "outage"),
        Gap(T0 + 4 * HOUR, T0 + 4 * HOUR, 1, "skipped", "blocked", 7),
    )


def test_with_overlap_queue_one_instant_waits_behind_the_open_run() -> None:
    """And the one after that is blocked."""
    rules = rules_for(HOURLY, overlap="queue")
    plan = rung(active(rules, open_run_id=7), rules, T0 + HOUR)
    assert plan.rows == (Start(T0 + HOUR, T0 + HOUR, "schedule", behind=7),)
    plan = rung(plan.cadence._replace(queued_run_id=8), rules, T0 + 2 * HOUR)
    assert plan.rows == (Gap(T0 + 2 * HOUR, T0 + 2 * HOUR, 1, "skipped", "blocked", 7),)


def test_with_overlap_queue_a_backlog_begins_behind_the_open_run() -> None:
    """One by one all the same."""
    rules = rules_for(HOURLY, overlap="queue", catch_up="all")
    plan = rung(active(rules, open_run_id=7), rules, T0 + 2 * HOUR + 30 * MINUTE)
    assert plan.rows == (Start(T0 + HOUR, T0 + HOUR, "catchUp", behind=7),)
    assert due_at(plan.cadence._replace(queued_run_id=8), rules) is None


# -- backoff ----------------------------------------------------------------------------------------------------------


def test_backoff_only_ever_delays() -> None:
    """max(regular, error + delay): a delay that ends before the regular time changes nothing."""
    rules = rules_for(HOURLY)
    cadence = active(rules, backoff_until=T0 + 30 * SECOND)
    assert due_at(cadence, rules) == T0 + HOUR
    assert rung(cadence, rules, T0 + HOUR).rows == (Start(T0 + HOUR, T0 + HOUR, "schedule"),)


def test_backoff_lands_on_the_latest_grid_instant_and_what_it_jumps_over_is_one_row() -> None:
    """The run happens when the delay is over; its planned time is on the grid, and so is the one after it."""
    rules = rules_for(MINUTELY)
    until = T0 + 5 * MINUTE + 12 * SECOND
    cadence = active(rules, backoff_until=until)
    assert due_at(cadence, rules) == until
    plan = rung(cadence, rules, until)
    assert plan.rows == (
        Gap(T0 + MINUTE, T0 + 4 * MINUTE, 4, "skipped", "backoff"),
        Start(T0 + 5 * MINUTE, until, "schedule"),
    )
    assert (plan.cadence.next_at, plan.cadence.backoff_until) == (T0 + 6 * MINUTE, None)


def test_a_delay_shorter_than_the_grid_moves_the_next_instant_and_skips_nothing() -> None:
    """It is due at the end of the delay, and on time then."""
    rules = rules_for(MINUTELY, catch_up="skip")
    until = T0 + MINUTE + 59 * SECOND
    plan = rung(active(rules, backoff_until=until), rules, until)
    assert plan.rows == (Start(T0 + MINUTE, until, "schedule"),)


def test_lateness_after_a_backoff_counts_from_its_end() -> None:
    """A grid of an hour, a delay of 50 minutes: not late at all."""
    rules = rules_for(HOURLY, catch_up="skip")
    until = T0 + HOUR + 50 * MINUTE
    assert rung(active(rules, backoff_until=until), rules, until + GRACE).rows == (Start(T0 + HOUR, until, "schedule"),)


def test_an_outage_over_a_backoff_is_split_at_its_end() -> None:
    """Skipped up to the landing, missed after it."""
    rules = rules_for(MINUTELY)
    until = T0 + 5 * MINUTE + SECOND
    plan = rung(active(rules, backoff_until=until), rules, T0 + 20 * MINUTE + 10 * SECOND)
    assert plan.rows == (
        Gap(T0 + MINUTE, T0 + 4 * MINUTE, 4, "skipped", "backoff"),
        Gap(T0 + 5 * MINUTE, T0 + 19 * MINUTE, 15, "missed", "outage"),
        Start(T0 + 20 * MINUTE, T0 + 20 * MINUTE, "schedule"),
    )


# -- stagger ----------------------------------------------------------------------------------------------------------


def test_stagger_moves_the_due_time_and_not_the_grid() -> None:
    """Lateness counts from due."""
    rules = rules_for(HOURLY, offset=7 * MINUTE, catch_up="skip")
    cadence = active(rules)
    assert due_at(cadence, rules) == T0 + HOUR + 7 * MINUTE
    plan = rung(cadence, rules, T0 + HOUR + 8 * MINUTE)
    assert plan.rows == (Start(T0 + HOUR, T0 + HOUR + 7 * MINUTE, "schedule"),)
    assert plan.cadence.next_at == T0 + 2 * HOUR


def test_an_instant_whose_due_time_has_not_come_is_not_decided() -> None:
    """After an outage, 12:00 with an offset of seven minutes is still ahead at 12:03."""
    rules = rules_for(HOURLY, offset=7 * MINUTE)
    plan = rung(active(rules), rules, T0 + 3 * HOUR + 3 * MINUTE)
    assert plan.cadence.planned_through == T0 + 2 * HOUR
    assert due_at(plan.cadence, rules) == T0 + 3 * HOUR + 7 * MINUTE


def test_backoff_with_stagger_lands_where_due_is_not_after_it() -> None:
    """Planned + offset is what is compared with the end of the delay."""
    rules = rules_for(MINUTELY, offset=20 * SECOND)
    until = T0 + 5 * MINUTE + 10 * SECOND
    plan = rung(active(rules, backoff_until=until), rules, until)
    assert plan.rows[-1] == Start(T0 + 4 * MINUTE, until, "schedule")


# -- halts ------------------------------------------------------------------------------------------------------------


def test_a_paused_schedule_rings_only_to_end_its_pause() -> None:
    """Without an end there is no alarm."""
    rules = rules_for(HOURLY)
    paused = active(rules, state="paused")
    assert due_at(paused, rules) is None
    assert due_at(paused._replace(resume_at=T0 + DAY), rules) == T0 + DAY


@pytest.mark.parametrize("state", ["disabled", "invalid", "done"])
def test_nothing_rings_in_any_other_state(state: Any) -> None:
    """A disabled schedule never fires (L2)."""
    rules = rules_for(HOURLY)
    cadence = active(rules, state=state)
    assert due_at(cadence, rules) is None
    assert rung(cadence, rules, T0 + DAY) == Plan((), cadence)


def test_resuming_writes_the_pause_as_one_row_and_catches_nothing_up() -> None:
    """Even under `all`: a pause is not an outage."""
    rules = rules_for(HOURLY, catch_up="all")
    plan = resume(active(rules, state="paused"), rules, now=T0 + 5 * HOUR + MINUTE, taken=NOTHING)
    assert plan.rows == (Gap(T0 + HOUR, T0 + 5 * HOUR, 5, "skipped", "paused"),)
    assert (plan.cadence.state, plan.cadence.next_at) == ("active", T0 + 6 * HOUR)


def test_resuming_a_disabled_schedule_says_so_and_forgets_its_errors() -> None:
    """The person's word is a fresh start."""
    rules = rules_for(HOURLY)
    halted = active(rules, state="disabled", state_reason="5 errors in a row", consecutive_errors=5, backoff_until=T0)
    plan = resume(halted, rules, now=T0 + 2 * HOUR, taken=NOTHING)
    assert plan.rows == (Gap(T0 + HOUR, T0 + 2 * HOUR, 2, "skipped", "disabled"),)
    after = plan.cadence
    assert (after.state, after.state_reason, after.consecutive_errors, after.backoff_until) == ("active", None, 0, None)


def test_what_was_due_before_the_pause_and_never_rung_is_missed_not_paused() -> None:
    """The node was down, then a person paused it."""
    rules = rules_for(HOURLY)
    paused = active(rules, state="paused", state_at=T0 + 2 * HOUR + MINUTE)
    plan = resume(paused, rules, now=T0 + 4 * HOUR, taken=NOTHING)
    assert plan.rows == (
        Gap(T0 + HOUR, T0 + 2 * HOUR, 2, "missed", "outage"),
        Gap(T0 + 3 * HOUR, T0 + 4 * HOUR, 2, "skipped", "paused"),
    )


@pytest.mark.parametrize(
    ("options", "changes"),
    [({"offset": 7 * MINUTE}, {}), ({}, {"backoff_until": T0 + HOUR + 5 * MINUTE})],
    ids=["staggered", "held off"],
)
def test_what_was_not_yet_due_when_the_pause_began_is_paused(options: Any, changes: Any) -> None:
    """Its grid time had passed, but it was staggered or held off: no outage took it."""
    rules = rules_for(HOURLY, **options)
    paused = active(rules, state="paused", state_at=T0 + HOUR + 3 * MINUTE, **changes)
    plan = resume(paused, rules, now=T0 + 2 * HOUR, taken=NOTHING)
    assert plan.rows == (Gap(T0 + HOUR, T0 + 2 * HOUR, 2, "skipped", "paused"),)


def test_a_pause_with_an_end_rings_by_itself_and_goes_on_from_its_end() -> None:
    """What came after the end is caught up as usual; errors are not forgiven, for nobody looked."""
    rules = rules_for(HOURLY)
    paused = active(rules, state="paused", resume_at=T0 + 2 * HOUR + 30 * MINUTE, consecutive_errors=2)
    plan = rung(paused, rules, T0 + 4 * HOUR + 30 * MINUTE)
    assert plan.rows == (
        Gap(T0 + HOUR, T0 + 2 * HOUR, 2, "skipped", "paused"),
        Gap(T0 + 3 * HOUR, T0 + 3 * HOUR, 1, "missed", "outage"),
        Start(T0 + 4 * HOUR, T0 + 4 * HOUR, "catchUp"),
    )
    after = plan.cadence
    assert (after.state, after.resume_at, after.consecutive_errors) == ("active", None, 2)


def test_a_pause_that_ends_into_a_backoff_decides_nothing_ahead_of_time() -> None:
    """The jump is written when it happens: nothing may lie in the ledger beyond planned_through (L1)."""
    rules = rules_for(MINUTELY)
    paused = active(rules, state="paused", resume_at=T0 + 5 * MINUTE, backoff_until=T0 + 15 * MINUTE)
    plan = rung(paused, rules, T0 + 5 * MINUTE)
    assert plan.rows == (Gap(T0 + MINUTE, T0 + 5 * MINUTE, 5, "skipped", "paused"),)
    assert (plan.cadence.planned_through, plan.cadence.next_at) == (T0 + 5 * MINUTE, T0 + 6 * MINUTE)
    assert due_at(plan.cadence, rules) == T0 + 15 * MINUTE
    later = rung(plan.cadence, rules, T0 + 15 * MINUTE)
    assert later.rows[0] == Gap(T0 + 6 * MINUTE, T0 + 14 * MINUTE, 9, "skipped", "backoff")


def test_a_halt_ends_a_backlog() -> None:
    """What was still to be caught up is missed; nothing of it starts after the halt."""
    rules = rules_for(TEN_MINUTELY, catch_up="all")
    cadence = closed(opened(rung(active(rules), rules, T0 + 35 * MINUTE), 1))
    halted = cadence._replace(state="disabled", state_at=T0 + 36 * MINUTE)
    plan = resume(halted, rules, now=T0 + 51 * MINUTE, taken=NOTHING)
    assert plan.rows == (
        Gap(T0 + 20 * MINUTE, T0 + 30 * MINUTE, 2, "missed", "outage"),
        Gap(T0 + 40 * MINUTE, T0 + 50 * MINUTE, 2, "skipped", "disabled"),
    )
    assert plan.cadence.catch_up_until is None


# -- edits ------------------------------------------------------------------------------------------------------------


def test_a_new_timing_starts_now_and_what_was_undecided_is_skipped_as_edited() -> None:
    """Nothing of the old timing is caught up; backlog and backoff end with it."""
    old, new = rules_for(HOURLY, catch_up="all"), rules_for(Times(("12:00",), "UTC"))
    cadence = active(old, catch_up_until=T0 + 2 * HOUR, backoff_until=T0 + 9 * HOUR)
    now = T0 + 2 * HOUR + 30 * MINUTE
    plan = replan(cadence, old, new, now=now, taken=NOTHING)
    assert plan.rows == (Gap(T0 + HOUR, T0 + 2 * HOUR, 2, "skipped", "edited"),)
    after = plan.cadence
    assert (after.planned_through, after.next_at) == (now, T0 + 3 * HOUR)
    assert (after.catch_up_until, after.backoff_until) == (None, None)


@pytest.mark.parametrize("state", ["paused", "disabled"])
def test_a_new_timing_while_halted_first_writes_the_halt_under_the_old_one(state: Any) -> None:
    """Otherwise the stretch until the edit would be nowhere (L1)."""
    old, new = rules_for(HOURLY), rules_for(Every(30 * MINUTE, T0))
    now = T0 + 2 * HOUR + MINUTE
    plan = replan(active(old, state=state), old, new, now=now, taken=NOTHING)
    assert plan.rows == (Gap(T0 + HOUR, T0 + 2 * HOUR, 2, "skipped", state),)
    assert plan.cadence.state == state
    later = resume(plan.cadence, new, now=now + HOUR, taken=NOTHING)
    assert later.rows == (Gap(T0 + 2 * HOUR + 30 * MINUTE, T0 + 3 * HOUR, 2, "skipped", state),)


def test_a_finished_schedule_with_a_new_time_has_no_gap_behind_it() -> None:
    """It was done; nothing of it was pending."""
    old, new = rules_for(Once(T0 + HOUR)), rules_for(Once(T0 + DAY))
    done = active(old, state="done", planned_through=T0 + HOUR, next_at=None)
    plan = replan(done, old, new, now=T0 + 2 * HOUR, taken=NOTHING)
    assert (plan.rows, plan.cadence.next_at) == ((), T0 + DAY)


# -- a clock that came back -------------------------------------------------------------------------------------------


def test_after_the_clock_came_back_planning_goes_on_from_now() -> None:
    """And where it had been is remembered."""
    rules = rules_for(HOURLY)
    ahead = active(rules, planned_through=T0 + 100 * HOUR, next_at=T0 + 101 * HOUR, backoff_until=T0 + 102 * HOUR)
    back = turn_back(ahead, rules, now=T0 + MINUTE)
    assert (back.planned_through, back.next_at, back.ran_through) == (T0 + MINUTE, T0 + HOUR, T0 + 100 * HOUR)
    assert back.backoff_until is None
    assert turn_back(back, rules, now=T0 + SECOND).ran_through == T0 + 100 * HOUR


def test_what_ran_out_there_never_repeats() -> None:
    """Its instant passes, and nothing starts."""
    rules = rules_for(HOURLY)
    back = turn_back(active(rules, planned_through=T0 + HOUR), rules, now=T0 + MINUTE)
    plan = rung(back, rules, T0 + HOUR, taken=frozenset({T0 + HOUR}))
    assert (plan.rows, plan.cadence.next_at) == ((), T0 + 2 * HOUR)


def test_gaps_are_split_around_what_ran() -> None:
    """Rows tile time: the run has its row already."""
    rules = rules_for(HOURLY, catch_up="skip")
    taken = frozenset({T0 + HOUR, T0 + 3 * HOUR, T0 + 4 * HOUR, T0 + 9 * HOUR})
    plan = rung(active(rules), rules, T0 + 6 * HOUR + 30 * MINUTE, taken=taken)
    assert plan.rows == (
        Gap(T0 + 2 * HOUR, T0 + 2 * HOUR, 1, "missed", "outage"),
        Gap(T0 + 5 * HOUR, T0 + 6 * HOUR, 2, "missed", "outage"),
    )


def test_a_backlog_steps_over_what_ran() -> None:
    """It goes on with the next one at once, since nothing is open."""
    rules = rules_for(HOURLY, catch_up="all")
    now = T0 + 3 * HOUR + 30 * MINUTE
    plan = rung(active(rules), rules, now, taken=frozenset({T0 + HOUR}))
    assert (plan.rows, due_at(plan.cadence, rules)) == ((), T0 + 2 * HOUR)
    assert rung(plan.cadence, rules, now).rows == (Start(T0 + 2 * HOUR, T0 + 2 * HOUR, "catchUp"),)


def test_a_schedule_that_was_done_on_a_clock_ahead_is_not_silent_afterwards() -> None:
    """Its instant was only missed out there, and that is void: it is planned again. What did run is `taken`."""
    rules = rules_for(Once(T0 + HOUR))
    done = active(rules, state="done", planned_through=T0 + HOUR, next_at=None)
    back = turn_back(done, rules, now=T0 + MINUTE)
    assert due_at(back, rules) == T0 + HOUR
    assert rung(back, rules, T0 + HOUR, taken=frozenset({T0 + HOUR})).rows == ()


def test_a_schedule_that_was_removed_stays_removed_when_the_clock_comes_back() -> None:
    """Done for another reason than being spent."""
    rules = rules_for(HOURLY)
    gone = active(rules, state="done", state_reason="removed", planned_through=T0 + HOUR)
    assert turn_back(gone, rules, now=T0 + MINUTE).state == "done"


def test_a_pause_begun_on_a_clock_ahead_is_still_a_pause() -> None:
    """Not an outage."""
    rules = rules_for(HOURLY)
    ahead = active(rules, state="paused", state_at=T0 + 50 * HOUR, planned_through=T0 + 50 * HOUR)
    back = turn_back(ahead, rules, now=T0 + MINUTE)
    plan = resume(back, rules, now=T0 + 2 * HOUR, taken=NOTHING)
    assert plan.rows == (Gap(T0 + HOUR, T0 + 2 * HOUR, 2, "skipped", "paused"),)


# -- the last instant -------------------------------------------------------------------------------------------------


def test_once_has_one_run_and_then_no_next() -> None:
    """Spent: no instant will ever follow."""
    rules = rules_for(Once(T0 + HOUR))
    plan = rung(active(rules), rules, T0 + HOUR)
    assert plan.rows == (Start(T0 + HOUR, T0 + HOUR, "schedule"),)
    assert plan.cadence.next_at is None
    assert is_spent(rules, None)
    assert due_at(plan.cadence, rules) is None


def test_once_missed_in_an_outage_is_caught_up() -> None:
    """However late, unless maxLateness says otherwise."""
    rules = rules_for(Once(T0 + HOUR))
    assert rung(active(rules), rules, T0 + 3 * DAY).rows == (Start(T0 + HOUR, T0 + HOUR, "catchUp"),)


def test_once_that_fell_into_a_pause_is_done_when_resumed() -> None:
    """It would otherwise stay active for ever with nothing ahead; an open run of it is waited for."""
    rules = rules_for(Once(T0 + HOUR))
    paused = active(rules, state="paused")
    plan = resume(paused, rules, now=T0 + 2 * HOUR, taken=NOTHING)
    assert plan.rows == (Gap(T0 + HOUR, T0 + HOUR, 1, "skipped", "paused"),)
    assert plan.cadence.state == "done"
    assert resume(paused._replace(open_run_id=3), rules, now=T0 + 2 * HOUR, taken=NOTHING).cadence.state == "active"


def test_only_a_single_instant_or_a_calendar_can_run_out() -> None:
    """Only what can run out is ever done."""
    assert is_spent(rules_for(Cron("0 0 29 2 *", "UTC")), None)
    assert not is_spent(rules_for(HOURLY), None)
    assert not is_spent(rules_for(Once(T0)), T0)
