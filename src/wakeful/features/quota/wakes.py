"""The wake side: its alarms bring forth runs of kind `wake`, whose keeper knows what an ending means for the slot."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from wakeful.core.cadence import Gap
from wakeful.core.effects import Alert
from wakeful.core.gates import ADMIT, Decision, Skip
from wakeful.core.instants import SECOND, Duration, Instant
from wakeful.core.policies import GRACE, after_crash
from wakeful.core.results import (
    Busy,
    Done,
    Dropped,
    Ending,
    Entrusted,
    Failed,
    Forgotten,
    Freed,
    Interrupted,
    Lost,
    Throttled,
    TimedOut,
    Unconfirmed,
    Unproven,
)
from wakeful.core.runs import Run, Trigger, stretch
from wakeful.core.settlement import Close, Settlement, Wait
from wakeful.core.slot_polls import turned_back as poll_turned_back
from wakeful.core.slot_wakes import (
    PENDING,
    RETRY_EVERY,
    SETTLE_WITHIN,
    WARM,
    Wake,
    advanced,
    must_read_first,
    not_needed,
    ring,
    send_failed,
    sent,
    turned_back,
)
from wakeful.core.slots import Slot, SlotRules, is_warm
from wakeful.core.transitions import planned
from wakeful.features.quota.book import Book, Defined, Unusable
from wakeful.features.quota.polls import UNUSABLE_EVERY
from wakeful.features.quota.reading import tell_wake_disabled
from wakeful.features.quota.rows import owner_of, save, slot_named, tell
from wakeful.ports.action import Fire
from wakeful.ports.handlers import Due, Job, Rung, Settled
from wakeful.ports.slots import ALARM_WAKE
from wakeful.ports.store import Tx

KIND: Final = "wake"
WAKE_TIMEOUT: Final[Duration] = 60 * SECOND
SENT: Final = "sent"
REFUSED: Final = "refused"
CONFIRMING: Final = "confirming"
UNCONFIRMED: Final = "unconfirmed"


class WakeSpec(NamedTuple):
    """What the wake action performs."""

    slot: str
    reads_first: bool  # the pre-check needs a reading of its own
    action: str  # what the log calls it


class WakeAlarms:
    """Rings the wake side."""

    kind = ALARM_WAKE
    brings_runs = True

    def __init__(self, book: Book) -> None:
        self._book = book

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, gap_reason: str) -> Rung:
        """Decide every slot whose wake alarm was due."""
        slots = tx.slots.due(ALARM_WAKE, now=due_by, limit=limit)
        due = [one for slot in slots if (one := self._decide(tx, slot, now, gap_reason)) is not None]
        return Rung(due, len(slots))

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        """Nothing of either side was done on a clock that ran ahead."""
        ids = sorted(slot.slot_id for slot in tx.slots.all() if slot.slot_id > after_id)[:limit]
        for slot in tx.slots.lock(ids).values():
            defined = self._book.of(slot)
            if isinstance(defined, Defined):
                after = poll_turned_back(turned_back(slot, now=now), now=now)
                save(tx, after, defined.rules, now=now, has_statistics=defined.provider.has_statistics)
        return ids[-1] if ids else None

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """Wakes are runs: the rescue looks after them."""

    def _decide(self, tx: Tx, slot: Slot, now: Instant, gap_reason: str) -> Due | None:
        defined = self._book.of(slot)
        if isinstance(defined, Unusable):
            tx.alarms.move_many(ALARM_WAKE, [(slot.slot_id, now + UNUSABLE_EVERY)])
            return None
        rang = ring(slot, defined.rules, now=now, gap_reason=gap_reason)
        after = rang.slot
        if rang.gaps:
            after = _record(tx, slot, after, rang.gaps, now)
        run = None
        if rang.wake is not None:
            run = _run(tx, after, rang.wake, now)
            after = after._replace(wake_run_id=run.run_id, last_row_id=run.run_id)
            modes = ", ".join(rang.wake.modes)
            tell(tx, after, "due", "wake.scheduler.condition-met", f"slot {slot.name}: wake condition met: {modes}")
        save(tx, after, defined.rules, now=now, has_statistics=defined.provider.has_statistics)
        return None if run is None else Due(run)


class WakeRuns:
    """The keeper of wakes."""

    kind = KIND

    def __init__(self, book: Book, *, store_id: str) -> None:
        self._book = book
        self._store_id = store_id

    def lock(self, tx: Tx, runs: Sequence[Run]) -> dict[int, Slot]:
        """The slots, by the id their runs carry."""
        names = _slots_of(tx, runs)
        known = tx.slots.by_names(names.values())
        held = tx.slots.lock([slot.slot_id for slot in known.values()])
        by_name = {slot.name: slot for slot in held.values()}
        return {owner: by_name[name] for owner, name in names.items() if name in by_name}

    def admit(self, tx: Tx, runs: Sequence[Run], *, now: Instant) -> list[Decision]:
        slots = self._look(tx, runs)
        return [self._may_start(run, slots.get(run.schedule_id), now) for run in runs]

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
            defined = None if slot is None else self._book.of(slot)
            if slot is None or not isinstance(defined, Defined):
                settled.append(Settled(_alone(run, ending, now)))
                continue
            one, after = _settle(tx, run, ending, slot, defined.rules, now)
            if isinstance(one.settlement, Close) and not one.settlement.stuck and after.wake_run_id == run.run_id:
                after = after._replace(wake_run_id=None)
            save(tx, after, defined.rules, now=now, has_statistics=defined.provider.has_statistics)
            slots[run.schedule_id] = after
            settled.append(one)
        return settled

    def _look(self, tx: Tx, runs: Sequence[Run]) -> dict[int, Slot]:
        names = _slots_of(tx, runs)
        known = tx.slots.by_names(names.values())
        return {owner: known[name] for owner, name in names.items() if name in known}

    def _may_start(self, run: Run, slot: Slot | None, now: Instant) -> Decision:
        if slot is None:
            return Skip("removed")
        defined = self._book.of(slot)
        if isinstance(defined, Unusable):
            return Skip("invalid")
        if slot.pending_at is not None and slot.sent_run_id == run.run_id and slot.is_forced:
            return Skip(UNCONFIRMED)  # its last wake was sent, and no reading shows it
        if run.trigger == "manual":
            return ADMIT
        if not defined.rules.enabled or slot.disabled_at is not None or slot.wake_disabled_at is not None:
            return Skip("disabled")
        return Skip(WARM) if is_warm(slot, now) and slot.pending_at is None else ADMIT

    def _job(self, run: Run, slot: Slot | None) -> Job | str:
        if slot is None:
            return "its slot is gone"
        key = f"{self._store_id}-{run.schedule_id}-{run.occurrence}"
        slug = f"slot:{slot.name}"
        fire = Fire(
            run.run_id, run.schedule_id, slug, run.planned_at, run.due_at, run.trigger, run.attempt + 1, key, None
        )
        is_manual = run.trigger == "manual"
        # Whoever tries again, after a failure or a crash, looks first: the wake may have arrived.
        reads_first = not is_manual and (run.attempt > 0 or must_read_first(slot, run.next_attempt_at or run.due_at))
        action = "manual-wake" if is_manual else "scheduled-wake"
        return Job(WakeSpec(slot.name, reads_first, action), fire, WAKE_TIMEOUT, "retry")


def _settle(tx: Tx, run: Run, ending: Ending, slot: Slot, rules: SlotRules, now: Instant) -> tuple[Settled, Slot]:
    """One ending: what becomes of the run, and of the slot."""
    match ending:
        case Done(output="sent"):
            return _was_sent(tx, run, slot, rules, now)
        case Done(output="confirmed"):
            return Settled(Close("succeeded", "finished"), result='{"output":"confirmed"}'), slot
        case Done():
            tell(tx, slot, "notNeeded", "wake.scheduler.condition-not-ready", f"slot {slot.name}: warm, no wake needed")
            return Settled(_not_sent(run, slot)), not_needed(slot, rules, now=now)
        case Failed(output="refused", error=error):
            after = advanced(slot, rules, now=now)._replace(wake_error=error)
            if slot.sent_run_id == run.run_id and slot.pending_at is not None:
                after = after._replace(is_forced=1, window_until=None)
            tell(tx, after, "refused", "wake.scheduler.wake-attempt-failed", _failed_text(slot, error), level="error")
            return Settled(Close("failed", run.rung, error)), after
        case Failed(error=error) | TimedOut(error=error) | Busy(error=error):
            return _was_not_sent(tx, run, ending, slot, rules, error, now + RETRY_EVERY, now)
        case Throttled(error=error, until=until):
            return _was_not_sent(tx, run, ending, slot, rules, error, max(until, now + RETRY_EVERY), now)
        case Dropped(reason=reason):
            return Settled(_given_up(run, slot, reason)), _dropped(slot, rules, reason, now)
        case Unconfirmed(error=error):
            return Settled(Close("unconfirmed", run.rung, error)), slot
        case _:
            return Settled(_alone(run, ending, now)), slot


def _was_sent(tx: Tx, run: Run, slot: Slot, rules: SlotRules, now: Instant) -> tuple[Settled, Slot]:
    is_manual = run.trigger == "manual"
    after = sent(slot, rules, run.run_id, now=now, is_manual=is_manual)
    name = slot.name
    tell(tx, after, "woken", "wake.scheduler.wake-attempt-success", f"slot {name}: wake fired", runId=str(run.run_id))
    tell(tx, after, "pendingSet", "wake.pending-set", runId=str(run.run_id))
    until = now + SETTLE_WITHIN if after.window_until is None else after.window_until
    return Settled(Wait(until, CONFIRMING, SENT, "accepted", None)), after


def _was_not_sent(
    tx: Tx, run: Run, ending: Ending, slot: Slot, rules: SlotRules, error: str, again_at: Instant, now: Instant
) -> tuple[Settled, Slot]:
    outcome = "timedOut" if isinstance(ending, TimedOut) else "failed"
    after = send_failed(slot, rules, run.run_id, error, now=now)
    level = "warn" if after.wake_disabled_at is None else "error"
    tell(
        tx,
        after,
        "wakeFailed",
        "wake.scheduler.wake-attempt-failed",
        _failed_text(slot, error),
        level=level,  # type: ignore[arg-type]  # one of the two words
        error=error,
        wakeErrors=after.wake_errors,
    )
    effects: tuple[Alert, ...] = ()
    if after.wake_disabled_at is not None and slot.wake_disabled_at is None:
        tell_wake_disabled(tx, after)
        text = f"slot {slot.name} is not woken any more after {after.wake_errors} errors, the last: {error}"
        effects = (Alert(f"slot-wake-disabled:{slot.name}", text),)
    was_second = slot.pending_at is not None and slot.sent_run_id == run.run_id
    if run.trigger == "manual" or was_second or after.wake_disabled_at is not None:
        return Settled(Close(outcome, run.rung, error), effects), after  # type: ignore[arg-type]  # one of the two
    return Settled(Wait(again_at, "retry", outcome, run.rung, error), effects), after


def _not_sent(run: Run, slot: Slot) -> Close:
    """The window runs: because of what this run had sent before, or without it."""
    if slot.sent_run_id != run.run_id:
        return Close("skipped", run.rung, None, WARM)
    return (
        Close("succeeded", "finished") if slot.pending_at is None else Close("unconfirmed", run.rung, slot.wake_error)
    )


def _given_up(run: Run, slot: Slot, reason: str) -> Close:
    if reason == UNCONFIRMED:
        return Close("unconfirmed", run.rung, slot.wake_error)
    if slot.sent_run_id == run.run_id and slot.pending_at is None and reason == WARM:
        return Close("succeeded", "finished")
    if run.error is not None:
        return Close("failed", run.rung, run.error, reason)
    return Close("skipped", run.rung, None, reason)


def _dropped(slot: Slot, rules: SlotRules, reason: str, now: Instant) -> Slot:
    return not_needed(slot, rules, now=now) if reason == WARM else slot


def _alone(run: Run, ending: Ending, now: Instant) -> Settlement:
    """A run by itself: its node was lost or stopped, it hangs, or its slot is gone."""
    match ending:
        case Lost(reason=reason, error=error, is_over=is_over):
            return _lost(run, reason, error, is_over, now)
        case Interrupted(error=error):
            return _lost(run, "shutdown", error, True, now)
        case Unproven(error=error):
            return Close("unknown", run.rung, error, "not proven to have ended", stuck=True)
        case Freed():
            return Close("timedOut", run.rung, run.error, "ended after its deadline")
        case Done():
            return Close("succeeded" if run.rung == "finished" else "unconfirmed", run.rung)
        case Dropped(reason=reason):
            return Close("skipped", run.rung, None, reason)
        case Failed(error=error) | TimedOut(error=error) | Busy(error=error) | Throttled(error=error):
            return Close("failed", run.rung, error)
        case Unconfirmed(error=error):
            return Close("unconfirmed", run.rung, error)
        case Forgotten(reason=reason, error=error):
            return Close("unknown", run.rung, error, reason)
        case Entrusted():
            return Close("unconfirmed", run.rung)


def _lost(run: Run, reason: str, error: str, is_over: bool, now: Instant) -> Settlement:
    """One more attempt, which looks first whether the wake arrived."""
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
    """Names of slots by the id their runs carry."""
    owners = tx.owners.names({run.schedule_id for run in runs})
    return {owner: found for owner, name in owners.items() if (found := slot_named(name)) is not None}


def _run(tx: Tx, slot: Slot, wake: Wake, now: Instant) -> Run:
    (run_id,) = tx.runs.reserve_ids(1)
    trigger: Trigger = "wake" if now - wake.planned_at <= GRACE else "catchUp"
    run = planned(
        run_id=run_id,
        kind=KIND,
        schedule_id=owner_of(tx, slot.name),
        version=slot.version,
        planned_at=wake.planned_at,
        due_at=wake.planned_at,
        trigger=trigger,
        lane=None,
    )
    # Not the instant: two modes may plan the same one, and the slot's markers decide what happens once.
    return run._replace(occurrence=-run_id)


def _record(tx: Tx, before: Slot, after: Slot, gaps: Sequence[Gap], now: Instant) -> Slot:
    """Write instants that brought no wake; one that only goes on where the newest row ended grows that row."""
    owner = owner_of(tx, after.name)
    last = None if before.last_row_id is None else tx.runs.lock([before.last_row_id]).get(before.last_row_id)
    for gap in gaps:
        _tell_gap(tx, after, gap)
        if last is not None and (last.outcome, last.reason) == (gap.outcome, gap.reason) and gap.outcome == "skipped":
            last = last._replace(planned_until=gap.last, instants=last.instants + gap.instants, ended_at=now)
            tx.runs.save_many([last])
            continue
        (run_id,) = tx.runs.reserve_ids(1)
        last = stretch(
            run_id=run_id,
            kind=KIND,
            schedule_id=owner,
            version=after.version,
            first=gap.first,
            last=gap.last,
            instants=gap.instants,
            outcome=gap.outcome,
            reason=gap.reason,
            now=now,
            blocked_by=after.wake_run_id if gap.reason == PENDING else None,
        )._replace(occurrence=-run_id)
        tx.runs.add_many([last])
        after = after._replace(last_row_id=run_id)
    return after


def _tell_gap(tx: Tx, slot: Slot, gap: Gap) -> None:
    if gap.outcome == "missed":
        text = f"slot {slot.name}: {gap.instants} time(s) of day missed ({gap.reason})"
        tell(tx, slot, "missed", "wake.scheduler.missed", text, level="warn", count=gap.instants)
    elif gap.reason == PENDING:
        tell(tx, slot, "suppressed", "wake.scheduler.duplicate-suppressed", f"slot {slot.name}: a wake is pending")
    else:
        tell(tx, slot, "notNeeded", "wake.scheduler.condition-not-ready")
