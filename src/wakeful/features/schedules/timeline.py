"""Many schedules on one time axis: past runs and upcoming instants.

The cost is bounded by the page size: at most `MARKS_MAX` ledger rows and `MARKS_MAX` future instants are read per
schedule. A schedule with more says up to where its data is complete.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from wakeful.core.run.runs import ERRORS
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.excluded_days import ranges
from wakeful.core.time.instants import Instant, format_instant
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.upcoming import ahead_of, open_runs, shown_at
from wakeful.features.schedules.views import ScheduleView, as_text, encode, glances_text
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


class Row(NamedTuple):
    """One schedule on the time axis."""

    view: ScheduleView
    past: RecordedRuns
    future: UpcomingInstants
    excluded: list[tuple[Instant, Instant]]

    def to_text(self) -> str:
        """The row as JSON."""
        timing = None if self.view.definition is None else self.view.definition.timing
        head = {
            "slug": self.view.slug,
            "status": self.view.status,
            "health": self.view.health,
            "statusReason": self.view.status_reason,
            "createdAt": as_text(self.view.created_at),
            "nextRun": as_text(self.view.next_run),
            "timezone": getattr(timing, "timezone", None),
        }
        return _row_text(head, self.past, self.future, self.excluded)


class Other(NamedTuple):
    """The heartbeat, a handler of a workflow or a quota slot on the time axis."""

    slug: str
    handler: str | None
    past: RecordedRuns
    future: UpcomingInstants

    def to_text(self) -> str:
        """The row as JSON."""
        newest = self.past.runs[0] if self.past.runs else None
        ended = next((run for run in self.past.runs if not run.is_open), None)
        since = min((run.planned_at for run in self.past.runs), default=self.past.whole_since)
        head = {
            "slug": self.slug,
            "handler": self.handler,
            "status": newest.outcome if newest is not None and newest.is_open else "idle",
            "health": "failing" if ended is not None and ended.outcome in ERRORS else "ok",
            "statusReason": None,
            "createdAt": format_instant(since),
            "nextRun": format_instant(self.future.instants[0]) if self.future.instants else None,
            "timezone": None,
        }
        return _row_text(head, self.past, self.future, [])


def _row_text(
    head: Mapping[str, Any],
    past: RecordedRuns,
    future: UpcomingInstants,
    excluded: Sequence[tuple[Instant, Instant]],
) -> str:
    """A row as JSON: written as text, because it is mostly runs whose text is kept."""
    days = [{"from": format_instant(first), "until": format_instant(end)} for first, end in excluded]
    return (
        f'{encode(head)[:-1]},"runs":{glances_text(past.runs)},"wholeSince":"{format_instant(past.whole_since)}",'
        f'"planned":{encode([format_instant(at) for at in future.instants])},'
        f'"wholeUntil":"{format_instant(future.whole_until)}","excluded":{encode(days)}}}'
    )


def others(
    tx: Tx, ahead: Iterable[Upcoming], *, since: Instant, until: Instant, whole_until: Instant, marks: int = MARKS_MAX
) -> list[Other]:
    """Everything else that has something planned, by name; workflows by handler."""
    planned: dict[str, dict[str | None, list[tuple[Instant, bool]]]] = {}
    for instant in sorted(ahead):
        handler = instant.handler if instant.slug.startswith(WORKFLOW) else None
        planned.setdefault(instant.slug, {}).setdefault(handler, []).append((instant.due_at, True))
    owners = {slug: owner for slug in sorted(planned) if (owner := tx.owners.find(slug)) is not None or ":" in slug}
    ran = tx.runs.latest([owner for owner in owners.values() if owner is not None], limit=marks + 1)
    entries = []
    for slug, owner in owners.items():
        past = _past([] if owner is None else ran.get(owner, []), since, marks)
        runs = _by_handler(tx, past.runs) if slug.startswith(WORKFLOW) else {None: past.runs}
        for handler in sorted({*planned[slug], *runs}, key=lambda name: (name is None, name)):
            future = _future(planned[slug].get(handler, []), until, marks)
            whole = future._replace(whole_until=min(future.whole_until, whole_until))
            entries.append(Other(slug, handler, past._replace(runs=runs.get(handler, [])), whole))
    return entries


def _by_handler(tx: Tx, runs: Sequence[RunGlance]) -> dict[str | None, list[RunGlance]]:
    """The runs of a workflow by handler, or None if that is no longer known."""
    known = tx.sessions.runs([run.run_id for run in runs])
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
) -> list[Row]:
    """These schedules between two times, with at most `marks` marks on either side of now."""
    schedules = tx.schedules.by_slugs([view.slug for view in views])
    views = [view for view in views if view.slug in schedules]  # what waits for approval has no times
    ids = [schedule.schedule_id for schedule in schedules.values()]
    cadences, alarms = tx.cadences.lock(ids), tx.alarms.by_refs(ALARM_SCHEDULE, ids)
    ran, opened = tx.runs.latest(ids, limit=marks + 1), open_runs(tx, list(cadences.values()))
    listed = []
    for view in views:
        schedule = schedules[view.slug]
        key = schedule.schedule_id
        ahead: list[tuple[Instant, bool]] = []
        compiled = read_stored(key, schedule.version, schedule.definition)
        if isinstance(compiled, Compiled) and key in alarms and alarms[key].due_at is not None:
            # Instants outside active hours are passed over but count, so that a narrow window stays cheap.
            walked = islice(ahead_of(schedule, cadences[key], opened, now, terms), marks + 1)
            ahead = _until(((shown_at(instant, compiled.rules), is_started) for instant, is_started in walked), until)
        waiting = opened.get(cadences[key].open_run_id or 0)
        if waiting is not None and waiting.outcome == "waiting" and (waiting.next_attempt_at or 0) > now:
            ahead.insert(0, (waiting.next_attempt_at or now, True))
        past, future = _past(ran[key], since, marks), _future(ahead, until, marks)
        listed.append(Row(view, past, future, _excluded(view, terms, since, until)))
    return listed


def _excluded(view: ScheduleView, terms: Terms, since: Instant, until: Instant) -> list[tuple[Instant, Instant]]:
    """The days between two times on which the schedule does not run, as ranges with an exclusive end."""
    days = None if view.definition is None else terms.excluded(view.definition)
    if days is None:
        return []
    return [(first, last + 1) for first, last in islice(ranges(days, since - 1, until), MARKS_MAX)]


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
