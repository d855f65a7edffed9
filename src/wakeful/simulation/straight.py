"""Runs that need no engine: those whose own timing, and the order in their lane, decide about everything.

Theory of operation
-------------------
Schedules that share a lane are computed together, as a *group*; one without a lane is a group of its own. Each run
starts when it is due, or when the runs before it in the lane have ended; it succeeds, and ends before the next instant
of its schedule. Such runs change nothing for other groups while there is capacity for all.

A group goes straight from a moment at which nothing of it is open, until something else may happen: an attempt fails,
is ended by its timeout or lasts into the next instant; a schedule of the lane that is not straight is due, or the
heartbeat; an outage begins, a quota or a budget is used up (`Group.closed`). What belongs together in the lane stays
together: a run that waited for another one is straight only if both are. The cadences are then moved behind the last
run, and the engine decides about the next instant. Right before the instant after it, the group is tried again.
"""

import heapq
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from wakeful.core.heartbeat.acknowledgement import judge
from wakeful.core.heartbeat.heartbeat import WINDOW, timing_of, turns_within
from wakeful.core.heartbeat.heartbeat import rings_at as beats_at
from wakeful.core.schedule.actions import Call, Command, Http, Prompt
from wakeful.core.schedule.cadence import Cadence, is_too_late
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.plain import FREE, following, is_clear
from wakeful.core.simulation.request import Span
from wakeful.core.simulation.summary import SimulatedRow
from wakeful.core.time.instants import HOUR, Instant
from wakeful.core.time.timing import Cron, Every, Once, Times, next_after
from wakeful.features.heartbeat.rules import HEARTBEAT, HeartbeatTerms
from wakeful.features.heartbeat.runs import NO_REPLY
from wakeful.features.heartbeat.state import HeartbeatState, find, save
from wakeful.features.schedules.alarms import rings_at
from wakeful.features.schedules.compiled import Compiled
from wakeful.features.schedules.rules import Terms
from wakeful.ports.heartbeats import WaitingEvents
from wakeful.ports.store import ALARM_SCHEDULE, Tx
from wakeful.simulation.actions import Behaviour, reply_of
from wakeful.simulation.payments import Payments

# Fields that change nothing while an attempt succeeds: replies are delivered to nobody, and `closed` says when a slot
# or a budget matters.
_FREE: Final = FREE | {"deliver", "success", "slot", "budget", "expires_at"}
_OTHERS: Final = [field for field in fields(Definition) if field.name not in _FREE]
_USUAL: Final = tuple(field.default for field in _OTHERS)
_others: Final = attrgetter(*(field.name for field in _OTHERS))


@dataclass(frozen=True, slots=True)
class Group:
    """Schedules that are computed together."""

    lane: str | None
    straight: Mapping[int, Compiled]
    others: Mapping[int, Compiled]  # that use the lane too, and always need the engine
    closed: Sequence[Span]  # when the engine decides, in order
    heartbeat: HeartbeatTerms | None = None  # if its turns use the lane too
    is_beating: bool = False  # whether its beats can be computed

    def is_closed(self, at: Instant) -> Span | None:
        """The period at this time in which the engine decides."""
        return next((span for span in self.closed if span.starts_at <= at < span.ends_at), None)

    def tried_at(self, after: Instant) -> Instant | None:
        """When to try next, after this time: right before an instant."""
        while True:
            due_at = self._next_due(after)
            closed = None if due_at is None else self.is_closed(due_at - 1)
            if due_at is None or closed is None:
                return None if due_at is None else due_at - 1
            after = closed.ends_at

    def _next_due(self, after: Instant) -> Instant | None:
        rules = [compiled.rules for compiled in self.straight.values()]
        found = [(next_after(rule.timing, after - rule.offset), rule.offset) for rule in rules]
        if self.heartbeat is not None and self.is_beating:
            found.append((after + self.heartbeat.every, 0))
        return min((at + offset for at, offset in found if at is not None), default=None)


class Stretch(NamedTuple):
    """The runs that a group makes without the engine, and when it is worth trying again."""

    runs: Sequence[SimulatedRow]
    owners: Sequence[int]  # the schedule of each run
    tried_until: Instant


def is_straight(compiled: Compiled, terms: Terms) -> bool:
    """Whether the definition's runs can be computed."""
    definition = compiled.model
    return (
        isinstance(definition.timing, Every | Cron | Times | Once)
        and isinstance(definition.action, Prompt | Call | Command | Http)
        and _others(definition) == _USUAL
        and terms.too_often(compiled) is None
    )


class Rest(NamedTuple):
    """What else the runs depend on."""

    terms: Terms
    behaviour: Behaviour
    payments: Payments
    ends_at: Instant  # the last moment of the simulation


def go_straight(tx: Tx, group: Group, rest: Rest, now: Instant) -> Stretch:
    """Compute what needs no engine from now on, and move the cadences behind it."""
    closed = group.is_closed(now)
    if closed is not None:
        return Stretch((), (), closed.ends_at)
    cadences = tx.cadences.lock(sorted({*group.straight, *group.others}))
    if any(cadence.open_run_id is not None or cadence.queued_run_id is not None for cadence in cadences.values()):
        return Stretch((), (), now + 1)
    until = min([rest.ends_at, *(span.starts_at for span in group.closed if span.starts_at > now)])
    ready: list[_Next] = []
    for schedule_id, cadence in cadences.items():
        compiled = group.straight.get(schedule_id) or group.others[schedule_id]
        due_at = rings_at(cadence, compiled)
        if due_at is None:
            continue
        if schedule_id in group.straight and _is_in_order(cadence) and cadence.next_at is not None and due_at > now:
            ready.append((due_at, schedule_id, cadence.next_at, _Instants(compiled, rest)))
        else:
            until = min(until, due_at)
    beats = None if group.heartbeat is None else _beats(tx, group, group.heartbeat, rest)
    if beats is not None and beats.rings_at is not None:
        if beats.is_in_order and beats.rings_at > now and beats.before.next_at is not None:
            ready.append((beats.rings_at, beats.before.schedule_id, beats.before.next_at, beats))
        else:
            until = min(until, beats.rings_at)
    lane = _Lane(ready)
    if until > now and (beats is None or beats.before.open_run_id is None):
        lane.run(until)
    if not lane.runs:
        return Stretch((), (), max(lane.tried_until, now + 1))
    _move(tx, group, cadences, lane.moved)
    if beats is not None and beats.before.schedule_id in lane.moved:
        beats.move(tx, *lane.moved[beats.before.schedule_id], [r for r in lane.runs if r.slug == HEARTBEAT])
    rest.behaviour.meter.begins += [run.started_at for run in lane.runs if run.started_at is not None]
    rest.behaviour.meter.ends += [run.ended_at for run in lane.runs if run.ended_at is not None]
    return Stretch(lane.runs, lane.owners, lane.tried_until)


def _move(tx: Tx, group: Group, cadences: Mapping[int, Cadence], moved: Mapping[int, tuple[Instant, Instant]]) -> None:
    after = [
        cadences[key]._replace(planned_through=planned_through, next_at=next_at)
        for key, (planned_through, next_at) in moved.items()
        if key in cadences
    ]
    tx.cadences.save_many(after)
    alarms = [(cadence.schedule_id, rings_at(cadence, group.straight[cadence.schedule_id])) for cadence in after]
    tx.alarms.move_many(ALARM_SCHEDULE, alarms)


def _is_in_order(cadence: Cadence) -> bool:
    """Whether nothing is left from before: after an error, a success is an event of its own."""
    return is_clear(cadence) and not cadence.consecutive_errors


class _Step(NamedTuple):
    """A run, and the instant after it, with the time at which it is due."""

    run: SimulatedRow
    ended_at: Instant
    next_at: Instant
    due_at: Instant


class _Instants:
    """The instants of a schedule."""

    __slots__ = ("_compiled", "_rest", "is_apart")

    def __init__(self, compiled: Compiled, rest: Rest) -> None:
        self._compiled = compiled
        self._rest = rest
        self.is_apart = compiled.is_plain

    def at(self, instant: Instant, due_at: Instant, free_at: Instant) -> _Step | None:
        """The run of an instant, if its lane is free from then on; None if the engine must decide about it."""
        compiled, (terms, behaviour, payments, _) = self._compiled, self._rest
        definition, slug = compiled.model, compiled.slug
        then = following(compiled.rules, instant, due_at, due_at)
        if then is None or then.next_at is None or then.due_at is None:
            return None
        sample = behaviour.sample(slug, instant, 1)
        started_at = max(due_at, free_at)
        if is_too_late(compiled.rules, started_at, due_at):
            return None
        ended_at = started_at + sample.took
        if sample.outcome != "succeeded" or sample.took >= definition.timeout or ended_at >= then.due_at:
            return None
        if terms.exclude is not None and terms.excludes(definition, instant):
            return None
        paid = payments.of(sample.usage, is_turn=isinstance(definition.action, Prompt))
        run = SimulatedRow(
            slug, instant, None, 1, due_at, "schedule", started_at, ended_at, "succeeded", None,
            compiled.lane, *paid,
        )  # fmt: skip
        return _Step(run, ended_at, then.next_at, then.due_at)


class _Beats:
    """The beats of the heartbeat."""

    is_apart = True

    def __init__(self, state: HeartbeatState, terms: HeartbeatTerms, rest: Rest, *, is_in_order: bool) -> None:
        self._heartbeat, self.before = state
        self._terms = terms
        self._rest = rest
        self.rings_at = beats_at(self._heartbeat, self.before, terms.beats)
        self.is_in_order = is_in_order
        self._turns = deque(turns_within(self._heartbeat, self.rings_at or 0))

    def at(self, instant: Instant, due_at: Instant, free_at: Instant) -> _Step | None:
        """The turn of a beat; None if the engine must decide about it."""
        terms, behaviour, turns = self._terms, self._rest.behaviour, self._turns
        while turns and turns[0] <= due_at - HOUR:
            turns.popleft()
        next_at = next_after(timing_of(self._heartbeat), instant)
        sample, ended_at = behaviour.sample(HEARTBEAT, instant, 1), due_at
        ended_at += sample.took
        if (
            next_at is None
            or due_at != instant + WINDOW
            or free_at > due_at
            or len(turns) >= terms.beats.turns_per_hour_max
            or behaviour.finds_nothing(HEARTBEAT, instant)
            or sample.outcome != "succeeded"
            or sample.took >= terms.timeout
            or ended_at >= next_at
        ):
            return None
        turns.append(due_at)
        reply = reply_of(sample, terms.ack)
        reason = NO_REPLY if reply is None else judge(reply, terms.ack).verdict
        paid = self._rest.payments.of(sample.usage, is_turn=True)
        run = SimulatedRow(
            HEARTBEAT, instant, None, 1, due_at, "schedule", due_at, ended_at, "succeeded", reason, terms.lane, *paid
        )
        return _Step(run, ended_at, next_at, next_at + WINDOW)

    def move(self, tx: Tx, planned_through: Instant, next_at: Instant, runs: Sequence[SimulatedRow]) -> None:
        """Write the state after these turns."""
        cadence = self.before._replace(planned_through=planned_through, next_at=next_at)
        last = runs[-1].due_at
        turns = [*turns_within(self._heartbeat, last), *(run.due_at for run in runs if run.due_at > last - HOUR)]
        heartbeat = self._heartbeat._replace(turns=json.dumps(turns), turned_at=runs[-1].ended_at)
        save(tx, heartbeat, self.before, cadence, self._terms.beats, now=last)


def _beats(tx: Tx, group: Group, terms: HeartbeatTerms, rest: Rest) -> _Beats | None:
    state = find(tx)
    if state is None:
        return None
    heartbeat, cadence = state
    is_in_order = (
        group.is_beating
        and _is_in_order(cadence)
        and (heartbeat.asked_at, heartbeat.retry_at, heartbeat.held_until, heartbeat.tripped_at) == (None,) * 4
        and terms.beats.hours is None
        and terms.check is None
        and not tx[WaitingEvents].all()
    )
    return _Beats(state, terms, rest, is_in_order=is_in_order)


_Next: TypeAlias = tuple[Instant, int, Instant, _Instants | _Beats]
"""When an instant is due, its owner, and the instant. No two have the same owner."""


class _Lane:
    """Computes the runs of a group in the order in which they are due. Those that wait for one another are kept
    together or not at all."""

    def __init__(self, ready: list[_Next]) -> None:
        self._due = ready
        heapq.heapify(ready)
        self.runs: list[SimulatedRow] = []
        self.owners: list[int] = []
        self.moved: dict[int, tuple[Instant, Instant]] = {}  # the last instant that ran, and the next one
        self.tried_until: Instant = 0
        self._moving: list[tuple[int, Instant, Instant]] = []  # the same, for the runs since the lane was free

    def run(self, until: Instant) -> None:
        """Go on until something else happens, or until then."""
        free_at, last_due, is_last_apart = 0, 0, False
        self.tried_until = until
        while self._due:
            due_at, owner_id, instant, source = self._due[0]
            if due_at > free_at:
                self._keep()
            if due_at >= until:
                break
            # Of two that are due together, the one with the lower id is first, unless they take different paths. One
            # that is due when another ends may find the lane free or not.
            is_tie = due_at == last_due and (source.is_apart or is_last_apart)
            step = None if is_tie or due_at == free_at else source.at(instant, due_at, free_at)
            if step is None:
                self.tried_until = due_at
                break
            run, ended_at, next_at, next_due = step
            if ended_at >= until:
                break
            self.runs.append(run)
            self.owners.append(owner_id)
            self._moving.append((owner_id, instant, next_at))
            heapq.heapreplace(self._due, (next_due, owner_id, next_at, source))
            free_at, last_due, is_last_apart = ended_at, due_at, source.is_apart
        if self._moving:  # the lane is not free before something else happens: the engine begins with these
            del self.runs[-len(self._moving) :]
            del self.owners[-len(self._moving) :]

    def _keep(self) -> None:
        """The lane is free: these runs are straight."""
        for owner_id, instant, next_at in self._moving:
            self.moved[owner_id] = instant, next_at
        self._moving.clear()
