"""The law of the plain path: what it writes is what the general path would have decided."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from wakeful.core.run.results import Done
from wakeful.core.run.runs import Run
from wakeful.core.run.settlement import Close, after_attempt, after_close
from wakeful.core.run.transitions import closed
from wakeful.core.schedule.cadence import Cadence, Plan, Start, due_at, ring, with_rows
from wakeful.core.time.instants import Instant
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.features.schedules.rules import Terms
from wakeful.ports.claims import Batch, Claim
from wakeful.ports.plain import NO_LANES, NO_RESULTS, DueSchedule, PlainPath
from wakeful.ports.store import ALARM_SCHEDULE, Tx
from wakeful.stores.sqlite.store import SqliteStore
from worlds.laws import describe

Report = Callable[[Iterable[str]], None]

STARTED: Final = "batches of plain runs started"
SETTLED: Final = "batches of plain runs settled"
WITH_RESULT: Final = "of these with a result"
WITH_REPLY: Final = "of these with a reply"
BATCH_MIN: Final = 8
"""How many runs are a batch that is counted."""


def watch_plain_path(store: SqliteStore, report: Report, terms: Callable[[], Terms], batches: Counter[str]) -> None:
    """Compare every commit of the plain path from now on, and count the batches it writes."""
    write = store.write

    async def watched(operation: Callable[[Tx], Any], *, is_urgent: bool = False) -> Any:
        def look(tx: Any) -> Any:
            if not isinstance(tx.plain, _Watched):
                tx.plain = _Watched(tx, tx.plain, report, terms, batches)
            return operation(tx)

        return await write(look, is_urgent=is_urgent)

    store.write = watched  # type: ignore[method-assign]


class _Watched:
    """The plain path of one connection."""

    def __init__(
        self, tx: Tx, path: PlainPath, report: Report, terms: Callable[[], Terms], batches: Counter[str]
    ) -> None:
        self._tx = tx
        self._path = path
        self._report = report
        self._terms = terms
        self._batches = batches
        self._now = 0

    def due(self, *, now: Instant, limit: int, after: Instant | None = None) -> list[DueSchedule]:
        self._now = now
        return self._path.due(now=now, limit=limit, after=after)

    def start(self, batches: Sequence[Batch]) -> None:
        claims = [claim for batch in batches for claim in (*batch.claims, *batch.waiting)]
        before = self._tx.cadences.lock([claim.schedule_id for claim in claims])
        self._path.start(batches)
        self._report([text for claim in claims for text in self._advanced(claim, before[claim.schedule_id])])
        self._batches[STARTED] += max(len(batch.claims) for batch in batches) >= BATCH_MIN
        rows = [claim.run for batch in batches for claim in batch.claims]
        written = self._tx.runs.lock([row.run_id for row in rows])
        wrong = [describe(row) for row in rows if written.get(row.run_id) != row]
        self._report(f"L2 the plain path wrote {row} otherwise than it was claimed" for row in wrong)

    def settle(
        self, node_id: int, ended: Sequence[Claim], *, now: Instant, results: Mapping[int, str] = NO_RESULTS
    ) -> set[int]:
        cadences = self._tx.cadences.lock({run.schedule_id for run in ended})
        runs = self._tx.runs.lock([run.run_id for run in ended])
        settled = self._path.settle(node_id, ended, now=now, results=results)
        self._batches[SETTLED] += len(settled) >= BATCH_MIN
        self._batches[WITH_RESULT] += len(settled & results.keys()) >= BATCH_MIN
        replies = [one for one in ended if one.run_id in settled and one.compiled and one.compiled.model.deliver]
        self._batches[WITH_REPLY] += len(replies) >= BATCH_MIN
        for claim in ended:
            if claim.run_id in settled:
                row, cadence = runs[claim.run_id], cadences[claim.schedule_id]
                self._report(self._settled(row, cadence, claim.run, results.get(claim.run_id), node_id, now))
        return settled

    def successors(self, held: Mapping[str, int], *, now: Instant) -> list[Run] | None:
        found = self._path.successors(held, now=now)
        if found is not None:
            chosen = self._chosen(held, now)
            if sorted(found) != sorted(chosen):
                wrong = [describe(run) for run in found], [describe(run) for run in chosen]
                self._report([f"L5 the plain path passes {held} on to {wrong[0]}; comparing chooses {wrong[1]}"])
        return found

    def _chosen(self, held: Mapping[str, int], now: Instant) -> list[Run]:
        """The runs that are due once these lanes are free. It is tried and undone."""
        execute = self._tx.lanes._connection.execute  # type: ignore[attr-defined]  # worlds run on SQLite
        execute("SAVEPOINT chosen")
        self._tx.lanes.free_many(list(held.items()))
        due = self._tx.runs.due(now=now, limit=len(held) + 1)
        execute("ROLLBACK TO chosen")
        execute("RELEASE chosen")
        return due

    def claim(self, runs: Sequence[Run], passed_on: Mapping[str, int] = NO_LANES) -> None:
        self._path.claim(runs, passed_on)
        written = self._tx.runs.lock([row.run_id for row in runs])
        wrong = [describe(row) for row in runs if written.get(row.run_id) != row]
        self._report(f"L2 the plain path wrote {row} otherwise than it was claimed" for row in wrong)

    def _compiled(self, schedule_id: int, version: int) -> Compiled:
        schedule = self._tx.schedules.by_ids([schedule_id])[schedule_id]
        compiled = read_stored(schedule_id, schedule.version, schedule.definition)
        assert isinstance(compiled, Compiled)
        assert schedule.version == version
        return compiled

    def _advanced(self, claim: Claim, before: Cadence) -> Iterator[str]:
        compiled = self._compiled(before.schedule_id, before.version)
        rules, excluded = compiled.rules, self._terms().excluded(compiled.definition)
        plan = ring(before, rules, now=self._now, gap_reason="outage", taken=frozenset(), excluded=excluded)
        start = Start(claim.batch.planned_at, claim.batch.planned_at + rules.offset, "schedule")
        after = self._tx.cadences.lock([before.schedule_id])[before.schedule_id]
        expected = Plan(plan.rows, with_rows(plan.cadence, claim.run_id, None, claim.run_id))
        if expected != Plan((start,), after):
            yield f"L2 the plain path moved {before}: {Plan((start,), after)}; ringing decides {expected}"
        alarm = self._tx.alarms.by_refs(ALARM_SCHEDULE, [before.schedule_id])[before.schedule_id]
        if alarm.due_at != due_at(after, rules):
            yield f"L3 the plain path set an alarm at {alarm.due_at} for {after}"

    def _settled(
        self, before: Run, cadence: Cadence, ended: Run, result: str | None, node_id: int, now: Instant
    ) -> Iterator[str]:
        compiled = self._compiled(ended.schedule_id, ended.version)
        if (before.owner, before.fence) != (node_id, ended.fence):
            yield f"L6 the plain path settled {describe(before)} for node {node_id} with fence {ended.fence}"
        close = after_attempt(before, compiled.policy, Done(), now=now, next_due_at=cadence.next_at)
        assert isinstance(close, Close)
        moved, effects = after_close(cadence, compiled.rules, compiled.policy, before, close, now=now)
        expected = closed(before, close, now=now, result=result), moved, ()
        row = self._tx.runs.lock([ended.run_id])[ended.run_id]
        after = self._tx.cadences.lock([ended.schedule_id])[ended.schedule_id]
        if (row, after, effects) != expected:
            yield f"L2 the plain path settled {describe(before)} as {row, after}; settling decides {expected}"
