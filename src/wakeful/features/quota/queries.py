"""Queries on slots, for people and programs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from wakeful.config.one_slot import slot_json
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.core.returned import BESIDE, At, RunId, returned
from wakeful.core.slot.slot import Reading, Slot, decode_reading, is_warm
from wakeful.core.slot.wakes import wake_trouble
from wakeful.core.slot.windows import still_open
from wakeful.core.time.instants import DAY, SECOND, Duration, Instant, format_duration, format_instant
from wakeful.features.quota.reading import wake_cure
from wakeful.features.quota.registry import Defined, SlotRegistry, Unusable
from wakeful.features.quota.reported import ReportedSlot
from wakeful.features.quota.rows import sides
from wakeful.features.quota.upcoming import next_wake
from wakeful.ports.slots import QuotaSlots, Read, SlotReadings
from wakeful.ports.store import Tx

HISTORY_SHOWN: Final[Duration] = 7 * DAY
HISTORY_MAX: Final = 500

Source: TypeAlias = Literal["settings", "store", "agent"]
Status: TypeAlias = Literal["new", "warm", "cold", "waking", "exhausted", "failing", "disabled", "off", "invalid"]


@dataclass(frozen=True, slots=True)
class SlotPoint:
    """One poll of the quota."""

    at: At
    percentage: float | None
    next_reset_time: At | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotView:
    """A slot: definition and state. The fields of the definition are added from its description (`api`)."""

    definition: Annotated[Mapping[str, Any], BESIDE]  # in JSON names, without secrets
    name: str
    source: Annotated[Source, "agent: reported by its turns"]
    status: Status
    status_reason: str | None
    cure: str | None
    warm: bool
    percentage: float | None
    next_reset_time: Annotated[At | None, "null if the key is cold"]
    last_reset_time: Annotated[At | None, "the latest known one, even if the provider no longer reports it"]
    window_start: At | None
    time_to_reset: str | None
    exhausted_until: At | None
    level: str | None
    limits: list[Any]
    last_poll: At | None
    wake_pending: bool
    last_wake: At | None
    wake_run: RunId | None
    wake_errors: int
    quota_errors: int
    wake_disabled: bool
    disabled: bool
    last_error: str | None
    unreachable_since: Annotated[At | None, "no connection, or 5xx, since then; does not count as an error"]
    unsent: Annotated[int, "failed sends of the current wake, which is retried"]
    next_wake: At | None
    next_poll: At | None
    stats: Any
    history: list[SlotPoint]
    created_at: At
    updated_at: At
    version: int


SLOT: Final = returned(SlotView, name="Slot")


@dataclass(frozen=True, slots=True)
class Slots:
    """All slots, ordered by name."""

    slots: list[SlotView]


@dataclass(frozen=True, slots=True)
class SlotFinding:
    """A problem with a slot, and its cure."""

    sentence: str
    cure: str


def all_slots(tx: Tx, registry: SlotRegistry, *, now: Instant) -> Slots:
    """All slots, by name."""
    return Slots([view(tx, registry, slot, now=now) for slot in tx[QuotaSlots].all()])


def one_slot(tx: Tx, registry: SlotRegistry, name: str, *, now: Instant) -> SlotView:
    """One slot; raises `NotFound`."""
    slot = tx[QuotaSlots].by_names([name]).get(name)
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
        if slot.error is None:  # a person had it read since
            sentence = f"slot {name} was disabled after errors, and its quota can be read again"
        return SlotFinding(sentence, f"correct the key or the address, then: wakeful slots resume {name}")
    if slot.wake_disabled_at is not None:
        sentence = f"slot {name} is no longer woken after {slot.wake_errors} wake errors: {wake_trouble(slot)}"
        return SlotFinding(sentence, wake_cure(name))
    if slot.unsent:
        tries = "once" if slot.unsent == 1 else f"{slot.unsent} times"
        sentence = f"the wake of slot {name} could not be sent, tried {tries}: {wake_trouble(slot)}"
        return SlotFinding(sentence, "check the network; it is resent automatically until it arrives")
    if slot.unreachable_since is not None:
        since = format_instant(slot.unreachable_since)
        error = "" if slot.error is None else f": {slot.error}"
        sentence = f"the quota of slot {name} has been unreachable since {since}{error}"
        return SlotFinding(sentence, "check the network and the address; polling continues")
    if slot.error is not None:
        count = f" ({slot.quota_errors} errors in a row)" if slot.quota_errors else ""
        sentence = f"the quota of slot {name} cannot be read{count}: {slot.error}"
        return SlotFinding(sentence, "correct the key or the address; polling continues")
    if slot.wake_errors:
        sentence = f"slot {name}: {wake_trouble(slot)} ({slot.wake_errors} wake errors)"
        return SlotFinding(sentence, "wait for the next attempt, or check that the key is usable")
    if defined.rules.after_reset is not None and slot.last_reset_at is None and slot.read_at is not None:
        sentence = f"slot {name} has not reported a nextResetTime yet, so its wake after the reset cannot be planned"
        return SlotFinding(sentence, f"wake it once: wakeful slots wake {name}")
    return None


def view(tx: Tx, registry: SlotRegistry, slot: Slot, *, now: Instant) -> SlotView:
    """A slot for people."""
    defined = registry.of(slot)
    trouble, reading = trouble_of(slot, defined, now=now), _reading(slot, defined, now)
    history = tx[SlotReadings].newest(slot.slot_id, since=now - HISTORY_SHOWN, limit=HISTORY_MAX)
    wake_at, poll_at = _ahead(tx, slot, defined, now)
    return SlotView(
        definition=_definition(defined),
        name=slot.name,
        source=_source(slot, registry, defined),
        status=_status(slot, defined, now),
        status_reason=None if trouble is None else trouble.sentence,
        cure=None if trouble is None else trouble.cure,
        warm=is_warm(slot, now),
        percentage=None if reading is None else reading.percentage,
        next_reset_time=slot.reset_at,
        last_reset_time=slot.last_reset_at,
        window_start=None if reading is None else _start(reading),
        time_to_reset=_time_left(slot, now),
        exhausted_until=slot.exhausted_until if (slot.exhausted_until or 0) > now else None,
        level=None if reading is None else reading.level,
        limits=[] if reading is None else list(reading.limits),
        last_poll=slot.polled_at,
        wake_pending=slot.pending_at is not None,
        last_wake=slot.woken_at,
        wake_run=slot.wake_run_id,
        wake_errors=slot.wake_errors,
        quota_errors=slot.quota_errors,
        wake_disabled=slot.wake_disabled_at is not None,
        disabled=slot.disabled_at is not None,
        last_error=slot.error or slot.wake_error,
        unreachable_since=slot.unreachable_since,
        unsent=slot.unsent,
        next_wake=wake_at,
        next_poll=poll_at,
        stats=None if slot.stats is None else json.loads(slot.stats),
        history=list(map(_point, history)),
        created_at=slot.created_at,
        updated_at=max(slot.updated_at, slot.polled_at or 0, slot.read_at or 0),
        version=slot.version,
    )


def _definition(defined: Defined | Unusable) -> Mapping[str, Any]:
    if isinstance(defined, Unusable):
        return {"enabled": False}
    written = defined.written
    return written.to_json() if isinstance(written, ReportedSlot) else slot_json(written)


def _ahead(tx: Tx, slot: Slot, defined: Defined | Unusable, now: Instant) -> tuple[Instant | None, Instant | None]:
    """When it is woken and polled next."""
    if isinstance(defined, Unusable) or isinstance(defined.written, ReportedSlot):
        return None, None
    at = sides(slot, defined.rules, now=now, has_statistics=defined.provider.has_statistics)
    return next_wake(tx, slot, defined.rules, now=now), at.poll_at


def _source(slot: Slot, registry: SlotRegistry, defined: Defined | Unusable) -> Source:
    if slot.name in registry.names:
        return "settings"
    return "agent" if isinstance(defined, Defined) and isinstance(defined.written, ReportedSlot) else "store"


def _status(slot: Slot, defined: Defined | Unusable, now: Instant) -> Status:
    if isinstance(defined, Unusable):
        return "invalid"
    if not defined.rules.enabled:
        return "off"
    if slot.disabled_at is not None:
        return "disabled"
    if slot.pending_at is not None or slot.wake_run_id is not None:
        return "waking"
    if slot.error is not None:
        return "failing"
    if slot.exhausted_until is not None and slot.exhausted_until > now:
        return "exhausted"
    if slot.read_at is None:
        return "new"
    return "warm" if is_warm(slot, now) else "cold"


def _reading(slot: Slot, defined: Defined | Unusable, now: Instant) -> Reading | None:
    """The last reading. If nothing polls the slot, a window that has ended says nothing any more."""
    reading = decode_reading(slot.reading)
    if reading is not None and isinstance(defined, Defined) and not defined.rules.is_polled:
        return still_open(reading, now)
    return reading


def _start(reading: Reading) -> Instant | None:
    """When the current window began."""
    return None if reading.reset_at is None or reading.window is None else reading.reset_at - reading.window


def _time_left(slot: Slot, now: Instant) -> str | None:
    """The time until the reset, in whole seconds."""
    left = 0 if slot.reset_at is None else slot.reset_at - now
    return None if left <= 0 else format_duration(left // SECOND * SECOND)


def _point(read: Read) -> SlotPoint:
    reading = decode_reading(read.reading)
    if reading is None:
        return SlotPoint(read.read_at, None, None)
    return SlotPoint(read.read_at, reading.percentage, reading.reset_at)
