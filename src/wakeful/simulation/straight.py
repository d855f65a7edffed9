"""Runs that need no engine: those of a plain schedule (`core.schedule.plain`) without a lane, whose attempts succeed.

Nothing but its timing decides about such a run. It starts when it is due, ends before the next instant, and changes
nothing for other schedules while there is capacity for all. The schedule goes straight on until something else
happens: an attempt fails, is ended by its timeout or lasts into the next instant, or an outage begins. From that
instant on it is left to the engine.
"""

from typing import NamedTuple

from wakeful.core.schedule.cadence import Cadence
from wakeful.core.schedule.plain import following
from wakeful.core.simulation.summary import SimulatedRow
from wakeful.core.time.instants import Instant
from wakeful.features.schedules.alarms import alarm_of
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.features.schedules.rules import Terms
from wakeful.ports.store import ALARM_SCHEDULE, Tx
from wakeful.simulation.actions import Behaviour
from wakeful.simulation.copying import all_schedules


class Straight(NamedTuple):
    """The runs that one schedule makes without the engine, and its state after them."""

    runs: list[SimulatedRow]
    cadence: Cadence
    compiled: Compiled

    @property
    def ends_at(self) -> Instant:
        return self.runs[-1].ended_at or self.runs[-1].due_at


def go_straight(tx: Tx, terms: Terms, behaviour: Behaviour, since: Instant, until: Instant) -> list[Straight]:
    """The runs in this period that need no engine. The engine does not see their schedules until `hand_over`."""
    if terms.is_standby or terms.exclude is not None:
        return []
    compiled = [read_stored(row.schedule_id, row.version, row.definition) for row in all_schedules(tx)]
    alone = {known.schedule_id: known for known in compiled if isinstance(known, Compiled) and _is_alone(known)}
    found: list[Straight] = []
    for schedule_id, cadence in sorted(tx.cadences.lock(sorted(alone)).items()):
        if _is_in_order(cadence) and cadence.next_at is not None and cadence.next_at >= since:
            runs, next_at = _runs(alone[schedule_id], cadence.next_at, behaviour, until)
            if runs:
                after = cadence._replace(planned_through=runs[-1].planned_at, next_at=next_at)
                found.append(Straight(runs, after, alone[schedule_id]))
                behaviour.meter.begins += [run.due_at for run in runs]
                behaviour.meter.ends += [run.ended_at for run in runs if run.ended_at is not None]
    tx.alarms.remove_many(ALARM_SCHEDULE, [straight.cadence.schedule_id for straight in found])
    return found


def hand_over(tx: Tx, straight: Straight) -> None:
    """Its last run has ended: the engine decides about its next instant."""
    tx.cadences.save_many([straight.cadence])
    tx.alarms.set_many([alarm_of(straight.cadence, straight.compiled)])


def _is_alone(compiled: Compiled) -> bool:
    return compiled.is_plain and compiled.lane is None


def _is_in_order(cadence: Cadence) -> bool:
    """Whether nothing is left from before, as the plain path demands it."""
    return (
        cadence.state == "active"
        and (cadence.open_run_id, cadence.queued_run_id, cadence.backoff_until, cadence.catch_up_until) == (None,) * 4
        and (cadence.consecutive_errors, cadence.trouble) == (0, 0)
        and cadence.ran_through <= cadence.planned_through
    )


def _runs(
    compiled: Compiled, instant: Instant, behaviour: Behaviour, until: Instant
) -> tuple[list[SimulatedRow], Instant]:
    """The runs from this instant on, and the first instant that is left to the engine."""
    rules, slug, timeout = compiled.rules, compiled.definition.slug, compiled.definition.timeout
    runs: list[SimulatedRow] = []
    while True:
        due_at = instant + rules.offset
        then = following(rules, instant, due_at, due_at)
        if then is None or then.next_at is None or then.due_at is None:
            return runs, instant
        sample = behaviour.sample(slug, instant, 1)
        ended_at = due_at + sample.took
        is_plain = sample.outcome == "succeeded" and sample.usage is None and sample.took < timeout
        if not is_plain or ended_at >= min(until, then.due_at):
            return runs, instant
        runs.append(SimulatedRow(slug, instant, None, 1, due_at, "schedule", due_at, ended_at, "succeeded", None, None))
        instant = then.next_at
