"""A slot's row and its alarms, always written together under the row's lock; the alarms are derived."""

import json
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from wakeful.core.run.effects import Replan
from wakeful.core.slot.polls import poll_due_at, stats_due_at
from wakeful.core.slot.slot import Slot, SlotRules, decode_reading
from wakeful.core.slot.wakes import wake_due_at
from wakeful.core.time.instants import DAY, Duration, Instant
from wakeful.ports.chores import ChoreClaim, rings_at
from wakeful.ports.event import EventKind
from wakeful.ports.event_data import SlotChanged
from wakeful.ports.owners import Owners
from wakeful.ports.slots import ALARM_POLL, ALARM_STATS, ALARM_WAKE, SLOT_ALARMS, QuotaSlots, Read, SlotReadings
from wakeful.ports.store import Alarm, Report, Tx

HISTORY_KEPT: Final[Duration] = 30 * DAY
OWNER: Final = "slot:"
WAKE: Final = "wake"
"""The run kind of a wake."""
DISABLED: Final = "disabled"
"""The reason of a run that its slot's disabling ended."""


class SlotAlarmTimes(NamedTuple):
    """When each alarm of a slot is due."""

    wake_at: Instant | None
    poll_at: Instant | None
    stats_at: Instant | None


def sides(slot: Slot, rules: SlotRules, *, now: Instant, has_statistics: bool = True) -> SlotAlarmTimes:
    """The alarm times derived from a slot's row."""
    poll_at = poll_due_at(slot, rules, now=now)
    stats_at = stats_due_at(slot, rules) if has_statistics else None
    return SlotAlarmTimes(
        wake_due_at(slot, rules), rings_at(poll_claim(slot), poll_at), rings_at(stats_claim(slot), stats_at)
    )


def poll_claim(slot: Slot) -> ChoreClaim:
    """The claim of the poll in progress."""
    return ChoreClaim(slot.poll_fence, slot.poll_until)


def stats_claim(slot: Slot) -> ChoreClaim:
    """The claim of the statistics that are being read. Only a result for another key is wrong."""
    return ChoreClaim(slot.key_mark, slot.stats_until)


def save(tx: Tx, slot: Slot, rules: SlotRules, *, now: Instant, has_statistics: bool = True) -> None:
    """Write the slot and its derived alarms. The caller holds its lock."""
    tx[QuotaSlots].save_many([slot])
    tx.alarms.set_many(alarms_of(slot, sides(slot, rules, now=now, has_statistics=has_statistics)))


def alarms_of(slot: Slot, at: SlotAlarmTimes) -> Sequence[Alarm]:
    due = {ALARM_POLL: at.poll_at, ALARM_STATS: at.stats_at, ALARM_WAKE: at.wake_at}
    return [Alarm(kind, slot.slot_id, due_at, 1, None, 0) for kind, due_at in due.items()]


def silence(tx: Tx, slot: Slot) -> None:
    """Remove a slot's alarms."""
    for kind in SLOT_ALARMS:
        tx.alarms.remove_many(kind, [slot.slot_id])


def owner_of(tx: Tx, name: str) -> int:
    """The owner id of a slot's wakes in the ledger."""
    return tx[Owners].named(f"{OWNER}{name}")


def slot_named(owner: str) -> str | None:
    """The slot with this owner name; None if the owner is not a slot."""
    return owner.removeprefix(OWNER) if owner.startswith(OWNER) else None


def keep_history(tx: Tx, slot: Slot, *, now: Instant) -> None:
    """Add the latest reading to the chart history, without its statistics."""
    kept: dict[str, Any] = json.loads(slot.reading or "{}")
    kept.pop("limits", None)
    tx[SlotReadings].keep(Read(slot.slot_id, now, json.dumps(kept)), since=now - HISTORY_KEPT)


def replanned(before: Slot, after: Slot) -> tuple[Replan, ...]:
    """The effects for schedules that wait for the reset."""
    return () if before.last_reset_at == after.last_reset_at else (Replan(after.name, after.last_reset_at),)


def tell(
    tx: Tx,
    slot: Slot,
    event: EventKind[SlotChanged],
    action: str,
    text: str | None = None,
    *,
    level: Literal["debug", "info", "warn", "error"] = "info",
    **more: Any,
) -> None:
    """Report a slot event under its log name."""
    reading = decode_reading(slot.reading)
    data = SlotChanged(
        slot=slot.name,
        percentage=None if reading is None else reading.percentage,
        reset_at=slot.reset_at,
        quota_errors=slot.quota_errors,
        wake_errors=slot.wake_errors,
        wake_pending=slot.pending_at is not None,
        is_disabled=slot.disabled_at is not None,
        is_wake_disabled=slot.wake_disabled_at is not None,
        **more,
    )
    tx.report(Report(event, data, text, level, slot=slot.name, action=action))
