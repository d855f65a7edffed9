"""The wake side of a quota slot: when a wake is due, whether it is needed, and whether it worked.

Theory of operation
-------------------
Three modes, in any combination, each with a durable marker that says up to when it is served: *interval* since the
last wake, *times* of day, *after reset*. When the alarm rings, everything that is due becomes one wake. It is not
sent if the window is running anyway (`warm`), or while an earlier wake is being confirmed (`pending`); a time of day
that is an hour late or more is `missed`. A wake that was sent, or was not needed, serves all modes up to now; a failed
one serves none, so it is tried again a minute later. A wake that did not reach the provider (no connection, 5xx) is
repeated by the same run with growing delays until it does, and is not an error.

A sent wake is not yet a success. It is *pending* until a reading shows a reset newer than the newest one known before
it. Within the retry window the quota is read every minute; after that, one more wake is sent, and then the normal rules
apply. Every reading that does not confirm and every refused send is an error. Too many errors disable waking, but never
before the second wake was tried, and the second wake resets the count. Once waking is disabled nothing is counted any
more: what a person sends by hand may still be confirmed, but the slot keeps its last count and error until `resume`.
A slot that is disabled has no pending wake, and its run is closed in the same transaction
(`features.quota.commands.Commands.drop_wake`).
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from wakeful.core.schedule.cadence import Gap, without
from wakeful.core.slot.slot import Reading, Slot, SlotRules, is_on, is_warm, served_ahead, with_served
from wakeful.core.time.instants import HOUR, INSTANT_MAX, MINUTE, Duration, Instant
from wakeful.core.time.timing import Times, latest_until, next_after, tally

LATE_MAX: Final[Duration] = HOUR
"""A time of day that is later than this is dropped."""
RETRY_EVERY: Final[Duration] = MINUTE
RESEND_MAX: Final[Duration] = 15 * MINUTE
"""The longest delay before an undelivered wake is sent again: 1, 2, 4, 8, then every 15 minutes."""
FRESH: Final[Duration] = MINUTE
"""A reading that is at most this old need not be repeated before a wake is sent."""
SETTLE_WITHIN: Final[Duration] = 5 * MINUTE
"""How long the reading after the last wake may take before its run is closed without it."""

WARM: Final = "warm"
PENDING: Final = "pending"


class Wake(NamedTuple):
    """A wake is due: it becomes a run."""

    planned_at: Instant
    modes: tuple[str, ...]


class WakeRing(NamedTuple):
    """The result of the alarm of the wake side."""

    slot: Slot
    gaps: tuple[Gap, ...] = ()
    wake: Wake | None = None


def may_wake(slot: Slot, rules: SlotRules) -> bool:
    """Whether it is woken by itself. A person may wake it at any time."""
    return is_on(slot, rules) and slot.wake_disabled_at is None


def wake_due_at(slot: Slot, rules: SlotRules) -> Instant | None:
    """When the alarm of the wake side rings; None: not until something else happens."""
    if not may_wake(slot, rules):
        return None
    if is_sending(slot):
        return None  # the open run serves everything that becomes due
    return min((at for at, _ in _modes(slot, rules)), default=None)


def ring(slot: Slot, rules: SlotRules, *, now: Instant, gap_reason: str) -> WakeRing:
    """Decide everything that is due by now."""
    due_at = wake_due_at(slot, rules)
    if due_at is None or due_at > now:
        return WakeRing(slot)  # a stale alarm: it is set again from the row
    slot, gaps = _late_times(slot, rules, now, gap_reason)
    due = [(at, mode) for at, mode in _modes(slot, rules) if at <= now]
    if not due:
        return WakeRing(slot, gaps)
    planned_at = min(due)[0]
    if is_being_confirmed(slot, now):
        return WakeRing(advanced(slot, rules, now=now), (*gaps, _one(planned_at, PENDING)))
    if is_warm(slot, now):
        return WakeRing(advanced(slot, rules, now=now), (*gaps, _one(planned_at, WARM)))
    return WakeRing(slot, gaps, Wake(planned_at, tuple(mode for _, mode in sorted(due))))


def advanced(slot: Slot, rules: SlotRules, *, now: Instant) -> Slot:
    """Mark every mode as served up to now, except a reset that is still ahead: its wake is still needed."""
    served = slot.reset_served
    if rules.after_reset is not None and slot.last_reset_at is not None:
        served = slot.last_reset_at if slot.last_reset_at + rules.after_reset <= now else served
    through = max(slot.times_through, now)  # ahead of now only until `turned_back` has seen the clock
    return _without_past(slot._replace(interval_from=now, times_through=through, reset_served=served, initial_at=None))


def is_sending(slot: Slot) -> bool:
    """Whether its open run has not sent its wake yet. An earlier run's wake may be unconfirmed at the same time."""
    return slot.wake_run_id is not None and (slot.pending_at is None or slot.sent_run_id != slot.wake_run_id)


def is_being_confirmed(slot: Slot, now: Instant) -> bool:
    """Whether a wake was sent and is being confirmed: another one would be a duplicate."""
    if slot.pending_at is None:
        return False
    return slot.wake_run_id is not None or (slot.window_until is not None and slot.window_until > now)


def is_second(slot: Slot, run_id: int) -> bool:
    """Whether what this run sends is the forced retry: its first wake is still unconfirmed."""
    return slot.pending_at is not None and slot.sent_run_id == run_id


def is_confirming(slot: Slot, now: Instant) -> bool:
    """Whether the quota is read every minute to confirm a wake."""
    return slot.pending_at is not None and slot.window_until is not None and slot.window_until > now


def is_read_for_wake(slot: Slot, began_at: Instant) -> bool:
    """Whether a read that started at this time was made to confirm a wake: within its window, or right after it was
    sent."""
    if slot.pending_at is None or began_at < slot.pending_at:
        return False
    return is_confirming(slot, began_at) or slot.poll_asked_at == slot.pending_at


def is_needed(reading: Reading, now: Instant) -> bool:
    """The pre-check: whether the window ended or never started."""
    return reading.reset_at is None or reading.reset_at <= now


def must_read_first(slot: Slot, now: Instant) -> bool:
    """Whether the pre-check needs a new reading; a cold one from this minute is enough."""
    return slot.read_at is None or slot.error is not None or not now - FRESH < slot.read_at <= now


def sent(slot: Slot, rules: SlotRules, run_id: int, *, now: Instant, is_manual: bool = False) -> Slot:
    """The slot after a wake was sent: all modes are served, and confirming starts. The second wake is the last."""
    is_forced = is_second(slot, run_id)
    if slot.unsent:
        slot = slot._replace(unsent=0, wake_error=None)
    slot = advanced(slot, rules, now=now)._replace(
        woken_at=now, poll_asked_at=now, pending_at=now, sent_run_id=run_id, is_forced=int(is_forced or is_manual)
    )
    if is_forced:
        return slot._replace(window_until=None, wake_errors=slot.wake_errors_before)
    slot = slot._replace(wake_errors_before=slot.wake_errors)
    # If the window is running anyway, a reading can only show that it still is.
    snapshot_at = None if is_warm(slot, now) else slot.last_reset_at
    return slot._replace(window_until=now + rules.retry_window, snapshot_at=snapshot_at)


def not_needed(slot: Slot, rules: SlotRules, *, now: Instant) -> Slot:
    """The slot after the pre-check found the window running."""
    slot = advanced(slot, rules, now=now)._replace(unsent=0)
    return slot if slot.pending_at is not None else slot._replace(wake_errors=0, wake_error=None)


def not_arrived(slot: Slot, error: str) -> Slot:
    """The slot after a wake did not reach the provider: nothing is served, and it is not an error."""
    return slot._replace(unsent=slot.unsent + 1, wake_error=error)


def send_again_at(slot: Slot, *, now: Instant) -> Instant:
    """When an undelivered wake is sent again."""
    return now + min(MINUTE << min(slot.unsent - 1, 4), RESEND_MAX)


def send_failed(slot: Slot, rules: SlotRules, run_id: int, error: str, *, now: Instant) -> Slot:
    """The slot after a wake was refused: nothing is served, and it counts as an error."""
    if slot.wake_disabled_at is not None:
        return slot._replace(unsent=0)
    is_forced = is_second(slot, run_id)
    errors = slot.wake_errors_before if is_forced else slot.wake_errors
    slot = slot._replace(wake_errors=errors + 1, wake_error=error, unsent=0)
    if is_forced:
        slot = slot._replace(is_forced=1, window_until=None)
    return _switched_off(slot, rules, now=now)


def is_confirmed(reading: Reading, snapshot_at: Instant | None) -> bool:
    """Whether a reading confirms a wake: it shows a reset newer than the newest one known before."""
    return reading.reset_at is not None and (snapshot_at is None or reading.reset_at > snapshot_at)


def looked(slot: Slot, rules: SlotRules, reading: Reading, *, now: Instant) -> Slot:
    """The slot after a reading, applied to the pending wake."""
    if slot.pending_at is None:
        return slot
    if slot.wake_disabled_at is not None:  # a person sent it: nothing is left to count for
        return let_go(slot) if is_confirmed(reading, slot.snapshot_at) else slot
    if is_confirmed(reading, slot.snapshot_at):
        return let_go(slot)._replace(wake_errors=0, wake_error=None)
    what = "nextResetTime is missing" if reading.reset_at is None else "nextResetTime did not advance"
    error = f"a wake was sent but had no effect: {what}"
    return _switched_off(slot._replace(wake_errors=slot.wake_errors + 1, wake_error=error), rules, now=now)


def wake_trouble(slot: Slot) -> str:
    """The last error of its wakes, in a sentence."""
    return slot.wake_error or "its wakes were refused or had no effect"


def unconfirmed_error(slot: Slot) -> str:
    """Why its wake is not confirmed, in a sentence."""
    if slot.error is not None:
        return f"a wake was sent, and the quota cannot be read: {slot.error}"
    return slot.wake_error or "a wake was sent, and no reading has shown its effect yet"


def turned_back(slot: Slot, *, now: Instant, served: Collection[Instant] = ()) -> Slot:
    """After the clock was ahead and went back: nothing is served beyond now but the times of day in `served`, which
    have a run, and no window gets longer."""
    slot = slot._replace(interval_from=min(slot.interval_from, now), times_through=min(slot.times_through, now))
    slot = with_served(slot, {at for at in (*served, *served_ahead(slot)) if at > slot.times_through})
    if slot.pending_at is not None and slot.pending_at > now:
        length = (slot.window_until or slot.pending_at) - slot.pending_at
        slot = slot._replace(pending_at=now, window_until=None if slot.window_until is None else now + length)
    return slot


def _modes(slot: Slot, rules: SlotRules) -> list[tuple[Instant, str]]:
    """When each enabled mode needs the next wake."""
    due: list[tuple[Instant, str]] = []
    if slot.initial_at is not None and rules.wakes:
        due.append((slot.initial_at, "initial"))
    if rules.interval is not None:
        due.append((slot.interval_from + rules.interval, "interval"))
    if rules.times is not None:
        at = _next_time(slot, rules.times)
        due += [] if at is None else [(at, "times")]
    if rules.after_reset is not None and slot.last_reset_at not in (None, slot.reset_served):
        due.append(((slot.last_reset_at or 0) + rules.after_reset, "after reset"))
    return [(at, mode) for at, mode in due if at <= INSTANT_MAX]


def _late_times(slot: Slot, rules: SlotRules, now: Instant, gap_reason: str) -> tuple[Slot, tuple[Gap, ...]]:
    """Times of day that were not served: the newest counts if it is less than an hour late, the rest are missed."""
    if rules.times is None:
        return slot, ()
    ahead = served_ahead(slot)
    newest = latest_until(rules.times, now, since=slot.times_through)
    while newest is not None and newest in ahead:
        newest = latest_until(rules.times, newest - 1, since=slot.times_through)
    if newest is None:
        return slot, ()
    through = now if now - newest >= LATE_MAX else newest - 1
    late = tally(rules.times, slot.times_through, through)
    if late.count == 0 or late.first is None or late.last is None:
        return slot, ()
    missed = _not_served(Gap(late.first, late.last, late.count, "missed", gap_reason), slot, rules.times)
    return _without_past(slot._replace(times_through=through)), missed


def _not_served(gap: Gap, slot: Slot, times: Times) -> tuple[Gap, ...]:
    """The times of day in a gap that have no run yet."""
    return tuple(row for row in without([gap], served_ahead(slot), times) if isinstance(row, Gap))


def _next_time(slot: Slot, times: Times) -> Instant | None:
    """The next time of day that has no run yet."""
    at, ahead = next_after(times, slot.times_through), served_ahead(slot)
    while at is not None and at in ahead:
        at = next_after(times, at)
    return at


def _without_past(slot: Slot) -> Slot:
    """The slot without what it need not remember any more."""
    if slot.times_served is None:
        return slot
    return with_served(slot, [at for at in served_ahead(slot) if at > slot.times_through])


def times_meanwhile(slot: Slot, rules: SlotRules, *, since: Instant, now: Instant) -> tuple[Gap, ...]:
    """Times of day that passed while a wake was being sent: that wake serves them, and they get a row."""
    if rules.times is None:
        return ()
    passed = tally(rules.times, max(slot.times_through, since), now)
    if passed.first is None or passed.last is None:
        return ()
    return _not_served(Gap(passed.first, passed.last, passed.count, "skipped", PENDING), slot, rules.times)


def _one(at: Instant, reason: str) -> Gap:
    return Gap(at, at, 1, "skipped", reason)


def let_go(slot: Slot) -> Slot:
    """The slot without a pending wake: it was confirmed, or nothing will look for its effect any more."""
    return slot._replace(pending_at=None, snapshot_at=None, window_until=None, is_forced=0)


def _switched_off(slot: Slot, rules: SlotRules, *, now: Instant) -> Slot:
    """Disable waking after too many errors, unless the second wake is still to come."""
    is_last_word = slot.pending_at is None or slot.is_forced
    if slot.wake_errors < rules.errors_max or not is_last_word:
        return slot
    return let_go(slot)._replace(wake_disabled_at=now)
