"""What people are told in a world: after a commit, the views of what it touched are compared with the facts.

A view costs more than a fact, so the list of what is upcoming is compared after one commit in `EVERY`.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from wakeful.core.run.resources import RESOURCES
from wakeful.core.run.runs import NOT_RUN, Run, RungName
from wakeful.core.run.settlement import BACKFILLED
from wakeful.core.schedule.upcoming import UpcomingPage, attempted_at, merged
from wakeful.core.time.instants import INSTANT_MAX, Instant
from wakeful.core.time.timing_builders import as_datetime
from wakeful.features.schedules import queries
from wakeful.features.schedules.checking import MERGED
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.run_views import view_run
from wakeful.features.schedules.upcoming import upcoming, waiting_runs
from wakeful.ports.store import Tx
from worlds import told_laws
from worlds.facts import Facts

EVERY: Final = 10
LISTED: Final = 300


class Reader:
    """Somebody who looks at what the system says about itself."""

    def __init__(self) -> None:
        self._got: dict[int, dict[int, RungName]] = {}  # by run and attempt: how far it got
        self._looks = 0

    def look(self, tx: Tx, facts: Facts, terms: Terms, now: Instant) -> Iterator[str]:
        """Read what a commit touched."""
        for run in facts.runs.values():
            yield from self._read_run(run, facts)
        for run_id in facts.gone:
            self._got.pop(run_id, None)
        self._looks += bool(facts.schedules)
        if facts.schedules and self._looks % EVERY == 0:
            yield from _read_next(tx, facts, terms, now)

    def _read_run(self, run: Run, facts: Facts) -> Iterator[str]:
        earlier = facts.attempts.get(run.run_id, ())
        got = self._got.setdefault(run.run_id, {})
        for attempt in [number for number in got if number > run.attempt]:
            del got[attempt]  # it was a check, or was taken back before it began
        if run.reason == RESOURCES:
            got.pop(run.attempt, None)  # a claim says that a call has started, and then it could not begin
        if run.rung is not None and run.attempt:
            got[run.attempt] = told_laws.higher(got.get(run.attempt), run.rung)
        if run.outcome in NOT_RUN and run.reason in MERGED:
            return  # only its check ran
        view = view_run(run, "", earlier)
        yield from told_laws.reached_is_the_highest(run, view.reached, got.values())


def _read_next(tx: Tx, facts: Facts, terms: Terms, now: Instant) -> Iterator[str]:
    ahead = upcoming(tx, now=now, until=INSTANT_MAX, limit=LISTED, terms=terms)
    waiting = waiting_runs(tx, now=now, until=ahead.until, limit=LISTED + 1)
    page: UpcomingPage = merged(ahead, waiting, limit=LISTED)
    slugs = sorted(schedule.slug for schedule in facts.schedules.values() if schedule.deleted_at is None)
    views = queries.chosen(tx, queries.Choice(slugs=slugs), now=now, terms=terms).schedules
    opened = tx.runs.lock([view.open_run_id for view in views if view.open_run_id is not None])
    beside = Counter(
        (run.schedule_id, attempted_at(run, now), run.planned_at)
        for run in tx.runs.due(now=ahead.until, limit=LISTED + 1)
        if run.trigger in BACKFILLED
    )
    ids = {one.slug: one.schedule_id for one in facts.schedules.values() if one.deleted_at is None}
    for view in views:
        open_at = opened[view.open_run_id].planned_at if view.open_run_id in opened else None
        own = [item for item in page.instants if item.slug == view.slug]
        # Backfills and replays are not of the plan: those that wait are upcoming too, and not the next run. One may
        # have the times of the open run, which catches up.
        for item in list(own):
            key = ids[view.slug], item.due_at, item.planned_at
            if beside[key] > 0:
                beside[key] -= 1
                own.remove(item)
        first = next((item.due_at for item in own if item.kind == "schedule" or item.planned_at == open_at), None)
        if first is None and (view.next_run is None or page.is_cut):
            continue
        yield from told_laws.next_is_the_first(view.slug, view.next_run, as_datetime(first))
