"""Handles wake alarms: due wakes become one run of kind `wake`, or a ledger row saying why not."""

from collections.abc import Sequence
from typing import Final

from wakeful.core.run.runs import Run, Trigger, unplanned
from wakeful.core.run.transitions import planned
from wakeful.core.schedule.cadence import Gap
from wakeful.core.schedule.policies import GRACE
from wakeful.core.slot.slot import Slot
from wakeful.core.slot.wakes import PENDING, Wake, ring, turned_back
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Times, next_after
from wakeful.engine.planning import SkippedTimes, add_gaps, extend, shortened, void_ahead
from wakeful.features.quota.polls import UNUSABLE_EVERY
from wakeful.features.quota.registry import Defined, SlotRegistry, Unusable
from wakeful.features.quota.rows import WAKE, owner_of, save, tell
from wakeful.ports import events
from wakeful.ports.handlers import Due, RingResult
from wakeful.ports.slots import ALARM_WAKE, QuotaSlots
from wakeful.ports.store import Tx

TRIED_AGAIN: Final = ("failed", "timedOut", "unknown")
"""Outcomes of wakes that served nothing."""


class WakeAlarms:
    """Handles wake alarms."""

    kind = ALARM_WAKE
    brings_runs = True

    def __init__(self, registry: SlotRegistry) -> None:
        self._registry = registry

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        """Decide every slot whose wake alarm is due."""
        slots = tx[QuotaSlots].due_by(ALARM_WAKE, now=due_by, limit=limit)
        due = [wake for slot in slots if (wake := self._decide(tx, slot, now, gap_reason)) is not None]
        return RingResult(due, len(slots))

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        """The clock was set back: replan wakes that were planned on a clock that ran ahead."""
        ids = sorted(slot.slot_id for slot in tx[QuotaSlots].all() if slot.slot_id > after_id)[:limit]
        for slot in tx[QuotaSlots].lock(ids).values():
            defined = self._registry.of(slot)
            if isinstance(defined, Defined):
                kept, served = _void_rows(tx, slot, defined, now)
                after = turned_back(kept, now=now, served=served)
                save(tx, after, defined.rules, now=now, has_statistics=defined.provider.has_statistics)
        return ids[-1] if ids else None

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """Wakes are runs: the engine recovers them."""

    def _decide(self, tx: Tx, slot: Slot, now: Instant, gap_reason: str) -> Due | None:
        defined = self._registry.of(slot)
        if isinstance(defined, Unusable):
            tx.alarms.move_many(ALARM_WAKE, [(slot.slot_id, now + UNUSABLE_EVERY)])
            return None
        rang = ring(slot, defined.rules, now=now, gap_reason=gap_reason)
        after = rang.slot
        if rang.gaps:
            after = record_gaps(tx, slot, after, rang.gaps, now)
        run = None
        if rang.wake is not None:
            run = _run(tx, after, rang.wake, now)
            after = after._replace(wake_run_id=run.run_id, last_row_id=run.run_id)
            modes = ", ".join(rang.wake.modes)
            tell(
                tx,
                after,
                events.SLOT_DUE,
                "wake.scheduler.condition-met",
                f"slot {slot.name}: wake condition met: {modes}",
            )
        save(tx, after, defined.rules, now=now, has_statistics=defined.provider.has_statistics)
        return None if run is None else Due(run)


def _void_rows(tx: Tx, slot: Slot, defined: Defined, now: Instant) -> tuple[Slot, set[Instant]]:
    """After the clock went back: rows beyond now that sent nothing are voided, and those that reach past now are
    shortened. Returns the slot, and the times of day beyond now that a wake served."""
    times = defined.rules.times
    if times is None:
        return slot, set()
    rows = tx.runs.lock(tx[QuotaSlots].rows_beyond(owner_of(tx, slot.name), after=now)).values()
    gaps = [row for row in rows if row.outcome in ("skipped", "missed") and not row.attempt]
    void = void_ahead(tx, gaps, lambda row: _shortened(row, times, now), now=now)
    served: set[Instant] = set()
    for row in rows:
        if row not in gaps and row.trigger != "manual" and row.outcome not in TRIED_AGAIN:
            served |= {at for at in times_of(row, times) if at > now}
    return (slot._replace(last_row_id=None) if slot.last_row_id in void else slot), served


def times_of(row: Run, times: Times) -> set[Instant]:
    """The times of day that a wake serves: all that became due until it was sent first."""
    found: set[Instant] = set()
    at = next_after(times, row.planned_at - 1)
    while at is not None and at <= max(row.planned_at, row.started_at or 0):
        found.add(at)
        at = next_after(times, at)
    return found


def _shortened(row: Run, times: Times, now: Instant) -> Run | None:
    """A row that ends now. Missed times are counted again; what was skipped may be on no grid, and stays counted."""
    if row.outcome != "missed":
        return row._replace(planned_until=max(now, row.planned_at))
    return shortened(row, times, now)


def _run(tx: Tx, slot: Slot, wake: Wake, now: Instant) -> Run:
    (run_id,) = tx.runs.reserve_ids(1)
    trigger: Trigger = "wake" if now - wake.planned_at <= GRACE else "catchUp"
    run = planned(
        run_id=run_id,
        kind=WAKE,
        schedule_id=owner_of(tx, slot.name),
        version=slot.version,
        planned_at=wake.planned_at,
        due_at=wake.planned_at,
        trigger=trigger,
        lane=None,
    )
    # Not the instant: two modes may plan the same one, and the slot's markers ensure that it happens once.
    return run._replace(occurrence=unplanned(run_id, wake.planned_at))


def record_gaps(tx: Tx, before: Slot, after: Slot, gaps: Sequence[Gap], now: Instant) -> Slot:
    """Write instants without a wake; one that continues the newest row extends that row."""
    owner = owner_of(tx, after.name)
    last = None if before.last_row_id is None else tx.runs.lock([before.last_row_id]).get(before.last_row_id)
    for gap in gaps:
        _tell_gap(tx, after, gap)
        if last is not None and (last.outcome, last.reason) == (gap.outcome, gap.reason) and gap.outcome == "skipped":
            (last,) = extend(tx, [(last._replace(ended_at=now), gap)])
            continue
        blocked = [gap._replace(blocked_by=after.wake_run_id if gap.reason == PENDING else None)]
        # Not the instant: two modes may plan the same one.
        times = SkippedTimes(
            WAKE, owner, after.version, blocked, lambda row: row._replace(occurrence=unplanned(row.run_id, now))
        )
        (last,) = add_gaps(tx, [times], now=now)
        after = after._replace(last_row_id=last.run_id)
    return after


def _tell_gap(tx: Tx, slot: Slot, gap: Gap) -> None:
    if gap.outcome == "missed":
        text = f"slot {slot.name}: {gap.instants} time(s) of day missed ({gap.reason})"
        tell(tx, slot, events.SLOT_MISSED, "wake.scheduler.missed", text, level="warn", count=gap.instants)
    elif gap.reason == PENDING:
        tell(
            tx,
            slot,
            events.SLOT_SUPPRESSED,
            "wake.scheduler.duplicate-suppressed",
            f"slot {slot.name}: a wake is pending",
        )
    else:
        tell(tx, slot, events.SLOT_NOT_NEEDED, "wake.scheduler.condition-not-ready")
