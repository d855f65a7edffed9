"""The copy that a simulation runs on: definitions, each schedule's state, records, slots and budgets. A run in progress
when the copy is made counts as ended: how much longer it takes is unknown. A run that waits (for a retry, its lane, a
reset) continues to wait. A simulation that starts at another time than now starts clean: every earlier instant ran, and
nothing waits.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from wakeful.app.simulation_job import SimulationJob
from wakeful.core.heartbeat.heartbeat import Heartbeat
from wakeful.core.money.budgets import Budget, Limit, window_of
from wakeful.core.money.charges import Charge
from wakeful.core.money.schedule_budget import limits_of
from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.simulation.draws import Record
from wakeful.core.slot.slot import Slot
from wakeful.core.time.instants import DAY, Instant
from wakeful.core.time.timing import AfterReset, next_after
from wakeful.engine.membership import BORN_AT
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.money.budget_rows import Brake, Brakes, BudgetPeriods, SetLimit, SetLimits
from wakeful.features.money.terms import effective
from wakeful.features.schedules.alarms import alarm_of
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.features.schedules.resets import informed
from wakeful.ports.charges import Charges
from wakeful.ports.heartbeats import Heartbeats
from wakeful.ports.meta import Meta
from wakeful.ports.owners import Owners
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import ALARM_RUN, Alarm, Schedule, Tx, run_alarm
from wakeful.simulation.records import read_records
from wakeful.stores.sqlite.scratch import add_schedules

PAGE: Final = 500
RESET: Final = "reset:"
LONG_AGO: Final = 40 * DAY
"""Recorded costs are dated this much before the simulation: they belong to none of its periods."""


class Money(NamedTuple):
    """Limits that people set, agents that were stopped, and what was spent in the current periods."""

    limits: tuple[SetLimit, ...]
    brakes: tuple[Brake, ...]
    spent: tuple[Budget, ...]


class Copied(NamedTuple):
    """What was read from the store."""

    schedules: tuple[Schedule, ...]
    cadences: Mapping[int, Cadence]
    waiting: Mapping[int, Run]  # by id
    alarms: Mapping[int, Alarm]  # of the waiting runs
    slots: tuple[Slot, ...]
    resets: Mapping[str, str]
    money: Money
    charges: tuple[Charge, ...]
    records: Mapping[str, Record]  # by slug
    heartbeat: tuple[Heartbeat, Cadence] | None
    labels: frozenset[str] = frozenset()  # of the nodes that are alive


def read_copy(tx: Tx, job: SimulationJob) -> Copied:
    """Read everything from one snapshot."""
    schedules = tuple(all_schedules(tx))
    by_id = {schedule.schedule_id: schedule for schedule in schedules}
    cadences = tx.cadences.lock(sorted(by_id))
    open_ids = [key for c in cadences.values() for key in (c.open_run_id, c.queued_run_id) if key is not None]
    waiting = {key: run for key, run in tx.runs.lock(sorted(open_ids)).items() if run.outcome == "waiting"}
    slots = tuple(tx[QuotaSlots].all())
    names = {slot.name for slot in slots} | {name for schedule in schedules for name in _slots_of(schedule)}
    resets = {name: value for name in names if (value := tx[Meta].value(f"{RESET}{name}")) is not None}
    owner_id = tx[Owners].find(HEARTBEAT)
    recorded = read_records(tx, [*by_id, *([] if owner_id is None else [owner_id])])
    records = {schedule.slug: recorded.by_owner.get(key, Record()) for key, schedule in by_id.items()}
    if owner_id is not None:
        records[HEARTBEAT] = recorded.by_owner.get(owner_id, Record())
    return Copied(
        schedules,
        cadences,
        waiting,
        tx.alarms.by_refs(ALARM_RUN, sorted(waiting)),
        slots,
        resets,
        _money(tx, schedules, job),
        tuple(recorded.charges),
        records,
        _heartbeat(tx, owner_id),
        frozenset(
            label for node in tx.nodes.all() if node.voided_at is None and node.labels for label in node.labels.split()
        ),
    )


def all_schedules(tx: Tx) -> Iterator[Schedule]:
    """All schedules, in order of their slugs."""
    after: str | None = None
    while page := tx.schedules.page(after=after, limit=PAGE):
        yield from page
        after = page[-1].slug


def _slots_of(schedule: Schedule) -> Iterator[str]:
    if '"afterReset"' not in schedule.definition:
        return
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if isinstance(compiled, Compiled) and isinstance(compiled.rules.timing, AfterReset):
        yield compiled.rules.timing.slot


def _heartbeat(tx: Tx, owner_id: int | None) -> tuple[Heartbeat, Cadence] | None:
    if owner_id is None:
        return None
    heartbeat, cadence = tx[Heartbeats].lock([owner_id]).get(owner_id), tx.cadences.lock([owner_id]).get(owner_id)
    return None if heartbeat is None or cadence is None else (heartbeat, cadence)


def _money(tx: Tx, schedules: tuple[Schedule, ...], job: SimulationJob) -> Money:
    limits = effective(tx, job.money)
    drafted = {checked.definition.slug: checked.definition.budget for checked in job.drafts}
    for schedule in schedules:
        if '"budget":{' in schedule.definition:
            limits += _limits_in(schedule)
        budget = drafted.get(schedule.slug)  # what was spent today counts for a new limit too
        limits += [] if budget is None else limits_of(budget, schedule.schedule_id)
    zone, now = job.terms.default_zone, job.now
    rows = {
        (row.scope, row.unit, row.period, row.starts_at, row.ends_at): row for row in tx[BudgetPeriods].current(now)
    }
    spent: list[Budget] = []
    for limit in dict.fromkeys(limit._replace(amount=0) for limit in limits):
        window = window_of(limit.period, zone, now)
        row = rows.get((limit.scope, limit.unit, limit.period, *window))
        amount = tx[Charges].spent(limit.scope, limit.unit, window) if row is None else row.spent
        spent.append(Budget(0, limit.scope, limit.unit, limit.period, *window, zone, amount, 0))
    return Money(tuple(tx[SetLimits].all()), tuple(tx[Brakes].all().values()), tuple(spent))


def _limits_in(schedule: Schedule) -> list[Limit]:
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    budget = compiled.model.budget if isinstance(compiled, Compiled) else None
    return [] if budget is None else limits_of(budget, schedule.schedule_id)


# --- writing ----------------------------------------------------------------------------------------------------------


def write_copy(tx: Tx, copied: Copied, job: SimulationJob, *, without: frozenset[str]) -> None:
    """Write the copy into an empty store."""
    starts_at, is_now = job.request.starts_at, job.request.starts_at == job.now
    schedules = [schedule for schedule in copied.schedules if schedule.slug not in without]
    add_schedules(tx, schedules)
    for name, value in copied.resets.items():
        tx[Meta].set(f"{RESET}{name}", value)
    cadences: list[Cadence] = []
    alarms: list[Alarm] = []
    for schedule in schedules:
        compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
        cadence = copied.cadences[schedule.schedule_id]
        if is_now:
            cadence, waiting = _without_running(cadence, copied, starts_at)
            alarms += waiting
        elif isinstance(compiled, Compiled):
            cadence = _fresh(tx, cadence, compiled, starts_at)
        cadences.append(cadence)
        alarms.append(alarm_of(cadence, compiled))
    tx.cadences.add_many(cadences)
    _add_waiting(tx, [alarm.ref for alarm in alarms if alarm.kind == ALARM_RUN], copied)
    tx.alarms.set_many(alarms)
    _write_money(tx, copied, starts_at, is_now=is_now)
    _write_slots(tx, copied, starts_at, is_now=is_now)
    if copied.heartbeat is not None:
        _write_heartbeat(tx, *copied.heartbeat, starts_at, is_now=is_now)


def _add_waiting(tx: Tx, run_ids: list[int], copied: Copied) -> None:
    """The runs that wait keep their ids; new ones come after them."""
    tx.runs.add_many([copied.waiting[run_id] for run_id in sorted(run_ids)])
    if run_ids:
        tx.runs.reserve_ids(max(run_ids))


def _without_running(cadence: Cadence, copied: Copied, now: Instant) -> tuple[Cadence, list[Alarm]]:
    """The cadence and its waiting runs; a run in progress counts as ended, and the one queued behind it is due."""
    first, second = cadence.open_run_id, cadence.queued_run_id
    if first is not None and first not in copied.waiting:
        first, second = (second, None) if second in copied.waiting else (None, None)
        due_at = now
    else:
        due_at = None
    alarms: list[Alarm] = []
    for run_id in (first, second):
        if run_id is not None:
            run, alarm = copied.waiting[run_id], copied.alarms.get(run_id)
            at = due_at if alarm is None or alarm.due_at is None else max(alarm.due_at, now)
            alarms.append(run_alarm(run, at))
            due_at = None
    return cadence._replace(open_run_id=first, queued_run_id=second, last_row_id=None, session_id=None), alarms


def _fresh(tx: Tx, cadence: Cadence, compiled: Compiled, starts_at: Instant) -> Cadence:
    """The schedule's state at another time: every earlier instant ran, and nothing waits."""
    through = starts_at - 1
    next_at = next_after(informed(tx, compiled.rules).timing, through)
    state, reason, resume_at = cadence.state, cadence.state_reason, cadence.resume_at
    if state == "paused" and resume_at is not None and resume_at <= starts_at:
        state, reason, resume_at = "active", None, None
    if state in ("active", "done") and reason is None:
        state = "done" if next_at is None and state == "done" else "active"
    return cadence._replace(
        state=state,
        state_reason=reason,
        resume_at=resume_at,
        planned_through=through,
        next_at=next_at,
        ran_through=0,
        backoff_until=None,
        catch_up_until=None,
        open_run_id=None,
        queued_run_id=None,
        last_row_id=None,
        consecutive_errors=0,
        session_id=None,
        last_run_at=None,
    )


def _write_money(tx: Tx, copied: Copied, starts_at: Instant, *, is_now: bool) -> None:
    money = copied.money
    for written in money.limits:
        tx[SetLimits].put(written)
    for brake in money.brakes:
        tx[Brakes].put(brake)
    newest = max((charge.at for charge in copied.charges), default=starts_at)
    shift = max(newest - starts_at, 0) + LONG_AGO
    closed = [charge._replace(run_id=-charge.run_id, at=charge.at - shift) for charge in copied.charges]
    # A charge that is older than its store was dated by a wrong clock, and would count for today.
    tx[Meta].set(BORN_AT, str(min((charge.at for charge in closed), default=starts_at)))
    tx[Charges].put_many([charge for charge in closed if charge.settled_at is not None])
    for row in money.spent if is_now else ():
        limit = Limit(row.scope, row.unit, row.period, 0)
        window = window_of(row.period, row.zone, starts_at)
        opened = tx[BudgetPeriods].open([(limit, window, row.zone)])[limit]
        if opened is not None:
            tx[BudgetPeriods].save_many([opened._replace(spent=row.spent)])


def _write_slots(tx: Tx, copied: Copied, starts_at: Instant, *, is_now: bool) -> None:
    for slot in copied.slots:
        added = tx[QuotaSlots].add_new(slot.name, None, now=starts_at)
        if added is not None and is_now:
            tx[QuotaSlots].save_many([added._replace(exhausted_until=slot.exhausted_until)])


def _write_heartbeat(tx: Tx, heartbeat: Heartbeat, cadence: Cadence, starts_at: Instant, *, is_now: bool) -> None:
    owner_id = tx[Owners].named(HEARTBEAT)
    cadence = cadence._replace(
        schedule_id=owner_id, open_run_id=None, queued_run_id=None, last_row_id=None, session_id=None
    )
    heartbeat = heartbeat._replace(owner_id=owner_id, wakes="[]", asked_at=None)
    if not is_now:
        cadence = cadence._replace(planned_through=starts_at - 1, next_at=None, ran_through=0, consecutive_errors=0)
        heartbeat = heartbeat._replace(retry_at=None, held_until=None, tripped_at=None, turns="[]", turned_at=None)
    tx[Heartbeats].add_first(heartbeat)
    tx.cadences.add_many([cadence])
