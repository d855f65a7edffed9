"""Handles schedule alarms: decides due instants, creates runs, and advances cadences."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from wakeful.core.delivery.incidents import BAD, RECOVERING, failing
from wakeful.core.run.effects import Observed
from wakeful.core.run.runs import Run
from wakeful.core.run.transitions import planned
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.cadence import (
    Cadence,
    Gap,
    Plan,
    Start,
    due_at,
    is_spent,
    is_turned,
    ring,
)
from wakeful.core.schedule.exclude import EXCLUDED
from wakeful.core.schedule.labels import may_take
from wakeful.core.schedule.policies import GRACE
from wakeful.core.time.active_hours import is_active
from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.timing import Timing, next_after
from wakeful.engine import planning
from wakeful.engine.planning import Decided, Planned, shortened, taken_ahead, turned_back, void_ahead
from wakeful.features.schedules.anchoring import anchored_behind
from wakeful.features.schedules.checks import MINIMUM_INTERVAL
from wakeful.features.schedules.compiled import KIND, Broken, Compilations, Compiled, read_stored
from wakeful.features.schedules.jobs import Jobs
from wakeful.features.schedules.labels import gap_reason_of
from wakeful.features.schedules.plain import plain_batches
from wakeful.features.schedules.resets import followed, informed
from wakeful.features.schedules.rules import Terms
from wakeful.ports.claims import Batch
from wakeful.ports.handlers import Due, RingResult
from wakeful.ports.live import Live
from wakeful.ports.plain import DueSchedule
from wakeful.ports.store import ALARM_SCHEDULE, Alarm, Tx

# Gaps that repeat instant after instant extend one row instead of adding one each.
REPEATING: Final = frozenset({"blocked", "standby", "outside active hours", EXCLUDED})


ON_TIME_MAX: Final = 200
"""Among how many that are due within the grace those are looked for that need no lane."""


class ScheduleAlarms:
    """Rings schedules under the terms current at each ring."""

    kind = ALARM_SCHEDULE
    brings_runs = True

    def __init__(
        self,
        compilations: Compilations,
        jobs: Jobs,
        terms: Live[Terms] | None = None,
        is_here: Callable[[Call], bool] | None = None,
        labels: Callable[[], frozenset[str]] = frozenset,
        is_gated: bool = False,
    ) -> None:
        self._compilations = compilations
        self._jobs = jobs
        self._terms = terms or Live(Terms())
        self._is_gated = is_gated  # whether a gate may concern every run, so that none is plain
        self._labels = labels  # of this node, as its row in the store says
        self._is_here = is_here  # whether this node has a callable; None: every node has all

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        """Decide every schedule whose alarm was due by `due_by`, at most `limit` of them. One query finds them by due
        time, then they are split into plain and others, so that neither group delays the other."""
        labels = self._labels()
        rung = _due(tx, labels, due_by, limit)
        if not rung:
            return RingResult((), 0)
        if len(rung) > late_max and rung[late_max].due_at <= now - GRACE:
            rung = self._with_what_is_on_time(tx, rung, labels, due_by, now, limit - late_max)
        compiled = self._compilations.of(tx, [(schedule.schedule_id, schedule.version) for schedule in rung])
        # due_by < now: there is no capacity for them
        is_possible = due_by == now and not self._is_gated and not self._terms.value.is_standby
        batches: list[Batch] = []
        rest = rung
        if is_possible:
            batches, rest = plain_batches(
                tx, rung, compiled, self._jobs, now=now, is_here=self._is_here, terms=self._terms.value
            )
        if not rest:
            return RingResult((), len(rung), plain=batches)
        others = tx.cadences.lock([schedule.schedule_id for schedule in rest])
        decisions = [
            self._decide(tx, others[schedule.schedule_id], compiled[schedule.schedule_id], now, gap_reason)
            for schedule in rest
            if schedule.schedule_id in others
        ]
        decisions = _kept(tx, decisions, labels)
        due = record(tx, decisions, now=now)
        effects = [seen for decision in decisions if (seen := _silence(decision, now)) is not None]
        return RingResult(due, len(rung), effects=effects, plain=batches)

    def _with_what_is_on_time(
        self, tx: Tx, rung: Sequence[DueSchedule], labels: frozenset[str], due_by: Instant, now: Instant, most: int
    ) -> list[DueSchedule]:
        """Schedules that are due within the grace and need no lane, at most so many, before those that are late."""
        due = _due(tx, labels, due_by, ON_TIME_MAX, after=now - GRACE)
        compiled = self._compilations.of(tx, [(schedule.schedule_id, schedule.version) for schedule in due])
        on_time = [one for one in due if isinstance(known := compiled[one.schedule_id], Compiled) and not known.lane]
        first = on_time[:most]
        known_ids = {schedule.schedule_id for schedule in first}
        rest = [schedule for schedule in rung if schedule.schedule_id not in known_ids]
        return [*first, *rest[: len(rung) - len(first)]]

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        """Replan from now what was planned on a clock that ran ahead; future gaps are voided, completed runs kept."""
        cadences = tx.cadences.ahead_of(now, after_id=after_id, limit=limit)
        if not cadences:
            return None
        compiled = self._compilations.of(tx, [(c.schedule_id, c.version) for c in cadences])
        turned: list[Cadence] = []
        for cadence in cadences:
            known = compiled[cadence.schedule_id]
            if isinstance(known, Compiled):
                _void_gaps(tx, cadence, known, now)
                anchored, known = anchored_behind(tx, cadence, known, now)
                compiled[cadence.schedule_id] = known
                turned.append(turned_back(tx, anchored, informed(tx, known.rules), now=now))
            else:
                turned.append(cadence._replace(planned_through=now))
        resumed = [after for before, after in zip(cadences, turned, strict=True) if is_turned(before, after)]
        tx.cadences.save_many(turned, turned=resumed)
        tx.alarms.set_many([alarm_of(cadence, compiled[cadence.schedule_id]) for cadence in turned])
        return cadences[-1].schedule_id

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """Schedules have no side tasks."""

    def replan_zoned(
        self, tx: Tx, *, after_id: int, limit: int, concerns: Callable[[Timing], bool] = lambda _: True
    ) -> tuple[int, list[str]] | None:
        """Rules of time zones or of cron changed: recompute the alarms of zoned schedules with timings that this
        concerns; returns the last id processed, and their slugs."""
        schedules = tx.schedules.zoned(after_id=after_id, limit=limit)
        if not schedules:
            return None
        compiled = self._compilations.of(tx, [(s.schedule_id, s.version) for s in schedules])
        moved: list[Cadence] = []
        for cadence in tx.cadences.lock([s.schedule_id for s in schedules]).values():
            known = compiled[cadence.schedule_id]
            if isinstance(known, Compiled) and concerns(known.rules.timing):
                moved.append(cadence._replace(next_at=next_after(known.rules.timing, cadence.planned_through)))
        moved.sort()
        tx.cadences.save_many(moved)
        tx.alarms.set_many([alarm_of(cadence, compiled[cadence.schedule_id]) for cadence in moved])
        concerned = {cadence.schedule_id for cadence in moved}
        return schedules[-1].schedule_id, [s.slug for s in schedules if s.schedule_id in concerned]

    def _decide(
        self, tx: Tx, cadence: Cadence, compiled: Compiled | Broken, now: Instant, gap_reason: str
    ) -> "RingDecision":
        if isinstance(compiled, Broken):
            return RingDecision(cadence, _invalid(cadence, compiled.reason, now), (), compiled)
        due = due_at(cadence, compiled.rules)
        if due is None or due > now:
            return RingDecision(cadence, cadence, (), compiled)  # a stale alarm: recompute it
        try:
            rules = informed(tx, compiled.rules, cadence.next_at)
            if compiled.run_on is not None and due < now - GRACE:
                gap_reason = gap_reason_of(tx, compiled.run_on, due, gap_reason)
            plan = ring(
                cadence,
                rules,
                now=now,
                gap_reason=gap_reason,
                taken=taken_ahead(tx, cadence, now),
                excluded=self._terms.value.excluded(compiled.model),
            )
        except Exception as error:  # a timing that cannot be computed must not stop the other schedules (L9)
            broken = _invalid(cadence, str(error) or type(error).__name__, now)
            return RingDecision(cadence, broken, (), compiled)
        rows = tuple(self._filtered(row, compiled, now, gap_reason) for row in plan.rows)
        after = followed(tx, compiled.rules, plan.cadence)
        if after.next_at is None and is_spent(compiled.rules, None) and after.open_run_id is None and not _starts(rows):
            trouble = BAD if _missed(rows) else after.trouble
            after = after._replace(state="done", state_at=now, trouble=trouble)
        return RingDecision(cadence, after, rows, compiled)

    def _filtered(self, row: Start | Gap, compiled: Compiled, now: Instant, gap_reason: str) -> Start | Gap:
        """Turn an instant that must not start into a gap."""
        if isinstance(row, Gap):
            return row
        at, hours = row.planned_at, compiled.model.active_hours
        reason = self._unwanted(at, compiled)
        if reason is not None:
            return Gap(at, at, 1, "skipped", reason)
        if row.trigger == "catchUp" and hours is not None and not is_active(hours, now):
            return Gap(at, at, 1, "missed", gap_reason)  # inside the hours then, outside now: no catch-up
        return row

    def _unwanted(self, planned_at: Instant, compiled: Compiled) -> str | None:
        terms, hours = self._terms.value, compiled.model.active_hours
        if terms.is_standby:
            return "standby"
        if hours is not None and not is_active(hours, planned_at):
            return "outside active hours"
        return terms.too_often(compiled)


class RingDecision(NamedTuple):
    """A cadence after a decision, and the resulting ledger rows."""

    before: Cadence  # as stored until now
    cadence: Cadence
    rows: Sequence[Start | Gap]
    compiled: Compiled | Broken
    gaps_of: tuple[int, str] | None = None  # the version and text that gaps belong to, if not the cadence's own


def decided(plan: Plan, compiled: Compiled, before: Cadence, *, gaps_of: tuple[int, str] | None = None) -> RingDecision:
    """A plan made outside a ring (resume, edit), ready to be recorded."""
    return RingDecision(before, plan.cadence, plan.rows, compiled, gaps_of)


def record(tx: Tx, all_decided: Sequence[RingDecision], *, now: Instant) -> list[Due]:
    """Write the decisions; returns the new runs, not yet written."""
    return planning.record(tx, INSTANTS, [_written(decision) for decision in all_decided], now=now)


def _written(decision: RingDecision) -> Decided:
    compiled, gaps_of = decision.compiled, decision.gaps_of or (None, None)
    return Decided(
        decision.before,
        decision.cadence,
        decision.rows,
        lambda cadence: rings_at(cadence, compiled),
        start=lambda run_id, start: _run(run_id, start, compiled),
        timing=None if isinstance(compiled, Broken) else compiled.rules.timing,
        version=gaps_of[0],
        definition=gaps_of[1],
    )


def _due(
    tx: Tx, labels: frozenset[str], due_by: Instant, limit: int, *, after: Instant | None = None
) -> list[DueSchedule]:
    """Schedules whose alarm is due and that a node with these labels may ring, oldest first."""
    due = tx.plain.due(now=due_by, limit=limit, after=after)
    queues = [queue for queue in tx.labelled.queues() if may_take(queue, labels)] if labels else []
    if not queues:
        return due
    merged = [*due, *tx.labelled.due_schedules(queues, now=due_by, limit=limit, after=after)]
    return sorted(merged, key=attrgetter("due_at", "schedule_id"))[:limit]


def _kept(tx: Tx, decisions: Sequence[RingDecision], labels: frozenset[str]) -> list[RingDecision]:
    """The schedules that need no label, or one that this node has. Their alarms were written by a node that knows no
    labels; the definition decides, and the alarm is corrected."""
    left = [
        decision
        for decision in decisions
        if isinstance(decision.compiled, Compiled) and not may_take(decision.compiled.run_on, labels)
    ]
    alarms = [alarm_of(decision.before, decision.compiled) for decision in left]
    tx.alarms.set_many(sorted(alarms, key=attrgetter("ref")))
    return [decision for decision in decisions if decision not in left] if left else list(decisions)


def alarm_of(cadence: Cadence, compiled: Compiled | Broken) -> Alarm:
    """The alarm of a schedule, derived from its cadence."""
    run_on = None if isinstance(compiled, Broken) else compiled.run_on
    return Alarm(ALARM_SCHEDULE, cadence.schedule_id, rings_at(cadence, compiled), 1, None, 0, run_on)


def rings_at(cadence: Cadence, compiled: Compiled | Broken) -> Instant | None:
    """When the schedule's alarm is due; None for a broken definition."""
    return None if isinstance(compiled, Broken) else due_at(cadence, compiled.rules)


def _void_gaps(tx: Tx, cadence: Cadence, compiled: Compiled, now: Instant) -> None:
    ahead = tx.runs.gaps_ahead(cadence.schedule_id, after=now)
    void_ahead(tx, ahead, lambda row: shortened(row, _timing_of(tx, row, compiled), now), now=now)


def _timing_of(tx: Tx, row: Run, compiled: Compiled) -> Timing | None:
    """The timing that a gap was counted with, from its version; None if no copy is left."""
    if row.version == compiled.version:
        return compiled.rules.timing
    text = row.definition or tx.runs.kept_definition(row.schedule_id, row.version)
    own = None if text is None else read_stored(row.schedule_id, row.version, text)
    return own.rules.timing if isinstance(own, Compiled) else None


def _repeats(reason: str) -> bool:
    return reason in REPEATING or reason.startswith(MINIMUM_INTERVAL)


INSTANTS: Final = Planned(ALARM_SCHEDULE, KIND, _repeats)


def _run(run_id: int, start: Start, compiled: Compiled | Broken) -> Run:
    assert isinstance(compiled, Compiled)  # noqa: S101 - a broken definition starts nothing
    return planned(
        run_id=run_id,
        kind=KIND,
        schedule_id=compiled.schedule_id,
        version=compiled.version,
        planned_at=start.planned_at,
        due_at=start.due_at,
        trigger=start.trigger,
        lane=compiled.lane,
        reason=None if start.behind is None else "queued",
        run_on=compiled.run_on,
    )


def _invalid(cadence: Cadence, reason: str, now: Instant) -> Cadence:
    """Mark the schedule invalid. One good instant after it was corrected ends its incident."""
    trouble = max(cadence.trouble, RECOVERING)
    return cadence._replace(state="invalid", state_reason=reason, state_at=now, trouble=trouble)


def _silence(decision: RingDecision, now: Instant) -> Observed | None:
    """Report immediately that the schedule will not ring any more, unless a person wanted that."""
    schedule_id, missed = decision.cadence.schedule_id, _missed(decision.rows)
    alert = decision.compiled.policy.alert if isinstance(decision.compiled, Compiled) else None
    if decision.cadence.state == "invalid":
        error, at = f"its definition can no longer be read, so it does not run: {decision.cadence.state_reason}", now
    elif decision.cadence.state == "done" and missed and not _starts(decision.rows):
        error, at = (
            f"its last planned time, {format_instant(missed[-1].last)}, was missed: {missed[-1].reason}",
            missed[-1].last,
        )
    else:
        return None
    return Observed(failing(schedule_id), False, at, None, error, schedule_id, is_urgent=True, alert=alert)


def _missed(rows: Sequence[Start | Gap]) -> list[Gap]:
    return [row for row in rows if isinstance(row, Gap) and row.outcome == "missed"]


def _starts(rows: Sequence[Start | Gap]) -> bool:
    return any(isinstance(row, Start) for row in rows)
