"""Many schedules on one time axis: what became of each, and what is to come.

A page costs as much as it is long: of every schedule at most `MARKS_MAX` rows of the ledger and `MARKS_MAX` instants
ahead are looked at, however many there are. One that has more says up to where it is whole.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from wakeful.core.instants import Instant, format_instant
from wakeful.core.runs import Run
from wakeful.features.schedules.queries import Upcoming, ahead_of
from wakeful.features.schedules.views import ScheduleView, as_text, glance_json
from wakeful.ports.store import ALARM_SCHEDULE, Tx

MARKS_MAX: Final = 120


class Past(NamedTuple):
    """Rows of the ledger since a time, newest first; `whole_since`: older ones were not looked at."""

    runs: list[Run]
    whole_since: Instant


class Future(NamedTuple):
    """Instants until a time, in order; `whole_until`: later ones were not looked at."""

    instants: list[Instant]
    whole_until: Instant


class Row(NamedTuple):
    """One schedule on the time axis."""

    view: ScheduleView
    past: Past
    future: Future

    def to_json(self) -> dict[str, Any]:
        timing = None if self.view.definition is None else self.view.definition.timing
        return {
            "slug": self.view.slug,
            "status": self.view.status,
            "statusReason": self.view.status_reason,
            "createdAt": as_text(self.view.created_at),
            "nextRun": as_text(self.view.next_run),
            "timezone": getattr(timing, "timezone", None),
            "runs": [glance_json(run) for run in self.past.runs],
            "wholeSince": format_instant(self.past.whole_since),
            "planned": [format_instant(at) for at in self.future.instants],
            "wholeUntil": format_instant(self.future.whole_until),
        }


def latest(tx: Tx, views: Sequence[ScheduleView], *, limit: int) -> dict[str, list[Run]]:
    """The newest rows of the ledger of each schedule, by slug, newest first."""
    slugs = {row.schedule_id: row.slug for row in tx.schedules.by_slugs([view.slug for view in views]).values()}
    return {slugs[key]: rows for key, rows in tx.runs.latest(list(slugs), limit=limit).items()}


def rows(
    tx: Tx, views: Sequence[ScheduleView], *, now: Instant, since: Instant, until: Instant, marks: int = MARKS_MAX
) -> list[Row]:
    """These schedules between two times, with at most so many marks on either side of now."""
    schedules = tx.schedules.by_slugs([view.slug for view in views])
    ids = [schedule.schedule_id for schedule in schedules.values()]
    cadences, alarms = tx.cadences.lock(ids), tx.alarms.by_refs(ALARM_SCHEDULE, ids)
    ran = tx.runs.latest(ids, limit=marks + 1)
    found = []
    for view in views:
        schedule = schedules[view.slug]
        key = schedule.schedule_id
        is_to_ring = key in alarms and alarms[key].due_at is not None
        # Instants outside active hours are walked past, and count: a narrow window must not cost a search.
        ahead = list(islice(ahead_of(schedule, cadences[key], now), marks + 1)) if is_to_ring else []
        found.append(Row(view, _past(ran[key], since, marks), _future(ahead, until, marks)))
    return found


def _past(newest_first: Sequence[Run], since: Instant, marks: int) -> Past:
    shown = newest_first[:marks]
    kept = [run for run in shown if _end(run) >= since]
    is_cut = len(newest_first) > marks and len(kept) == len(shown)
    return Past(kept, max(since, min(map(_end, shown))) if is_cut else since)


def _end(run: Run) -> Instant:
    return max(run.planned_at, run.planned_until or 0, run.ended_at or 0)


def _future(walked: Sequence[tuple[Upcoming, bool]], until: Instant, marks: int) -> Future:
    kept = [one.planned_at for one, is_started in walked[:marks] if is_started and one.planned_at <= until]
    is_cut = len(walked) > marks and walked[marks][0].planned_at <= until
    return Future(kept, walked[marks - 1][0].planned_at if is_cut else until)
