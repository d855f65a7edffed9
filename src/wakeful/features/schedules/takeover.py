"""Taking over from another scheduler: how to account for the time before the import, and the handover.

Instants before the handover belong to the source. Those that the source did not run either are `missed(before import)`:
they are in the ledger, and nothing is caught up.
"""

from typing import Final

from wakeful.core.refusals import NotFound
from wakeful.core.schedule.cadence import Cadence, Plan, forgo
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import next_after
from wakeful.features.schedules.alarms import alarm_of, decided, record
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.features.schedules.resets import informed
from wakeful.ports.store import Tx

BEFORE_IMPORT: Final = "before import"
AWAITING: Final = "waiting for the handover from its source"
DRAFT: Final = "draft: "
"""The beginning of the reason of a draft."""


def miss_before_import(tx: Tx, slug: str, last_run: Instant, *, now: Instant) -> None:
    """Mark as missed the instants since a new schedule last ran in its source; none is caught up."""
    compiled, cadence = _held(tx, slug)
    if cadence.last_row_id is not None or last_run >= now or not isinstance(compiled, Compiled):
        return
    rules = informed(tx, compiled.rules)
    plan = forgo(cadence._replace(planned_through=last_run), rules, BEFORE_IMPORT, now=now, taken=frozenset())
    record(tx, [decided(plan, compiled, cadence)], now=now)


def await_handover(tx: Tx, slug: str, *, now: Instant) -> None:
    """Keep a schedule inactive until the handover."""
    _hold(tx, slug, AWAITING, now=now)


def hold_draft(tx: Tx, slug: str, missing: str, *, now: Instant) -> None:
    """Keep a schedule inactive until a person has done what is missing, and enables it."""
    _hold(tx, slug, f"{DRAFT}{missing}", now=now)


def _hold(tx: Tx, slug: str, reason: str, *, now: Instant) -> None:
    """Disable a schedule; if a person paused or disabled it, it stays as it is."""
    compiled, cadence = _held(tx, slug)
    if cadence.state != "active":
        return
    waiting = cadence._replace(state="disabled", state_reason=reason, state_at=now)
    tx.cadences.save_many([waiting], turned=[waiting])
    if isinstance(compiled, Compiled):
        tx.alarms.set_many([alarm_of(waiting, compiled)])


def take_over(tx: Tx, slug: str, *, off_at: Instant, hand_at: Instant, now: Instant) -> None:
    """Activate a schedule from the handover on. Instants between the source's end and the handover are missed; those
    since the handover are due now."""
    compiled, cadence = _held(tx, slug)
    if cadence.state_reason != AWAITING or not isinstance(compiled, Compiled):
        return  # already active, or a person decided otherwise
    rules = informed(tx, compiled.rules)
    active = cadence._replace(state="active", state_reason=None, state_at=now, planned_through=off_at)
    plan = forgo(active, rules, BEFORE_IMPORT, now=max(hand_at - 1, off_at), taken=frozenset())
    through = max(plan.cadence.planned_through, hand_at - 1)
    active = plan.cadence._replace(
        state="active", planned_through=through, next_at=next_after(rules.timing, through), state_at=now
    )
    record(tx, [decided(Plan(plan.rows, active), compiled, cadence)], now=now)


def _held(tx: Tx, slug: str) -> tuple[Compiled | object, Cadence]:
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    if schedule is None:
        raise NotFound(f"there is no schedule {slug!r}")
    cadence = tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id]
    return read_stored(schedule.schedule_id, schedule.version, schedule.definition), cadence
