"""A forecast of the wakes of a slot: its own rules, simulated forward.

A wake that falls into a running window is not sent, so it is not listed. After a wake the window is assumed to run for
as long as the provider says its windows are; if that is unknown, every due wake is listed.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from wakeful.core.slot.slot import Slot, SlotRules, decode_reading
from wakeful.core.slot.wakes import WARM, advanced, ring, wake_due_at
from wakeful.core.time.instants import Instant

STEPS_MAX: Final = 1_000


class PlannedWake(NamedTuple):
    """A wake that will become due: its modes if it will be sent, or why not."""

    at: Instant
    modes: tuple[str, ...] = ()
    skipped: str | None = None
    reset_at: Instant | None = None  # of the window that runs at that time


def wakes_ahead(slot: Slot, rules: SlotRules, *, now: Instant, until: Instant) -> Iterator[PlannedWake]:
    """The wakes that become due until a time, in order. Each one that is sent is assumed to work."""
    for _ in range(STEPS_MAX):
        due_at = wake_due_at(slot, rules)
        if due_at is None or due_at > until:
            return
        at = max(due_at, now)
        rang = ring(slot, rules, now=at, gap_reason="")
        if rang.wake is not None:
            yield PlannedWake(at, rang.wake.modes)
            slot = woken(rang.slot, rules, at)
        else:
            reason = next((gap.reason for gap in reversed(rang.gaps)), WARM)
            yield PlannedWake(at, skipped=reason, reset_at=slot.reset_at)
            slot = advanced(rang.slot, rules, now=at)


def woken(slot: Slot, rules: SlotRules, at: Instant) -> Slot:
    """The slot after a wake that worked."""
    reading = decode_reading(slot.reading)
    slot = advanced(slot, rules, now=at)._replace(wake_run_id=None, pending_at=None, window_until=None)
    if reading is None or reading.window is None:
        return slot
    return slot._replace(reset_at=at + reading.window, last_reset_at=at + reading.window)
