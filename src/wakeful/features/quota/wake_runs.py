"""Manages wake runs: what to send, and what a result means for the run and its slot."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from wakeful.core.delivery.incidents import slot_incident
from wakeful.core.run.effects import Effect, Observed
from wakeful.core.run.results import (
    Busy,
    Cancelled,
    Done,
    Dropped,
    Ending,
    Failed,
    Forgotten,
    HandedOver,
    Interrupted,
    Lost,
    NotBegun,
    StuckRunEnded,
    Throttled,
    TimedOut,
    Unconfirmed,
    Unproven,
)
from wakeful.core.run.runs import ERRORS, Run, idempotency_key
from wakeful.core.run.settlement import Close, Settlement, Wait, after_cancel, not_begun
from wakeful.core.schedule.gates import Defer, Skip
from wakeful.core.schedule.policies import after_crash
from wakeful.core.slot.slot import Slot, SlotRules, is_warm, served_ahead, with_served
from wakeful.core.slot.wakes import (
    RETRY_EVERY,
    SETTLE_WITHIN,
    WARM,
    advanced,
    is_second,
    let_go,
    may_wake,
    must_read_first,
    not_arrived,
    not_needed,
    send_again_at,
    send_failed,
    sent,
    times_meanwhile,
    unconfirmed_error,
)
from wakeful.core.time.instants import SECOND, Duration, Instant, format_instant
from wakeful.features.quota.reading import GOOD_NEEDED, tell_wake_disabled, wake_disabled
from wakeful.features.quota.registry import Defined, SlotRegistry, Unusable
from wakeful.features.quota.rows import DISABLED, WAKE, save, slot_named, tell
from wakeful.features.quota.wakes import TRIED_AGAIN, record_gaps, times_of
from wakeful.ports import events
from wakeful.ports.action import Fire
from wakeful.ports.handlers import PERSONS_COMMAND, Job, RunAgent, Settled
from wakeful.ports.owners import Owners
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Tx

WAKE_TIMEOUT: Final[Duration] = 60 * SECOND
SENT: Final = "sent"
REFUSED: Final = "refused"
UNREACHABLE: Final = "unreachable"
CONFIRMING: Final = "confirming"
UNCONFIRMED: Final = "unconfirmed"


class WakeSpec(NamedTuple):
    """What the wake action performs."""

    slot: str
    reads_first: bool  # whether the pre-check needs a fresh reading
    action: str  # its name in the log


class WakeRuns:
    """Manages wake runs."""

    kind = WAKE
    admits_without_locks = True

    def __init__(self, registry: SlotRegistry, *, store_id: str) -> None:
        self._registry = registry
        self._store_id = store_id

    def lock(self, tx: Tx, runs: Sequence[Run]) -> dict[int, Slot]:
        """The slots, by the owner id of their runs."""
        names = _slots_of(tx, runs)
        known = tx[QuotaSlots].by_names(names.values())
        held = tx[QuotaSlots].lock([slot.slot_id for slot in known.values()])
        by_name = {slot.name: slot for slot in held.values()}
        return {owner: by_name[name] for owner, name in names.items() if name in by_name}

    def admit(self, tx: Tx, runs: Sequence[Run], *, now: Instant) -> list[Job | Defer | Skip | str]:
        slots = self._look(tx, runs)
        owned = [(run, slots.get(run.schedule_id)) for run in runs]
        return [self._skipped(run, slot, now) or self._job(run, slot) for run, slot in owned]

    def jobs(self, tx: Tx, runs: Sequence[Run]) -> list[Job | str]:
        slots = self._look(tx, runs)
        return [self._job(run, slots.get(run.schedule_id)) for run in runs]

    def settle(
        self, tx: Tx, locked: Mapping[int, Slot], ended: Sequence[tuple[Run, Ending]], *, now: Instant
    ) -> list[Settled]:
        slots = dict(locked)
        settled: list[Settled] = []
        for run, ending in ended:
            slot = slots.get(run.schedule_id)
            defined = None if slot is None else self._registry.of(slot)
            if slot is None or not isinstance(defined, Defined):
                settled.append(Settled(_alone(run, ending, now)))
                continue
            result, after = _settle(tx, run, ending, slot, defined.rules, now)
            if after.times_through > slot.times_through and run.started_at is not None:
                gaps = times_meanwhile(slot, defined.rules, since=run.started_at, now=now)
                after = record_gaps(tx, slot, after, gaps, now) if gaps else after
            if isinstance(result.settlement, Close) and not result.settlement.stuck and after.wake_run_id == run.run_id:
                after = after._replace(wake_run_id=None)
            if isinstance(result.settlement, Close) and result.settlement.outcome in TRIED_AGAIN:
                after = _served_nothing(after, run, defined.rules, now)
            save(tx, after, defined.rules, now=now, has_statistics=defined.provider.has_statistics)
            slots[run.schedule_id] = after
            settled.append(result._replace(effects=result.effects or _observed(run, result.settlement, slot.name)))
        return settled

    def agent_of(self, tx: Tx, run: Run) -> RunAgent:
        return PERSONS_COMMAND

    def _look(self, tx: Tx, runs: Sequence[Run]) -> dict[int, Slot]:
        names = _slots_of(tx, runs)
        known = tx[QuotaSlots].by_names(names.values())
        return {owner: known[name] for owner, name in names.items() if name in known}

    def _skipped(self, run: Run, slot: Slot | None, now: Instant) -> Skip | None:
        if slot is None:
            return Skip("removed")
        defined = self._registry.of(slot)
        if isinstance(defined, Unusable):
            return Skip("invalid")
        if slot.pending_at is not None and slot.sent_run_id == run.run_id and slot.is_forced:
            return Skip(UNCONFIRMED)  # its last wake was sent and is unconfirmed
        if run.trigger == "manual":
            return None
        if not may_wake(slot, defined.rules):
            return Skip(DISABLED)
        return Skip(WARM) if is_warm(slot, now) and slot.pending_at is None else None

    def _job(self, run: Run, slot: Slot | None) -> Job | str:
        if slot is None:
            return "its slot was removed"
        # A provider that deduplicates must not drop the forced retry as a repeat of the first wake.
        key = idempotency_key(self._store_id, run) + ("-forced" if is_second(slot, run.run_id) else "")
        fire = Fire.of(run, f"slot:{slot.name}", key)
        is_manual = run.trigger == "manual"
        # A retry after a failure or a crash reads the quota first: the wake may have arrived.
        reads_first = not is_manual and (run.attempt > 0 or must_read_first(slot, run.next_attempt_at or run.due_at))
        action = "manual-wake" if is_manual else "scheduled-wake"
        return Job(WakeSpec(slot.name, reads_first, action), fire, WAKE_TIMEOUT, "retry")


def _settle(tx: Tx, run: Run, ending: Ending, slot: Slot, rules: SlotRules, now: Instant) -> tuple[Settled, Slot]:
    """Settle one run: the resulting settlement and slot."""
    match ending:
        case Done(output="sent"):
            return _was_sent(tx, run, slot, rules, now)
        case Done(output="confirmed"):
            return Settled(Close("succeeded", "finished"), result='{"output":"confirmed"}'), slot
        case Done():
            tell(
                tx,
                slot,
                events.SLOT_NOT_NEEDED,
                "wake.scheduler.condition-not-ready",
                f"slot {slot.name}: warm, no wake needed",
            )
            return Settled(_not_sent(run, slot)), not_needed(slot, rules, now=now)
        case Failed(output="refused", error=error):
            after = advanced(slot, rules, now=now)._replace(wake_error=error, unsent=0)
            if is_second(slot, run.run_id):
                after = after._replace(is_forced=1, window_until=None)
            tell(
                tx,
                after,
                events.SLOT_REFUSED,
                "wake.scheduler.wake-attempt-failed",
                _failed_text(slot, error),
                level="error",
            )
            return Settled(Close("failed", run.rung, error)), after
        case Failed(output="unreachable", error=error):
            return _did_not_arrive(tx, run, slot, error, now)
        case Failed(error=error) | TimedOut(error=error) | Busy(error=error):
            return _was_not_sent(tx, run, ending, slot, rules, error, now + RETRY_EVERY, now)
        case Throttled(error=error, until=until):
            return _was_not_sent(tx, run, ending, slot, rules, error, max(until, now + RETRY_EVERY), now)
        case Dropped(reason=reason):
            return Settled(_given_up(run, slot, reason)), _dropped(slot, rules, reason, now)
        case Unconfirmed(error=error):
            return Settled(Close("unconfirmed", run.rung, error)), slot
        case Cancelled():
            return Settled(after_cancel(run, ending)), advanced(slot, rules, now=now)
        case _:
            return Settled(_alone(run, ending, now)), slot


def _served_nothing(slot: Slot, run: Run, rules: SlotRules, now: Instant) -> Slot:
    """The clock went back while the wake was sent, and then it failed: its times of day lie ahead and are due again."""
    if slot.times_served is None or rules.times is None:
        return slot
    unserved = {at for at in times_of(run, rules.times) if at > now}
    return with_served(slot, served_ahead(slot) - unserved)


def _observed(run: Run, settlement: Settlement, slot: str) -> tuple[Effect, ...]:
    """The observation for the slot's incident after a wake ended or was not sent."""
    if run.trigger == "manual" or (isinstance(settlement, Close) and not settlement.is_observed):
        return ()
    if isinstance(settlement, Wait):
        is_bad, error = settlement.attempt_outcome in ("failed", "timedOut"), settlement.error
    else:
        is_bad, error = settlement.outcome in ERRORS and not settlement.is_cancelled, settlement.error
    if is_bad:
        said = f"it could not be woken: {error or 'the wake did not end well'}"
        return (Observed(slot_incident(slot), False, run.due_at, run.run_id, said),)
    if isinstance(settlement, Close) and settlement.outcome == "succeeded":
        return (Observed(slot_incident(slot), True, run.due_at, run.run_id, needed=GOOD_NEEDED),)
    return ()


def _was_sent(tx: Tx, run: Run, slot: Slot, rules: SlotRules, now: Instant) -> tuple[Settled, Slot]:
    is_manual = run.trigger == "manual"
    after = sent(slot, rules, run.run_id, now=now, is_manual=is_manual)
    name = slot.name
    if not is_manual and not may_wake(slot, rules):  # it was disabled while the wake was sent
        tell(
            tx,
            after,
            events.SLOT_WOKEN,
            "wake.scheduler.wake-attempt-success",
            f"slot {name}: wake fired",
            run_id=run.run_id,
        )
        return Settled(_given_up(run._replace(rung="accepted"), after, DISABLED)), let_go(after)
    tell(
        tx,
        after,
        events.SLOT_WOKEN,
        "wake.scheduler.wake-attempt-success",
        f"slot {name}: wake fired",
        run_id=run.run_id,
    )
    tell(tx, after, events.SLOT_PENDING_SET, "wake.pending-set", run_id=run.run_id)
    until = now + SETTLE_WITHIN if after.window_until is None else after.window_until
    return Settled(Wait(until, CONFIRMING, SENT, "accepted", None)), after


def _did_not_arrive(tx: Tx, run: Run, slot: Slot, error: str, now: Instant) -> tuple[Settled, Slot]:
    """The same run resends it until it arrives; a manual wake fails immediately."""
    if run.trigger == "manual":
        tell(
            tx,
            slot,
            events.SLOT_WAKE_FAILED,
            "wake.scheduler.wake-attempt-failed",
            _failed_text(slot, error),
            level="warn",
        )
        return Settled(Close("failed", run.rung, error, UNREACHABLE)), slot
    after = not_arrived(slot, error)
    again_at = send_again_at(after, now=now)
    text = f"{_failed_text(slot, error)}; it will be sent again at {format_instant(again_at)}"
    tell(
        tx,
        after,
        events.SLOT_WAKE_FAILED,
        "wake.scheduler.wake-attempt-failed",
        text,
        level="warn",
        error=error,
        unsent=after.unsent,
        again=again_at,
    )
    return Settled(Wait(again_at, UNREACHABLE, "failed", run.rung, error)), after


def _was_not_sent(
    tx: Tx, run: Run, ending: Ending, slot: Slot, rules: SlotRules, error: str, again_at: Instant, now: Instant
) -> tuple[Settled, Slot]:
    outcome = "timedOut" if isinstance(ending, TimedOut) else "failed"
    after = send_failed(slot, rules, run.run_id, error, now=now)
    level = "warn" if after.wake_disabled_at is None else "error"
    tell(
        tx,
        after,
        events.SLOT_WAKE_FAILED,
        "wake.scheduler.wake-attempt-failed",
        _failed_text(slot, error),
        level=level,  # type: ignore[arg-type]  # one of the two words
        error=error,
    )
    effects: tuple[Effect, ...] = ()
    if after.wake_disabled_at is not None and slot.wake_disabled_at is None:
        tell_wake_disabled(tx, after)
        effects = (wake_disabled(after, now),)
    if run.trigger == "manual" or is_second(slot, run.run_id) or after.wake_disabled_at is not None:
        return Settled(Close(outcome, run.rung, error), effects), after  # type: ignore[arg-type]  # one of the two
    return Settled(Wait(again_at, "retry", outcome, run.rung, error), effects), after


def _not_sent(run: Run, slot: Slot) -> Close:
    """Close the run because the window is open, whether by this run's earlier attempt or not."""
    if slot.sent_run_id != run.run_id:
        return Close("skipped", run.rung, None, WARM)
    return (
        Close("succeeded", "finished")
        if slot.pending_at is None
        else Close("unconfirmed", run.rung, unconfirmed_error(slot))
    )


def _given_up(run: Run, slot: Slot, reason: str) -> Close:
    if reason == UNCONFIRMED:
        return Close("unconfirmed", run.rung, unconfirmed_error(slot))
    if slot.sent_run_id == run.run_id and reason != WARM:
        error = f"a wake was sent, and its slot was {reason} before it was confirmed"
        return Close("unconfirmed", run.rung, error, reason, is_observed=False)
    if slot.sent_run_id == run.run_id and slot.pending_at is None and reason == WARM:
        return Close("succeeded", "finished")
    if run.error is not None:
        return Close("failed", run.rung, run.error, reason)
    return Close("skipped", run.rung, None, reason)


def _dropped(slot: Slot, rules: SlotRules, reason: str, now: Instant) -> Slot:
    return not_needed(slot, rules, now=now) if reason == WARM else slot


def _alone(run: Run, ending: Ending, now: Instant) -> Settlement:
    """Settle without the slot: the node was lost or stopped, the run hangs, or the slot was removed."""
    match ending:
        case Lost(reason=reason, error=error, is_over=is_over):
            return _lost(run, reason, error, is_over, now)
        case Interrupted(error=error):
            return _lost(run, "shutdown", error, True, now)
        case Unproven(error=error):
            return Close("unknown", run.rung, error, "not proven to have ended", stuck=True)
        case StuckRunEnded():
            return Close("timedOut", run.rung, run.error, "ended after its deadline")
        case Done():
            if run.rung == "finished":
                return Close("succeeded", run.rung)
            return Close("unconfirmed", run.rung, "its slot was removed before the wake was confirmed")
        case Dropped(reason=reason):
            return Close("skipped", run.rung, None, reason)
        case Failed(error=error) | TimedOut(error=error) | Busy(error=error) | Throttled(error=error):
            return Close("failed", run.rung, error)
        case Unconfirmed(error=error):
            return Close("unconfirmed", run.rung, error)
        case NotBegun():
            return not_begun(run, ending, now=now)
        case Forgotten(reason=reason, error=error):
            return Close("unknown", run.rung, error, reason)
        case HandedOver():
            return Close("unconfirmed", run.rung)
        case Cancelled():
            return after_cancel(run, ending)


def _lost(run: Run, reason: str, error: str, is_over: bool, now: Instant) -> Settlement:
    """Retry once; the attempt first checks whether the wake arrived."""
    fate = "unknown"
    if is_over:
        is_manual = run.trigger == "manual"
        fate = after_crash(run.rung, crashes=run.crashes + 1, on_crash="retry", is_manual=is_manual)
    if fate == "retry":
        outcome = "interrupted" if reason == "shutdown" else "crashed"
        return Wait(now, reason, outcome, run.rung, error, is_crash=True)
    return Close("failed" if fate == "failed" else "unknown", run.rung, error, reason)


def _failed_text(slot: Slot, error: str) -> str:
    return f"slot {slot.name}: wake failed: {error}"


def _slots_of(tx: Tx, runs: Sequence[Run]) -> dict[int, str]:
    """Slot names by the owner id of their runs."""
    owners = tx[Owners].names({run.schedule_id for run in runs})
    return {owner: slot for owner, name in owners.items() if (slot := slot_named(name)) is not None}
