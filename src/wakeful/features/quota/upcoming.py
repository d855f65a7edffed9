"""Upcoming wakes of slots, including one that waits to be resent."""

from collections.abc import Iterator
from itertools import islice

from wakeful.core.run.runs import Run
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.slot.forecast import PlannedWake, wakes_ahead, woken
from wakeful.core.slot.slot import Slot, SlotRules
from wakeful.core.slot.wakes import is_sending
from wakeful.core.time.instants import Instant
from wakeful.features.quota.registry import Defined, SlotRegistry
from wakeful.features.quota.rows import OWNER
from wakeful.ports.store import Tx


class UpcomingWakes:
    """Lists upcoming wakes; there are few slots, so all are read."""

    def __init__(self, registry: SlotRegistry) -> None:
        self._registry = registry

    def __call__(self, tx: Tx, *, now: Instant, until: Instant, limit: int) -> list[Upcoming]:
        wakes = [wake for slot in tx.slots.all() for wake in self._of(tx, slot, now=now, until=until, limit=limit)]
        return sorted(wakes)[:limit]

    def _of(self, tx: Tx, slot: Slot, *, now: Instant, until: Instant, limit: int) -> list[Upcoming]:
        defined = self._registry.of(slot)
        if not isinstance(defined, Defined):
            return []
        # A run that has yet to send its wake is listed among the waiting runs; later wakes depend on it.
        sent = (fate for fate in fates(tx, slot, defined.rules, now=now, until=until) if fate.skipped is None)
        return [Upcoming(wake.at, f"{OWNER}{slot.name}", wake.at, "wake") for wake in islice(sent, limit)]


def fates(tx: Tx, slot: Slot, rules: SlotRules, *, now: Instant, until: Instant) -> Iterator[PlannedWake]:
    """The upcoming wakes, after the one being sent."""
    run = sending_run(tx, slot)
    if run is not None:
        slot = woken(slot, rules, max(run.next_attempt_at or now, now))
    return wakes_ahead(slot, rules, now=now, until=until)


def sending_run(tx: Tx, slot: Slot) -> Run | None:
    """The run that has not sent its wake yet, if there is one."""
    if not is_sending(slot) or slot.wake_run_id is None:
        return None
    return tx.runs.lock([slot.wake_run_id]).get(slot.wake_run_id)
