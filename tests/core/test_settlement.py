"""What becomes of a run when an attempt of it has ended, and of its schedule when the run closes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.delivery.incidents import BAD, RECOVERING, WELL
from wakeful.core.run.effects import Observed
from wakeful.core.run.results import (
    Busy,
    Done,
    Dropped,
    Ending,
    Failed,
    Interrupted,
    Lost,
    StuckRunEnded,
    Throttled,
    TimedOut,
    Unconfirmed,
    Unproven,
    kept_of,
    kept_while_waiting,
)
from wakeful.core.run.runs import ERRORS, NOT_RUN, RUNGS, Run, RungName, Trigger
from wakeful.core.run.settlement import (
    Close,
    Policy,
    Settlement,
    Wait,
    after_attempt,
    after_close,
    after_failed_attempt,
    release,
)
from wakeful.core.run.transitions import claimed, closed, planned, waiting
from wakeful.core.schedule.cadence import Cadence, Rules, begin, due_at, ring
from wakeful.core.schedule.policies import BUSY_WAIT, BUSY_WAITS_MAX, LADDER, NO_RETRY, Retry
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from wakeful.core.time.timing import Every, Once

T0 = parse_instant("2026-01-30T09:00:00Z")
NOW = T0 + HOUR
RULES = Rules(Every(HOUR, T0))
POLICY = Policy(NO_RETRY, "retry", 5, None)
PATIENT = POLICY._replace(retry=Retry(3, 10 * MINUTE))


def running(trigger: Trigger = "schedule", **changes: Any) -> Run:
    run = planned(
        run_id=7, kind="schedule", schedule_id=1, version=1, planned_at=NOW, due_at=NOW, trigger=trigger, lane=None
    )
    return claimed(run, node_id=1, now=NOW, timeout=2 * HOUR, rung="claimed")._replace(**changes)


def settled(
    ending: Ending, policy: Policy = POLICY, next_due_at: int | None = NOW + HOUR, **changes: Any
) -> Settlement:
    return after_attempt(running(**changes), policy, ending, now=NOW, next_due_at=next_due_at)


def active(rules: Rules = RULES, **changes: Any) -> Cadence:
    """A schedule whose instant NOW is being run."""
    cadence = begin(1, 1, rules, now=NOW, state="active", reason=None)
    return cadence._replace(open_run_id=7, last_row_id=7)._replace(**changes)


def after(close: Close, cadence: Cadence | None = None, rules: Rules = RULES, now: int = NOW, **run: Any) -> Cadence:
    return after_close(active() if cadence is None else cadence, rules, POLICY, running(**run), close, now=now)[0]


FAILURE = Close("failed", "claimed", "boom")
SUCCESS = Close("succeeded", "finished")

# -- how an attempt ends ----------------------------------------------------------------------------------------------

ENDINGS: list[Ending] = [
    Done(),
    Failed("boom"),
    Failed("boom", permanent=True),
    Busy("Session busy"),
    Throttled("429", NOW + HOUR),
    TimedOut("took too long"),
    Unproven("still there"),
    Unconfirmed("no sign of life"),
    Interrupted("shutdown"),
    Lost("crash", "its node died"),
    Dropped("paused"),
    StuckRunEnded(),
]


def _name(ending: object) -> str:
    return type(ending).__name__


@pytest.mark.parametrize("ending", ENDINGS, ids=_name)
@pytest.mark.parametrize("rung", RUNGS)
def test_a_manual_run_never_waits(ending: Ending, rung: RungName) -> None:
    """Whatever happens, the person who asked is told at once."""
    patient = Policy(Retry(None, MINUTE), "retry", 5, None)
    assert isinstance(settled(ending, patient, trigger="manual", rung=rung), Close)


@pytest.mark.parametrize("ending", ENDINGS, ids=_name)
@pytest.mark.parametrize("trigger", ["schedule", "catchUp", "manual", "wake"])
def test_every_settlement_is_a_move_the_table_allows(ending: Ending, trigger: Trigger) -> None:
    """A settled row can always be written."""
    outcome = "unknown" if isinstance(ending, StuckRunEnded) else "running"
    run = running(trigger, outcome=outcome)
    settlement = after_attempt(run, PATIENT, ending, now=NOW, next_due_at=NOW + HOUR)
    match settlement:
        case Close():
            row = closed(run, settlement, now=NOW, result=None)
            assert not row.is_open and row.ended_at == NOW
        case Wait():
            row = waiting(run, settlement)
            assert row.outcome == "waiting" and row.next_attempt_at == settlement.until >= NOW


def test_done_is_success_at_the_rung_it_proves() -> None:
    """Default: the highest the target can prove."""
    assert settled(Done()) == Close("succeeded", "finished")
    assert settled(Done("accepted")) == Close("succeeded", "accepted")


@pytest.mark.parametrize("wanted", ["accepted", "started", "finished"])
@pytest.mark.parametrize("reached", RUNGS)
def test_green_means_at_least_the_rung_the_schedule_names(wanted: RungName, reached: RungName) -> None:
    """L8: less than that is unconfirmed, visible and alerted."""
    close = settled(Done(reached), POLICY._replace(success=wanted))
    assert isinstance(close, Close)
    if RUNGS.index(reached) >= RUNGS.index(wanted):
        assert close.outcome == "succeeded"
    else:
        assert close.outcome == "unconfirmed"
        assert close.error == f"reached {reached}, but only {wanted} counts as success"


def test_a_failure_without_retry_closes_with_its_error() -> None:
    """Others than agents are not tried again unless asked."""
    assert settled(Failed("boom")) == Close("failed", "claimed", "boom")
    assert settled(TimedOut("too long")) == Close("timedOut", "claimed", "too long")


def test_a_failure_says_how_far_it_got() -> None:
    """The action knows best; else what the row knew."""
    assert settled(Failed("boom", rung="accepted")) == Close("failed", "accepted", "boom")
    assert settled(Failed("boom"), rung="sent") == Close("failed", "sent", "boom")


def test_a_permanent_error_is_not_retried() -> None:
    """It would be the same the next time."""
    assert settled(Failed("no such function", permanent=True), PATIENT) == Close(
        "failed", "claimed", "no such function"
    )


@pytest.mark.parametrize("ending", [Failed("boom"), TimedOut("too long")], ids=_name)
def test_the_same_instant_is_tried_again_as_often_as_the_schedule_says(ending: Ending) -> None:
    """`times: 3` is three more attempts, `delay` apart."""
    fates = [type(settled(ending, PATIENT, attempt=attempt)) for attempt in (1, 2, 3, 4)]
    assert fates == [Wait, Wait, Wait, Close]
    wait = settled(ending, PATIENT)
    assert isinstance(wait, Wait)
    assert (wait.until, wait.reason, wait.is_busy, wait.is_crash) == (NOW + 10 * MINUTE, "retry", False, False)


def test_waits_and_crashes_do_not_use_up_the_retries() -> None:
    """They were no failures of the target."""
    twice = POLICY._replace(retry=Retry(1, MINUTE))
    assert isinstance(settled(Failed("boom"), twice, attempt=6, waits=4, crashes=1), Wait)
    assert isinstance(settled(Failed("boom"), twice, attempt=7, waits=4, crashes=1), Close)


def test_throttled_attempts_do_not_use_up_the_retries_either() -> None:
    """Throttled twice, then a real failure: that is the first."""
    run, once_more = running(), POLICY._replace(retry=Retry(1, MINUTE))
    for _ in range(2):
        wait = after_attempt(run, once_more, Throttled("429", NOW), now=NOW, next_due_at=None)
        assert isinstance(wait, Wait)
        run = claimed(waiting(run, wait), node_id=1, now=NOW, timeout=HOUR, rung="claimed")
    assert isinstance(after_attempt(run, once_more, Failed("boom"), now=NOW, next_due_at=None), Wait)


@pytest.mark.parametrize(("next_due_at", "retries"), [(NOW + 30 * MINUTE + 1, True), (NOW + 30 * MINUTE, False)])
def test_until_the_next_regular_instant_means_before_it(next_due_at: int, retries: bool) -> None:
    """Then the next instant takes over."""
    agent = POLICY._replace(retry=Retry(None, 30 * MINUTE))
    settlement = settled(Failed("boom"), agent, next_due_at, attempt=50)
    assert isinstance(settlement, Wait if retries else Close)


def test_a_busy_target_is_asked_again_in_an_hour_at_most_24_times() -> None:
    """Being busy is not a failure; giving up is, and says why."""
    wait = settled(Busy("Session busy"), waits=BUSY_WAITS_MAX - 1)
    assert wait == Wait(NOW + BUSY_WAIT, "busy", "busy", "claimed", "Session busy", is_busy=True)
    assert (BUSY_WAIT, BUSY_WAITS_MAX) == (HOUR, 24)
    close = settled(Busy("Session busy"), waits=BUSY_WAITS_MAX)
    assert isinstance(close, Close)
    assert (close.outcome, close.error, close.reason) == ("failed", "Session busy", "busy")


def test_a_busy_target_is_no_error_in_the_count_even_when_given_up() -> None:
    """Field note 47."""
    close = settled(Busy("Session busy"), waits=BUSY_WAITS_MAX)
    assert isinstance(close, Close)
    moved = after(close, active(consecutive_errors=4))
    assert (moved.consecutive_errors, moved.state, moved.backoff_until) == (4, "active", None)
    assert (moved.last_outcome, moved.last_error, moved.open_run_id) == ("failed", "Session busy", None)


def test_a_throttled_target_is_asked_again_when_it_said_and_never_in_the_past() -> None:
    """429: wait as told."""
    assert settled(Throttled("429", NOW + 17 * MINUTE)) == Wait(
        NOW + 17 * MINUTE, "throttled", "throttled", "claimed", "429", is_busy=True
    )
    past = settled(Throttled("429", T0))
    assert isinstance(past, Wait) and past.until == NOW + SECOND
    again = settled(Throttled("429", NOW), waits=5)
    assert isinstance(again, Wait) and again.until == NOW + 32 * SECOND, "never as fast as it can answer"


def test_a_limit_that_resets_is_waited_for_until_its_reset() -> None:
    """Exactly then, however often the run waited before; a person who asked is told at once."""
    limit = Throttled("claude: the limit is used up", NOW + 90 * SECOND, reason="quota")
    for waits in (0, 12):
        assert settled(limit, waits=waits) == Wait(
            NOW + 90 * SECOND, "quota", "quota", "claimed", "claude: the limit is used up", is_busy=True
        )
    past = settled(Throttled("used up", T0, reason="quota"), waits=3)
    assert isinstance(past, Wait) and past.until == NOW + 8 * SECOND, "never as fast as it can answer"
    manual = settled(limit, trigger="manual")
    assert manual == Close("failed", "claimed", "claude: the limit is used up", "quota")


def test_what_all_attempts_used_counts_for_the_run() -> None:
    """Also of those that failed, and of those after which the run waited."""
    first = kept_while_waiting(Failed("boom", usage={"input": 10, "output": 1, "total": 11, "cost": 0.5}))
    second = kept_while_waiting(Throttled("429", NOW, usage={"input": 1, "output": 1, "total": 2}), earlier=first)
    kept = kept_of(Done(reply="hi", usage={"input": 5, "output": 2, "total": 7, "cost": 0.25}), earlier=second)
    assert kept is not None and json.loads(kept) == {
        "reply": "hi",
        "usage": {"input": 16, "output": 4, "total": 20, "cost": 0.75},
    }
    assert kept_of(Failed("boom", output="o"), earlier=first) == json.dumps(
        {"output": "o", "usage": {"input": 10, "output": 1, "total": 11, "cost": 0.5}}
    )
    assert kept_of(StuckRunEnded(), earlier=first) is None, "what was kept stays"
    late = kept_of(Done(reply="hi", usage={"input": 10, "output": 1}), earlier=first, is_late=True)
    assert late is not None and json.loads(late)["usage"] == {"input": 10, "output": 1, "total": 11}, "counted once"
    assert kept_while_waiting(Busy("busy")) is None and kept_of(Done()) is None


def test_a_target_that_throttles_for_ever_is_given_up() -> None:
    """Everything has a limit; then it is a failure like any other."""
    assert settled(Throttled("429", NOW), waits=BUSY_WAITS_MAX, attempt=25) == Close("failed", "claimed", "429")
    assert isinstance(settled(Throttled("429", NOW), PATIENT, waits=24, attempt=25), Wait)


def test_what_could_not_be_ended_is_unknown_and_stuck() -> None:
    """L6: timed out is said only when the end is proven; a person is told."""
    close = settled(Unproven("process 4711 does not die"))
    assert isinstance(close, Close)
    assert (close.outcome, close.stuck, close.error) == ("unknown", True, "process 4711 does not die")
    assert close.is_urgent


def test_what_was_stuck_and_then_seen_to_end_has_timed_out() -> None:
    """Late proof; the error it had stays."""
    close = settled(StuckRunEnded(), outcome="unknown", stuck=1, error="process 4711 does not die")
    assert close == Close("timedOut", "claimed", "process 4711 does not die", "ended after its deadline")


def test_accepted_without_any_sign_is_unconfirmed_and_alerted() -> None:
    """False green is the second of the things people suffer from."""
    close = settled(Unconfirmed("accepted, then silence"), rung="accepted")
    assert isinstance(close, Close)
    assert (close.outcome, close.rung) == ("unconfirmed", "accepted")
    assert not close.is_urgent


# -- crashes ----------------------------------------------------------------------------------------------------------

CRASHES: list[Ending] = [Lost("crash", "its node died"), Interrupted("shutdown")]


@pytest.mark.parametrize("ending", CRASHES, ids=_name)
@pytest.mark.parametrize("on_crash", ["retry", "unknown"])
def test_a_crash_before_anything_was_sent_costs_one_more_attempt(ending: Ending, on_crash: Any) -> None:
    """At once, under the same key."""
    wait = settled(ending, POLICY._replace(on_crash=on_crash), rung="claimed")
    assert isinstance(wait, Wait)
    assert (wait.until, wait.is_crash, wait.is_busy) == (NOW, True, False)


@pytest.mark.parametrize("ending", CRASHES, ids=_name)
@pytest.mark.parametrize("rung", RUNGS[1:])
def test_a_crash_after_sending_is_decided_by_on_crash(ending: Ending, rung: RungName) -> None:
    """`retry` as the seeds do, or `unknown`, with an alert."""
    assert isinstance(settled(ending, POLICY, rung=rung), Wait)
    close = settled(ending, POLICY._replace(on_crash="unknown"), rung=rung)
    assert isinstance(close, Close)
    assert (close.outcome, close.rung, close.stuck) == ("unknown", rung, False)
    assert close.is_urgent


@pytest.mark.parametrize("ending", CRASHES, ids=_name)
@pytest.mark.parametrize("on_crash", ["retry", "unknown"])
@pytest.mark.parametrize("rung", [None, *RUNGS])
def test_a_second_crash_is_always_unknown_with_an_alert(ending: Ending, on_crash: Any, rung: RungName | None) -> None:
    """L2: a crash costs at most one more attempt."""
    close = settled(ending, POLICY._replace(on_crash=on_crash), rung=rung, crashes=1)
    assert isinstance(close, Close)
    assert close.outcome == "unknown" and close.is_urgent


@pytest.mark.parametrize(("rung", "outcome"), [(None, "failed"), ("claimed", "failed"), ("sent", "unknown")])
def test_a_crashed_manual_run_failed_or_is_unknown(rung: RungName | None, outcome: str) -> None:
    """Never a second attempt."""
    close = settled(Lost("crash", "its node died"), trigger="manual", rung=rung)
    assert isinstance(close, Close) and close.outcome == outcome


def test_the_record_tells_a_crash_from_a_shutdown() -> None:
    """In the attempt's outcome and in the reason the run waits."""
    crash, shutdown = settled(CRASHES[0]), settled(CRASHES[1])
    assert isinstance(crash, Wait) and (crash.attempt_outcome, crash.reason) == ("crashed", "crash")
    assert isinstance(shutdown, Wait) and (shutdown.attempt_outcome, shutdown.reason) == ("interrupted", "shutdown")


# -- given up ---------------------------------------------------------------------------------------------------------


def test_a_run_dropped_before_its_first_attempt_is_skipped_with_the_reason() -> None:
    """A gate claims it to drop it, so having an attempt is no proof of having been tried."""
    assert settled(Dropped("outside active hours")) == Close("skipped", "claimed", None, "outside active hours")


def test_a_run_dropped_between_two_attempts_has_failed() -> None:
    """With the error it had."""
    close = settled(Dropped("paused"), attempt=2, error="boom", outcome="waiting")
    assert close == Close("failed", "claimed", "boom", "paused", is_observed=False)


# -- the schedule afterwards ------------------------------------------------------------------------------------------


def test_the_ladder_counts_closed_instants_and_delays_the_next() -> None:
    """30 s, 1, 5, 15, 60 min, on a grid shorter than all of them."""
    rules = Rules(Every(10 * SECOND, T0))
    cadence = active(rules)
    policy = POLICY._replace(errors_max=0)
    for count in range(1, 8):
        cadence, effects = after_close(cadence, rules, policy, running(), FAILURE, now=NOW)
        assert cadence.consecutive_errors == count
        assert [effect.is_urgent for effect in effects if isinstance(effect, Observed)] == [False]
        assert cadence.backoff_until == NOW + LADDER[min(count, 5) - 1]
        cadence = cadence._replace(open_run_id=7, backoff_until=None)


def test_an_error_is_only_ever_a_delay() -> None:
    """max(regular next, error + delay): an hourly schedule is not touched by 30 seconds."""
    moved = after(FAILURE)
    assert moved.backoff_until is None
    assert due_at(moved, RULES) == NOW + HOUR


def test_the_delay_is_compared_with_the_staggered_due_time() -> None:
    """Planned + offset is when it would regularly run."""
    grid = Every(40 * SECOND, NOW)
    assert after(FAILURE, active(Rules(grid)), Rules(grid), NOW + 15 * SECOND).backoff_until == NOW + 45 * SECOND
    staggered = Rules(grid, offset=6 * SECOND)
    assert after(FAILURE, active(staggered), staggered, NOW + 15 * SECOND).backoff_until is None


def test_attempts_are_not_counted_only_the_closed_instant() -> None:
    """Eight attempts at one instant are one error."""
    assert after(FAILURE, attempt=8).consecutive_errors == 1


@pytest.mark.parametrize("outcome", sorted(ERRORS))
def test_every_kind_of_error_counts(outcome: Any) -> None:
    """Failed, timed out, unconfirmed, unknown."""
    assert after(Close(outcome, "claimed", "boom")).consecutive_errors == 1


def test_success_resets_the_count_and_the_delay() -> None:
    """And is remembered for itself."""
    moved = after(SUCCESS, active(consecutive_errors=4, backoff_until=NOW + HOUR, last_error="boom"))
    assert (moved.consecutive_errors, moved.backoff_until, moved.last_error) == (0, None, None)
    assert (moved.last_success_at, moved.last_outcome, moved.open_run_id) == (NOW, "succeeded", None)


def test_five_errors_in_a_row_disable_with_the_reason_and_an_alert() -> None:
    """Until a person resumes it."""
    moved, effects = after_close(active(consecutive_errors=4), RULES, POLICY, running(), FAILURE, now=NOW)
    assert (moved.state, moved.state_at) == ("disabled", NOW)
    assert moved.state_reason == "5 errors in a row, the last: boom"
    (observed,) = effects
    assert isinstance(observed, Observed) and (observed.incident, observed.is_urgent) == ("failing:1", True)
    assert due_at(moved, RULES) is None


def test_a_bad_instant_is_observed_once_whatever_else_follows() -> None:
    """A run nobody knows the end of, and a schedule that is disabled by it, are one trouble."""
    close = Close("unknown", "sent", "lost", is_urgent=True)
    moved, effects = after_close(active(consecutive_errors=4), RULES, POLICY, running(), close, now=NOW)
    assert [type(effect) for effect in effects] == [Observed] and moved.trouble == BAD


def test_good_instants_are_observed_only_while_there_is_trouble() -> None:
    """Two in a row end it, and a schedule that is well observes nothing."""
    done = Close("succeeded", "finished")
    well, effects = after_close(active(), RULES, POLICY, running(), done, now=NOW)
    assert (well.trouble, effects) == (WELL, ())
    first, effects = after_close(active(trouble=BAD), RULES, POLICY, running(), done, now=NOW)
    assert first.trouble == RECOVERING and [type(effect) for effect in effects] == [Observed]
    second, effects = after_close(first._replace(open_run_id=7), RULES, POLICY, running(), done, now=NOW)
    assert second.trouble == WELL and [type(effect) for effect in effects] == [Observed]


@pytest.mark.parametrize("outcome", ["failed", "succeeded"])
def test_a_manual_run_is_no_instant(outcome: Any) -> None:
    """It neither opens nor ends an incident."""
    close = Close(outcome, "finished", "boom")
    moved, effects = after_close(active(trouble=BAD), RULES, POLICY, running(trigger="manual"), close, now=NOW)
    assert (moved.trouble, effects) == (BAD, ())


@pytest.mark.parametrize(
    ("attempt_outcome", "is_bad"),
    [
        ("failed", True),
        ("timedOut", True),
        ("busy", False),
        ("throttled", False),
        ("crashed", False),
        ("accepted", False),
    ],
)
def test_an_open_run_is_bad_after_a_failed_attempt(attempt_outcome: str, is_bad: bool) -> None:
    """Waiting for a busy target, a quota or another part of ours is not."""
    wait = Wait(NOW + HOUR, "retry", attempt_outcome, "sent", "boom")
    moved, effects = after_failed_attempt(active(), RULES, POLICY, running(), wait)
    assert (moved.trouble == BAD, bool(effects)) == (is_bad, is_bad)


@pytest.mark.parametrize("errors_max", [0, 6])
def test_how_many_errors_disable_is_a_setting(errors_max: int) -> None:
    """Zero: never."""
    policy = POLICY._replace(errors_max=errors_max)
    moved, _ = after_close(active(consecutive_errors=4), RULES, policy, running(), FAILURE, now=NOW)
    assert (moved.state, moved.consecutive_errors) == ("active", 5)


def test_a_paused_schedule_is_not_disabled_under_the_person_s_hand() -> None:
    """The count goes on; resuming forgives it."""
    moved = after(FAILURE, active(state="paused", consecutive_errors=4))
    assert (moved.state, moved.consecutive_errors) == ("paused", 5)


@pytest.mark.parametrize("outcome", ["succeeded", *sorted(ERRORS), "skipped"])
def test_a_manual_run_leaves_count_and_cadence_alone(outcome: Any) -> None:
    """L3: it is reported, and that is all."""
    before = active(consecutive_errors=4, backoff_until=NOW + HOUR)
    moved = after(Close(outcome, "claimed", "boom"), before, trigger="manual")
    untouched = ("state", "consecutive_errors", "backoff_until", "planned_through", "next_at", "catch_up_until")
    assert [getattr(moved, name) for name in untouched] == [getattr(before, name) for name in untouched]
    assert moved.open_run_id is None


@pytest.mark.parametrize("outcome", sorted(NOT_RUN))
def test_what_did_not_run_is_neither_error_nor_success(outcome: Any) -> None:
    """A run that a gate dropped leaves no mark on the count."""
    before = active(consecutive_errors=3, last_outcome="failed", last_error="boom")
    moved = after(Close(outcome, None, None, "quota"), before)
    assert moved == before._replace(open_run_id=None)


def test_the_queued_run_moves_up_when_the_open_one_closes() -> None:
    """And when the queued one itself is given up, the open one stays."""
    both = active(queued_run_id=8)
    assert release(both, running(), SUCCESS)[11:13] == (8, None)
    assert release(both, running(run_id=8), SUCCESS)[11:13] == (7, None)
    assert release(both, running(run_id=99), SUCCESS)[11:13] == (7, 8)


def test_what_is_stuck_is_not_let_go() -> None:
    """It is still there: it keeps its schedule, and what is queued stays behind it."""
    close = settled(Unproven("still there"))
    assert isinstance(close, Close)
    moved = after(close, active(queued_run_id=8))
    assert (moved.open_run_id, moved.queued_run_id, moved.consecutive_errors) == (7, 8, 1)


def test_a_stuck_instant_is_counted_once() -> None:
    """When it is given up, and not again when it is seen to end; then it lets go."""
    stuck = settled(Unproven("still there"))
    freed = settled(StuckRunEnded(), outcome="unknown", stuck=1)
    assert isinstance(stuck, Close) and isinstance(freed, Close)
    moved = after(freed, after(stuck), outcome="unknown", stuck=1)
    assert (moved.consecutive_errors, moved.open_run_id, moved.last_outcome) == (1, None, "timedOut")


@pytest.mark.parametrize("was", ["unknown", "unconfirmed"])
def test_late_proof_of_failure_is_not_a_second_error(was: Any) -> None:
    """The instant was counted when it closed."""
    moved = after(FAILURE, active(open_run_id=None, consecutive_errors=4), outcome=was)
    assert (moved.consecutive_errors, moved.state, moved.last_outcome) == (4, "active", "failed")


def test_late_proof_of_success_resets_the_count() -> None:
    """It was no error after all."""
    moved = after(SUCCESS, active(open_run_id=None, consecutive_errors=4), outcome="unconfirmed")
    assert (moved.consecutive_errors, moved.last_outcome) == (0, "succeeded")


@pytest.mark.parametrize("close", [SUCCESS, FAILURE, Close("skipped", None, None, "quota")], ids=lambda c: c.outcome)
def test_once_is_done_when_its_run_has_closed_however_it_ended(close: Close) -> None:
    """A one-shot stays predictable; the error is kept."""
    rules = Rules(Once(NOW))
    cadence = active(rules, next_at=None)
    moved = after(close, cadence, rules)
    assert (moved.state, moved.state_at, moved.last_error) == ("done", NOW, close.error)


def test_once_is_not_done_while_a_queued_run_is_left() -> None:
    """It closes first."""
    rules = Rules(Once(NOW), overlap="queue")
    moved = after(SUCCESS, active(rules, next_at=None, queued_run_id=8), rules)
    assert (moved.state, moved.open_run_id) == ("active", 8)


def test_once_that_fell_on_a_manual_run_is_done_when_that_closes() -> None:
    """Else it would stay active for ever with nothing ahead."""
    rules = Rules(Once(NOW + MINUTE))
    cadence = ring(active(rules), rules, now=NOW + MINUTE, gap_reason="outage", taken=frozenset()).cadence
    assert after(SUCCESS, cadence, rules, trigger="manual").state == "done"


def test_once_disabled_by_its_errors_stays_disabled() -> None:
    """The reason is worth more than being done."""
    rules = Rules(Once(NOW))
    policy = POLICY._replace(errors_max=1)
    moved, _ = after_close(active(rules, next_at=None), rules, policy, running(), FAILURE, now=NOW)
    assert moved.state == "disabled"


@given(
    st.lists(st.sampled_from(["succeeded", "failed", "timedOut", "unknown", "unconfirmed", "skipped"]), max_size=30),
    st.sampled_from([10 * SECOND, MINUTE, 10 * MINUTE, DAY]),
)
def test_the_count_is_the_errors_since_the_last_success(outcomes: list[Any], every: int) -> None:
    """For any history, and the next time is never earlier than the regular one."""
    rules = Rules(Every(every, T0))
    cadence, now, errors = active(rules), NOW, 0
    policy = POLICY._replace(errors_max=0)
    for outcome in outcomes:
        close = Close(outcome, "claimed", "boom")
        cadence, _ = after_close(cadence._replace(open_run_id=7), rules, policy, running(), close, now=now)
        errors = 0 if outcome == "succeeded" else errors + (outcome in ERRORS)
        assert cadence.consecutive_errors == errors
        due = due_at(cadence, rules)
        assert due is not None and cadence.next_at is not None and due >= cadence.next_at
        now = due
        cadence = ring(cadence, rules, now=now, gap_reason="outage", taken=frozenset()).cadence
