"""Polling: chores that read the quota or statistics of a slot and record the result."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from wakeful.core.slot.polls import turned_back
from wakeful.core.slot.slot import ReadFailure, Reading, Slot, decode_reading
from wakeful.core.time.instants import MINUTE, SECOND, Duration, Instant
from wakeful.features.quota.reading import ReadingRecorder
from wakeful.features.quota.registry import Defined, SlotRegistry, Unusable
from wakeful.features.quota.rows import poll_claim, save, sides, stats_claim, tell
from wakeful.features.quota.sharing import Sharing
from wakeful.ports import events
from wakeful.ports.chores import Chore, ChoreClaim, StillHeld, Work
from wakeful.ports.slots import ALARM_POLL, ALARM_STATS, QuotaSlots
from wakeful.ports.store import Tx

UNUSABLE_EVERY: Final[Duration] = MINUTE
"""How often a slot that is unusable on this node is checked again: another node may know it."""


class Polled(NamedTuple):
    """What a poll found."""

    reading: Reading | ReadFailure
    began_at: Instant


class _OfSlot(Chore[Slot]):
    """What both chores have in common: they are about slots."""

    def __init__(self, registry: SlotRegistry, sharing: Sharing) -> None:
        self._registry = registry
        self._sharing = sharing

    def due(self, tx: Tx, *, now: Instant, limit: int) -> Sequence[Slot]:
        return tx[QuotaSlots].due_by(self.kind, now=now, limit=limit)

    def page(self, tx: Tx, *, after_id: int, limit: int) -> Sequence[Slot]:
        """Slots that this node can use; others may be of another node."""
        usable = [slot for slot in tx[QuotaSlots].all() if isinstance(self._registry.of(slot), Defined)]
        ids = sorted(slot.slot_id for slot in usable if slot.slot_id > after_id)
        return list(tx[QuotaSlots].lock(ids[:limit]).values())

    def lock(self, tx: Tx, ref: int) -> Slot | None:
        return tx[QuotaSlots].lock([ref]).get(ref)

    def ref_of(self, subject: Slot) -> int:
        return subject.slot_id


class Polls(_OfSlot):
    """Reads quotas."""

    kind = ALARM_POLL
    timeout = 30 * SECOND

    def __init__(self, registry: SlotRegistry, notes: ReadingRecorder, sharing: Sharing) -> None:
        super().__init__(registry, sharing)
        self._notes = notes

    def claim_of(self, subject: Slot) -> ChoreClaim:
        return poll_claim(subject)

    def save_claim(self, tx: Tx, subject: Slot, until: Instant | None, *, is_new: bool) -> Slot:
        subject = subject._replace(poll_until=until, poll_fence=subject.poll_fence + is_new)
        tx[QuotaSlots].save(subject)
        return subject

    def due_at(self, tx: Tx, subject: Slot, *, now: Instant) -> Instant | None:
        defined = self._registry.of(subject)
        return now if isinstance(defined, Unusable) else sides(subject, defined.rules, now=now).poll_at

    def clamp(self, tx: Tx, subject: Slot, *, now: Instant) -> Slot:
        after, defined = turned_back(subject, now=now), self._registry.of(subject)
        if isinstance(defined, Defined):  # its other alarms depend on these facts too
            save(tx, after, defined.rules, now=now, has_statistics=defined.provider.has_statistics)
        return after

    def begin(self, tx: Tx, subject: Slot, *, now: Instant) -> Work | Instant:
        defined = self._registry.of(subject)
        if isinstance(defined, Unusable):
            return now + UNUSABLE_EVERY
        return Work(f"poll of slot {subject.name}", partial(self._read, defined, now))

    async def _read(self, defined: Defined, began_at: Instant, _: StillHeld) -> Polled:
        provider = defined.provider
        try:
            reading = await self._sharing.ask(("read", provider.mark), lambda: provider.read("background-quota-poll"))
        except Exception as error:  # a provider's bug affects this slot only, and counts as an error
            reading = ReadFailure("unreadable", f"{type(error).__name__}: {error}")
        return Polled(reading, began_at)

    def end(self, tx: Tx, subject: Slot, result: Polled, *, now: Instant) -> None:
        defined = self._registry.of(subject)
        if isinstance(defined, Unusable):
            return
        self._notes.note_poll(
            tx,
            subject,
            defined.rules,
            result.reading,
            began_at=result.began_at,
            now=now,
            has_statistics=defined.provider.has_statistics,
        )


class Statistics(_OfSlot):
    """Reads statistics. They are for display only; nothing depends on them."""

    kind = ALARM_STATS
    timeout = 60 * SECOND

    def claim_of(self, subject: Slot) -> ChoreClaim:
        return stats_claim(subject)

    def save_claim(self, tx: Tx, subject: Slot, until: Instant | None, *, is_new: bool) -> Slot:
        subject = subject._replace(stats_until=until)
        tx[QuotaSlots].save(subject)
        return subject

    def due_at(self, tx: Tx, subject: Slot, *, now: Instant) -> Instant | None:
        defined = self._registry.of(subject)
        if isinstance(defined, Unusable):
            return now
        return sides(subject, defined.rules, now=now, has_statistics=defined.provider.has_statistics).stats_at

    def begin(self, tx: Tx, subject: Slot, *, now: Instant) -> Work | Instant:
        defined, reading = self._registry.of(subject), decode_reading(subject.reading)
        if isinstance(defined, Unusable) or reading is None:
            return now + UNUSABLE_EVERY
        return Work(f"statistics of slot {subject.name}", partial(self._ask, defined, reading, now))

    async def _ask(
        self, defined: Defined, reading: Reading, now: Instant, _: StillHeld
    ) -> Mapping[str, Any] | ReadFailure:
        provider = defined.provider
        return await self._sharing.ask(("statistics", provider.mark), lambda: provider.statistics(reading, now=now))

    def end(self, tx: Tx, subject: Slot, result: Mapping[str, Any] | ReadFailure, *, now: Instant) -> None:
        defined = self._registry.of(subject)
        if isinstance(defined, Unusable):
            return
        # A failure keeps the earlier values: the charts have a gap, and the next read is at the usual interval.
        is_kept = not isinstance(result, ReadFailure)
        stats = json.dumps(dict(result), ensure_ascii=False) if not isinstance(result, ReadFailure) else subject.stats
        after = subject._replace(stats_at=now, stats=stats)
        save(tx, after, defined.rules, now=now)
        tell(tx, after, events.SLOT_STATISTICS, "quota-poller.statistics", is_kept=is_kept)
