"""The poll side of a slot: pace, backoff, adaptive polling, and the first reading after a start."""

from typing import Any

import pytest

from wakeful.core.slot.polls import (
    STATS_EVERY,
    pause,
    poll_due_at,
    polled,
    stats_due_at,
    turned_back,
    was_read,
)
from wakeful.core.slot.slot import ReadFailure, Reading, Slot, SlotRules, decode_reading, new_slot, resumed
from wakeful.core.time.instants import HOUR, MINUTE

T0 = 1_770_000_000_000
RULES = SlotRules(interval=HOUR)
WRONG = ReadFailure("unreadable", "not JSON")
DOWN = ReadFailure("unreachable", "no answer")


def slot(**changes: Any) -> Slot:
    return new_slot(1, "main", None, now=T0)._replace(**changes)


def after(one: Slot, *found: Reading | ReadFailure, rules: SlotRules = RULES) -> Slot:
    for n, each in enumerate(found, start=1):
        one = polled(one, rules, each, began_at=T0 + n, now=T0 + n)
    return one


def test_the_first_poll_is_due_at_once() -> None:
    """A new slot is read when it begins."""
    assert poll_due_at(slot(), RULES, now=T0) == T0


@pytest.mark.parametrize(("errors", "minutes"), [(0, 30), (1, 60), (2, 120), (3, 240), (4, 480), (5, 480), (9, 480)])
def test_errors_double_the_pause_up_to_the_cap(errors: int, minutes: int) -> None:
    """The documented figures."""
    assert pause(slot(quota_errors=errors), RULES, now=T0) == minutes * MINUTE


def test_the_cap_is_a_setting_and_never_makes_polls_more_frequent() -> None:
    """Two hours; a slot that is read once a day stays at that."""
    assert pause(slot(quota_errors=9), SlotRules(backoff_cap=2 * HOUR), now=T0) == 2 * HOUR
    assert pause(slot(quota_errors=9), SlotRules(poll=24 * HOUR), now=T0) == 24 * HOUR


def test_a_pending_wake_is_looked_for_every_minute_whatever_the_errors() -> None:
    """Within its window."""
    one = slot(pending_at=T0, window_until=T0 + 15 * MINUTE, quota_errors=3)
    assert pause(one, RULES, now=T0) == MINUTE
    assert pause(one, RULES, now=T0 + 15 * MINUTE) == 240 * MINUTE


def test_three_equal_readings_double_the_pause_at_most_four_times() -> None:
    """Nothing changes, nobody asks."""
    same = Reading(7, T0 + HOUR)
    pauses = [pause(after(slot(), *([same] * n)), RULES, now=T0) // MINUTE for n in range(1, 12)]
    assert pauses == [30, 30, 60, 60, 60, 120, 120, 120, 120, 120, 120]


@pytest.mark.parametrize("changed", [Reading(8, T0 + HOUR), Reading(7, None), Reading(7, T0 + 2 * HOUR), DOWN])
def test_any_change_ends_it(changed: Reading | ReadFailure) -> None:
    """Percentage, reset, or an error."""
    one = after(slot(), *([Reading(7, T0 + HOUR)] * 6), changed)
    assert pause(one, RULES, now=T0) == 30 * MINUTE


def test_near_the_limit_polls_are_never_stretched() -> None:
    """From 80 % on."""
    assert pause(after(slot(), *([Reading(80, T0 + HOUR)] * 9)), RULES, now=T0) == 30 * MINUTE
    assert pause(after(slot(), *([Reading(79.9, T0 + HOUR)] * 9)), RULES, now=T0) == 120 * MINUTE


def test_too_many_errors_switch_the_slot_off_and_a_reading_clears_them() -> None:
    """Until a start or a person."""
    one = after(slot(), *([WRONG] * 9))
    assert (one.disabled_at, one.error) == (None, "not JSON")
    assert after(one, Reading(1, None)).quota_errors == 0
    one = after(one, WRONG)
    assert one.disabled_at is not None
    assert poll_due_at(one, RULES, now=T0) is None
    assert poll_due_at(resumed(one, RULES, now=T0 + 5), RULES, now=T0) == T0 + 5


def test_an_unreachable_provider_neither_disables_nor_slows_polling() -> None:
    """However long; the errors before it are kept, and the next reading says since when it was."""
    one = after(slot(quota_errors=3), *([DOWN] * 50))
    assert (one.quota_errors, one.disabled_at, one.error, one.unreachable_since) == (3, None, "no answer", T0 + 1)
    assert pause(one, RULES, now=T0) == 30 * MINUTE
    assert after(one, WRONG).unreachable_since is None
    assert pause(after(one, WRONG), RULES, now=T0) == 480 * MINUTE
    assert after(one, Reading(1, None)).unreachable_since is None


def test_reads_that_confirm_a_wake_do_not_count_for_polling() -> None:
    """Neither within the window nor the one at once after a send; any other does."""
    looking = slot(pending_at=T0, window_until=T0 + 15 * MINUTE)
    one = after(looking, *([WRONG] * 12))
    assert (one.quota_errors, one.disabled_at, one.error) == (0, None, "not JSON")
    forced = slot(pending_at=T0, poll_asked_at=T0, is_forced=1)
    assert after(forced, WRONG).quota_errors == 0
    assert after(forced, WRONG, WRONG).quota_errors == 1
    assert polled(looking, RULES, WRONG, began_at=T0 - 1, now=T0 + 5).quota_errors == 1


def test_a_poll_asked_for_while_one_is_under_way_follows_it() -> None:
    """The one under way may have been answered before whatever made somebody ask."""
    one = polled(slot(poll_asked_at=T0 + 9), RULES, Reading(1, None), began_at=T0, now=T0 + 10)
    assert poll_due_at(one, RULES, now=T0 + 10) == T0 + 9
    one = polled(one, RULES, Reading(1, None), began_at=T0 + 11, now=T0 + 12)
    assert poll_due_at(one, RULES, now=T0 + 12) == T0 + 12 + 30 * MINUTE


@pytest.mark.parametrize(
    ("found", "wakes"),
    [
        (Reading(0, None), True),
        (Reading(0, T0 - 1), True),
        (Reading(0, T0 + HOUR), False),
        (DOWN, True),
        (ReadFailure("unreadable", "no JSON"), True),
        (ReadFailure("refused", "HTTP 401"), False),
    ],
)
def test_the_initial_wake_obeys_the_pre_check(found: Reading | ReadFailure, wakes: bool) -> None:
    """Cold, past or unreadable: wake. Warm, or a key that is refused: do not."""
    one = after(resumed(slot(), RULES, now=T0, is_start=True), found)
    assert (one.initial_at is not None, one.is_starting) == (wakes, 0)


def test_the_initial_wake_never_doubles_one_that_is_pending() -> None:
    """A restart within the window."""
    one = after(slot(is_starting=1, pending_at=T0, window_until=T0 + HOUR), Reading(0, None))
    assert one.initial_at is None
    assert after(slot(is_starting=1, wake_run_id=3), DOWN).initial_at is None


def test_a_slot_without_wake_modes_has_no_initial_wake() -> None:
    """It is only read."""
    assert resumed(slot(), SlotRules(), now=T0, is_start=True).is_starting == 0


def test_an_exhausted_window_is_known_until_its_reset() -> None:
    """A hundred per cent and a reset; either alone says nothing."""
    assert was_read(slot(), RULES, Reading(100, T0 + HOUR), now=T0).exhausted_until == T0 + HOUR
    assert was_read(slot(), RULES, Reading(99.9, T0 + HOUR), now=T0).exhausted_until is None
    assert was_read(slot(), RULES, Reading(100, None), now=T0).exhausted_until is None


def test_statistics_have_a_slower_pace_and_wait_for_a_reading() -> None:
    """And pause while the quota cannot be read."""
    assert stats_due_at(slot(), RULES) is None
    one = after(slot(), Reading(7, None))
    assert stats_due_at(one, RULES) == one.read_at
    assert stats_due_at(one._replace(stats_at=T0), RULES) == T0 + STATS_EVERY
    assert stats_due_at(after(one, DOWN), RULES) is None


def test_a_clock_that_came_back_is_not_waited_for() -> None:
    """What was noted ahead happened now."""
    one = turned_back(slot(polled_at=T0 + 99 * HOUR), now=T0)
    assert poll_due_at(one, RULES, now=T0) == T0


def test_a_reading_is_kept_whole() -> None:
    """What is kept reads back."""
    reading = Reading(7, T0, 5 * HOUR, "pro", ({"type": "TIME_LIMIT"},))
    kept = decode_reading(was_read(slot(), RULES, reading, now=T0).reading)
    assert (kept, kept and kept.limits) == (reading, reading.limits)
