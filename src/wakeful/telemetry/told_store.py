"""A store that tells: what a commit changed becomes facts, after the commit.

Theory of operation
-------------------
`ToldStore` stands between everyone who writes and the real store. It hands each operation a transaction that notes, by
reference, which rows went in and which rows were read under lock before; inside the transaction that is all it does, a
handful of appends per statement and nothing per row. When the commit has been answered, the notes are compared
(`facts_of`): a row whose outcome, attempt or extent moved is a fact, one that was only rewritten (a copy of its
definition was put on it, say) is not. Rows are always locked before they are changed, so the image before is always
among the notes.

Because the facts come from the rows themselves, nobody can write to the ledger and forget to say so: engine, commands,
recovery and whatever comes later are told alike. An operation the store runs again starts with empty notes; one that is
rolled back is never told.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar, cast

from wakeful.core.cadence import Cadence, State
from wakeful.core.instants import Instant
from wakeful.core.runs import Run
from wakeful.ports.clock import Clock
from wakeful.ports.sink import (
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
    Sink,
    Wrote,
)
from wakeful.ports.store import (
    Cadences,
    Mark,
    NewSchedule,
    Nodes,
    Report,
    Runs,
    Schedule,
    Schedules,
    Store,
    StoreUnavailable,
    Tx,
)
from wakeful.telemetry.fan_out import FanOut

log = logging.getLogger("wakeful.telemetry")

T = TypeVar("T")


class Notes:
    """What one operation read under lock and wrote, by reference."""

    __slots__ = (
        "added", "begun", "cadences_before", "climbed", "created", "entered", "left", "moved", "reports",
        "runs_before", "saved", "schedules", "voided",
    )  # fmt: skip

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew: the store runs the operation again."""
        self.runs_before: list[Mapping[int, Run] | Sequence[Run]] = []
        self.added: list[Sequence[Run]] = []
        self.saved: list[Sequence[Run]] = []
        self.climbed: list[tuple[Sequence[Mark], Sequence[bool]]] = []
        self.voided: list[Sequence[int]] = []
        self.cadences_before: list[Mapping[int, Cadence] | Sequence[Cadence]] = []
        self.moved: list[Sequence[Cadence]] = []
        self.begun: list[Sequence[Cadence]] = []
        self.created: list[tuple[Sequence[NewSchedule], Sequence[int | None]]] = []
        self.schedules: list[Sequence[Schedule]] = []
        self.entered: list[NodeEntered] = []
        self.left: list[Sequence[int]] = []
        self.reports: list[Report] = []


class Guarded:
    """A sink that cannot raise: the one inside is asked no more once it has."""

    def __init__(self, sink: Sink) -> None:
        self._sink: Sink | None = sink

    @property
    def is_heard(self) -> bool:
        """Whether anybody would hear of anything now."""
        return self._sink.is_heard if isinstance(self._sink, FanOut) else self._sink is not None

    def begin(self, store: Store) -> None:
        self._guard(lambda sink: sink.begin(store))

    def tell(self, facts: Sequence[Fact]) -> None:
        self._guard(lambda sink: sink.tell(facts))

    def _guard(self, telling: Callable[[Sink], None]) -> None:
        if self._sink is None:
            return
        try:
            telling(self._sink)
        except Exception:
            self._sink = None
            log.exception("the sink failed and is not told anything any more")


class ToldStore:
    """See `ports.store.Store`; a sink hears of every commit made through it."""

    def __init__(
        self, store: Store, sink: Sink, clock: Clock, *, stopwatch: Callable[[], float] = time.perf_counter
    ) -> None:
        self._store = store
        self._sink = sink
        self._clock = clock
        self._stopwatch = stopwatch  # measures, and decides nothing

    async def write(self, operation: Callable[[Tx], T]) -> T:
        if isinstance(self._sink, Guarded) and not self._sink.is_heard:
            return await self._store.write(operation)
        notes = Notes()

        def noted(tx: Tx) -> T:
            notes.clear()
            return operation(cast(Tx, NotedTx(tx, notes)))

        began = self._stopwatch()
        try:
            answer = await self._store.write(noted)
        except StoreUnavailable:
            self._sink.tell([Wrote(self._clock.read().now, self._stopwatch() - began, False)])
            raise
        at, seconds = self._clock.read().now, self._stopwatch() - began
        try:
            facts = facts_of(notes, at)
        except Exception:  # it is committed: nothing about telling may make it look as if it were not (L7)
            log.exception("what a commit changed cannot be told")
            facts = []
        self._sink.tell([*facts, Wrote(at, seconds, True)])
        return answer

    async def read(self, operation: Callable[[Tx], T]) -> T:
        return await self._store.read(operation)

    async def hold_clock(self) -> bool:
        return await self._store.hold_clock()

    async def release_clock(self) -> None:
        await self._store.release_clock()

    @property
    def is_exclusive(self) -> bool:
        return self._store.is_exclusive

    async def changed(self) -> bool:
        return await self._store.changed()

    async def close(self) -> None:
        await self._store.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)  # what one kind of store can do besides (check a file, say)


class NotedTx:
    """A transaction that notes what is read under lock and written; everything else passes through."""

    __slots__ = ("_notes", "_tx", "cadences", "nodes", "runs", "schedules")

    def __init__(self, tx: Tx, notes: Notes) -> None:
        self._tx = tx
        self._notes = notes
        self.runs = _NotedRuns(tx.runs, notes)
        self.cadences = _NotedCadences(tx.cadences, notes)
        self.schedules = _NotedSchedules(tx.schedules, notes)
        self.nodes = _NotedNodes(tx.nodes, notes)

    def report(self, report: Report) -> None:
        self._notes.reports.append(report)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class _NotedRuns:
    __slots__ = ("_notes", "_runs")

    def __init__(self, runs: Runs, notes: Notes) -> None:
        self._runs = runs
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    def due(self, *, now: Instant, limit: int) -> list[Run]:
        rows = self._runs.due(now=now, limit=limit)
        self._notes.runs_before.append(rows)
        return rows

    def held(self, node_id: int, claimed: Mapping[int, Run]) -> dict[int, Run]:
        rows = self._runs.held(node_id, claimed)
        self._notes.runs_before.append(rows)
        return rows

    def lock(self, run_ids: Sequence[int]) -> dict[int, Run]:
        rows = self._runs.lock(run_ids)
        self._notes.runs_before.append(rows)
        return rows

    def gaps_ahead(self, schedule_id: int, *, after: Instant) -> list[Run]:
        rows = self._runs.gaps_ahead(schedule_id, after=after)
        self._notes.runs_before.append(rows)
        return rows

    def add_many(self, rows: Sequence[Run]) -> None:
        self._runs.add_many(rows)
        self._notes.added.append(rows)

    def save_many(self, rows: Sequence[Run]) -> None:
        self._runs.save_many(rows)
        self._notes.saved.append(rows)

    def close_many(self, rows: Sequence[Run]) -> None:
        self._runs.close_many(rows)
        self._notes.saved.append(rows)

    def mark_many(self, node_id: int, marks: Sequence[Mark]) -> list[bool]:
        fates = self._runs.mark_many(node_id, marks)
        self._notes.climbed.append((marks, fates))
        return fates

    def remove_many(self, run_ids: Sequence[int]) -> None:
        self._runs.remove_many(run_ids)
        self._notes.voided.append(run_ids)


class _NotedCadences:
    __slots__ = ("_cadences", "_notes")

    def __init__(self, cadences: Cadences, notes: Notes) -> None:
        self._cadences = cadences
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cadences, name)

    def lock(self, schedule_ids: Iterable[int]) -> dict[int, Cadence]:
        rows = self._cadences.lock(schedule_ids)
        self._notes.cadences_before.append(rows)
        return rows

    def due(self, *, now: Instant, limit: int) -> list[Cadence]:
        rows = self._cadences.due(now=now, limit=limit)
        self._notes.cadences_before.append(rows)
        return rows

    def ahead_of(self, now: Instant, *, after_id: int, limit: int) -> list[Cadence]:
        rows = self._cadences.ahead_of(now, after_id=after_id, limit=limit)
        self._notes.cadences_before.append(rows)
        return rows

    def add_many(self, rows: Sequence[Cadence]) -> None:
        self._cadences.add_many(rows)
        self._notes.begun.append(rows)

    def save_many(self, rows: Sequence[Cadence]) -> None:
        self._cadences.save_many(rows)
        self._notes.moved.append(rows)

    def save_settled(self, rows: Sequence[Cadence]) -> None:
        self._cadences.save_settled(rows)
        halted = [row for row in rows if row.state != "active"]  # no ending sets a schedule going again
        if halted:
            self._notes.moved.append(halted)


class _NotedSchedules:
    __slots__ = ("_notes", "_schedules")

    def __init__(self, schedules: Schedules, notes: Notes) -> None:
        self._schedules = schedules
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._schedules, name)

    def add_many(self, rows: Sequence[NewSchedule]) -> list[int | None]:
        given = self._schedules.add_many(rows)
        self._notes.created.append((rows, given))
        return given

    def save_many(self, rows: Sequence[Schedule]) -> None:
        self._schedules.save_many(rows)
        self._notes.schedules.append(rows)


class _NotedNodes:
    __slots__ = ("_nodes", "_notes")

    def __init__(self, nodes: Nodes, notes: Notes) -> None:
        self._nodes = nodes
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nodes, name)

    def register(self, *, name: str, host: str, pid: int, now: Instant, lease_until: Instant, capacity: int) -> int:
        node_id = self._nodes.register(
            name=name, host=host, pid=pid, now=now, lease_until=lease_until, capacity=capacity
        )
        self._notes.entered.append(NodeEntered(now, node_id, name, host, pid))
        return node_id

    def void(self, node_ids: Sequence[int], *, now: Instant) -> list[int]:
        voided = self._nodes.void(node_ids, now=now)
        if voided:
            self._notes.left.append(voided)
        return voided


# --- from notes to facts ---------------------------------------------------------------------------------------------


def facts_of(notes: Notes, at: Instant) -> list[Fact]:
    """What the operation changed, nodes first, then schedules, then runs in the order of their rows."""
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
    """Rows of the ledger, sorted by what became of them."""

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
        """In the order in which a watcher should hear of them: what ended makes room for what begins."""
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
        if was is not None and _stands(was) == _stands(run):
            continue  # rewritten, not moved
        has_grown = was is not None and was.outcome == run.outcome
        found.put(run, max(run.instants - was.instants, 0) if was is not None and has_grown else run.instants)
        if run.reason == "crash" and was is not None and was.outcome == "running":
            found.rescued.append(run)
    return found.facts(at)


def _stands(run: Run) -> tuple[Any, ...]:
    """What of a row makes it a fact when it moves."""
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
        before.update(cadences if isinstance(cadences, Mapping) else {one.schedule_id: one for one in cadences})
    last = {cadence.schedule_id: cadence for cadences in notes.moved for cadence in cadences}
    for cadence in last.values():
        was = before.get(cadence.schedule_id)
        is_halted_anew = was is not None and (was.state, was.resume_at) != (cadence.state, cadence.resume_at)
        if is_halted_anew and cadence.schedule_id not in removed:
            kind = _KIND_OF_STATE[cadence.state]
            changes.append(ScheduleChange(cadence.schedule_id, kind, cadence.version, cadence.state_reason))
    return changes
