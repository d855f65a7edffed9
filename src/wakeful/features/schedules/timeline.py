"""Many schedules on one time axis: past runs and upcoming instants.

The cost is bounded by the page size: at most `MARKS_MAX` ledger rows and `MARKS_MAX` future instants are read per
schedule. A schedule with more says up to where its data is complete.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Final, NamedTuple

from wakeful.core.returned import At, Named, Slug, kind_of, returned
from wakeful.core.run.runs import ERRORS
from wakeful.core.schedule.health import Health
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.excluded_days import ranges
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing_builders import as_datetime
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.upcoming import NONE, ahead_of, open_runs, ran_ahead, shown_at
from wakeful.features.schedules.views import RunSummary, ScheduleView, Status, encode, glances_text
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.owners import Owners
from wakeful.ports.store import ALARM_SCHEDULE, RunGlance, Tx

MARKS_MAX: Final = 120
WORKFLOW: Final = "workflow:"
"""How the names of workflows begin among the owners of runs."""


class RecordedRuns(NamedTuple):
    """Ledger rows since some time, newest first; rows before `whole_since` were not read."""

    runs: list[RunGlance]
    whole_since: Instant


class UpcomingInstants(NamedTuple):
    """Instants until a time, in order; instants after `whole_until` were not computed."""

    instants: list[Instant]
    whole_until: Instant


_RUNS: Final = kind_of(list[RunSummary])


@dataclass(frozen=True, slots=True)
class ExcludedTime:
    """Adjacent days on which a schedule does not run."""

    starts_at: Annotated[At, Named("from")]
    until: At


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One schedule on the time axis."""

    slug: Slug
    status: Status
    health: Health
    status_reason: str | None
    created_at: datetime
    next_run: datetime | None
    timezone: str | None
    runs: Annotated[list[RunGlance], "newest first", _RUNS]
    whole_since: Annotated[At, "the runs are complete from this time on"]
    planned: Annotated[list[At], "upcoming instants, in order"]
    whole_until: Annotated[At, "the instants are complete until this time"]
    excluded: Annotated[list[ExcludedTime], "days on which it does not run"]


@dataclass(frozen=True, slots=True)
class OtherRow(TimelineRow):
    """The heartbeat, a handler of a workflow or a quota slot on the time axis."""

    slug: Annotated[str, "`heartbeat`, `workflow:ID` or `slot:NAME`"]
    handler: Annotated[str | None, "of a workflow: the producer or consumer; null if unknown"]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A page of schedules between two times, ordered by slug."""

    since: At
    until: At
    now: At
    rows: list[TimelineRow]
    others: Annotated[list[OtherRow], "on the first page: everything else with planned instants"]
    next: Annotated[str | None, "cursor of the next page; null on the last page"]


TIMELINE: Final = returned(Timeline)
_PAGE: Final = TIMELINE.only(without=("rows", "others"))
_ROW: Final = returned(TimelineRow).only(without=("runs",))
_OTHER: Final = returned(OtherRow).only(without=("runs",))


def timeline_text(page: Timeline) -> str:
    """A page as JSON: written as text, because it is mostly runs whose text is kept."""
    rows = ",".join(_row_text(_ROW.write(row), row.runs) for row in page.rows)
    others = ",".join(_row_text(_OTHER.write(row), row.runs) for row in page.others)
    return f'{encode(_PAGE.write(page))[:-1]},"rows":[{rows}],"others":[{others}]}}'


def _row_text(written: dict[str, Any], runs: Iterable[RunGlance]) -> str:
    return f'{encode(written)[:-1]},"runs":{glances_text(runs)}}}'


def others(
    tx: Tx, ahead: Iterable[Upcoming], *, since: Instant, until: Instant, whole_until: Instant, marks: int = MARKS_MAX
) -> list[OtherRow]:
    """Everything else that has something planned, by name; workflows by handler."""
    planned: dict[str, dict[str | None, list[tuple[Instant, bool]]]] = {}
    for instant in sorted(ahead):
        handler = instant.handler if instant.slug.startswith(WORKFLOW) else None
        planned.setdefault(instant.slug, {}).setdefault(handler, []).append((instant.due_at, True))
    owners = {slug: owner for slug in sorted(planned) if (owner := tx[Owners].find(slug)) is not None or ":" in slug}
    ran = tx.runs.latest([owner for owner in owners.values() if owner is not None], limit=marks + 1)
    entries = []
    for slug, owner in owners.items():
        past = _past([] if owner is None else ran.get(owner, []), since, marks)
        runs = _by_handler(tx, past.runs) if slug.startswith(WORKFLOW) else {None: past.runs}
        for handler in sorted({*planned[slug], *runs}, key=lambda name: (name is None, name)):
            future = _future(planned[slug].get(handler, []), until, marks)
            whole = future._replace(whole_until=min(future.whole_until, whole_until))
            entries.append(_other(slug, handler, past._replace(runs=runs.get(handler, [])), whole))
    return entries


def _other(slug: str, handler: str | None, past: RecordedRuns, future: UpcomingInstants) -> OtherRow:
    opened = past.runs[0].outcome if past.runs else None
    ended = next((run for run in past.runs if not run.is_open), None)
    return OtherRow(
        slug=slug,
        status=opened if opened == "running" or opened == "waiting" else "idle",
        health="failing" if ended is not None and ended.outcome in ERRORS else "ok",
        status_reason=None,
        created_at=as_datetime(min((run.planned_at for run in past.runs), default=past.whole_since)),
        next_run=as_datetime(future.instants[0]) if future.instants else None,
        timezone=None,
        runs=past.runs,
        whole_since=past.whole_since,
        planned=future.instants,
        whole_until=future.whole_until,
        excluded=[],
        handler=handler,
    )


def _by_handler(tx: Tx, runs: Sequence[RunGlance]) -> dict[str | None, list[RunGlance]]:
    """The runs of a workflow by handler, or None if that is no longer known."""
    known = tx[HandlerRunDetails].among([run.run_id for run in runs])
    by_handler: dict[str | None, list[RunGlance]] = {}
    for run in runs:
        by_handler.setdefault(known[run.run_id].handler if run.run_id in known else None, []).append(run)
    return by_handler


def latest(tx: Tx, views: Sequence[ScheduleView], *, limit: int) -> dict[str, list[RunGlance]]:
    """The newest ledger rows of each schedule, by slug, newest first."""
    slugs = {row.schedule_id: row.slug for row in tx.schedules.by_slugs([view.slug for view in views]).values()}
    return {slugs[key]: rows for key, rows in tx.runs.latest(list(slugs), limit=limit).items()}


def rows(
    tx: Tx,
    views: Sequence[ScheduleView],
    *,
    now: Instant,
    since: Instant,
    until: Instant,
    terms: Terms,
    marks: int = MARKS_MAX,
) -> list[TimelineRow]:
    """These schedules between two times, with at most `marks` marks on either side of now."""
    schedules = tx.schedules.by_slugs([view.slug for view in views])
    views = [view for view in views if view.slug in schedules]  # what waits for approval has no times
    ids = [schedule.schedule_id for schedule in schedules.values()]
    cadences, alarms = tx.cadences.lock(ids), tx.alarms.by_refs(ALARM_SCHEDULE, ids)
    ran, opened = tx.runs.latest(ids, limit=marks + 1), open_runs(tx, list(cadences.values()))
    already = ran_ahead(tx, cadences.values())
    listed = []
    for view in views:
        schedule = schedules[view.slug]
        key = schedule.schedule_id
        ahead: list[tuple[Instant, bool]] = []
        compiled = read_stored(key, schedule.version, schedule.definition)
        if isinstance(compiled, Compiled) and key in alarms and alarms[key].due_at is not None:
            starts = ahead_of(schedule, cadences[key], opened, now, terms, already.get(key, NONE))
            walked = islice(starts, marks + 1)
            ahead = _until(((shown_at(instant, compiled.rules), True) for instant in walked), until)
        waiting = opened.get(cadences[key].open_run_id or 0)
        if waiting is not None and waiting.outcome == "waiting" and (waiting.next_attempt_at or 0) > now:
            ahead.insert(0, (waiting.next_attempt_at or now, True))
        past, future = _past(ran[key], since, marks), _future(ahead, until, marks)
        listed.append(_row(view, past, future, _excluded(view, terms, since, until)))
    return listed


def _row(view: ScheduleView, past: RecordedRuns, future: UpcomingInstants, excluded: list[ExcludedTime]) -> TimelineRow:
    timing = None if view.definition is None else view.definition.timing
    return TimelineRow(
        slug=view.slug,
        status=view.status,
        health=view.health,
        status_reason=view.status_reason,
        created_at=view.created_at,
        next_run=view.next_run,
        timezone=getattr(timing, "timezone", None),
        runs=past.runs,
        whole_since=past.whole_since,
        planned=future.instants,
        whole_until=future.whole_until,
        excluded=excluded,
    )


def _excluded(view: ScheduleView, terms: Terms, since: Instant, until: Instant) -> list[ExcludedTime]:
    """The days between two times on which the schedule does not run, as ranges with an exclusive end."""
    days = None if view.definition is None else terms.excluded(view.definition)
    if days is None:
        return []
    return [ExcludedTime(first, last + 1) for first, last in islice(ranges(days, since - 1, until), MARKS_MAX)]


def _until(walked: Iterable[tuple[Instant, bool]], until: Instant) -> list[tuple[Instant, bool]]:
    """Instants up to a time, and the first one after it: the rest need not be computed."""
    ahead = []
    for instant in walked:
        ahead.append(instant)
        if instant[0] > until:
            break
    return ahead


def _past(newest_first: Sequence[RunGlance], since: Instant, marks: int) -> RecordedRuns:
    shown = newest_first[:marks]
    kept = [run for run in shown if (run.ended_at or 0) >= since or _end(run) >= since]
    is_cut = len(newest_first) > marks and len(kept) == len(shown)
    return RecordedRuns(kept, max(since, min(map(_end, shown))) if is_cut else since)


def _end(run: RunGlance) -> Instant:
    return max(run.planned_at, run.planned_until or 0, run.ended_at or 0)


def _future(walked: Sequence[tuple[Instant, bool]], until: Instant, marks: int) -> UpcomingInstants:
    kept = [at for at, is_started in walked[:marks] if is_started and at <= until]
    is_cut = len(walked) > marks and walked[marks][0] <= until
    return UpcomingInstants(kept, walked[marks - 1][0] if is_cut else until)
