"""The facts of a commit, from the changes that its transaction recorded."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from wakeful.core.run.runs import Run
from wakeful.core.run.settlement import CRASH
from wakeful.core.run.transitions import closed
from wakeful.core.schedule.cadence import State
from wakeful.core.schedule.plain import SUCCESS
from wakeful.core.time.instants import Instant
from wakeful.ports.changes import (
    AttemptsAdded,
    CadencesBegun,
    CadencesSaved,
    Change,
    NodeRegistered,
    NodesVoided,
    Report,
    RunsAdded,
    RunsAnnotated,
    RunsLost,
    RunsMarked,
    RunsRemoved,
    RunsSaved,
    RunsStarted,
    RunsSucceeded,
    SchedulesAdded,
    SchedulesDone,
    SchedulesSaved,
)
from wakeful.ports.plain_runs import PlainRuns
from wakeful.ports.sink import (
    AttemptsEnded,
    Fact,
    InstantsMissed,
    InstantsSkipped,
    NodeEntered,
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

C = TypeVar("C")

_DECIDED_ALONE = (RunsAdded, RunsSaved, RunsAnnotated)
"""Changes of runs that were not decided in batches: rows that are written twice in one commit are told once."""

_KIND_OF_STATE: Mapping[State, ScheduleChangeKind] = {
    "active": "resumed",
    "paused": "paused",
    "disabled": "disabled",
    "invalid": "invalid",
    "done": "done",
}


def facts_of(changes: Sequence[Change], at: Instant) -> list[Fact]:
    """A commit's facts: nodes first, then schedules, then runs by what happened to them, then features' reports."""
    facts: list[Fact] = [NodeEntered(*change) for change in _all(changes, NodeRegistered)]
    if voided := [node_id for change in _all(changes, NodesVoided) for node_id in change.node_ids]:
        facts.append(NodeLeft(at, voided))
    if schedules := _schedule_changes(changes):
        facts.append(SchedulesChanged(at, schedules))
    if marks := [mark for change in _all(changes, RunsMarked) for mark in change.marks]:
        facts.append(RunsClimbed(at, marks))
    if attempts := [attempt for change in _all(changes, AttemptsAdded) for attempt in change.attempts]:
        facts.append(AttemptsEnded(at, attempts))
    facts += _run_facts(changes, at)
    if removed := [run_id for change in _all(changes, RunsRemoved) for run_id in change.run_ids]:
        facts.append(RunsVoided(at, removed))
    for _, reports in groupby(_all(changes, Report), key=lambda report: report.stream):
        facts.append(Reported(at, list(reports)))
    return facts


def _succeeded(change: RunsSucceeded) -> PlainRuns:
    """The rows as they were written."""
    at, results = change.ended_at, change.results
    return PlainRuns(change.claims, lambda claim: closed(claim.run, SUCCESS, now=at, result=results.get(claim.run_id)))


def _started(change: RunsStarted) -> PlainRuns:
    return PlainRuns(change.claims, lambda claim: claim.run)


def _all(changes: Sequence[Change], kind: type[C]) -> list[C]:
    return [change for change in changes if isinstance(change, kind)]


def _run_facts(changes: Sequence[Change], at: Instant) -> list[Fact]:
    """Facts about runs, in the order watchers should get them: endings before starts, because they free capacity."""
    if not any(isinstance(change, _DECIDED_ALONE) for change in changes):
        plain: list[Fact] = [RunsSettled(at, _succeeded(change)) for change in _all(changes, RunsSucceeded)]
        return plain + [RunsClaimed(at, _started(change)) for change in _all(changes, RunsStarted)]
    added = [run for change in _all(changes, RunsStarted) for run in _started(change)]
    added += [run for change in _all(changes, RunsAdded) for run in change.runs]
    saved, instants = _saved(changes)
    runs = [*added, *saved]
    if not runs:
        return []
    counts = [run.instants for run in added] + instants
    lost = {run_id for change in _all(changes, RunsLost) for run_id in change.run_ids}
    missed, skipped = _counted(runs, counts, "missed"), _counted(runs, counts, "skipped")
    facts: list[Fact] = []
    if rescued := [run for run in saved if run.reason == CRASH and run.run_id in lost] if lost else []:
        facts.append(RunsRescued(at, rescued))
    if settled := [run for run in runs if run.outcome not in ("running", "waiting", "skipped", "missed")]:
        facts.append(RunsSettled(at, settled))
    if missed[0]:
        facts.append(InstantsMissed(at, *missed))
    if skipped[0]:
        facts.append(InstantsSkipped(at, *skipped))
    if waiting := [run for run in runs if run.outcome == "waiting"]:
        facts.append(RunsWaiting(at, waiting))
    if claimed := [run for run in runs if run.outcome == "running"]:
        facts.append(RunsClaimed(at, claimed))
    return facts


def _saved(changes: Sequence[Change]) -> tuple[Sequence[Run], list[int]]:
    """Each saved row as it was written last, and how many of its instants are new."""
    saves = [
        RunsSaved(_succeeded(change)) if isinstance(change, RunsSucceeded) else change
        for change in changes
        if isinstance(change, RunsSucceeded | RunsSaved)
    ]
    if len(saves) == 1 and saves[0].grown is None and not any(isinstance(change, RunsAnnotated) for change in changes):
        return saves[0].runs, [run.instants for run in saves[0].runs]
    rows: dict[int, Run] = {}
    instants: dict[int, int] = {}
    for runs, grown in saves:
        for index, run in enumerate(runs):
            rows[run.run_id] = run
            instants[run.run_id] = run.instants if grown is None else instants.get(run.run_id, 0) + max(grown[index], 0)
    for change in _all(changes, RunsAnnotated):
        rows.update((run.run_id, run) for run in change.runs if run.run_id in rows)
    return list(rows.values()), list(instants.values())


def _counted(runs: Sequence[Run], instants: Sequence[int], outcome: str) -> tuple[list[Run], list[int]]:
    pairs = [(run, count) for run, count in zip(runs, instants, strict=True) if run.outcome == outcome]
    return [run for run, _ in pairs], [count for _, count in pairs]


def _schedule_changes(changes: Sequence[Change]) -> list[ScheduleChange]:
    """Created, edited and removed schedules, then those that were halted or resumed, each in its last state."""
    listed: list[ScheduleChange] = []
    begun = [beginning for change in _all(changes, CadencesBegun) for beginning in change.beginnings]
    disabled = {key for beginning in begun if beginning.cadence.state == "disabled" for key in beginning.schedule_ids}
    for new, schedule_ids in _all(changes, SchedulesAdded):
        for row, schedule_id in zip(new, schedule_ids, strict=True):
            if schedule_id is not None:
                reason = "disabled" if schedule_id in disabled else None
                listed.append(ScheduleChange(schedule_id, "created", 1, reason, row.slug, row.definition))
    for change in _all(changes, SchedulesSaved):
        for schedule in change.rows:
            kind: ScheduleChangeKind = "edited" if schedule.deleted_at is None else "removed"
            listed.append(ScheduleChange(schedule.schedule_id, kind, schedule.version, None, schedule.slug))
    removed = {change.schedule_id for change in listed if change.kind == "removed"}
    turned = {cadence.schedule_id: cadence for change in _all(changes, CadencesSaved) for cadence in change.turned}
    for cadence in turned.values():
        if cadence.schedule_id not in removed:
            kind = _KIND_OF_STATE[cadence.state]
            listed.append(ScheduleChange(cadence.schedule_id, kind, cadence.version, cadence.state_reason))
    done = [claim for change in _all(changes, SchedulesDone) for claim in change.claims]
    return listed + [ScheduleChange(claim.schedule_id, "done", claim.batch.version, None) for claim in done]
