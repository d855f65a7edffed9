"""The laws of slots that are disabled, as questions about the rows of slots and of their runs."""

from collections.abc import Iterator

from wakeful.core.run.runs import Run
from wakeful.core.slot.slot import Slot
from wakeful.core.time.instants import format_instant
from worlds.laws import describe


def is_recorded_before_it_goes_out(slot: str, run: Run | None, run_id: int) -> Iterator[str]:
    """L2: a wake goes out after the ledger says so, so that what the commit refuses is not sent."""
    if run is None or run.outcome != "running" or run.rung != "sent":
        yield f"L2 {slot}: a wake of run {run_id} goes out; the ledger says {run and describe(run)}"


def is_not_sent_when_disabled(slot: Slot | None, run: Run) -> Iterator[str]:
    """L2: no planned or forced wake begins after the commit that disabled its slot. `slot` is as it was before."""
    if slot is None or run.trigger == "manual":
        return
    disabled_at = slot.wake_disabled_at or slot.disabled_at
    if disabled_at is not None:
        yield f"L2 slot {slot.name}: {describe(run)} begins; the slot was disabled at {format_instant(disabled_at)}"


def disabled_waits_for_nothing(slot: Slot, sent_by: Run | None) -> Iterator[str]:
    """L8: a slot that is disabled has no pending wake, except one that a person sent."""
    is_manual = sent_by is not None and sent_by.trigger == "manual"
    if slot.pending_at is not None and not is_manual and (slot.wake_disabled_at or slot.disabled_at) is not None:
        yield f"L8 slot {slot.name}: it is disabled, and its wake is pending since {format_instant(slot.pending_at)}"
