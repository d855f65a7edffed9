"""The law of the plain path: what it writes is what the general path would have decided."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from wakeful.core.run.results import Done
from wakeful.core.run.runs import Run
from wakeful.core.run.settlement import Close, after_attempt, after_close
from wakeful.core.run.transitions import closed
from wakeful.core.schedule.cadence import Cadence, Plan, Start, due_at, ring, with_rows
from wakeful.core.time.instants import Instant
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.ports.plain import Advance, DueSchedule, PlainPath
from wakeful.ports.store import ALARM_SCHEDULE, Tx
from wakeful.stores.sqlite.store import SqliteStore
from worlds.laws import describe

Report = Callable[[Iterable[str]], None]


def watch_plain_path(store: SqliteStore, report: Report) -> None:
    """Compare every commit of the plain path from now on."""
    write = store.write

    async def watched(operation: Callable[[Tx], Any]) -> Any:
        def look(tx: Any) -> Any:
            if not isinstance(tx.plain, _Watched):
                tx.plain = _Watched(tx, tx.plain, report)
            return operation(tx)

        return await write(look)

    store.write = watched  # type: ignore[method-assign, assignment]


class _Watched:
    """The plain path of one connection."""

    def __init__(self, tx: Tx, path: PlainPath, report: Report) -> None:
        self._tx = tx
        self._path = path
        self._report = report
        self._before: dict[int, Cadence] = {}  # by run

    def due(self, *, now: Instant, limit: int) -> list[DueSchedule]:
        self._before.clear()
        return self._path.due(now=now, limit=limit)

    def advance(self, moves: Sequence[Advance]) -> None:
        before = self._tx.cadences.lock([move.schedule_id for move in moves])
        self._before |= {move.run_id: before[move.schedule_id] for move in moves}
        self._path.advance(moves)

    def start(self, rows: Sequence[Run]) -> None:
        self._path.start(rows)
        self._report([text for row in rows for text in self._started(row)])

    def settle(self, node_id: int, ended: Sequence[Run]) -> set[int]:
        cadences = self._tx.cadences.lock({run.schedule_id for run in ended})
        runs = self._tx.runs.lock([run.run_id for run in ended])
        settled = self._path.settle(node_id, ended)
        for run in ended:
            if run.run_id in settled:
                self._report(self._settled(runs[run.run_id], cadences[run.schedule_id], run, node_id))
        return settled

    def _compiled(self, run: Run) -> Compiled:
        schedule = self._tx.schedules.by_ids([run.schedule_id])[run.schedule_id]
        compiled = read_stored(run.schedule_id, schedule.version, schedule.definition)
        assert isinstance(compiled, Compiled)
        assert schedule.version == run.version
        return compiled

    def _started(self, run: Run) -> Iterator[str]:
        before, rules = self._before.pop(run.run_id), self._compiled(run).rules
        now = run.claimed_at or 0
        plan = ring(before, rules, now=now, gap_reason="outage", taken=frozenset())
        start = Start(run.planned_at, run.due_at, "schedule")
        after = self._tx.cadences.lock([run.schedule_id])[run.schedule_id]
        expected = Plan(plan.rows, with_rows(plan.cadence, run.run_id, None, run.run_id))
        if expected != Plan((start,), after):
            yield f"L2 the plain path started {describe(run)}: {Plan((start,), after)}; ringing decides {expected}"
        if self._tx.runs.lock([run.run_id]) != {run.run_id: run}:
            yield f"L2 the plain path wrote {describe(run)} otherwise than it was claimed"
        alarm = self._tx.alarms.by_refs(ALARM_SCHEDULE, [run.schedule_id])[run.schedule_id]
        if alarm.due_at != due_at(after, rules):
            yield f"L3 the plain path set an alarm at {alarm.due_at} for {after}"

    def _settled(self, before: Run, cadence: Cadence, ended: Run, node_id: int) -> Iterator[str]:
        compiled, now = self._compiled(ended), ended.ended_at or 0
        if (before.owner, before.fence) != (node_id, ended.fence):
            yield f"L6 the plain path settled {describe(before)} for node {node_id} with fence {ended.fence}"
        close = after_attempt(before, compiled.policy, Done(), now=now, next_due_at=cadence.next_at)
        assert isinstance(close, Close)
        moved, effects = after_close(cadence, compiled.rules, compiled.policy, before, close, now=now)
        expected = closed(before, close, now=now, result=None), moved, ()
        row = self._tx.runs.lock([ended.run_id])[ended.run_id]
        after = self._tx.cadences.lock([ended.schedule_id])[ended.schedule_id]
        if (row, after, effects) != expected:
            yield f"L2 the plain path settled {describe(before)} as {row, after}; settling decides {expected}"
