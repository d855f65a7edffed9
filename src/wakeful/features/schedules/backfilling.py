"""Replay and backfill: past instants are run on request, one after another, outside the plan.

Theory of operation
-------------------
A request is one row (`ports.backfills.Backfill`): the instants, and a cursor. Its alarm creates one run at a time, in
the transaction that moves the cursor, so that a crash neither loses nor repeats one. The next run follows when the
last one has closed. Such a run has its own key, belongs to no instant of the ledger's tiling (L1), is never the
schedule's open run, changes neither its error count nor its health, and has the lowest priority. It uses no capacity of
regular runs (`engine.running.Runner.backfill_count`), so that it never delays one; in return there are few at a time.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Annotated, Final, NamedTuple

from wakeful.core.errors import refuse
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.runs import OUTSIDE_PLAN, Run
from wakeful.core.run.transitions import planned
from wakeful.core.schedule.definition_json import decode_definition
from wakeful.core.time.instants import SECOND, Duration, Instant, format_instant
from wakeful.core.time.timing import AfterReset, Manual, Timing, instants_after
from wakeful.features.schedules import queries
from wakeful.features.schedules.compiled import KIND, Compiled, read_stored
from wakeful.features.schedules.rules import Terms
from wakeful.ports import events
from wakeful.ports.backfills import ALARM_BACKFILL, Backfill, BackfilledRun, BackfilledRuns, Backfills, BackfillTrigger
from wakeful.ports.event_data import Counted
from wakeful.ports.handlers import Due, RingResult
from wakeful.ports.store import Alarm, Report, Schedule, Tx, run_alarm

INSTANTS_MAX: Final = 10_000
PACE: Final[Duration] = 2 * SECOND
"""How long after a backfilled run the next one is considered."""
BACKFILLS_MAX: Final = 4
"""How many runs of backfills may be open at a time, on all nodes."""
_PAGE: Final = 1_000
_RETRIED: Final = frozenset({"failed", "timedOut", "unconfirmed", "unknown", "cancelled", "skipped"})
"""Outcomes of a run outside the plan after which its instant may be requested again."""


class Wanted(NamedTuple):
    """The instants of one schedule that a request would run."""

    schedule: Schedule
    instants: tuple[Instant, ...]


class PastInstants(NamedTuple):
    """How many past instants are run, one after another, or would be."""

    instants: int
    by_slug: Annotated[dict[str, int], "the same by schedule"]
    estimate: Annotated[
        float | None, "what they may cost in US dollars, from recorded costs; null: unknown; 0: no prompts"
    ]


class StoppedBackfill(NamedTuple):
    """How many instants will not be run."""

    left: int


def backfill_of(tx: Tx, slug: str, *, since: Instant, until: Instant, terms: Terms, now: Instant) -> Wanted:
    """The instants in [since, until] that have neither succeeded nor are running, and are not on excluded days."""
    if until > now:
        refuse("until", f"is in the future (now is {format_instant(now)}); backfill runs past instants")
    if since > until:
        refuse("from", "is after `until`; give an earlier time")
    schedule = queries.find(tx, slug)
    timing = terms.starting(_timing(schedule), decode_definition(schedule.definition))
    instants = list(_up_to_max(takewhile(lambda at: at <= until, instants_after(timing, since - 1))))
    done = _settled_well(tx, schedule.schedule_id, since)
    return Wanted(schedule, _not_requested(tx, schedule, [at for at in instants if at not in done]))


def missed_since(tx: Tx, slug: str | None, *, since: Instant) -> list[Wanted]:
    """The missed instants since `since`, of one schedule or of all."""
    only = None if slug is None else queries.find(tx, slug).schedule_id
    ranges: dict[int, list[tuple[Instant, Instant]]] = {}
    for row in _rows(tx, only, "missed", since):
        if row.kind == KIND:
            last = row.planned_at if row.planned_until is None else row.planned_until
            ranges.setdefault(row.schedule_id, []).append((max(row.planned_at, since), last))
    known = tx.schedules.by_ids(sorted(ranges))
    wanted: list[Wanted] = []
    for schedule_id, spans in ranges.items():
        schedule = known.get(schedule_id)
        if schedule is None or schedule.deleted_at is not None:
            continue
        timing = _timing(schedule)
        instants = {at for first, last in spans for at in _within(timing, first, last)}
        wanted.append(Wanted(schedule, _not_requested(tx, schedule, sorted(instants))))
    return sorted((item for item in wanted if item.instants), key=lambda item: item.schedule.slug)


def start(tx: Tx, wanted: Wanted, trigger: BackfillTrigger, *, now: Instant, by: str = "") -> None:
    """Record the request. Its runs follow, one after another."""
    if not wanted.instants:
        return
    schedule_id, written = wanted.schedule.schedule_id, json.dumps(wanted.instants)
    row = Backfill(0, schedule_id, trigger, written, 0, None, "active", by, now, None)
    backfill_id = tx[Backfills].add_new(row)
    tx.alarms.set_many([_alarm(backfill_id, now)])
    data = Counted(len(wanted.instants), by)
    tx.report(Report(events.SCHEDULE_BACKFILL_STARTED, data, slug=wanted.schedule.slug))


def stop(tx: Tx, slug: str, *, now: Instant) -> int:
    """Stop the backfills of a schedule; returns how many instants will not run. A run in progress finishes."""
    schedule = queries.find(tx, slug)
    left = 0
    for row in tx[Backfills].lock_active(schedule.schedule_id):
        left += len(json.loads(row.instants)) - row.cursor
        tx[Backfills].save(row._replace(state="stopped", ended_at=now))
        tx.alarms.remove_many(ALARM_BACKFILL, [row.backfill_id])
    return left


def replayable(tx: Tx, run_id: int) -> tuple[Run, Schedule]:
    """A run that has ended, and its schedule; refused if it cannot be replayed."""
    original = tx.runs.lock([run_id]).get(run_id)
    if original is None:
        raise NotFound(f"there is no run {run_id}")
    if original.kind != KIND:
        raise Conflict(f"run {run_id} does not belong to a schedule; only runs of schedules can be replayed")
    if original.is_open:
        raise Conflict(f"run {run_id} has not ended; wait for it, or cancel it")
    if original.instants > 1:
        raise Conflict(f"run {run_id} covers {original.instants} instants; use: wakeful replay --missed")
    schedule = tx.schedules.by_ids([original.schedule_id]).get(original.schedule_id)
    if schedule is None or schedule.deleted_at is not None:
        raise Conflict(f"the schedule of run {run_id} was removed")
    return original, schedule


def replay(tx: Tx, run_id: int, *, now: Instant) -> int:
    """Run the instant of a closed run once more; returns the id of the new run."""
    original, schedule = replayable(tx, run_id)
    run = _new_run(tx, schedule, original.planned_at, "replay", now)
    tx.runs.add_many([run])
    tx[BackfilledRuns].add(BackfilledRun(run.run_id, run.schedule_id, run.planned_at, run_id))
    tx.alarms.set_many([run_alarm(run, now)])
    return run.run_id


class BackfillAlarms:
    """Creates the runs of backfills, one at a time for each."""

    kind = ALARM_BACKFILL
    brings_runs = True

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        room = 0 if due_by < now else min(BACKFILLS_MAX - tx[Backfills].open_runs(), limit)
        if room <= 0:
            return RingResult((), 0, full=[ALARM_BACKFILL], again_at=now + PACE)
        rows = tx[Backfills].due(now=now, limit=room)
        due = [Due(run) for row in rows if (run := self._step(tx, row, now)) is not None]
        return RingResult(due, len(rows))

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        """Alarms of a clock that was ahead are due now."""
        tx.alarms.set_many([_alarm(backfill_id, now) for backfill_id in tx[Backfills].active()])
        return None

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """Nothing is in progress without a run."""

    def _step(self, tx: Tx, row: Backfill, now: Instant) -> Run | None:
        """The run of the next instant, unless the last one is still open."""
        last = None if row.open_run_id is None else tx.runs.lock([row.open_run_id]).get(row.open_run_id)
        if last is not None and last.is_open:
            tx.alarms.set_many([_alarm(row.backfill_id, now + PACE)])
            return None
        instants = json.loads(row.instants)
        while row.cursor < len(instants) and _is_run(tx, row.schedule_id, instants[row.cursor]):
            row = row._replace(cursor=row.cursor + 1)  # another request ran it, or its run succeeded after all
        schedule = tx.schedules.by_ids([row.schedule_id]).get(row.schedule_id)
        is_gone = schedule is None or schedule.deleted_at is not None
        if row.state != "active" or is_gone or row.cursor >= len(instants) or schedule is None:
            state = "stopped" if is_gone and row.state == "active" else row.state
            tx[Backfills].save(row._replace(state="done" if state == "active" else state, ended_at=now))
            tx.alarms.remove_many(ALARM_BACKFILL, [row.backfill_id])
            return None
        run = _new_run(tx, schedule, instants[row.cursor], row.trigger, now)
        tx[BackfilledRuns].add(BackfilledRun(run.run_id, run.schedule_id, run.planned_at, None))
        tx[Backfills].save(row._replace(cursor=row.cursor + 1, open_run_id=run.run_id))
        tx.alarms.set_many([_alarm(row.backfill_id, now + PACE)])
        return run


def _new_run(tx: Tx, schedule: Schedule, instant: Instant, trigger: BackfillTrigger, now: Instant) -> Run:
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    return planned(
        run_id=tx.runs.reserve_ids(1)[0],
        kind=KIND,
        schedule_id=schedule.schedule_id,
        version=schedule.version,
        planned_at=instant,
        due_at=now,
        trigger=trigger,
        lane=compiled.lane if isinstance(compiled, Compiled) else None,
        run_on=compiled.run_on if isinstance(compiled, Compiled) else None,
    )


def _alarm(backfill_id: int, due_at: Instant) -> Alarm:
    return Alarm(ALARM_BACKFILL, backfill_id, due_at, 1, None, 0)


def _timing(schedule: Schedule) -> Timing:
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if not isinstance(compiled, Compiled):
        raise Conflict(f"{schedule.slug} is invalid: {compiled.reason}")
    if isinstance(compiled.rules.timing, Manual | AfterReset):
        raise Conflict(f"{schedule.slug} has no planned times; run it by hand: wakeful run {schedule.slug}")
    return compiled.rules.timing


def _within(timing: Timing, first: Instant, last: Instant) -> list[Instant]:
    return list(_up_to_max(takewhile(lambda at: at <= last, instants_after(timing, first - 1))))


def _up_to_max(instants: Iterable[Instant]) -> Iterator[Instant]:
    for count, instant in enumerate(instants):
        if count >= INSTANTS_MAX:
            refuse("until", f"the range has more than {INSTANTS_MAX} instants; give a shorter one")
        yield instant


def _rows(tx: Tx, schedule_id: int | None, outcome: str, since: Instant) -> Iterator[Run]:
    """Rows of one outcome that reach to `since` or later, newest first."""
    before_id: int | None = None
    while True:
        page = tx.runs.page(schedule_id=schedule_id, before_id=before_id, limit=_PAGE, outcome=outcome)  # type: ignore[arg-type]
        yield from (row for row in page if (row.planned_until or row.planned_at) >= since)
        # A row written before `since` cannot cover a later instant.
        if len(page) < _PAGE or (page[-1].ended_at or since) < since:
            return
        before_id = page[-1].run_id


def _settled_well(tx: Tx, schedule_id: int, since: Instant) -> frozenset[Instant]:
    """Instants that succeeded, or are running or waiting, by the plan."""
    return frozenset(
        row.planned_at
        for outcome in ("succeeded", "running", "waiting")
        for row in _rows(tx, schedule_id, outcome, since)
        if row.schedule_id == schedule_id and row.trigger not in OUTSIDE_PLAN
    )


def _not_requested(tx: Tx, schedule: Schedule, instants: Sequence[Instant]) -> tuple[Instant, ...]:
    """The instants that no unfinished request contains and that no earlier backfill runs or ran successfully."""
    if not instants:
        return ()
    taken = _run_by_requests(tx, schedule.schedule_id, instants[0], instants[-1])
    for request in tx[Backfills].lock_active(schedule.schedule_id):
        taken |= set(json.loads(request.instants)[request.cursor :])
    return tuple(at for at in instants if at not in taken)


def _is_run(tx: Tx, schedule_id: int, instant: Instant) -> bool:
    return bool(_run_by_requests(tx, schedule_id, instant, instant))


def _run_by_requests(tx: Tx, schedule_id: int, first: Instant, last: Instant) -> set[Instant]:
    """The instants from `first` to `last` that a backfill or a replay runs or ran successfully."""
    made = tx[BackfilledRuns].between(schedule_id, first=first, last=last)
    rows = tx.runs.lock([row.run_id for row in made])
    return {row.planned_at for row in rows.values() if row.outcome not in _RETRIED}
