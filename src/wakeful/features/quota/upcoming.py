"""Upcoming wakes of slots, including one that waits to be resent."""

from collections.abc import Iterator
from itertools import islice

from wakeful.core.run.runs import Run
from wakeful.core.schedule.upcoming import Upcoming, attempted_at
from wakeful.core.slot.forecast import PlannedWake, wakes_ahead, woken
from wakeful.core.slot.slot import Slot, SlotRules
from wakeful.core.slot.wakes import is_sending
from wakeful.core.time.instants import INSTANT_MAX, Instant
from wakeful.features.quota.registry import Defined, SlotRegistry
from wakeful.features.quota.rows import OWNER
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Tx


class UpcomingWakes:
    """Lists upcoming wakes; there are few slots, so all are read."""

    def __init__(self, registry: SlotRegistry) -> None:
        self._registry = registry

    def __call__(self, tx: Tx, *, now: Instant, until: Instant, limit: int) -> list[Upcoming]:
        wakes = [
            wake for slot in tx[QuotaSlots].all() for wake in self._of(tx, slot, now=now, until=until, limit=limit)
        ]
        return sorted(wakes)[:limit]

    def _of(self, tx: Tx, slot: Slot, *, now: Instant, until: Instant, limit: int) -> list[Upcoming]:
        defined = self._registry.of(slot)
        if not isinstance(defined, Defined):
            return []
        # A run that has yet to send its wake is listed among the waiting runs; later wakes depend on it.
        sent = (fate for fate in fates(tx, slot, defined.rules, now=now, until=until) if fate.skipped is None)
        return [Upcoming(wake.at, f"{OWNER}{slot.name}", wake.at, "wake", "") for wake in islice(sent, limit)]


def fates(tx: Tx, slot: Slot, rules: SlotRules, *, now: Instant, until: Instant) -> Iterator[PlannedWake]:
    """The upcoming wakes, after the one being sent."""
    run = sending_run(tx, slot)
    if run is not None:
        slot = woken(slot, rules, max(run.next_attempt_at or now, now))
    return wakes_ahead(slot, rules, now=now, until=until)


def next_wake(tx: Tx, slot: Slot, rules: SlotRules, *, now: Instant) -> Instant | None:
    """When the slot is woken next: a wake that waits to be sent, or the first that does not fall into a running
    window."""
    run = sending_run(tx, slot)
    if run is not None and (at := attempted_at(run, now)) is not None:
        return at
    sent = (fate.at for fate in fates(tx, slot, rules, now=now, until=INSTANT_MAX) if fate.skipped is None)
    return next(sent, None)


def sending_run(tx: Tx, slot: Slot) -> Run | None:
    """The run that has not sent its wake yet, or whose second wake did not arrive and is sent again."""
    if slot.wake_run_id is None:
        return None
    run = tx.runs.lock([slot.wake_run_id]).get(slot.wake_run_id)
    if run is None or is_sending(slot):
        return run
    return None if attempted_at(run, slot.updated_at) is None else run
