"""Schedules that wait for the reset of a quota slot; this module stores the reported resets.

The quota feature reports each reset as a `Replan`. The newest one of each slot is kept in the store, and the schedules
that wait for it get their next instant, under their own locks. The instant of a past reset stays, even if its offset is
not over yet: the newer reset is applied after it has rung (`followed`), so each reset is served once, however late.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeGuard

from wakeful.core.run.effects import Replan
from wakeful.core.schedule.cadence import Cadence, Rules, due_at
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import AfterReset, next_after
from wakeful.features.schedules.compiled import Broken, Compilations, Compiled
from wakeful.ports.meta import Meta
from wakeful.ports.store import ALARM_SCHEDULE, Tx

STEP: Final = 200


def informed(tx: Tx, rules: Rules, next_at: Instant | None = None) -> Rules:
    """The rules with their reset filled in: that of the planned instant, else the newest known."""
    timing = rules.timing
    if not isinstance(timing, AfterReset):
        return rules
    reset_at = _newest(tx, timing.slot) if next_at is None else next_at - timing.offset
    return replace(rules, timing=replace(timing, reset_at=reset_at))


def followed(tx: Tx, rules: Rules, cadence: Cadence) -> Cadence:
    """The cadence with the instant of a reset that was reported while an earlier one was still undecided."""
    if not isinstance(rules.timing, AfterReset) or cadence.next_at is not None:
        return cadence
    return cadence._replace(next_at=next_after(informed(tx, rules).timing, cadence.planned_through))


class Resets:
    """Applies `Replan`."""

    def __init__(self, compilations: Compilations) -> None:
        self._compilations = compilations

    def apply(self, tx: Tx, effect: Replan, now: Instant) -> None:
        """Store the reset, and plan every schedule that waits for it."""
        if effect.reset_at is None:
            return
        tx[Meta].set(_name(effect.slot), str(effect.reset_at))
        after_id = 0
        while schedules := tx.schedules.after_reset(after_id=after_id, limit=STEP):
            after_id = schedules[-1].schedule_id
            compiled = self._compilations.of(tx, [(schedule.schedule_id, schedule.version) for schedule in schedules])
            _plan(
                tx, {known.schedule_id: known.rules for known in compiled.values() if _waits(known, effect.slot)}, now
            )


def _plan(tx: Tx, rules: Mapping[int, Rules], now: Instant) -> None:
    moved: list[Cadence] = []
    for cadence in tx.cadences.lock(rules).values():
        own = rules[cadence.schedule_id]
        offset = own.timing.offset if isinstance(own.timing, AfterReset) else 0
        has_passed = cadence.next_at is not None and cadence.next_at - offset <= now
        if not has_passed and cadence.state not in ("done", "invalid"):
            moved.append(followed(tx, own, cadence._replace(next_at=None)))
    moved.sort()
    if moved:
        tx.cadences.save_many(moved)
        tx.alarms.move_many(
            ALARM_SCHEDULE, [(cadence.schedule_id, due_at(cadence, rules[cadence.schedule_id])) for cadence in moved]
        )


def _waits(compiled: Compiled | Broken, slot: str) -> TypeGuard[Compiled]:
    if isinstance(compiled, Broken):
        return False
    timing = compiled.rules.timing
    return isinstance(timing, AfterReset) and timing.slot == slot


def _newest(tx: Tx, slot: str) -> Instant | None:
    known = tx[Meta].value(_name(slot))
    return None if known is None else int(known)


def _name(slot: str) -> str:
    return f"reset:{slot}"
