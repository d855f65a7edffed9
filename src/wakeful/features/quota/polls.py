"""Polling: alarms start side tasks that read the quota or statistics and record the result."""

import json
from functools import partial
from typing import Final

from wakeful.core.slot import polls as slot_polls
from wakeful.core.slot.polls import claimed, poll_due_at, stats_due_at
from wakeful.core.slot.slot import ReadFailure, Reading, Slot, decode_reading
from wakeful.core.time.instants import MINUTE, SECOND, Duration, Instant
from wakeful.features.quota.reading import ReadingRecorder
from wakeful.features.quota.registry import Defined, SlotRegistry, Unusable
from wakeful.features.quota.rows import save, tell
from wakeful.features.quota.sharing import Sharing
from wakeful.ports import events
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import Note, RingResult, SideTask
from wakeful.ports.slots import ALARM_POLL, ALARM_STATS, QuotaSlots
from wakeful.ports.store import Tx

POLL_TIMEOUT: Final[Duration] = 30 * SECOND
STATS_TIMEOUT: Final[Duration] = 60 * SECOND
CLAIM_MARGIN: Final[Duration] = 30 * SECOND
UNUSABLE_EVERY: Final[Duration] = MINUTE
"""How often a slot that is unusable on this node is checked again: another node may know it."""


class PollAlarms:
    """Handles poll alarms."""

    kind = ALARM_POLL
    brings_runs = False

    def __init__(self, registry: SlotRegistry, notes: ReadingRecorder, sharing: Sharing, clock: Clock) -> None:
        self._registry = registry
        self._notes = notes
        self._sharing = sharing
        self._clock = clock

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        """Claim every poll that is due."""
        slots = tx[QuotaSlots].due_by(ALARM_POLL, now=due_by, limit=limit)
        side_tasks = [side_task for slot in slots if (side_task := self._claim(tx, slot, now)) is not None]
        return RingResult((), len(slots), side_tasks)

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        """Done by `WakeAlarms` for both: they share the row."""
        return None

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """Release the polls of dead processes."""
        slots = tx[QuotaSlots].lock([slot.slot_id for slot in tx[QuotaSlots].all()])
        for slot in slots.values():
            defined = self._registry.of(slot)
            if isinstance(defined, Defined):
                after = slot_polls.recovered(slot)
                save(tx, after, defined.rules, now=now, has_statistics=defined.provider.has_statistics)

    def _claim(self, tx: Tx, slot: Slot, now: Instant) -> SideTask | None:
        defined = self._registry.of(slot)
        if isinstance(defined, Unusable):
            tx.alarms.move_many(ALARM_POLL, [(slot.slot_id, now + UNUSABLE_EVERY)])
            return None
        has_statistics = defined.provider.has_statistics
        due_at = poll_due_at(slot, defined.rules, now=now)
        if due_at is None or due_at > now:  # a stale alarm: recompute it
            save(tx, slot, defined.rules, now=now, has_statistics=has_statistics)
            return None
        claim = claimed(slot, until=now + POLL_TIMEOUT + CLAIM_MARGIN)
        save(tx, claim, defined.rules, now=now, has_statistics=has_statistics)
        perform = partial(self._poll, slot.name, claim.slot_id, claim.poll_fence, defined, now)
        return SideTask(f"poll of slot {slot.name}", perform, POLL_TIMEOUT)

    async def _poll(self, name: str, slot_id: int, fence: int, defined: Defined, began_at: Instant) -> Note:
        provider = defined.provider
        try:
            reading = await self._sharing.ask(("read", provider.mark), lambda: provider.read("background-quota-poll"))
        except Exception as error:  # a provider's bug affects this slot only, and counts as an error
            reading = ReadFailure("unreadable", f"{type(error).__name__}: {error}")
        return partial(self._note, slot_id=slot_id, fence=fence, reading=reading, began_at=began_at)

    def _note(self, tx: Tx, *, slot_id: int, fence: int, reading: Reading | ReadFailure, began_at: Instant) -> None:
        slot = tx[QuotaSlots].lock([slot_id]).get(slot_id)
        if slot is None or slot.poll_fence != fence:
            return  # removed, its key changed, or presumed lost
        defined = self._registry.of(slot)
        if isinstance(defined, Unusable):
            return
        self._notes.note_poll(
            tx,
            slot,
            defined.rules,
            reading,
            began_at=began_at,
            now=self._clock.read().now,
            has_statistics=defined.provider.has_statistics,
        )


class StatsAlarms:
    """Handles statistics alarms. Statistics are for display only; nothing depends on them."""

    kind = ALARM_STATS
    brings_runs = False

    def __init__(self, registry: SlotRegistry, sharing: Sharing, clock: Clock) -> None:
        self._registry = registry
        self._sharing = sharing
        self._clock = clock

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        """Claim every statistics read that is due."""
        slots = tx[QuotaSlots].due_by(ALARM_STATS, now=due_by, limit=limit)
        side_tasks = [side_task for slot in slots if (side_task := self._claim(tx, slot, now)) is not None]
        return RingResult((), len(slots), side_tasks)

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        return None

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """Done by `PollAlarms` for both."""

    def _claim(self, tx: Tx, slot: Slot, now: Instant) -> SideTask | None:
        defined = self._registry.of(slot)
        if isinstance(defined, Unusable) or not defined.provider.has_statistics:
            tx.alarms.move_many(ALARM_STATS, [(slot.slot_id, None)])
            return None
        due_at = stats_due_at(slot, defined.rules)
        reading = decode_reading(slot.reading)
        if due_at is None or due_at > now or reading is None:
            save(tx, slot, defined.rules, now=now)
            return None
        save(tx, slot._replace(stats_until=now + STATS_TIMEOUT + CLAIM_MARGIN), defined.rules, now=now)
        perform = partial(self._ask, slot.slot_id, slot.key_mark, defined, reading, now)
        return SideTask(f"statistics of slot {slot.name}", perform, STATS_TIMEOUT)

    async def _ask(self, slot_id: int, key_mark: str | None, defined: Defined, reading: Reading, now: Instant) -> Note:
        provider = defined.provider
        statistics = await self._sharing.ask(
            ("statistics", provider.mark), lambda: provider.statistics(reading, now=now)
        )
        text = None if isinstance(statistics, ReadFailure) else json.dumps(dict(statistics), ensure_ascii=False)
        return partial(self._note, slot_id=slot_id, key_mark=key_mark, stats=text)

    def _note(self, tx: Tx, *, slot_id: int, key_mark: str | None, stats: str | None) -> None:
        slot = tx[QuotaSlots].lock([slot_id]).get(slot_id)
        now = self._clock.read().now
        if slot is None or slot.key_mark != key_mark:
            return
        defined = self._registry.of(slot)
        if isinstance(defined, Unusable):
            return
        # A failure keeps the earlier values: the charts have a gap, and the next read is at the usual interval.
        after = slot._replace(stats_at=now, stats_until=None, stats=slot.stats if stats is None else stats)
        save(tx, after, defined.rules, now=now)
        tell(tx, after, events.SLOT_STATISTICS, "quota-poller.statistics", is_kept=stats is not None)
