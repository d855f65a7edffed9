"""A transaction that notes which rows were written and which were read under lock before.

By reference: within the transaction it costs a few appends per statement and nothing per row.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import Instant
from wakeful.ports.plain import PlainPath
from wakeful.ports.sink import NodeEntered
from wakeful.ports.store import Cadences, Mark, NewSchedule, Nodes, Report, Runs, Schedule, Schedules, Tx


class Notes:
    """What one operation read under lock and wrote, by reference."""

    __slots__ = (
        "added", "begun", "cadences_before", "climbed", "created", "entered", "left", "moved", "reports",
        "runs_before", "saved", "schedules", "voided",
    )  # fmt: skip

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start over: the store retries the operation."""
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

    @property
    def is_any(self) -> bool:
        """Whether anything was written that could become a fact."""
        return bool(
            self.reports
            or self.entered
            or any(self.added)
            or any(self.saved)
            or any(self.moved)
            or any(self.schedules)
            or any(self.left)
            or any(self.voided)
            or any(marks for marks, _ in self.climbed)
            or any(rows for rows, _ in self.created)
        )


class NotedTx:
    """A transaction that notes what is read under lock and written; everything else passes through."""

    __slots__ = ("_notes", "_tx", "cadences", "nodes", "plain", "runs", "schedules")

    def __init__(self, tx: Tx, notes: Notes) -> None:
        self._tx = tx
        self._notes = notes
        self.runs = _NotedRuns(tx.runs, notes)
        self.cadences = _NotedCadences(tx.cadences, notes)
        self.schedules = _NotedSchedules(tx.schedules, notes)
        self.plain = _NotedPlainPath(tx.plain, notes)
        self.nodes = _NotedNodes(tx.nodes, notes)

    def report(self, report: Report) -> None:
        self._notes.reports.append(report)
        self._tx.report(report)  # listeners of the wrapped transaction get it as well

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


class _NotedPlainPath:
    __slots__ = ("_notes", "_path")

    def __init__(self, path: PlainPath, notes: Notes) -> None:
        self._path = path
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._path, name)

    def start(self, rows: Sequence[Run]) -> None:
        self._path.start(rows)
        self._notes.added.append(rows)

    def settle(self, node_id: int, ended: Sequence[Run]) -> set[int]:
        settled = self._path.settle(node_id, ended)
        self._notes.saved.append([run for run in ended if run.run_id in settled])
        return settled


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
        halted = [row for row in rows if row.state != "active"]  # settling never reactivates a schedule
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
