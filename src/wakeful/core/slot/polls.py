"""The poll side of a quota slot: when it is read next, and what a reading or a failure changes.

Theory of operation
-------------------
The interval between polls is derived: one minute while a wake is being confirmed, otherwise the configured interval. It
grows with errors in a row (doubled up to four times, up to a cap) and while nothing changes (doubled after three equal
readings, and once more after another three). A change, or a window that is nearly used up, resets the latter. Too many
errors disable the whole slot.

Two kinds of failed reads are not errors: an unreachable provider (the next read is one regular interval later), and
reads made to confirm a wake.
"""

from typing import Final

from wakeful.core.slot.slot import ReadFailure, Reading, Slot, SlotRules, decode_reading, encode_reading, is_on
from wakeful.core.slot.wakes import is_confirming, is_needed, is_read_for_wake, looked
from wakeful.core.time.instants import HOUR, MINUTE, Duration, Instant

BACKOFF_MAX: Final = 4
STEADY_STEP: Final = 3
STEADY_MAX: Final = 2
NEAR_LIMIT: Final = 80.0
CONFIRM_EVERY: Final[Duration] = MINUTE
SAME_RESET: Final[Duration] = MINUTE
"""Windows are hours apart. Reset times that differ by less belong to the same window, which is handled once."""
STATS_EVERY: Final[Duration] = 2 * HOUR
"""Statistics are only displayed, so they are read less often."""


def poll_due_at(slot: Slot, rules: SlotRules, *, now: Instant) -> Instant | None:
    """When the quota is read next, unless it is being read; None: not until something else happens."""
    if not rules.is_polled:
        return None
    if slot.poll_asked_at is not None:
        return slot.poll_asked_at
    if not is_on(slot, rules):
        return None
    if slot.polled_at is None:
        return slot.created_at
    return slot.polled_at + pause(slot, rules, now=now)


def pause(slot: Slot, rules: SlotRules, *, now: Instant) -> Duration:
    """How long after a poll the next one is due."""
    if is_confirming(slot, now):
        return CONFIRM_EVERY
    if slot.unreachable_since is not None:
        return rules.poll
    if slot.quota_errors:
        return max(rules.poll, min(rules.poll << min(slot.quota_errors, BACKOFF_MAX), rules.backoff_cap))
    return rules.poll << min(slot.steady // STEADY_STEP, STEADY_MAX)


def stats_due_at(slot: Slot, rules: SlotRules) -> Instant | None:
    """When statistics are read: not before the quota could be read."""
    if not is_on(slot, rules) or slot.read_at is None or slot.error is not None:
        return None
    return slot.read_at if slot.stats_at is None else slot.stats_at + max(STATS_EVERY, rules.poll)


def was_read(slot: Slot, rules: SlotRules, reading: Reading, *, now: Instant) -> Slot:
    """The slot after the quota was read, by a poll or before a wake."""
    before = decode_reading(slot.reading)
    is_same = before == reading and (reading.percentage or 0.0) < NEAR_LIMIT and slot.pending_at is None
    newest = _newest(slot.last_reset_at, reading.reset_at, now)
    slot = slot._replace(
        read_at=now,
        reading=encode_reading(reading),
        reset_at=reading.reset_at,
        last_reset_at=newest,
        exhausted_until=reading.exhausted_until,
        steady=slot.steady + 1 if is_same else 1,
        error=None,
        error_at=None,
        quota_errors=0,
        unreachable_since=None,
    )
    return looked(slot, rules, reading, now=now)


def polled(slot: Slot, rules: SlotRules, reading: Reading | ReadFailure, *, began_at: Instant, now: Instant) -> Slot:
    """The slot after a poll. The first one after a start also decides whether the initial wake is needed."""
    is_for_wake = is_read_for_wake(slot, began_at)
    slot = slot._replace(polled_at=now)
    if slot.poll_asked_at is not None and slot.poll_asked_at <= began_at:
        slot = slot._replace(poll_asked_at=None)
    if isinstance(reading, Reading):
        slot = was_read(slot, rules, reading, now=now)
        wants_wake = is_needed(reading, now)
    else:
        slot = _failed(slot, rules, reading, is_for_wake=is_for_wake, now=now)
        wants_wake = reading.kind != "refused"
    if slot.is_starting:
        is_free = slot.pending_at is None and slot.wake_run_id is None
        slot = slot._replace(is_starting=0, initial_at=now if wants_wake and is_free else slot.initial_at)
    return slot


def turned_back(slot: Slot, *, now: Instant) -> Slot:
    """After the clock was ahead and went back: later times are set to now, and checked again."""

    def until_now(at: Instant | None) -> Instant | None:
        return None if at is None else min(at, now)

    return slot._replace(
        read_at=until_now(slot.read_at),
        polled_at=until_now(slot.polled_at),
        poll_asked_at=now,
        stats_at=until_now(slot.stats_at),
        initial_at=until_now(slot.initial_at),
        unreachable_since=until_now(slot.unreachable_since),
    )


def _newest(known: Instant | None, reported: Instant | None, now: Instant) -> Instant | None:
    """The reset that counts: an earlier one that has passed is stale, and one that differs by seconds is the same."""
    if known is None or reported is None:
        return reported if known is None else known
    return reported if reported > min(known, now) and abs(reported - known) >= SAME_RESET else known


def _failed(slot: Slot, rules: SlotRules, failure: ReadFailure, *, is_for_wake: bool, now: Instant) -> Slot:
    is_unreachable = failure.kind == "unreachable"
    since = (now if slot.unreachable_since is None else slot.unreachable_since) if is_unreachable else None
    slot = slot._replace(error=failure.error, error_at=now, steady=0, unreachable_since=since)
    if is_unreachable or is_for_wake:
        return slot
    errors = slot.quota_errors + 1
    is_off = errors >= rules.errors_max and slot.disabled_at is None
    return slot._replace(quota_errors=errors, disabled_at=now if is_off else slot.disabled_at)
