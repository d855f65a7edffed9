"""Which schedules of a plan can be computed without the engine (`simulation.straight`), and when they cannot."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wakeful.app.simulation_job import SimulationJob
from wakeful.core.heartbeat.heartbeat import timing_of
from wakeful.core.money.budgets import Limit
from wakeful.core.schedule.actions import Event, Prompt
from wakeful.core.simulation.request import Span, Troubles
from wakeful.core.slot.windows import slot_name
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import AfterReset, Timing, tally
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.heartbeat.state import find
from wakeful.features.money.budget_rows import Brakes, BudgetPeriods
from wakeful.features.money.terms import effective, model_of
from wakeful.features.money.unpriced import is_priced
from wakeful.features.schedules.compiled import Compiled, agent_of, lane_of, read_stored
from wakeful.ports.owners import Owners
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Tx
from wakeful.simulation.actions import Behaviour
from wakeful.simulation.copying import Copied, all_schedules
from wakeful.simulation.payments import ALWAYS, Budgets, Owner, Payments, UsedUp
from wakeful.simulation.straight import Group, Rest, is_straight


class Grouped(NamedTuple):
    """The groups of a plan, and what they depend on."""

    groups: Sequence[Group]
    budgets: Budgets
    rest: Rest


def grouped(
    tx: Tx, job: SimulationJob, copied: Copied, behaviour: Behaviour, troubles: Troubles, used_up: UsedUp
) -> Grouped:
    """Group the schedules of a plan, drafts included, as they are in the store."""
    terms, starts_at = job.terms, job.request.starts_at
    payments = Payments(job.money.prices)
    rest = Rest(terms, behaviour, payments, job.request.ends_at - 1)
    stored = (read_stored(row.schedule_id, row.version, row.definition) for row in all_schedules(tx))
    compiled = [known for known in stored if isinstance(known, Compiled)]
    spent = {Limit(row.scope, row.unit, row.period, 0): row.spent for row in tx[BudgetPeriods].current(starts_at)}
    owners = list(_owners(tx, job, behaviour, compiled))
    limits = effective(tx, job.money)
    budgets = Budgets(
        limits,
        owners,
        copied.charges,
        spent,
        payments,
        zone=terms.default_zone,
        starts_at=starts_at,
        ends_at=job.request.ends_at,
    )
    if terms.is_standby:
        return Grouped((), budgets, rest)
    needs = _Needs(tx, job, troubles, budgets, used_up)
    old = _in_old_lanes(tx, compiled)
    found = (_group(lane, of_lane, old.get(lane, []), compiled, job, needs) for lane, of_lane in _lanes(compiled, job))
    groups = [group for group in found if group.straight or group.is_beating]
    return Grouped(groups, budgets, rest)


def _group(
    lane: str | None,
    of_lane: Sequence[Compiled],
    old: Sequence[Compiled],
    compiled: Sequence[Compiled],
    job: SimulationJob,
    needs: "_Needs",
) -> Group:
    spans = {known.schedule_id: list(needs.engine(known)) for known in of_lane}
    able = {
        known.schedule_id: known
        for known in of_lane
        if is_straight(known, job.terms) and ALWAYS not in spans[known.schedule_id]
    }
    others = [known for known in of_lane if known.schedule_id not in able] + list(old)
    closed = {span for key in able for span in spans[key]}
    heartbeat = job.heartbeat if job.heartbeat is not None and lane == job.heartbeat.lane else None
    is_beating = False
    if heartbeat is not None:
        others += [known for known in compiled if isinstance(known.model.action, Event)]  # they request turns
        of_beats = set(needs.money(needs.heartbeat_id, heartbeat.agent))
        is_beating = ALWAYS not in of_beats
        closed |= of_beats if is_beating else set()
    closed |= {span for known in others for span in needs.reset(known)} | needs.outages
    return Group(
        lane, able, {known.schedule_id: known for known in others}, sorted(closed), heartbeat, is_beating=is_beating
    )


def _lanes(compiled: Sequence[Compiled], job: SimulationJob) -> Iterator[tuple[str | None, list[Compiled]]]:
    """The schedules by the lane that their turns or actions use; those without one are each alone."""
    by_lane: dict[str, list[Compiled]] = {}
    if job.heartbeat is not None and not job.terms.is_lifted(job.heartbeat.lane):
        by_lane[job.heartbeat.lane] = []
    for known in compiled:
        lane = lane_of(known.model)
        if lane is None or job.terms.is_lifted(lane):
            yield None, [known]
        else:
            by_lane.setdefault(lane, []).append(known)
    yield from by_lane.items()


def _in_old_lanes(tx: Tx, compiled: Sequence[Compiled]) -> dict[str | None, list[Compiled]]:
    """Schedules with a waiting run, by its lane: a draft may have moved the schedule to another one."""
    known = {one.schedule_id: one for one in compiled}
    cadences = tx.cadences.lock(sorted(known)).values()
    open_ids = [key for c in cadences for key in (c.open_run_id, c.queued_run_id) if key is not None]
    by_lane: dict[str | None, list[Compiled]] = {}
    for run in tx.runs.lock(sorted(open_ids)).values():
        if run.lane is not None and run.lane != known[run.schedule_id].lane:
            by_lane.setdefault(run.lane, []).append(known[run.schedule_id])
    return by_lane


def _owners(tx: Tx, job: SimulationJob, behaviour: Behaviour, compiled: Sequence[Compiled]) -> Iterator[Owner]:
    for known in compiled:
        usages, instants = behaviour.usages(known.slug), _instants(known.rules.timing, job)
        action = known.model.action
        is_unpriced = isinstance(action, Prompt) and not is_priced(tx, job.money, action.agent, model_of(action))
        yield Owner(known.schedule_id, agent_of(known), usages, instants, known.model.budget, is_unpriced)
    state = find(tx)
    if job.heartbeat is not None and state is not None:
        usages, instants = behaviour.usages(HEARTBEAT), _instants(timing_of(state.heartbeat), job)
        is_unpriced = not is_priced(tx, job.money, job.heartbeat.agent)
        yield Owner(state.heartbeat.owner_id, job.heartbeat.agent, usages, instants, None, is_unpriced)


def _instants(timing: Timing, job: SimulationJob) -> int:
    if isinstance(timing, AfterReset):
        return 0  # they depend on when the quota is used up
    return tally(timing, job.request.starts_at, job.request.ends_at).count


class _Needs:
    """When a schedule's runs need the engine."""

    def __init__(self, tx: Tx, job: SimulationJob, troubles: Troubles, budgets: Budgets, used_up: UsedUp) -> None:
        self.outages = set(troubles.outages)
        self.heartbeat_id = tx[Owners].find(HEARTBEAT)
        self._troubles = troubles
        self._budgets = budgets
        self._used_up = used_up
        self._is_braking = job.money.brake
        self._braked = frozenset(tx[Brakes].all())
        self._exhausted: list[tuple[str, Instant]] = [
            (slot.name, slot.exhausted_until) for slot in tx[QuotaSlots].all() if slot.exhausted_until is not None
        ]

    def engine(self, compiled: Compiled) -> Iterator[Span]:
        """When a gate or a budget may decide about its runs."""
        agent, slot = agent_of(compiled), compiled.model.slot
        if slot is not None:
            yield from self._quota(slot)
        if agent is not None:
            yield from self._quota(slot_name(agent))
            scopes = ("all", f"agent:{agent}", f"schedule:{compiled.slug}")
            yield from (Span(*span[:2]) for span in self._troubles.budgets if span.scope in scopes)
        yield from self.money(compiled.schedule_id, agent)

    def money(self, owner_id: int | None, agent: str | None) -> Iterator[Span]:
        """When a budget may decide about its turns, or its agent is stopped."""
        if agent is not None and (self._is_braking or agent in self._braked):
            yield ALWAYS
        if owner_id is not None:
            yield from self._budgets.closed(owner_id, self._used_up)

    def reset(self, compiled: Compiled) -> Iterator[Span]:
        """When a schedule that waits for a reset gets its next instant."""
        timing = compiled.rules.timing
        return self._quota(timing.slot) if isinstance(timing, AfterReset) else iter(())

    def _quota(self, slot: str) -> Iterator[Span]:
        yield from (Span(0, until) for name, until in self._exhausted if name == slot)
        yield from (Span(*span[:2]) for span in self._troubles.quota if span.slot == slot)
