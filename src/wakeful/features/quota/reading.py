"""Records readings: a provider's response becomes the slot's state, in one transaction with its consequences."""

from collections.abc import Callable
from typing import Final, TypeAlias

from wakeful.core.delivery.incidents import slot_incident
from wakeful.core.run.effects import Effect, Observed
from wakeful.core.run.results import Done, Unconfirmed
from wakeful.core.slot.polls import pause, polled, was_read
from wakeful.core.slot.slot import ReadFailure, Reading, Slot, SlotRules
from wakeful.core.slot.wakes import is_read_for_wake, may_wake, unconfirmed_error, wake_trouble
from wakeful.core.time.instants import Instant, format_duration, format_optional
from wakeful.features.quota.rows import DISABLED, keep_history, replanned, save, tell
from wakeful.ports import events
from wakeful.ports.store import Tx

Apply: TypeAlias = Callable[[Tx, Effect, Instant], bool]
GOOD_NEEDED: Final = 1
"""How many confirmed wakes or readings end a slot's incident: windows last for hours."""

CloseRun: TypeAlias = Callable[[Tx, Slot, Done | Unconfirmed, Instant], Slot]
"""Closes the run whose wake was being confirmed, and returns the slot without it."""

DropWake: TypeAlias = Callable[[Tx, Slot, str, Instant], Slot]
"""Gives up what a slot still has to send or to confirm, and returns the slot without it."""


class ReadingRecorder:
    """Records what was read."""

    def __init__(self, apply: Apply, close_run: CloseRun, drop_wake: DropWake) -> None:
        self._apply = apply
        self._close_run = close_run
        self._drop_wake = drop_wake

    def note_poll(
        self,
        tx: Tx,
        slot: Slot,
        rules: SlotRules,
        reading: Reading | ReadFailure,
        *,
        began_at: Instant,
        now: Instant,
        has_statistics: bool,
    ) -> None:
        """A poll has ended. The caller holds the slot's lock and has checked that the claim is still valid."""
        after = polled(slot, rules, reading, began_at=began_at, now=now)
        if isinstance(reading, Reading):
            self._tell_reading(tx, slot, after, now)
        else:
            self._tell_failure(tx, slot, after, rules, reading, now)
            if not is_read_for_wake(slot, began_at):
                self._apply(tx, unread(slot, after, reading, now), now)
        if slot.is_starting and after.initial_at is not None and slot.initial_at is None:
            tell(
                tx,
                after,
                events.SLOT_INITIAL_WAKE,
                "quota-poller.initial-wake-trigger",
                f"slot {slot.name}: initial wake is due",
            )
        self._finish(tx, slot, after, rules, now, has_statistics, is_read=isinstance(reading, Reading))

    def note_reading(
        self, tx: Tx, slot: Slot, rules: SlotRules, reading: Reading, *, now: Instant, has_statistics: bool
    ) -> Slot:
        """The quota was read before a wake."""
        after = was_read(slot, rules, reading, now=now)
        self._tell_reading(tx, slot, after, now)
        return self._finish(tx, slot, after, rules, now, has_statistics)

    def note_report(
        self,
        tx: Tx,
        slot: Slot,
        rules: SlotRules,
        reading: Reading,
        *,
        exhausted_until: Instant | None,
        now: Instant,
    ) -> None:
        """An agent reported its quota with a turn. The program says whether it is used up; the percentage does not
        decide."""
        after = was_read(slot, rules, reading, now=now)._replace(exhausted_until=exhausted_until)
        self._tell_reading(tx, slot, after, now)
        self._finish(tx, slot, after, rules, now, has_statistics=False)

    def _finish(
        self,
        tx: Tx,
        before: Slot,
        after: Slot,
        rules: SlotRules,
        now: Instant,
        has_statistics: bool,
        *,
        is_read: bool = True,
    ) -> Slot:
        if is_read:
            after = self._confirm_wake(tx, before, after, now)
        if not may_wake(after, rules):  # in this transaction: nothing may be sent after it
            after = self._drop_wake(tx, after, DISABLED, now)
        save(tx, after, rules, now=now, has_statistics=has_statistics)
        effects: list[Effect] = [
            *replanned(before, after),
            *_alerts(before, after, now),
            *_recoveries(before, after, now),
        ]
        for effect in effects:
            self._apply(tx, effect, now)
        return after

    def _confirm_wake(self, tx: Tx, before: Slot, after: Slot, now: Instant) -> Slot:
        """Check whether a reading confirms the wake that was sent; confirmation ends its run."""
        if before.pending_at is None:
            return after
        if after.pending_at is None and after.wake_disabled_at == before.wake_disabled_at:
            text = f"slot {after.name}: wake confirmed, the window is open until {format_optional(after.reset_at)}"
            tell(tx, after, events.SLOT_CONFIRMED, "quota-poller.wake-confirmed", text)
            tell(tx, after, events.SLOT_PENDING_CLEARED, "wake.pending-cleared")
            return self._close_run(tx, after, Done("finished", output="confirmed"), now)
        error = unconfirmed_error(after)
        count = f" ({after.wake_errors} errors)" if after.wake_errors > before.wake_errors else ""
        text = f"slot {after.name}: {error}{count}"
        tell(tx, after, events.SLOT_UNCONFIRMED, "quota-poller.wake-unconfirmed", text, level="warn")
        if after.wake_disabled_at is not None and before.wake_disabled_at is None:
            tell_wake_disabled(tx, after)
        return self._close_run(tx, after, Unconfirmed(error), now) if before.is_forced else after

    def _tell_reading(self, tx: Tx, before: Slot, after: Slot, now: Instant) -> None:
        keep_history(tx, after, now=now)
        text = f"slot {after.name}: quota refreshed (next reset: {format_optional(after.reset_at) or 'none, cold'})"
        changed = before.reading != after.reading or before.read_at is None
        tell(
            tx,
            after,
            events.SLOT_READ,
            "quota-poller.refreshed",
            text if changed else None,
            warm=after.reset_at is not None,
        )
        if before.quota_errors or before.unreachable_since is not None:
            errors = before.quota_errors
            since = format_optional(before.unreachable_since)
            trouble = f"{errors} consecutive error(s)" if since is None else f"being unreachable since {since}"
            text = f"slot {after.name}: recovered after {trouble}"
            tell(tx, after, events.SLOT_RECOVERED, "quota-poller.recovered", text, errors=errors)

    def _tell_failure(
        self, tx: Tx, before: Slot, after: Slot, rules: SlotRules, failure: ReadFailure, now: Instant
    ) -> None:
        is_counted = after.quota_errors > before.quota_errors
        count = f" ({after.quota_errors}/{rules.errors_max} consecutive)" if is_counted else ""
        text = f"slot {after.name}: poll failed{count}: {failure.error}"
        tell(
            tx,
            after,
            events.SLOT_FAILED,
            "quota-poller.poll-failed",
            text,
            level="warn",
            error=failure.error,
            kind=failure.kind,
        )
        if after.disabled_at is not None and before.disabled_at is None:
            cure = f"wakeful slots resume {after.name}"
            text = f"slot {after.name}: disabled after {after.quota_errors} errors in a row; {cure}"
            tell(
                tx, after, events.SLOT_DISABLED, "quota-poller.auto-disabled", text, level="error", error=failure.error
            )
            return
        if not is_counted:
            return
        wait = pause(after, rules, now=now)
        text = f"slot {after.name}: backing off, next poll in {format_duration(wait)}"
        tell(tx, after, events.SLOT_BACKOFF, "quota-poller.backoff", text, next_poll=now + wait)


def tell_wake_disabled(tx: Tx, slot: Slot) -> None:
    """Report that waking was disabled after errors."""
    text = f"slot {slot.name}: wakes disabled after {slot.wake_errors} errors; wakeful slots resume {slot.name}"
    tell(
        tx, slot, events.SLOT_WAKE_DISABLED, "wake.scheduler.auto-disabled", text, level="error", error=slot.wake_error
    )


def wake_disabled(slot: Slot, now: Instant) -> Observed:
    """Waking was disabled: alert people immediately, unless its incident is already open."""
    said = f"it is no longer woken after {slot.wake_errors} errors, the last: {wake_trouble(slot)}"
    return Observed(slot_incident(slot.name), False, now, slot.sent_run_id, said, is_urgent=True)


def unread(before: Slot, after: Slot, failure: ReadFailure, now: Instant) -> Observed:
    """The quota could not be read; if that disabled polling, people are alerted immediately."""
    name, is_off = after.name, after.disabled_at is not None and before.disabled_at is None
    said = f"its quota cannot be read: {failure.error}"
    if is_off:
        said = f"it is disabled after {after.quota_errors} errors, the last: {failure.error}"
    return Observed(slot_incident(name), False, now, None, said, is_urgent=is_off)


def wake_cure(name: str) -> str:
    """The cure for a slot whose wakes were refused or never confirmed."""
    return f"check that its key is valid and its plan allows requests, then: wakeful slots resume {name}"


def _recoveries(before: Slot, after: Slot, now: Instant) -> tuple[Effect, ...]:
    """A wake was confirmed, or the quota can be read again and no wake failed; `resume` resets the counts, but not the
    incident."""
    is_read_again = before.error is not None and after.error is None and after.wake_error is None
    is_woken = before.pending_at is not None and after.pending_at is None
    if after.wake_disabled_at is None and (is_read_again or is_woken):
        return (Observed(slot_incident(after.name), True, now, needed=GOOD_NEEDED),)
    return ()


def _alerts(before: Slot, after: Slot, now: Instant) -> tuple[Effect, ...]:
    """Alerts, each sent once."""
    is_news = after.wake_disabled_at is not None and before.wake_disabled_at is None
    return (wake_disabled(after, now),) if is_news else ()
