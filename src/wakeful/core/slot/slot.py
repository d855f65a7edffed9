"""A quota slot: one API key of one provider, and the state of its two sides.

Theory of operation
-------------------
The *poll side* reads the quota from time to time (`polls`). The *wake side* sends a small request when the window of
the key may be cold, so that it is running when its owner starts work (`wakes`). Both sides work on one row, each
under its lock, and keep no other state: what happens next is derived from the row and the rules. So a restart at any
moment continues where it was, and a changed setting takes effect when the next step is derived.

`reset_at` is the value of the last reading: None is cold. `last_reset_at` is the newest reset ever seen: the field
disappears when a window ends without requests, which is exactly when a wake after it matters.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.time.instants import HOUR, MINUTE, Duration, Instant
from wakeful.core.time.timing import Times

EXHAUSTED_FROM: Final = 100.0


@dataclass(frozen=True, slots=True)
class SlotRules:
    """What a slot's owner configures, except the provider and its key."""

    enabled: bool = True
    interval: Duration | None = None
    times: Times | None = None
    after_reset: Duration | None = None
    poll: Duration = 30 * MINUTE
    retry_window: Duration = 15 * MINUTE
    errors_max: int = 10
    backoff_cap: Duration = 8 * HOUR
    is_polled: bool = True  # False: an agent reports it with its turns

    @property
    def wakes(self) -> bool:
        """Whether any wake mode is enabled."""
        return self.interval is not None or self.times is not None or self.after_reset is not None


@dataclass(frozen=True, slots=True)
class Reading:
    """A provider's quota, as read."""

    percentage: float | None
    reset_at: Instant | None  # None: cold
    window: Duration | None = None  # how long the window is
    level: str | None = None
    limits: tuple[Any, ...] = field(default=(), compare=False)  # as reported, for statistics only

    @property
    def exhausted_until(self) -> Instant | None:
        """Until when the key cannot be used."""
        return self.reset_at if self.percentage is not None and self.percentage >= EXHAUSTED_FROM else None


FailureKind: TypeAlias = Literal["refused", "unreachable", "throttled", "unreadable"]


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """Why a provider's quota could not be read, in a sentence.

    `refused`: the key is wrong. `unreachable`: no connection, no response or a 5xx; the network or the provider is at
    fault, so it does not count as an error. The other kinds do."""

    kind: FailureKind
    error: str
    until: Instant | None = None  # when the provider asks us to try again


class Slot(NamedTuple):
    """The state of a slot, in the order of the table's columns."""

    slot_id: int
    name: str
    definition: str | None  # JSON of a slot written over REST; None: the settings define it
    version: int
    created_at: Instant
    updated_at: Instant
    key_mark: str | None  # distinguishes keys without revealing them
    modes: str | None  # the wake modes its markers belong to
    disabled_at: Instant | None  # too many quota errors
    wake_disabled_at: Instant | None  # too many wake errors
    read_at: Instant | None
    reading: str | None  # the last one, JSON
    reset_at: Instant | None
    last_reset_at: Instant | None
    exhausted_until: Instant | None
    steady: int  # equal readings in a row
    error: str | None
    error_at: Instant | None
    quota_errors: int
    polled_at: Instant | None
    poll_asked_at: Instant | None  # an immediate read was requested
    poll_until: Instant | None  # in progress, and lost after this
    poll_fence: int
    stats_at: Instant | None
    stats: str | None  # calls, tokens and tools, JSON
    stats_until: Instant | None  # in progress, and lost after this
    is_starting: int  # 1: the first reading after a start decides about the initial wake
    initial_at: Instant | None  # the first reading decided that a wake is due
    interval_from: Instant
    times_through: Instant
    reset_served: Instant | None
    wake_run_id: int | None  # the open run
    sent_run_id: int | None  # the run that sent the wake to be confirmed
    last_row_id: int | None
    woken_at: Instant | None
    pending_at: Instant | None  # when a wake was sent that is not confirmed yet
    snapshot_at: Instant | None  # the last known reset before that wake
    window_until: Instant | None  # until when the quota is read every minute to confirm it
    is_forced: int  # 1: the second and last wake was sent for the pending one
    wake_errors: int
    wake_error: str | None
    unsent: int  # sends in a row that did not reach the provider
    unreachable_since: Instant | None  # since when the provider cannot be reached
    wake_errors_before: int  # wake errors when the pending wake was sent
    times_served: str | None = None  # times of day that lie ahead and were served: the clock went back; JSON


def new_slot(slot_id: int, name: str, definition: str | None, *, now: Instant) -> Slot:
    """A slot without any reading."""
    return Slot(
        slot_id, name, definition, 1, now, now, None, None, None, None, None, None, None, None, None, 0, None, None, 0,
        None, None, None, 0, None, None, None, 0, None, now, now, None, None, None, None, None, None, None, None, 0, 0,
        None, 0, None, 0,
    )  # fmt: skip


def is_on(slot: Slot, rules: SlotRules) -> bool:
    """Whether it acts by itself."""
    return rules.enabled and slot.disabled_at is None


def is_warm(slot: Slot, now: Instant) -> bool:
    """Whether its window is running, as far as known."""
    return slot.reset_at is not None and slot.reset_at > now


def encode_reading(reading: Reading) -> str:
    """A reading as stored."""
    kept = {
        "percentage": reading.percentage,
        "resetAt": reading.reset_at,
        "window": reading.window,
        "level": reading.level,
        "limits": list(reading.limits),
    }
    return json.dumps({name: value for name, value in kept.items() if value not in (None, [])}, ensure_ascii=False)


def decode_reading(text: str | None) -> Reading | None:
    """The stored reading; None if it cannot be decoded, until the next one replaces it."""
    kept = _object(text)
    if kept is None:
        return None
    limits = tuple(kept.get("limits", ()))
    return Reading(kept.get("percentage"), kept.get("resetAt"), kept.get("window"), kept.get("level"), limits)


def _object(text: str | None) -> dict[str, Any] | None:
    """A JSON object of the row; None if it cannot be decoded, so that it affects nothing else (L9)."""
    try:
        kept = None if text is None else json.loads(text)
    except ValueError:
        return None
    return kept if isinstance(kept, dict) else None


def served_ahead(slot: Slot) -> frozenset[Instant]:
    """The times of day that lie ahead and were served before the clock went back."""
    return frozenset(json.loads(slot.times_served)) if slot.times_served is not None else frozenset()


def with_served(slot: Slot, served: Collection[Instant]) -> Slot:
    """The slot with other times of day that lie ahead and were served."""
    return slot._replace(times_served=json.dumps(sorted(served)) if served else None)


def resumed(slot: Slot, rules: SlotRules, *, now: Instant, is_start: bool = False) -> Slot:
    """Resume both sides, by a person or at start: error counts are reset, and the quota is read immediately."""
    return slot._replace(
        disabled_at=None,
        wake_disabled_at=None,
        quota_errors=0,
        wake_errors=0,
        wake_error=None,
        unsent=slot.unsent if is_start else 0,
        poll_asked_at=now if rules.enabled else slot.poll_asked_at,
        is_starting=int(rules.wakes and rules.enabled) if is_start else slot.is_starting,
    )


def followed(slot: Slot, rules: SlotRules, *, now: Instant) -> Slot:
    """The slot under rules that may have changed: a new or changed mode starts now and owes no wakes."""
    modes = _modes_of(rules)
    written = json.dumps(modes)
    if slot.modes == written:
        return slot
    before = _object(slot.modes)
    slot = slot._replace(modes=written)
    if before is None:
        return slot
    if modes["enabled"] and not before["enabled"]:
        slot = resumed(slot, rules, now=now, is_start=True)
        return slot._replace(interval_from=max(slot.interval_from, now), times_through=max(slot.times_through, now))
    if modes["times"] != before["times"]:
        slot = slot._replace(times_through=max(slot.times_through, now))
    if modes["interval"] is not None and before["interval"] is None:
        slot = slot._replace(interval_from=max(slot.interval_from, now))
    return slot


def _modes_of(rules: SlotRules) -> dict[str, Any]:
    return {
        "enabled": rules.enabled,
        "interval": rules.interval,
        "times": None if rules.times is None else [*rules.times.times, rules.times.timezone],
        "afterReset": rules.after_reset,
    }


def with_key(slot: Slot, mark: str, *, now: Instant) -> Slot:
    """The slot with another key: what was known about the old key is dropped."""
    if slot.key_mark == mark:
        return slot
    if slot.key_mark is None:
        return slot._replace(key_mark=mark)
    fresh = new_slot(slot.slot_id, slot.name, slot.definition, now=now)
    return fresh._replace(
        version=slot.version,
        created_at=slot.created_at,
        updated_at=slot.updated_at,
        key_mark=mark,
        modes=slot.modes,
        poll_asked_at=now,
        poll_fence=slot.poll_fence + 1,  # a result for the old key that is still in progress is ignored
        is_starting=1,
        interval_from=slot.interval_from,
        times_through=slot.times_through,
        wake_run_id=slot.wake_run_id,
        last_row_id=slot.last_row_id,
    )
