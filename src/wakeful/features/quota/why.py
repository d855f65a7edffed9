"""Explains a slot's state, a past wake or an upcoming one: one sentence, and the facts."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from wakeful.core.run.runs import Run
from wakeful.core.slot.forecast import PlannedWake
from wakeful.core.slot.slot import Slot, is_warm
from wakeful.core.slot.wakes import PENDING, WARM
from wakeful.core.time.instants import DAY, MINUTE, Duration, Instant
from wakeful.features.quota.queries import SLOT, trouble_of, view
from wakeful.features.quota.registry import Defined, SlotRegistry, Unusable
from wakeful.features.quota.upcoming import fates, sending_run
from wakeful.ports.rows import at_text as _at
from wakeful.ports.rows import begin_why
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Tx

LOOK_AHEAD: Final[Duration] = 32 * DAY
SAME_MINUTE: Final[Duration] = MINUTE

_SKIPPED: Final = {
    WARM: "its window was open",
    PENDING: "an earlier wake was still unconfirmed",
    "disabled": "waking was disabled",
    "removed": "the slot was removed",
    "invalid": "the slot was unusable",
}


class WhySlot:
    """Explains `slot:NAME`."""

    def __init__(self, registry: SlotRegistry) -> None:
        self._registry = registry

    def __call__(self, tx: Tx, name: str, *, at: Instant | None, now: Instant) -> tuple[str, Mapping[str, Any]]:
        slot = tx[QuotaSlots].by_names([name]).get(name)
        facts, row = begin_why(tx, "slot", name, is_known=slot is not None, at=at, now=now)
        if slot is not None:
            facts |= SLOT.write(view(tx, self._registry, slot, now=now))
            del facts["history"]
        if at is not None and at <= now:
            return _past(name, row, at), facts
        if slot is None:
            return f"Slot {name} was removed, so it is no longer woken or read.", facts
        defined = self._registry.of(slot)
        return (self._now(tx, slot, defined, now) if at is None else self._ahead(tx, slot, defined, at, now)), facts

    def _now(self, tx: Tx, slot: Slot, defined: Defined | Unusable, now: Instant) -> str:
        halt = _halt(slot, defined, now)
        if halt is not None:
            return halt
        run = sending_run(tx, slot)
        if run is not None and run.outcome == "waiting":
            return _unsent(slot, run)
        if run is not None:
            return f"Slot {slot.name} is being woken (run {run.run_id}, started at {_at(run.claimed_at)})."
        if slot.pending_at is not None:
            return _pending(slot, now)
        following = self._next(tx, slot, defined, now)
        return f"Slot {slot.name} {_state(slot, now)}; {_next_wake(following, defined)}."

    def _ahead(self, tx: Tx, slot: Slot, defined: Defined | Unusable, at: Instant, now: Instant) -> str:
        halt = _halt(slot, defined, now)
        if halt is not None:
            return f"No wake will be sent at {_at(at)}. {halt}"
        if isinstance(defined, Unusable):
            return ""
        run = sending_run(tx, slot)
        if run is not None and run.outcome == "waiting" and abs((run.next_attempt_at or 0) - at) < SAME_MINUTE:
            return _unsent(slot, run)
        coming = fates(tx, slot, defined.rules, now=now, until=at + SAME_MINUTE)
        for fate in coming:
            if abs(fate.at - at) < SAME_MINUTE:
                return _fate(slot, fate)
        return f"Nothing is planned for {_at(at)}: {_next_wake(self._next(tx, slot, defined, at), defined)}."

    def _next(self, tx: Tx, slot: Slot, defined: Defined | Unusable, after: Instant) -> PlannedWake | None:
        """The first wake after a time that will be sent, not skipped."""
        if isinstance(defined, Unusable):
            return None
        coming = fates(tx, slot, defined.rules, now=after, until=after + LOOK_AHEAD)
        return next(islice((fate for fate in coming if fate.skipped is None), 1), None)


def _halt(slot: Slot, defined: Defined | Unusable, now: Instant) -> str | None:
    if isinstance(defined, Defined) and not defined.rules.enabled:
        return f"Slot {slot.name} is disabled in the settings (enabled = false), so it is neither woken nor read."
    is_halted = isinstance(defined, Unusable) or slot.disabled_at is not None or slot.wake_disabled_at is not None
    trouble = trouble_of(slot, defined, now=now) if is_halted else None
    return None if trouble is None else f"{_capital(trouble.sentence)}; {trouble.cure}."


def _unsent(slot: Slot, run: Run) -> str:
    tries = "once" if run.attempt == 1 else f"{run.attempt} times"
    planned = f"The wake of slot {slot.name} planned for {_at(run.planned_at)}"
    if not run.attempt:
        return f"{planned} waits until {_at(run.next_attempt_at)}{_in_brackets(run.reason)}."
    again = _at(run.next_attempt_at)
    error = "" if run.error is None else f" (last error: {run.error})"
    return f"{planned} was tried {tries}{error}; it will be sent again at {again}."


def _pending(slot: Slot, now: Instant) -> str:
    sent = f"A wake of slot {slot.name} was sent at {_at(slot.pending_at)} and is not confirmed yet"
    error = "" if slot.wake_error is None else f" ({slot.wake_error})"
    if slot.window_until is not None and slot.window_until > now:
        again = "" if slot.is_forced else ", then the wake is sent once more"
        return f"{sent}{error}; the quota is read every minute until {_at(slot.window_until)}{again}."
    return f"{sent}{error}; it was retried once, and every poll checks for it."


def _state(slot: Slot, now: Instant) -> str:
    if slot.error is not None:
        since = "" if slot.unreachable_since is None else f" since {_at(slot.unreachable_since)}"
        return f"cannot be read{since}: {slot.error}"
    if is_warm(slot, now):
        return f"is warm: its window is open until {_at(slot.reset_at)}"
    return "has not been read yet" if slot.read_at is None else "is cold: no window is open"


def _next_wake(following: PlannedWake | None, defined: Defined | Unusable) -> str:
    if isinstance(defined, Defined) and not defined.rules.wakes:
        return "it has no wake mode (interval, times or after_reset), so it is only read"
    if following is None:
        return "no wake has a time yet: the slot has not reported a reset"
    return f"its next wake is at {_at(following.at)} ({', '.join(following.modes)})"


def _fate(slot: Slot, fate: PlannedWake) -> str:
    if fate.skipped is None:
        return f"Slot {slot.name} will be woken at {_at(fate.at)} ({', '.join(fate.modes)})."
    skipped = f"The wake of slot {slot.name} at {_at(fate.at)} will be skipped"
    if fate.skipped == PENDING:
        return f"{skipped}: an earlier one is still unconfirmed."
    return f"{skipped}: its window is open until {_at(fate.reset_at)}."


def _past(name: str, row: Run | None, at: Instant) -> str:
    if row is None:
        return f"The ledger has no entry for slot {name} at or before {_at(at)}."
    until = "" if row.planned_until is None else f" until {_at(row.planned_until)} ({row.instants} times)"
    wake = f"The wake of slot {name} planned for {_at(row.planned_at)}{until}"
    tries = f" on attempt {row.attempt}" if row.attempt > 1 else ""
    match row.outcome:
        case "skipped":
            blocker = "" if row.blocked_by is None else f" (run {row.blocked_by})"
            why = _SKIPPED.get(row.reason or "", row.reason)
            return f"{wake} was skipped{'' if why is None else f' because {why}'}{blocker}."
        case "missed":
            return f"{wake} was missed: no process was ticking{_in_brackets(row.reason)}."
        case "succeeded":
            return f"{wake} was sent at {_at(row.claimed_at)}{tries} and confirmed at {_at(row.ended_at)}."
        case "running" | "waiting":
            until = "" if row.next_attempt_at is None else f" until {_at(row.next_attempt_at)}"
            return f"{wake} is {row.outcome}{until}{_in_brackets(row.reason or row.rung, row.error)}."
        case _:
            why = row.error or row.reason
            return f"{wake} {_ended(row.outcome)}{tries}{'' if why is None else f': {why}'}."


def _in_brackets(*words: str | None) -> str:
    """What is known of these, in brackets."""
    known = ": ".join(word for word in words if word is not None)
    return f" ({known})" if known else ""


def _ended(outcome: str) -> str:
    return (
        "timed out" if outcome == "timedOut" else f"is {outcome}" if outcome in ("unconfirmed", "unknown") else outcome
    )


def _capital(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"
