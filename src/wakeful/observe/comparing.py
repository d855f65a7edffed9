"""What a commit changed, from the notes of its transaction.

A row whose outcome, attempt or extent changed is a fact; one that was only rewritten (e.g. to add a copy of its
definition) is not. Rows are always locked before they are changed, so the notes always contain the earlier image.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Cadence, State
from wakeful.core.time.instants import Instant
from wakeful.observe.noting import Notes
from wakeful.ports.sink import (
    Fact,
    InstantsMissed,
    InstantsSkipped,
    NodeLeft,
    Reported,
    RunsClaimed,
    RunsClimbed,
    RunsRescued,
    RunsSettled,
    RunsVoided,
    RunsWaiting,
    ScheduleChange,
    ScheduleChangeKind,
    SchedulesChanged,
)


def facts_of(notes: Notes, at: Instant) -> list[Fact]:
    """The facts of an operation: nodes first, then schedules, then runs by row."""
    facts: list[Fact] = list(notes.entered)
    if notes.left:
        facts.append(NodeLeft(at, [node_id for voided in notes.left for node_id in voided]))
    if notes.created or notes.schedules or notes.moved:
        changes = _schedule_changes(notes)
        if changes:
            facts.append(SchedulesChanged(at, changes))
    if notes.climbed:
        marks = [mark for some, fates in notes.climbed for mark, is_ours in zip(some, fates, strict=True) if is_ours]
        if marks:
            facts.append(RunsClimbed(at, marks))
    if notes.added or notes.saved:
        facts += _run_facts(notes, at)
    if notes.voided:
        facts.append(RunsVoided(at, [run_id for ids in notes.voided for run_id in ids]))
    for _, reports in groupby(notes.reports, key=lambda report: report.stream):
        facts.append(Reported(at, list(reports)))
    return facts


class _Sorted:
    """Ledger rows, grouped by what happened to them."""

    __slots__ = ("claimed", "missed", "rescued", "settled", "skipped", "waiting")

    def __init__(self) -> None:
        self.claimed: list[Run] = []
        self.waiting: list[Run] = []
        self.settled: list[Run] = []
        self.rescued: list[Run] = []
        self.skipped: tuple[list[Run], list[int]] = ([], [])
        self.missed: tuple[list[Run], list[int]] = ([], [])

    def put(self, run: Run, instants: int) -> None:
        match run.outcome:
            case "running":
                self.claimed.append(run)
            case "waiting":
                self.waiting.append(run)
            case "skipped" | "missed":
                runs, counts = self.skipped if run.outcome == "skipped" else self.missed
                runs.append(run)
                counts.append(instants)
            case _:
                self.settled.append(run)

    def facts(self, at: Instant) -> list[Fact]:
        """In the order watchers should get them: endings before starts, because they free capacity."""
        facts: list[Fact] = []
        if self.rescued:
            facts.append(RunsRescued(at, self.rescued))
        if self.settled:
            facts.append(RunsSettled(at, self.settled))
        if self.missed[0]:
            facts.append(InstantsMissed(at, *self.missed))
        if self.skipped[0]:
            facts.append(InstantsSkipped(at, *self.skipped))
        if self.waiting:
            facts.append(RunsWaiting(at, self.waiting))
        if self.claimed:
            facts.append(RunsClaimed(at, self.claimed))
        return facts


def _run_facts(notes: Notes, at: Instant) -> list[Fact]:
    found = _Sorted()
    for rows in notes.added:
        for run in rows:
            found.put(run, run.instants)
    before = _images(notes) if notes.saved else {}
    for run in _latest(notes.saved):
        was = before.get(run.run_id)
        if was is not None and _tracked_fields(was) == _tracked_fields(run):
            continue  # rewritten, not changed
        has_grown = was is not None and was.outcome == run.outcome
        found.put(run, max(run.instants - was.instants, 0) if was is not None and has_grown else run.instants)
        if run.reason == "crash" and was is not None and was.outcome == "running":
            found.rescued.append(run)
    return found.facts(at)


def _tracked_fields(run: Run) -> tuple[Any, ...]:
    """The fields whose change makes a fact."""
    return run.outcome, run.reason, run.attempt, run.instants, run.next_attempt_at, run.stuck


def _images(notes: Notes) -> dict[int, Run]:
    """Rows as they were when first read under lock."""
    images: dict[int, Run] = {}
    for rows in reversed(notes.runs_before):
        if isinstance(rows, Mapping):
            images.update(rows)
        else:
            images.update((run.run_id, run) for run in rows)
    return images


def _latest(saved: Sequence[Sequence[Run]]) -> Iterable[Run]:
    """Each row as it was written last."""
    if len(saved) == 1:
        return saved[0]
    return {run.run_id: run for rows in saved for run in rows}.values()


_KIND_OF_STATE: Mapping[State, ScheduleChangeKind] = {
    "active": "resumed",
    "paused": "paused",
    "disabled": "disabled",
    "invalid": "invalid",
    "done": "done",
}


def _schedule_changes(notes: Notes) -> list[ScheduleChange]:
    changes: list[ScheduleChange] = []
    disabled = {cadence.schedule_id for rows in notes.begun for cadence in rows if cadence.state == "disabled"}
    for rows, given in notes.created:
        for new, schedule_id in zip(rows, given, strict=True):
            if schedule_id is not None:
                reason = "disabled" if schedule_id in disabled else None
                changes.append(ScheduleChange(schedule_id, "created", 1, reason, new.slug))
    for schedules in notes.schedules:
        for schedule in schedules:
            kind: ScheduleChangeKind = "edited" if schedule.deleted_at is None else "removed"
            changes.append(ScheduleChange(schedule.schedule_id, kind, schedule.version, None, schedule.slug))
    removed = {change.schedule_id for change in changes if change.kind == "removed"}
    before: dict[int, Cadence] = {}
    for cadences in reversed(notes.cadences_before):
        before.update(
            cadences if isinstance(cadences, Mapping) else {cadence.schedule_id: cadence for cadence in cadences}
        )
    last = {cadence.schedule_id: cadence for cadences in notes.moved for cadence in cadences}
    for cadence in last.values():
        was = before.get(cadence.schedule_id)
        is_halted_anew = was is not None and (was.state, was.resume_at) != (cadence.state, cadence.resume_at)
        if is_halted_anew and cadence.schedule_id not in removed:
            kind = _KIND_OF_STATE[cadence.state]
            changes.append(ScheduleChange(cadence.schedule_id, kind, cadence.version, cadence.state_reason))
    return changes
