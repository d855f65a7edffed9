"""The laws of quota slots, as questions about wakes as the provider saw them, and about the rows of slots."""

from collections.abc import Iterator
from typing import Final

from wakeful.core.run.runs import Run
from wakeful.core.slot.slot import Slot
from wakeful.core.slot.wakes import RESEND_MAX
from wakeful.core.time.instants import MINUTE, Duration, Instant, format_duration, format_instant
from wakeful.features.quota.wake_runs import UNREACHABLE
from wakeful.ports.store import Alarm
from worlds.laws import describe

LEFT_LYING_MAX: Final[Duration] = MINUTE
RESENT_WITHIN: Final[Duration] = RESEND_MAX + LEFT_LYING_MAX


def is_woken_once(slot: str, fire_key: str, *, until: Instant | None, is_excused: bool) -> Iterator[str]:
    """L2: no wake arrives while the window runs, unless a person sent it or the quota could not be read meanwhile."""
    if until is not None and not is_excused:
        yield f"L2 slot {slot}: wake {fire_key} arrives, and the window runs until {format_instant(until)}"


def belongs_to_a_run(slot: str, run: Run | None, run_id: int, arrivals: int) -> Iterator[str]:
    """L2: a wake is sent by an attempt that the ledger knows of, once each."""
    if run is None or run.outcome != "running":
        yield f"L2 slot {slot}: a wake of run {run_id} arrives; the ledger says {run and describe(run)}"
    elif arrivals > run.attempt:
        yield f"L2 slot {slot}: {arrivals} wakes arrived of {describe(run)}"


def is_woken_in_the_end(slot: str, cold_for: Duration, patience: Duration) -> Iterator[str]:
    """L1: a slot that is cold is woken, if there is somebody awake and the provider answers."""
    if cold_for > patience:
        yield f"L1 slot {slot}: it is cold for {format_duration(cold_for)}, and nobody wakes it"


def is_sent_after_an_outage(slot: str, run: Run | None, calm_for: Duration) -> Iterator[str]:
    """L1: a wake that did not arrive is sent within one backoff step of the network's return."""
    if run is not None and run.outcome == "waiting" and run.reason == UNREACHABLE and calm_for > RESENT_WITHIN:
        yield f"L1 slot {slot}: reachable for {format_duration(calm_for)}, and its wake is not sent: {describe(run)}"


def is_read_in_the_end(slot: str, unread_for: Duration, patience: Duration) -> Iterator[str]:
    """L1: the quota is read again and again, whatever happened to the reading before."""
    if unread_for > patience:
        yield f"L1 slot {slot}: nobody reads its quota for {format_duration(unread_for)}"


def keeps_one_run(slot: Slot, run: Run | None) -> Iterator[str]:
    """L5: the run a slot waits for is open, or stuck: one that ended would hold the slot for ever."""
    if slot.wake_run_id is not None and (run is None or not (run.is_open or run.stuck)):
        yield f"L5 slot {slot.name}: it waits for run {slot.wake_run_id}, which is {run and describe(run)}"


def markers_go_forward(before: Slot, after: Slot, *, is_clock_back: bool) -> Iterator[str]:
    """L3: what was served stays served."""
    if before.key_mark != after.key_mark or is_clock_back:
        return
    for name in ("interval_from", "times_through"):
        if getattr(after, name) < getattr(before, name):
            was, now = format_instant(getattr(before, name)), format_instant(getattr(after, name))
            yield f"L3 slot {after.name}: {name} went back from {was} to {now}"


def is_not_silent(slot: str, kind: str, alarm: Alarm, since: Instant, *, now: Instant) -> Iterator[str]:
    """L1: nobody sleeps over a side of a slot that is due."""
    if alarm.due_at is not None and max(alarm.due_at, since) < now - LEFT_LYING_MAX:
        yield f"L1 slot {slot}: its {kind} was due at {format_instant(alarm.due_at)}, and nobody looks at it"
