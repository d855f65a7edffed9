"""Settlement: what happens to a run when an attempt ended, and to its schedule when the run closes.

Theory of operation
-------------------
`after_attempt` turns the ending of one attempt into `Close` (a final outcome) or `Wait` (the same run tries again
later). A planned run may wait for a retry, a busy target or a throttled one; a manual run never waits: the person who
started it gets the result immediately.

`settle` does that for a run of a schedule and advances the schedule with `after_close`. Only closed *instants* count: a
success resets the error count, an error takes the next, longer backoff and may delay the next instant, enough errors
disable the schedule. A manual run changes none of that. Whether people are alerted is decided elsewhere
(`core.delivery.incidents`): `after_close` and `after_failed_attempt` return what was observed.
"""

from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias, assert_never

from wakeful.core.delivery.alert_rules import AlertChoice
from wakeful.core.delivery.incidents import BAD, WELL, failing, good_needed, trouble_after, trouble_after_manual
from wakeful.core.run.effects import Effect, Observed
from wakeful.core.run.resources import RESOURCES, again_at, is_given_up
from wakeful.core.run.results import (
    Busy,
    Cancelled,
    Done,
    Dropped,
    Ending,
    Failed,
    Forgotten,
    HandedOver,
    Interrupted,
    Lost,
    NotBegun,
    StuckRunEnded,
    Throttled,
    TimedOut,
    Unconfirmed,
    Unproven,
    lacking_since,
)
from wakeful.core.run.runs import NOT_RUN, OUTSIDE_PLAN, Outcome, Run, RungName, rung_index
from wakeful.core.schedule.cadence import Cadence, Rules, is_spent, without_own
from wakeful.core.schedule.policies import (
    BUSY_WAIT,
    BUSY_WAITS_MAX,
    THROTTLE_WAIT,
    TIMEOUT,
    AfterCrash,
    OnCrash,
    Retry,
    after_crash,
    ladder_delay,
    retry_at,
    should_disable,
)
from wakeful.core.time.instants import DAY, Instant, format_instant

CRASH: Final = "crash"
"""The reason of a run that was lost because its node died."""

TIMED_OUT: Final = ("TimeoutError", "OSError", "Exception")
"""The exception name of a call that did not end in time, for retries that depend on the exception."""

REMOVED: Final = "removed"
"""The reason of a schedule that is done because a person removed it."""

CANCELLED: Final = "cancelled"
"""The reason of a run that is unknown because its target did not confirm that it stopped after it was cancelled."""

ENTRUSTED: Final = "turn"
"""The reason of a run that waits because it was handed over to the heartbeat."""

DROPPED: Final = "event dropped"
"""The reason in the row of a running run that asks what became of its event, while the event is dropped."""


# More good instants than any incident needs: the observation ends only an incident that was not reported.
_NEVER: Final = 1 << 30


BACKFILLED: Final = OUTSIDE_PLAN - {"manual"}
"""Triggers of runs that do not change their schedule's state."""


class Close(NamedTuple):
    """The run is over."""

    outcome: Outcome
    rung: RungName | None
    error: str | None = None
    reason: str | None = None
    stuck: bool = False
    is_counted: bool = True  # whether an error counts towards the errors in a row
    is_urgent: bool = False  # alert people immediately
    is_observed: bool = True  # False: a person ended it and needs no alert
    has_begun: bool = True  # False: it was claimed, and its attempt could not begin

    @property
    def is_cancelled(self) -> bool:
        """Whether a person cancelled it, with or without proof that it stopped."""
        return self.outcome == "cancelled" or (self.outcome == "unknown" and self.reason == CANCELLED)


class Wait(NamedTuple):
    """The attempt is over, but the run is not."""

    until: Instant | None  # None: until another component reports
    reason: str
    attempt_outcome: str
    rung: RungName | None
    error: str | None
    is_busy: bool = False  # the target was busy or throttled: not a failure, but the number of such waits is limited
    is_crash: bool = False
    is_attempt: bool = True  # False: it was only the check before the turn
    lane: str | None = None  # the lane that its next attempt needs; None: as before


Settlement: TypeAlias = Close | Wait


class Policy(NamedTuple):
    """The part of a definition that decides how its runs end."""

    retry: Retry
    on_crash: OnCrash
    errors_max: int
    success: RungName | None  # the rung that counts as success; None: the highest its target can prove
    alert: AlertChoice = None


def settle(
    run: Run, own: Policy, ending: Ending, cadence: Cadence, rules: Rules, policy: Policy, *, now: Instant
) -> tuple[Settlement, Cadence, tuple[Effect, ...]]:
    """Settle a run of a schedule under the policy it started with, and advance the schedule under its current one."""
    # The same instant is retried until the next regular one, or for a day if none follows. The alarm does not count: in
    # a backlog it is off while a run is open.
    retried_until = run.due_at + DAY if cadence.next_at is None else cadence.next_at + rules.offset
    settlement = after_attempt(run, own, ending, now=now, next_due_at=retried_until)
    if isinstance(settlement, Wait) and cadence.state != "active" and not isinstance(ending, HandedOver):
        settlement = _not_again(settlement, cadence, run)
    if run.trigger in BACKFILLED:
        return settlement, cadence, ()
    if isinstance(settlement, Wait):
        return settlement, *after_failed_attempt(cadence, rules, policy, run, settlement)
    return settlement, *after_close(cadence, rules, policy, run, settlement, now=now)


def _not_again(wait: Wait, cadence: Cadence, run: Run) -> Close:
    """A halted schedule starts nothing, not even a retry: close the run with its last result, or as skipped if it
    never began."""
    reason = REMOVED if cadence.state == "done" else cadence.state
    if wait.reason == RESOURCES and run.attempt <= 1:
        return Close("skipped", None, None, reason, has_begun=False)
    if wait.is_crash and rung_index(wait.rung) > 0:
        return Close("unknown", wait.rung, wait.error, reason, is_urgent=True)
    return Close("timedOut" if wait.attempt_outcome == "timedOut" else "failed", wait.rung, wait.error, reason)


def after_attempt(run: Run, policy: Policy, ending: Ending, *, now: Instant, next_due_at: Instant | None) -> Settlement:
    """Decide what happens to the run."""
    match ending:
        case Done(rung=rung):
            error = f"reached {rung}, but only {policy.success} counts as success"
            return _proven(policy.success or rung, rung, error)
        case HandedOver():
            return _handed_over(run, policy, now)
        case Failed(error=error):
            reached = ending.rung or run.rung
            permanent = ending.permanent or not policy.retry.covers(ending.raised)
            return _retry_or_close(run, policy, "failed", reached, error, permanent, now, next_due_at)
        case TimedOut(error=error):
            permanent = not policy.retry.covers(TIMED_OUT)
            return _retry_or_close(run, policy, "timedOut", run.rung, error, permanent, now, next_due_at)
        case NotBegun():
            return not_begun(run, ending, now=now)
        case Busy(error=error):
            return _busy(run, error, now)
        case Throttled():
            return _throttled(run, policy, ending, now, next_due_at)
        case Unproven(error=error):
            return Close("unknown", run.rung, error, "not proven to have ended", stuck=True, is_urgent=True)
        case Unconfirmed(error=error):
            return _proven(policy.success or "finished", run.rung, error)
        case Interrupted(error=error):
            return _after_loss(run, policy, Lost("shutdown", error), now=now)
        case Lost():
            return _after_loss(run, policy, ending, now=now)
        case Forgotten(reason=reason, error=error):
            return Close("unknown", run.rung, error, reason, is_counted=False)
        case Dropped():
            return _given_up(run, ending)
        case Cancelled():
            return after_cancel(run, ending)
        case StuckRunEnded(is_seen=is_seen):
            return _after_stuck(run, is_seen)
        case _:
            assert_never(ending)


def _proven(success: RungName, rung: RungName | None, error: str) -> Close:
    """Whether the run succeeded: the proven rung is the one its owner counts as success (L8)."""
    if rung_index(rung) >= rung_index(success):
        return Close("succeeded", rung)
    return Close("unconfirmed", rung, error)


def not_begun(run: Run, refused: NotBegun, *, now: Instant) -> Settlement:
    """Not an attempt: the run waits, a manual one too, and fails only if others got what it did not."""
    since = lacking_since(run.result, refused)
    if is_given_up(since, refused):
        return Close("failed", "claimed", refused.error, RESOURCES)
    return Wait(again_at(since, now), RESOURCES, RESOURCES, None, refused.error, is_attempt=False)


def _busy(run: Run, error: str, now: Instant) -> Settlement:
    """Not a failure: the run waits, but not forever. A manual run closes immediately."""
    if run.trigger == "manual":
        return Close("failed", run.rung, error, "busy", is_counted=False)
    if run.waits >= BUSY_WAITS_MAX:
        return Close("failed", run.rung, error, "busy", is_counted=False)
    return Wait(now + BUSY_WAIT, "busy", "busy", run.rung, error, is_busy=True)


def _throttled(run: Run, policy: Policy, throttled: Throttled, now: Instant, next_due_at: Instant | None) -> Settlement:
    """Not a failure: the run waits until the time the target named. A manual run closes immediately."""
    error, reason = throttled.error, throttled.reason
    if run.trigger == "manual":
        return Close("failed", run.rung, error, reason)
    if run.waits >= BUSY_WAITS_MAX:  # a target that always says "now" would be asked forever
        return _retry_or_close(run, policy, "failed", run.rung, error, False, now, next_due_at)
    pause = min(THROTTLE_WAIT << run.waits, BUSY_WAIT)  # a lower bound, whatever time the target names
    until = max(throttled.until, now + pause)
    if reason == "quota" and throttled.until > now:  # the reset time is exact: retry then, not later
        until = throttled.until
    return Wait(until, reason, reason, run.rung, error, is_busy=True)


def _handed_over(run: Run, policy: Policy, now: Instant) -> Settlement:
    """It was handed over to another component. If no result is reported within the run's time, check again."""
    if policy.success is not None and rung_index(policy.success) <= rung_index("accepted"):
        return Close("succeeded", "accepted")
    return Wait(run.deadline_at or now + TIMEOUT, ENTRUSTED, "accepted", "accepted", None)


def _after_stuck(run: Run, is_seen: bool) -> Close:
    """A stuck run has ended. If its node died, or the end was not observed, its result stays unknown."""
    if run.reason == CRASH or not is_seen:
        return Close("unknown", run.rung, run.error, CRASH)
    return Close("timedOut", run.rung, run.error, "ended after its deadline")


def _after_loss(run: Run, policy: Policy, lost: Lost, *, now: Instant) -> Settlement:
    """What happens to a run whose node died or was shut down during it. Work that may still be running is not started
    again, and keeps its lane until it is seen to end (L6)."""
    reason, error, rung = lost.reason, lost.error, run.rung if lost.is_reached else "claimed"
    fate: AfterCrash = "unknown"
    if lost.is_over:
        fate = after_crash(rung, crashes=run.crashes + 1, on_crash=policy.on_crash, is_manual=run.trigger == "manual")
    match fate:
        case "retry":
            return Wait(now, reason, "interrupted" if reason == "shutdown" else "crashed", rung, error, is_crash=True)
        case "failed":
            return Close("failed", rung, error, reason)
        case "unknown":
            return Close("unknown", rung, error, reason, stuck=not lost.is_over, is_urgent=True)


def _given_up(run: Run, dropped: Dropped) -> Close:
    """A waiting run that will not be tried again: failed if it was ever tried, otherwise skipped, or missed."""
    tries = run.attempt - (run.outcome == "running")  # claimed and given up in one step: not an attempt
    if tries > 0 and run.error is not None:
        return Close("failed", run.rung, run.error, dropped.reason, is_observed=False)
    return Close(dropped.outcome, run.rung, dropped.error, dropped.reason)


def after_cancel(run: Run, cancelled: Cancelled) -> Close:
    """A cancelled run is not an error. Without proof that its target stopped, its result is unknown."""
    is_unsent = not cancelled.is_sent and rung_index(run.rung) <= rung_index("claimed")
    if not cancelled.is_stuck and (cancelled.is_proven or is_unsent):
        return Close("cancelled", run.rung, run.error, is_counted=False, is_observed=False)
    error = "cancelled, and its target did not confirm that it stopped"
    return Close("unknown", run.rung, error, CANCELLED, stuck=cancelled.is_stuck, is_counted=False, is_observed=False)


def with_cancel_request(ending: Ending) -> Ending:
    """The ending of a run that a person asked to cancel: it is not tried again. Success that came first counts."""
    match ending:
        case Done() | Cancelled():
            return ending
        case Unproven():
            return Cancelled(is_proven=False, is_stuck=True)
        case Unconfirmed() | Forgotten():
            return Cancelled(is_proven=False)
        case Lost(is_over=is_over, is_reached=is_reached, is_ended=is_ended):
            return Cancelled(is_proven=is_over and (is_ended or not is_reached), is_stuck=not is_over)
        case StuckRunEnded(is_seen=is_seen):
            return Cancelled() if is_seen else ending
        case _:
            return Cancelled()


def after_close(
    cadence: Cadence, rules: Rules, policy: Policy, run: Run, close: Close, *, now: Instant
) -> tuple[Cadence, tuple[Effect, ...]]:
    """The schedule after one of its runs closed, and the effects."""
    if close.outcome in NOT_RUN or (close.is_cancelled and run.started_at is None):
        released = _finish_if_spent(release(cadence, run, close), rules, now)
        if close.outcome == "missed" and released.state == "done" and released.state != cadence.state:
            error = f"its last planned time, {format_instant(run.planned_at)}, was missed: {close.reason}"
            bad = _bad(released, rules, policy, run, error, is_urgent=True)
            return released._replace(trouble=BAD), (replace(bad, run_id=None),)  # no run of it failed
        return released, ()
    open_run_id, queued_run_id = _held_after(cadence, run, close)
    if open_run_id is None and cadence.state == "active":
        cadence = without_own(cadence, rules, run)
    is_success = close.outcome == "succeeded"
    is_counted = is_success and run.trigger != "manual"
    before = cadence
    cadence = cadence._replace(
        backoff_until=None if is_counted else cadence.backoff_until,
        open_run_id=open_run_id,
        queued_run_id=queued_run_id,
        consecutive_errors=0 if is_counted else cadence.consecutive_errors,
        last_run_at=run.started_at,
        last_outcome=close.outcome,
        last_error=close.error,
        last_success_at=now if is_success else cadence.last_success_at,
    )
    # Late proof about a closed run only corrects its outcome; its error was counted when it closed.
    if not is_success and run.is_open and close.is_counted and run.trigger != "manual":
        cadence = _count_error(cadence, rules, policy, close, now)
    effects: tuple[Effect, ...] = ()
    if not is_success or cadence.trouble != WELL:
        is_urgent = close.is_urgent or cadence.state != before.state or is_spent(rules, cadence.next_at)
        cadence, effects = _observed(cadence, rules, policy, run, close, is_urgent)
    return _finish_if_spent(cadence, rules, now), effects


def after_failed_attempt(
    cadence: Cadence, rules: Rules, policy: Policy, run: Run, wait: Wait
) -> tuple[Cadence, tuple[Effect, ...]]:
    """The schedule after an attempt that ended without closing its run. A run that waits for a busy target, a quota or
    another component is not bad, and neither is one that continues after a crash. One that cannot begin is watched
    like a failed attempt, because a person may have to make room; its schedule is late, not failing."""
    if wait.attempt_outcome not in ("failed", "timedOut", RESOURCES):
        return cadence, ()
    return cadence._replace(trouble=BAD), (_bad(cadence, rules, policy, run, wait.error, is_urgent=False),)


def _observed(
    cadence: Cadence, rules: Rules, policy: Policy, run: Run, close: Close, is_urgent: bool
) -> tuple[Cadence, tuple[Effect, ...]]:
    """What a closed run means for the trouble of its schedule. A manual run is not an instant: it opens no incident.
    But if it succeeds it makes up for a one-shot that failed."""
    is_good = close.outcome == "succeeded"
    is_makeup = is_good and cadence.state == "done"
    if close.is_cancelled:
        return _excused(cadence, policy, run)
    if not close.is_observed or cadence.state_reason == REMOVED:
        return cadence, ()
    if run.trigger == "manual" and not is_makeup:
        return cadence._replace(trouble=trouble_after_manual(cadence.trouble, is_good=is_good)), ()
    if not is_good and not run.is_open:  # late proof of what was already bad
        return cadence, ()
    needed = good_needed(rules.timing)
    moved = cadence._replace(trouble=trouble_after(cadence.trouble, is_good=is_good, needed=needed))
    if not is_good:
        return moved, (_bad(cadence, rules, policy, run, close.error or close.outcome, is_urgent=is_urgent),)
    name, owner_id = failing(cadence.schedule_id), cadence.schedule_id
    good = Observed(name, True, run.due_at, run.run_id, None, owner_id, needed=needed, alert=policy.alert)
    return moved, (good,)


def _excused(cadence: Cadence, policy: Policy, run: Run) -> tuple[Cadence, tuple[Effect, ...]]:
    """A cancelled run is not bad, even if its last attempt failed: an incident that is only watched because of that
    attempt ends, one that was reported does not."""
    if cadence.trouble != BAD or cadence.consecutive_errors:
        return cadence, ()
    name, owner_id = failing(cadence.schedule_id), cadence.schedule_id
    good = Observed(name, True, run.due_at, run.run_id, None, owner_id, needed=_NEVER, alert=policy.alert)
    return cadence._replace(trouble=WELL), (good,)


def _bad(cadence: Cadence, rules: Rules, policy: Policy, run: Run, error: str | None, *, is_urgent: bool) -> Observed:
    return Observed(
        failing(cadence.schedule_id),
        False,
        run.due_at,
        run.run_id,
        error,
        cadence.schedule_id,
        is_urgent=is_urgent,
        needed=good_needed(rules.timing),
        alert=policy.alert,
    )


def _retry_or_close(
    run: Run,
    policy: Policy,
    outcome: Outcome,
    rung: RungName | None,
    error: str,
    permanent: bool,
    now: Instant,
    next_due_at: Instant | None,
) -> Settlement:
    if permanent or run.trigger == "manual":
        return Close(outcome, rung, error)
    # Waits for a busy or throttled target, and crashes, are not failures of the target: they use up no retries.
    failed = run.attempt - run.waits - run.crashes
    at = retry_at(policy.retry, attempts_failed=failed, now=now, next_due_at=next_due_at)
    if at is None:
        return Close(outcome, rung, error)
    return Wait(at, "retry", outcome, rung, error)


def release(cadence: Cadence, run: Run, close: Close) -> Cadence:
    """The cadence without the run."""
    open_run_id, queued_run_id = _held_after(cadence, run, close)
    return cadence._replace(open_run_id=open_run_id, queued_run_id=queued_run_id)


def _held_after(cadence: Cadence, run: Run, close: Close) -> tuple[int | None, int | None]:
    """The open and the queued run once this one is released: a queued one moves up. A stuck run stays."""
    if close.stuck:
        return cadence.open_run_id, cadence.queued_run_id
    if cadence.queued_run_id == run.run_id:
        return cadence.open_run_id, None
    if cadence.open_run_id == run.run_id:
        return cadence.queued_run_id, None
    return cadence.open_run_id, cadence.queued_run_id


def _count_error(cadence: Cadence, rules: Rules, policy: Policy, close: Close, now: Instant) -> Cadence:
    errors = cadence.consecutive_errors + 1
    cadence = cadence._replace(consecutive_errors=errors)
    if cadence.state == "active" and should_disable(errors, policy.errors_max):
        reason = f"{errors} errors in a row, the last: {close.error}" if errors > 1 else f"an error: {close.error}"
        return cadence._replace(state="disabled", state_reason=reason, state_at=now)
    held_off = now + ladder_delay(errors)
    if cadence.next_at is not None and held_off > cadence.next_at + rules.offset:
        cadence = cadence._replace(backoff_until=held_off)
    return cadence


def _finish_if_spent(cadence: Cadence, rules: Rules, now: Instant) -> Cadence:
    """A schedule with no further instant and no open run is done."""
    if cadence.next_at is not None or cadence.state != "active" or cadence.open_run_id is not None:
        return cadence
    if not is_spent(rules, None):
        return cadence
    return cadence._replace(state="done", state_reason=None, state_at=now)
