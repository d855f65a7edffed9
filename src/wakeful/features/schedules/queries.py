"""Questions about schedules. Reading never changes what is planned (L1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from wakeful.core.instants import Duration, Instant
from wakeful.core.refusals import NotFound
from wakeful.core.runs import ERRORS, Outcome
from wakeful.core.timing import next_n
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.features.schedules.views import RunView, ScheduleView, as_datetime, view_run, view_schedule
from wakeful.ports.store import ALARM_SCHEDULE, Schedule, Tx

DURATIONS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Stats:
    """The record of one schedule."""

    since: datetime | None
    counts: dict[Outcome, int]
    success_rate: float | None  # of runs that closed after starting
    p50_duration: Duration | None
    p95_duration: Duration | None
    streak: int  # successes in a row; negative: errors in a row
    next_run: datetime | None
    last_run: datetime | None

    def to_json(self) -> dict[str, Any]:
        return {
            "since": None if self.since is None else self.since.isoformat(),
            "counts": dict(self.counts),
            "successRate": self.success_rate,
            "p50DurationMs": self.p50_duration,
            "p95DurationMs": self.p95_duration,
            "streak": self.streak,
            "nextRun": None if self.next_run is None else self.next_run.isoformat(),
            "lastRun": None if self.last_run is None else self.last_run.isoformat(),
        }


def get(tx: Tx, slug: str) -> ScheduleView:
    """One schedule as it stands."""
    return _views(tx, [_find(tx, slug)])[0]


def page(tx: Tx, *, after: str | None, limit: int, contains: str | None = None) -> list[ScheduleView]:
    """Schedules in slug order after a slug."""
    return _views(tx, tx.schedules.page(after=after, limit=limit, contains=contains))


def runs(tx: Tx, slug: str | None, *, limit: int, before_id: int | None = None) -> list[RunView]:
    """Rows of the ledger, newest first, of one schedule or of all."""
    schedule_id = None if slug is None else _find(tx, slug).schedule_id
    rows = tx.runs.page(schedule_id=schedule_id, before_id=before_id, limit=limit)
    attempts = tx.runs.attempts([row.run_id for row in rows])
    names = tx.schedules.by_ids({row.schedule_id for row in rows})
    return [view_run(row, names[row.schedule_id].slug, attempts.get(row.run_id, ())) for row in rows]


def run(tx: Tx, run_id: int) -> RunView:
    """One row of the ledger."""
    row = tx.runs.lock([run_id]).get(run_id)
    if row is None:
        raise NotFound(f"there is no run {run_id}")
    slug = tx.schedules.by_ids([row.schedule_id])[row.schedule_id].slug
    return view_run(row, slug, tx.runs.attempts([run_id]).get(run_id, ()))


def stats(tx: Tx, slug: str, *, since: Instant) -> Stats:
    """Counts, success rate, durations and streak since some time."""
    schedule = _find(tx, slug)
    tallied = tx.runs.tallied(schedule.schedule_id, since=since, limit=DURATIONS_MAX)
    view = _views(tx, [schedule])[0]
    errors = sum(tallied.by_outcome.get(outcome, 0) for outcome in ERRORS)
    succeeded = tallied.by_outcome.get("succeeded", 0)
    closed = succeeded + errors
    durations = sorted(tallied.durations)
    return Stats(
        since=as_datetime(since) if since else None,
        counts=dict(tallied.by_outcome),
        success_rate=succeeded / closed if closed else None,
        p50_duration=_percentile(durations, 50),
        p95_duration=_percentile(durations, 95),
        streak=_streak(tallied.last_outcomes),
        next_run=view.next_run,
        last_run=view.last_run,
    )


def next_times(tx: Tx, slug: str, *, after: Instant, count: int) -> list[Instant]:
    """The next planned instants strictly after a time, as the timing has them."""
    schedule = _find(tx, slug)
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    return list(next_n(compiled.rules.timing, after, count)) if isinstance(compiled, Compiled) else []


def _find(tx: Tx, slug: str) -> Schedule:
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    if schedule is None:
        raise NotFound(f"there is no schedule {slug!r}")
    return schedule


def _views(tx: Tx, schedules: Sequence[Schedule]) -> list[ScheduleView]:
    """Views in a fixed number of queries, whatever the number of schedules."""
    ids = [schedule.schedule_id for schedule in schedules]
    cadences = tx.cadences.lock(ids)
    alarms = tx.alarms.by_refs(ALARM_SCHEDULE, ids)
    opened = tx.runs.lock([c.open_run_id for c in cadences.values() if c.open_run_id is not None])
    return [
        view_schedule(
            schedule,
            cadence,
            read_stored(schedule.schedule_id, schedule.version, schedule.definition),
            opened.get(cadence.open_run_id) if cadence.open_run_id is not None else None,
            alarms[schedule.schedule_id].due_at if schedule.schedule_id in alarms else None,
        )
        for schedule in schedules
        for cadence in [cadences[schedule.schedule_id]]
    ]


def _percentile(ordered: Sequence[Duration], percent: int) -> Duration | None:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else None


def _streak(newest_first: Sequence[Outcome]) -> int:
    if not newest_first:
        return 0
    is_success = newest_first[0] == "succeeded"
    length = 0
    for outcome in newest_first:
        if (outcome == "succeeded") != is_success:
            break
        length += 1
    return length if is_success else -length
