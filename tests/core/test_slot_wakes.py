"""The wake side of a slot: modes and markers, pre-check, confirmation, errors."""

from typing import Any

import pytest

from wakeful.core.schedule.cadence import Gap
from wakeful.core.slot.polls import was_read
from wakeful.core.slot.slot import Reading, Slot, SlotRules, followed, new_slot, resumed, with_key, with_served
from wakeful.core.slot.wakes import (
    Wake,
    WakeRing,
    advanced,
    is_needed,
    looked,
    must_read_first,
    not_arrived,
    not_needed,
    ring,
    send_again_at,
    send_failed,
    sent,
    times_meanwhile,
    turned_back,
    wake_due_at,
)
from wakeful.core.time.instants import DAY, HOUR, MINUTE, parse_instant
from wakeful.core.time.timing import Times

T0 = parse_instant("2026-03-02T08:00:00Z")
HOURLY = SlotRules(interval=HOUR)
AFTER = SlotRules(after_reset=MINUTE)
TIMES = SlotRules(times=Times(("09:00", "14:00"), "UTC"))


def slot(**changes: Any) -> Slot:
    return new_slot(1, "main", None, now=T0)._replace(**changes)


def rang(one: Slot, rules: SlotRules, now: int) -> WakeRing:
    return ring(one, rules, now=now, gap_reason="outage")


def at(text: str) -> int:
    return parse_instant(f"2026-03-02T{text}:00Z")


# --- modes ---------------------------------------------------------------------------------------------------------


def test_interval_mode_is_due_an_interval_after_the_last_wake() -> None:
    """Not a millisecond earlier, and once."""
    assert wake_due_at(slot(), HOURLY) == T0 + HOUR
    assert rang(slot(), HOURLY, T0 + HOUR - 1) == WakeRing(slot())
    assert rang(slot(), HOURLY, T0 + HOUR).wake == Wake(T0 + HOUR, ("interval",))
    after = sent(slot(), HOURLY, 7, now=T0 + HOUR + 5)
    assert wake_due_at(after._replace(pending_at=None), HOURLY) == T0 + 2 * HOUR + 5


def test_times_mode_is_due_at_each_time_of_day_once() -> None:
    """Its marker is the time up to which it is served."""
    assert wake_due_at(slot(), TIMES) == at("09:00")
    assert rang(slot(), TIMES, at("09:00")).wake == Wake(at("09:00"), ("times",))
    after = advanced(slot(), TIMES, now=at("09:00"))
    assert wake_due_at(after, TIMES) == at("14:00")


def test_after_reset_mode_needs_a_reset_that_was_seen() -> None:
    """The last known one, although the field vanished with it."""
    assert wake_due_at(slot(), AFTER) is None
    known = slot(last_reset_at=at("10:00"), reset_at=None)
    assert wake_due_at(known, AFTER) == at("10:01")
    assert rang(known, AFTER, at("10:01")).wake == Wake(at("10:01"), ("after reset",))
    served = advanced(known, AFTER, now=at("10:01"))
    assert (served.reset_served, wake_due_at(served, AFTER)) == (at("10:00"), None)


def test_modes_that_are_due_together_are_one_wake() -> None:
    """And that one serves them all."""
    rules = SlotRules(interval=HOUR, times=Times(("09:00",), "UTC"), after_reset=MINUTE)
    one = slot(last_reset_at=at("08:30"))
    found = rang(one, rules, at("09:00")).wake
    assert found == Wake(at("08:31"), ("after reset", "interval", "times"))
    after = advanced(one, rules, now=at("09:00"))
    assert wake_due_at(after, rules) == at("10:00")


def test_a_wake_before_the_reset_does_not_serve_the_reset() -> None:
    """An hourly wake that was not needed must not cost the one after the reset."""
    rules = SlotRules(interval=HOUR, after_reset=MINUTE)
    warm = slot(reset_at=at("12:00"), last_reset_at=at("12:00"))
    found = rang(warm, rules, at("09:00"))
    assert found.gaps == (Gap(at("09:00"), at("09:00"), 1, "skipped", "warm"),)
    assert found.slot.reset_served is None


@pytest.mark.parametrize("late", [0, MINUTE, HOUR - 1])
def test_a_time_of_day_that_is_late_is_served_once(late: int) -> None:
    """Up to an hour."""
    found = rang(slot(), TIMES, at("09:00") + late)
    assert (found.wake, found.gaps) == (Wake(at("09:00"), ("times",)), ())


def test_a_time_of_day_an_hour_late_is_missed() -> None:
    """One row, and the marker is past it."""
    found = rang(slot(), TIMES, at("10:00"))
    assert found.wake is None
    assert found.gaps == (Gap(at("09:00"), at("09:00"), 1, "missed", "outage"),)
    assert wake_due_at(found.slot, TIMES) == at("14:00")


def test_of_several_missed_times_only_the_newest_can_be_served() -> None:
    """A week of them is one counted row."""
    found = rang(slot(), TIMES, at("14:10") + 7 * DAY)
    assert found.wake == Wake(at("14:00") + 7 * DAY, ("times",))
    assert found.gaps == (Gap(at("09:00"), at("09:00") + 7 * DAY, 15, "missed", "outage"),)


def test_a_disabled_side_is_never_due() -> None:
    """Neither the slot's own switch, nor too many errors of either kind."""
    assert wake_due_at(slot(), SlotRules(enabled=False, interval=HOUR)) is None
    assert wake_due_at(slot(disabled_at=T0), HOURLY) is None
    assert wake_due_at(slot(wake_disabled_at=T0), HOURLY) is None


def test_an_open_run_serves_what_comes_due() -> None:
    """A send that is tried again each minute covers the other modes."""
    assert wake_due_at(slot(wake_run_id=4), HOURLY) is None


# --- pre-check -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reset_at", "needed"), [(None, True), (T0 - 1, True), (T0, True), (T0 + 1, False), (T0 + 5 * HOUR, False)]
)
def test_a_wake_is_needed_when_the_reset_is_missing_or_past(reset_at: int | None, needed: bool) -> None:
    """Nothing else counts."""
    assert is_needed(Reading(7, reset_at), T0) is needed


def test_a_known_reset_ahead_saves_the_wake_and_serves_all_modes() -> None:
    """Without asking the provider."""
    found = rang(slot(reset_at=at("12:00")), HOURLY, at("09:00"))
    assert (found.wake, found.gaps[0].reason) == (None, "warm")
    assert found.slot.interval_from == at("09:00")


def test_a_cold_reading_of_this_minute_need_not_be_taken_again() -> None:
    """One request less; an older one, a failed one or one from a clock ahead does not do."""
    assert not must_read_first(slot(read_at=T0), T0 + 59_000)
    assert must_read_first(slot(), T0)
    assert must_read_first(slot(read_at=T0), T0 + MINUTE)
    assert must_read_first(slot(read_at=T0, error="no answer"), T0)
    assert must_read_first(slot(read_at=T0 + HOUR), T0)


# --- confirmation --------------------------------------------------------------------------------------------------


def test_a_sent_wake_is_pending_and_asks_for_a_reading_at_once() -> None:
    """Until a reset newer than the snapshot."""
    after = sent(slot(last_reset_at=T0 - HOUR), HOURLY, 7, now=T0 + HOUR)
    assert (after.pending_at, after.snapshot_at, after.window_until) == (T0 + HOUR, T0 - HOUR, T0 + 75 * MINUTE)
    assert (after.poll_asked_at, after.woken_at, after.sent_run_id) == (T0 + HOUR, T0 + HOUR, 7)


@pytest.mark.parametrize(
    ("snapshot_at", "reset_at", "confirmed"),
    [
        (None, T0 + 5 * HOUR, True),
        (None, None, False),
        (T0, T0, False),
        (T0, T0 - 1, False),
        (T0, T0 + 1, True),
        (T0, None, False),
    ],
)
def test_a_wake_is_confirmed_by_a_reset_newer_than_the_snapshot(
    snapshot_at: int | None, reset_at: int | None, confirmed: bool
) -> None:
    """A missing one or one that did not advance is an error each."""
    pending = slot(pending_at=T0, snapshot_at=snapshot_at, window_until=T0 + HOUR, wake_errors=3)
    after = looked(pending, HOURLY, Reading(0, reset_at), now=T0)
    assert (after.pending_at is None, after.wake_errors) == (confirmed, 0 if confirmed else 4)
    assert (after.wake_error is None) is confirmed


def test_a_due_wake_while_one_is_pending_is_suppressed_and_serves_all_modes() -> None:
    """A duplicate."""
    pending = slot(pending_at=T0, window_until=T0 + 2 * HOUR, wake_run_id=3, sent_run_id=3)
    found = rang(pending, HOURLY, T0 + HOUR)
    assert (found.wake, found.gaps[0].reason, found.slot.interval_from) == (None, "pending", T0 + HOUR)


def test_after_the_second_wake_things_take_their_normal_course() -> None:
    """A due wake is a wake again, although the last one never showed."""
    first = sent(slot(), HOURLY, 7, now=T0)
    second = sent(first, HOURLY, 7, now=T0 + 15 * MINUTE)
    assert (second.is_forced, second.window_until, second.snapshot_at) == (1, None, None)
    found = rang(second, HOURLY, T0 + 75 * MINUTE)
    assert found.wake is not None
    anew = sent(second, HOURLY, 8, now=T0 + 75 * MINUTE)
    assert (anew.is_forced, anew.window_until) == (0, T0 + 90 * MINUTE)


def test_waking_is_switched_off_by_errors_but_not_before_the_second_wake() -> None:
    """Ten unconfirmed readings within the window do not count yet, and the second wake starts the count again."""
    one = sent(slot(), HOURLY, 7, now=T0)
    for minute in range(15):
        one = looked(one, HOURLY, Reading(0, None), now=T0 + minute * MINUTE)
    assert (one.wake_errors, one.wake_disabled_at) == (15, None)
    one = sent(one, HOURLY, 7, now=T0 + 15 * MINUTE)
    assert (one.wake_errors, one.wake_disabled_at) == (0, None)
    for half_hour in range(9):
        one = looked(one, HOURLY, Reading(0, None), now=T0 + half_hour * 30 * MINUTE)
    assert (one.wake_errors, one.wake_disabled_at) == (9, None)
    one = looked(one, HOURLY, Reading(0, None), now=T0 + 5 * HOUR)
    assert (one.wake_disabled_at, one.pending_at) == (T0 + 5 * HOUR, None)


def test_errors_of_earlier_wakes_are_kept_when_the_count_starts_again() -> None:
    """Each wake gets its second try; a slot whose wakes never show is switched off all the same."""
    one = sent(slot(wake_errors=4), HOURLY, 7, now=T0)
    one = looked(one, HOURLY, Reading(0, None), now=T0 + MINUTE)
    assert one.wake_errors == 5
    assert sent(one, HOURLY, 7, now=T0 + 15 * MINUTE).wake_errors == 4


def test_a_wake_that_does_not_arrive_is_sent_again_with_a_growing_pause() -> None:
    """1, 2, 4, 8 and then always 15 minutes; it counts as no error, and nothing is served."""
    one, pauses = slot(), []
    for _ in range(40):
        one = not_arrived(one, "connection refused")
        pauses.append((send_again_at(one, now=T0) - T0) // MINUTE)
    assert pauses == [1, 2, 4, 8] + [15] * 36
    assert (one.wake_errors, one.wake_disabled_at, one.interval_from, one.wake_error) == (
        0,
        None,
        T0,
        "connection refused",
    )
    after = sent(one, HOURLY, 7, now=T0 + HOUR)
    assert (after.unsent, after.wake_error) == (0, None)


def test_a_run_that_is_still_sending_serves_what_comes_due_while_an_older_wake_is_unconfirmed() -> None:
    """One instant has one row: the alarm does not ring again for what that run is about to serve."""
    older = slot(pending_at=T0, sent_run_id=3, is_forced=1)
    assert wake_due_at(older, HOURLY) == T0 + HOUR
    assert wake_due_at(older._replace(wake_run_id=4), HOURLY) is None
    assert wake_due_at(older._replace(wake_run_id=3), HOURLY) == T0 + HOUR


def test_times_of_day_that_pass_while_a_wake_is_being_sent_are_counted() -> None:
    """The wake serves them; the ledger has a row for them."""
    assert times_meanwhile(slot(), TIMES, since=at("09:00"), now=at("13:59")) == ()
    gaps = times_meanwhile(slot(), TIMES, since=at("09:00"), now=at("09:00") + DAY)
    assert gaps == (Gap(at("14:00"), at("09:00") + DAY, 2, "skipped", "pending"),)


def test_a_time_of_day_that_was_served_before_the_clock_went_back_has_no_second_row() -> None:
    """Neither if it passes again while another wake is being sent."""
    served = with_served(slot(), [at("14:00")])
    assert times_meanwhile(served, TIMES, since=at("09:00"), now=at("15:00")) == ()
    gaps = times_meanwhile(served, TIMES, since=at("09:00"), now=at("09:00") + DAY)
    assert gaps == (Gap(at("09:00") + DAY, at("09:00") + DAY, 1, "skipped", "pending"),)


def test_failed_sends_serve_nothing_and_switch_waking_off_in_the_end() -> None:
    """Each is an error; the marker stays, so the wake is still due."""
    one = slot()
    for n in range(1, 11):
        one = send_failed(one, HOURLY, 7, "HTTP 500", now=T0 + n)
        assert (one.wake_errors, one.interval_from) == (n, T0)
    assert (one.wake_disabled_at, one.wake_error) == (T0 + 10, "HTTP 500")


def test_a_second_wake_that_is_refused_was_tried_all_the_same() -> None:
    """It ends the window, and is the first error of a new count."""
    one = sent(slot(), HOURLY, 7, now=T0)._replace(wake_errors=12)
    one = send_failed(one, HOURLY, 7, "HTTP 400", now=T0 + 15 * MINUTE)
    assert (one.wake_disabled_at, one.is_forced, one.window_until, one.wake_errors) == (None, 1, None, 1)
    last = send_failed(sent(slot(wake_errors=9), HOURLY, 7, now=T0), HOURLY, 7, "HTTP 400", now=T0 + 15 * MINUTE)
    assert last.wake_disabled_at == T0 + 15 * MINUTE


def test_a_manual_wake_of_a_warm_key_only_has_to_stay_warm() -> None:
    """Its reset cannot advance."""
    warm = slot(reset_at=T0 + HOUR, last_reset_at=T0 + HOUR)
    one = sent(warm, HOURLY, 7, now=T0, is_manual=True)
    assert looked(one, HOURLY, Reading(3, T0 + HOUR), now=T0).pending_at is None
    assert one.is_forced == 1


def test_the_last_known_reset_is_kept_when_the_field_vanishes() -> None:
    """Stale ones do not overwrite it, ones ahead do."""
    one = was_read(slot(), AFTER, Reading(7, T0 + HOUR), now=T0)
    assert (one.reset_at, one.last_reset_at) == (T0 + HOUR, T0 + HOUR)
    one = was_read(one, AFTER, Reading(0, None), now=T0 + 2 * HOUR)
    assert (one.reset_at, one.last_reset_at) == (None, T0 + HOUR)
    one = was_read(one, AFTER, Reading(0, T0 - HOUR), now=T0 + 2 * HOUR)
    assert one.last_reset_at == T0 + HOUR
    one = was_read(one._replace(last_reset_at=T0 + 9 * DAY), AFTER, Reading(0, T0 + 5 * HOUR), now=T0 + 2 * HOUR)
    assert one.last_reset_at == T0 + 5 * HOUR


# --- edges ---------------------------------------------------------------------------------------------------------


def test_a_clock_that_came_back_finds_nothing_served_beyond_it() -> None:
    """And no window lasts longer than it was meant to."""
    one = slot(interval_from=T0 + DAY, times_through=T0 + DAY, pending_at=T0 + DAY, window_until=T0 + DAY + 9)
    back = turned_back(one, now=T0)
    assert (back.interval_from, back.times_through, back.pending_at, back.window_until) == (T0, T0, T0, T0 + 9)


def test_a_resumed_slot_counts_anew_and_is_read_at_once() -> None:
    """Both switches are back on."""
    off = slot(disabled_at=T0, wake_disabled_at=T0, quota_errors=10, wake_errors=10, wake_error="x")
    on = resumed(off, HOURLY, now=T0 + 5)
    assert (on.disabled_at, on.wake_disabled_at, on.quota_errors, on.wake_errors) == (None, None, 0, 0)
    assert (on.poll_asked_at, on.is_starting) == (T0 + 5, 0)


def test_new_times_owe_nothing_for_the_past() -> None:
    """A time of day that is added half an hour after it waits for tomorrow; an interval begins now."""
    one = followed(slot(), TIMES, now=T0)
    early = SlotRules(times=Times(("08:30",), "UTC"), interval=HOUR)
    one = followed(one, early, now=at("08:45"))
    assert wake_due_at(one, early) == at("09:45")
    assert wake_due_at(one, SlotRules(times=early.times)) == at("08:30") + DAY


def test_a_changed_interval_counts_from_the_last_wake() -> None:
    """Both sides follow at once."""
    one = followed(followed(slot(), HOURLY, now=T0), SlotRules(interval=10 * MINUTE), now=at("08:30"))
    assert wake_due_at(one, SlotRules(interval=10 * MINUTE)) == at("08:10")


def test_a_slot_that_is_switched_on_begins_anew() -> None:
    """What fell into the time it was off is not owed; it is read, and the first reading decides about a wake."""
    one = followed(slot(), SlotRules(enabled=False, interval=HOUR), now=T0)
    one = followed(one, HOURLY, now=T0 + DAY)
    assert (one.poll_asked_at, one.is_starting, wake_due_at(one, HOURLY)) == (T0 + DAY, 1, T0 + DAY + HOUR)


def test_another_key_begins_anew() -> None:
    """What was known of the old one counts no more, and an answer about it is not taken."""
    one = slot(reset_at=T0 + HOUR)
    one = with_key(one, "a", now=T0)
    assert one.reset_at == T0 + HOUR
    changed = with_key(one, "b", now=T0 + 5)
    assert (changed.reset_at, changed.poll_asked_at, changed.poll_fence) == (None, T0 + 5, one.poll_fence + 1)
    assert with_key(changed, "b", now=T0 + 9) == changed


def test_not_needed_forgives_failed_sends() -> None:
    """The window runs: whatever went wrong, it went well."""
    assert not_needed(slot(wake_errors=4, wake_error="x"), HOURLY, now=T0).wake_errors == 0
