"""Queries on slots, for people and programs."""

import json
from dataclasses import dataclass
from typing import Any, Final

from wakeful.config.one_slot import slot_json
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.core.slot.slot import Slot, decode_reading, is_warm
from wakeful.core.slot.windows import still_open
from wakeful.core.time.instants import DAY, Duration, Instant, format_duration, format_instant, format_optional
from wakeful.features.quota.reading import wake_cure
from wakeful.features.quota.registry import Defined, SlotRegistry, Unusable
from wakeful.features.quota.reported import ReportedSlot
from wakeful.features.quota.rows import sides
from wakeful.features.quota.upcoming import sending_run
from wakeful.ports.slots import Read
from wakeful.ports.store import Tx

HISTORY_SHOWN: Final[Duration] = 7 * DAY
HISTORY_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class SlotFinding:
    """A problem with a slot, and its cure."""

    sentence: str
    cure: str


def all_slots(tx: Tx, registry: SlotRegistry, *, now: Instant) -> list[dict[str, Any]]:
    """All slots, by name."""
    return [view(tx, registry, slot, now=now) for slot in tx.slots.all()]


def one_slot(tx: Tx, registry: SlotRegistry, name: str, *, now: Instant) -> dict[str, Any]:
    slot = tx.slots.by_names([name]).get(name)
    if slot is None:
        raise NotFound(f"there is no slot {shown(name)}")
    return view(tx, registry, slot, now=now)


def trouble_of(slot: Slot, defined: Defined | Unusable, *, now: Instant) -> SlotFinding | None:
    """A slot's most severe problem, in one sentence; None if there is none."""
    name = slot.name
    if isinstance(defined, Unusable):
        return SlotFinding(f"slot {name} cannot be used: {defined.reason}", "correct it, or remove the slot")
    if not defined.rules.enabled:
        return None
    if slot.disabled_at is not None:
        sentence = f"slot {name} is disabled after {slot.quota_errors} errors in a row, the last: {slot.error}"
        return SlotFinding(sentence, f"correct the key or the address, then: wakeful slots resume {name}")
    if slot.wake_disabled_at is not None:
        sentence = f"slot {name} is no longer woken after {slot.wake_errors} wake errors: {slot.wake_error}"
        return SlotFinding(sentence, wake_cure(name))
    if slot.unsent:
        tries = "once" if slot.unsent == 1 else f"{slot.unsent} times"
        sentence = f"the wake of slot {name} could not be sent, tried {tries}: {slot.wake_error}"
        return SlotFinding(sentence, "check the network; it is resent automatically until it arrives")
    if slot.unreachable_since is not None:
        since = format_instant(slot.unreachable_since)
        sentence = f"the quota of slot {name} has been unreachable since {since}: {slot.error}"
        return SlotFinding(sentence, "check the network and the address; polling continues")
    if slot.error is not None:
        count = f" ({slot.quota_errors} errors in a row)" if slot.quota_errors else ""
        sentence = f"the quota of slot {name} cannot be read{count}: {slot.error}"
        return SlotFinding(sentence, "correct the key or the address; polling continues")
    if slot.wake_errors:
        sentence = f"slot {name}: {slot.wake_error} ({slot.wake_errors} wake errors)"
        return SlotFinding(sentence, "wait for the next attempt, or check that the key is usable")
    if defined.rules.after_reset is not None and slot.last_reset_at is None and slot.read_at is not None:
        sentence = f"slot {name} has not reported a nextResetTime yet, so its wake after the reset cannot be planned"
        return SlotFinding(sentence, f"wake it once: wakeful slots wake {name}")
    return None


def view(tx: Tx, registry: SlotRegistry, slot: Slot, *, now: Instant) -> dict[str, Any]:
    """The JSON shape of a slot."""
    defined = registry.of(slot)
    history = [_point(read) for read in tx.slots.readings(slot.slot_id, since=now - HISTORY_SHOWN, limit=HISTORY_MAX)]
    trouble = trouble_of(slot, defined, now=now)
    shared = {
        "name": slot.name,
        "source": _source(slot, registry, defined),
        **_status(slot, defined, trouble, now),
        **_quota(slot, defined, now),
        **_errors(slot),
        **_wakes(slot),
        "nextWake": None,
        "nextPoll": None,
        "stats": None if slot.stats is None else json.loads(slot.stats),
        "history": history,
        "createdAt": format_instant(slot.created_at),
        "updatedAt": format_instant(max(slot.updated_at, slot.polled_at or 0, slot.read_at or 0)),
        "version": slot.version,
    }
    if isinstance(defined, Unusable):
        return {**shared, "enabled": False}
    if isinstance(defined.written, ReportedSlot):
        return {**defined.written.to_json(), **shared}
    at = sides(slot, defined.rules, now=now, has_statistics=defined.provider.has_statistics)
    run = sending_run(tx, slot)
    is_to_be_sent = run is not None and run.outcome == "waiting"
    wake_at = run.next_attempt_at if run is not None and is_to_be_sent else at.wake_at
    return {
        **slot_json(defined.written),
        **shared,
        "nextWake": format_optional(wake_at),
        "nextPoll": format_optional(at.poll_at),
    }


def _source(slot: Slot, registry: SlotRegistry, defined: Defined | Unusable) -> str:
    if slot.name in registry.names:
        return "settings"
    return "agent" if isinstance(defined, Defined) and isinstance(defined.written, ReportedSlot) else "store"


def _status(slot: Slot, defined: Defined | Unusable, trouble: SlotFinding | None, now: Instant) -> dict[str, Any]:
    if isinstance(defined, Unusable):
        status = "invalid"
    elif not defined.rules.enabled:
        status = "off"
    elif slot.disabled_at is not None:
        status = "disabled"
    elif slot.pending_at is not None or slot.wake_run_id is not None:
        status = "waking"
    elif slot.error is not None:
        status = "failing"
    elif slot.exhausted_until is not None and slot.exhausted_until > now:
        status = "exhausted"
    elif slot.read_at is None:
        status = "new"
    else:
        status = "warm" if is_warm(slot, now) else "cold"
    return {
        "status": status,
        "statusReason": None if trouble is None else trouble.sentence,
        "cure": None if trouble is None else trouble.cure,
    }


def _quota(slot: Slot, defined: Defined | Unusable, now: Instant) -> dict[str, Any]:
    reading = decode_reading(slot.reading)
    if reading is not None and isinstance(defined, Defined) and not defined.rules.is_polled:
        reading = still_open(reading, now)  # nothing polls it, so a window that has ended says nothing any more
    start = None
    if reading is not None and reading.reset_at is not None and reading.window is not None:
        start = reading.reset_at - reading.window
    left = (
        None if slot.reset_at is None or slot.reset_at <= now else format_duration((slot.reset_at - now) // 1000 * 1000)
    )
    return {
        "warm": is_warm(slot, now),
        "percentage": None if reading is None else reading.percentage,
        "nextResetTime": format_optional(slot.reset_at),
        "lastResetTime": format_optional(slot.last_reset_at),
        "windowStart": format_optional(start),
        "timeToReset": left,
        "exhaustedUntil": format_optional(slot.exhausted_until if (slot.exhausted_until or 0) > now else None),
        "level": None if reading is None else reading.level,
        "limits": [] if reading is None else list(reading.limits),
        "lastPoll": format_optional(slot.polled_at),
    }


def _errors(slot: Slot) -> dict[str, Any]:
    return {
        "wakeErrors": slot.wake_errors,
        "quotaErrors": slot.quota_errors,
        "wakeDisabled": slot.wake_disabled_at is not None,
        "disabled": slot.disabled_at is not None,
        "lastError": slot.error or slot.wake_error,
        "unreachableSince": format_optional(slot.unreachable_since),
        "unsent": slot.unsent,
    }


def _wakes(slot: Slot) -> dict[str, Any]:
    return {
        "wakePending": slot.pending_at is not None,
        "lastWake": format_optional(slot.woken_at),
        "wakeRun": None if slot.wake_run_id is None else str(slot.wake_run_id),
    }


def _point(read: Read) -> dict[str, Any]:
    reading = decode_reading(read.reading)
    return {
        "at": format_instant(read.read_at),
        "percentage": None if reading is None else reading.percentage,
        "nextResetTime": None if reading is None else format_optional(reading.reset_at),
    }
