"""Counting: every planned instant, recounted from the definitions, against the ledger and the witness.

- `planned`: instants in the definitions, until the load ends.
- `ran`: those whose run the witness saw begin.
- `excused`: those that did not run, and whose row in the ledger gives a reason.
- `lost`: those without a row, those that count as succeeded although the witness never saw them, and those whose run
  never ended.
- `doubled`: instants with a second run; attempts that began twice, out of order, at the same time as another of their
  run or lane, after their schedule ruled out a repetition, or with another key.
- `late`: those that began more than a second after they were due.
- `repeated`: runs that were tried again, with the same key, because their daemon died or was cut off. It is unknown
whether such a run had finished, so this is not an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from wakeful.core.run.runs import OPEN, Run
from wakeful.core.schedule.definition import Definition, rules_of
from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.drill import laws
from wakeful.drill.ledger import Verdict, audit, rows_of, schedules_of
from wakeful.drill.observed import Observation
from wakeful.ports.store import Tx

LATE: Final[Duration] = SECOND


class Counted(NamedTuple):
    """The result of a drill on one store."""

    planned: int = 0
    ran: int = 0
    excused: int = 0
    lost: int = 0
    doubled: int = 0
    late: int = 0
    late_max: Duration = 0
    repeated: int = 0
    reasons: Mapping[str, int] = MappingProxyType({})  # of those that are excused
    findings: tuple[str, ...] = ()

    def plus(self, other: Counted) -> Counted:
        """The sum of two counts."""
        apart = ("late_max", "reasons")
        sums = {name: getattr(self, name) + getattr(other, name) for name in self._fields if name not in apart}
        reasons = Counter(self.reasons) + Counter(other.reasons)
        return Counted(**sums, late_max=max(self.late_max, other.late_max), reasons=reasons)


class ClockSteps:
    """How the drill stepped its daemons' clock: when, and by how much."""

    def __init__(self, since: Instant) -> None:
        self._steps: list[tuple[Instant, Duration]] = [(since, 0)]

    def step(self, at: Instant, offset: Duration) -> None:
        """Record that from `at` on, by the true clock, the daemons' clock is off by `offset`."""
        self._steps.append((at, offset))

    def due(self, instant: Instant) -> Instant:
        """When the daemons' clock first reached this instant, by the true clock."""
        ends = [at for at, _ in self._steps[1:]]
        for (since, offset), end in zip(self._steps, [*ends, None], strict=True):
            reached = max(instant - offset, since)
            if end is None or reached < end:
                return reached
        return instant


class Expected(NamedTuple):
    """The schedules the drill wrote, and until when their instants count; None: as far as the ledger is planned."""

    definitions: Sequence[Definition]
    since: Instant
    until: Instant | None


def count(tx: Tx, expected: Expected, seen: Sequence[Observation], clock: ClockSteps) -> Counted:
    """Count one store, in one read."""
    histories = {
        definition.slug: [laws.Era(expected.since, rules_of(definition, 0).timing)]
        for definition in expected.definitions
    }
    verdict = audit(tx, seen, histories=histories)
    begun = _first_begun(seen)
    stored = {schedule.slug: (schedule, cadence) for schedule, cadence in schedules_of(tx)}
    total = _doubled(verdict)
    for slug, history in histories.items():
        if slug not in stored:
            total = total.plus(Counted(lost=1, findings=(f"{slug}: the schedule is gone",)))
            continue
        schedule, cadence = stored[slug]
        through = cadence.planned_through if expected.until is None else expected.until
        planned = laws.count_in(history, expected.since, through)
        total = total.plus(_of_schedule(slug, planned, rows_of(tx, schedule.schedule_id), begun, clock, through))
    return total


def _of_schedule(
    slug: str,
    planned: int,
    rows: Sequence[Run],
    begun: Mapping[int, Instant],
    clock: ClockSteps,
    through: Instant,
) -> Counted:
    ahead = [row for row in rows if row.planned_at > through]  # ran while the clock was ahead
    covered = sum(row.instants for row in rows) - sum(row.instants for row in ahead)
    ran = [row for row in rows if row.run_id in begun]
    unproven = [row for row in rows if row.outcome == "succeeded" and row.run_id not in begun]
    open_rows = [row for row in rows if row.outcome in OPEN]
    lateness = [begun[row.run_id] - clock.due(row.due_at) for row in ran]
    uncovered = max(planned - covered, 0)
    findings = [f"{slug}: {uncovered} planned instants have no row"] if uncovered else []
    findings += [f"{slug}: {laws.describe(row)} counts as succeeded, and never ran" for row in unproven]
    findings += [f"{slug}: {laws.describe(row)} never ended" for row in open_rows]
    accounted = {row.run_id for row in (*ran, *unproven, *open_rows)}
    reasons: Counter[str] = Counter()
    for row in rows:
        if row.run_id not in accounted:
            reasons[row.reason or row.outcome] += row.instants
    return Counted(
        planned=planned + sum(row.instants for row in ahead),
        ran=len(ran),
        excused=reasons.total(),
        lost=uncovered + len({row.run_id for row in (*unproven, *open_rows)}),
        late=sum(late > LATE for late in lateness),
        late_max=max(lateness, default=0),
        repeated=sum(row.attempt > 1 for row in ran),
        reasons=reasons,
        findings=tuple(findings),
    )


def _doubled(verdict: Verdict) -> Counted:
    """What the ledger checker found. Missing instants are already counted, so their sentences are only shown."""
    doubled = [finding for finding in verdict.findings if finding.kind != "missing"]
    return Counted(doubled=len(doubled), findings=tuple(finding.sentence for finding in verdict.findings))


def _first_begun(seen: Sequence[Observation]) -> dict[int, Instant]:
    first: dict[int, Instant] = {}
    for attempt in seen:
        first[attempt.run_id] = min(first.get(attempt.run_id, attempt.began_at), attempt.began_at)
    return first
