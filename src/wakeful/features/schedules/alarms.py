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
    stretch_of,
    turn_back,
    with_rows,
)
from wakeful.core.schedule.exclude import EXCLUDED
from wakeful.core.schedule.labels import may_take
from wakeful.core.schedule.policies import GRACE
from wakeful.core.time.active_hours import is_active
from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.timing import Timing, next_after, tally
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
                through = max(cadence.planned_through, cadence.ran_through)
                taken = tx.runs.taken(cadence.schedule_id, after=now, until=through)
                turned.append(turn_back(anchored, informed(tx, known.rules), now=now, taken=taken))
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
            return RingDecision(_invalid(cadence, compiled.reason, now), (), compiled, replaced=cadence)
        due = due_at(cadence, compiled.rules)
        if due is None or due > now:
            return RingDecision(cadence, (), compiled, cadence)  # a stale alarm: recompute it
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
            return RingDecision(broken, (), compiled, replaced=cadence)
        rows = tuple(self._filtered(row, compiled, now, gap_reason) for row in plan.rows)
        after = followed(tx, compiled.rules, plan.cadence)
        if after.next_at is None and is_spent(compiled.rules, None) and after.open_run_id is None and not _starts(rows):
            trouble = BAD if _missed(rows) else after.trouble
            after = after._replace(state="done", state_at=now, trouble=trouble)
        return RingDecision(after, rows, compiled, cadence)

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
    """A cadence after its alarm rang, and the resulting ledger rows."""

    cadence: Cadence
    rows: Sequence[Start | Gap]
    compiled: Compiled | Broken
    before: Cadence | None = None  # the cadence when its alarm rang; None if anything may have changed
    gaps_of: tuple[int, str] | None = None  # the version and text that gaps belong to, if not the cadence's own
    replaced: Cadence | None = None  # the cadence until now, if `before` is None


def decided(
    plan: Plan, compiled: Compiled, replaced: Cadence, *, gaps_of: tuple[int, str] | None = None
) -> RingDecision:
    """A plan made outside a ring (resume, edit), ready to be recorded."""
    return RingDecision(plan.cadence, plan.rows, compiled, None, gaps_of, replaced)


def record(tx: Tx, all_decided: Sequence[RingDecision], *, now: Instant) -> list[Due]:
    """Write the decisions in a fixed number of statements; returns the new runs, not yet written."""
    grown = _grow(tx, all_decided)
    ids = iter(tx.runs.reserve_ids(sum(len(d.rows) for d in all_decided) - len(grown)))
    gaps: list[Run] = []
    due: list[Due] = []
    planned_only: list[Cadence] = []
    halted_or_not: list[Cadence] = []
    turned: list[Cadence] = []
    moves: list[tuple[int, Instant | None]] = []
    for decision in all_decided:
        cadence = decision.cadence
        last_row_id, open_run_id, queued_run_id = cadence.last_row_id, cadence.open_run_id, cadence.queued_run_id
        for row in decision.rows[1:] if cadence.schedule_id in grown else decision.rows:
            last_row_id = run_id = next(ids)
            if isinstance(row, Gap):
                gaps.append(_gap_row(run_id, decision, row, now))
            elif row.behind is None:
                open_run_id = run_id
                due.append(Due(_run(run_id, row, decision.compiled)))
            else:
                queued_run_id = run_id
                due.append(Due(_run(run_id, row, decision.compiled), rests=True))
        if decision.rows:
            cadence = with_rows(cadence, open_run_id, queued_run_id, last_row_id)
        is_planned_only = decision.before is not None and _unplanned(decision.before) == _unplanned(cadence)
        (planned_only if is_planned_only else halted_or_not).append(cadence)
        was = decision.replaced if decision.before is None else decision.before
        if not is_planned_only and was is not None and is_turned(was, cadence):
            turned.append(cadence)
        moves.append((cadence.schedule_id, rings_at(cadence, decision.compiled)))
    if grown:
        extended = sorted(grown.values())
        tx.runs.save_many([run for run, _ in extended], grown=[instants for _, instants in extended])
    if gaps:
        tx.runs.add_many(gaps)
    if planned_only:
        tx.cadences.save_planned(planned_only)
    if halted_or_not:
        tx.cadences.save_many(halted_or_not, turned=turned)
    tx.alarms.move_many(ALARM_SCHEDULE, moves)
    return due


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
    alarms = [alarm_of(decision.before or decision.cadence, decision.compiled) for decision in left]
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
    """Void gaps beyond now: one that reaches past now is shortened, one that starts after now is removed."""
    void: list[int] = []
    cut: list[Run] = []
    for row in tx.runs.gaps_ahead(cadence.schedule_id, after=now):
        timing = _timing_of(tx, row, compiled)
        counted = None if timing is None else tally(timing, row.planned_at - 1, now)
        if row.planned_at > now or (counted is not None and counted.count == 0):
            void.append(row.run_id)
        elif counted is not None:  # else the number of its past instants is no longer known, so it is kept
            cut.append(row._replace(planned_until=counted.last if counted.count > 1 else None, instants=counted.count))
    if void:
        tx.runs.remove_many(void)
    if cut:
        tx.runs.save_many(cut, grown=[0] * len(cut))


def _timing_of(tx: Tx, row: Run, compiled: Compiled) -> Timing | None:
    """The timing that a gap was counted with, from its version; None if no copy is left."""
    if row.version == compiled.version:
        return compiled.rules.timing
    text = row.definition or tx.runs.kept_definition(row.schedule_id, row.version)
    own = None if text is None else read_stored(row.schedule_id, row.version, text)
    return own.rules.timing if isinstance(own, Compiled) else None


def _grow(tx: Tx, all_decided: Sequence[RingDecision]) -> dict[int, tuple[Run, int]]:
    """For schedules whose newest row is the same kind of gap as the one to write: that row, extended, and by how many
    instants."""
    candidates = {
        decision.before.last_row_id: (decision.before, decision.rows[0], decision.compiled)
        for decision in all_decided
        if decision.before is not None
        and decision.rows
        and isinstance(decision.rows[0], Gap)
        and _repeats(decision.rows[0])
    }
    if not candidates:
        return {}
    grown: dict[int, tuple[Run, int]] = {}
    for row in tx.runs.lock([run_id for run_id in candidates if run_id is not None]).values():
        before, gap, compiled = candidates[row.run_id]
        is_same = (
            (row.outcome, row.reason) == (gap.outcome, gap.reason)
            and row.blocked_by == gap.blocked_by
            and row.version == before.version
        )
        if (
            is_same
            and (row.planned_until or row.planned_at) == before.planned_through
            and _follows(gap, before, compiled)
        ):
            longer = row._replace(planned_until=gap.last, instants=row.instants + gap.instants)
            grown[before.schedule_id] = longer, gap.instants
    return grown


def _follows(gap: Gap, before: Cadence, compiled: Compiled | Broken) -> bool:
    """Whether nothing lies between the border of the plan and the gap: if the clock was set back, runs may."""
    if before.planned_through >= before.ran_through:
        return True
    return isinstance(compiled, Compiled) and next_after(compiled.rules.timing, before.planned_through) == gap.first


def _repeats(gap: Gap) -> bool:
    return gap.reason in REPEATING or gap.reason.startswith(MINIMUM_INTERVAL)


def _gap_row(run_id: int, decision: RingDecision, gap: Gap, now: Instant) -> Run:
    version, text = decision.gaps_of or (decision.cadence.version, None)
    row = stretch_of(
        gap,
        run_id=run_id,
        kind=KIND,
        schedule_id=decision.cadence.schedule_id,
        version=version,
        now=now,
    )
    return row if text is None else row._replace(definition=text)


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


_STATE: Final = ("state", "state_reason", "state_at", "resume_at")
_unplanned: Final = attrgetter("schedule_id", "version", *_STATE)


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


def taken_ahead(tx: Tx, cadence: Cadence, now: Instant) -> frozenset[Instant]:
    """Instants that already ran although they lie in the future, which happens only after the clock was set back."""
    if cadence.planned_through >= cadence.ran_through:
        return frozenset()
    return tx.runs.taken(cadence.schedule_id, after=cadence.planned_through, until=max(now, cadence.planned_through))


def _starts(rows: Sequence[Start | Gap]) -> bool:
    return any(isinstance(row, Start) for row in rows)
