"""One schedule: its state, its runs and statistics, its next times, and why it ran or did not run."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from wakeful.api.operation import Noun, Returns, read
from wakeful.api.parameters import Param
from wakeful.api.reading import time_of
from wakeful.api.replies import shown
from wakeful.api.run_pages import RUNS
from wakeful.api.shared_parameters import IdCursor, Limit, OfOutcome, OwnerPath, SlugPath
from wakeful.app.with_cost import with_cost
from wakeful.core.returned import At, returned
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing_builders import as_datetime, as_instant
from wakeful.features.schedules import queries
from wakeful.features.schedules.ledger import Search, SearchPage, search
from wakeful.features.schedules.owned_views import owned_view
from wakeful.features.schedules.queries import STATS, Stats
from wakeful.features.schedules.upcoming import next_times
from wakeful.features.schedules.views import SCHEDULE, ScheduleView
from wakeful.features.schedules.why import WHY, Why
from wakeful.ports.store import Tx

ETAG: Final = {"ETag": "version of the definition"}


@dataclass(frozen=True, slots=True)
class NextTimes:
    """Planned instants, in order."""

    times: list[At]


def as_datetimes(made: NextTimes) -> list[datetime]:
    """Instants, as datetimes."""
    return [as_datetime(at) for at in made.times]


class OneSchedule(Noun):
    """What can be asked about one schedule."""

    @read(
        "GET /api/schedule/{slug}",
        "One schedule",
        Returns(SCHEDULE, "The current state.", ETAG),
        refuses=(404,),
        id="get_schedule",
        agents=True,
        reply=shown,
    )
    def get(self, tx: Tx, now: Instant, slug: SlugPath) -> ScheduleView:
        return self._seen(tx, slug, now)

    @read(
        "GET /api/schedule/{slug}/runs",
        "List the runs of a schedule",
        RUNS,
        refuses=(404,),
        id="list_runs",
        agents=True,
    )
    def runs(
        self,
        tx: Tx,
        now: Instant,
        slug: OwnerPath,
        *,
        limit: Limit = 100,
        cursor: IdCursor = None,
        outcome: OfOutcome = None,
    ) -> SearchPage:
        """Also for a removed schedule, as long as the ledger keeps its rows, and for `slot:NAME`, `workflow:ID` and
        `heartbeat`."""
        if self._is_proposed(tx, slug, now):
            return SearchPage([], None)
        return search(tx, Search(slug, outcome), limit=limit, before_id=cursor)

    @read(
        "GET /api/schedule/{slug}/stats",
        "Statistics of a schedule",
        Returns(STATS, "Counts, success rate, durations, streak."),
        refuses=(404,),
        id="get_stats",
    )
    def stats(
        self,
        tx: Tx,
        now: Instant,
        slug: OwnerPath,
        *,
        since: Annotated[datetime | str | None, Param("a time; default: all history", read=time_of("since"))] = None,
    ) -> Stats:
        """Also for `slot:NAME`, `workflow:ID` and `heartbeat`."""
        return self._app._stats_in(tx, slug, since=since, now=now)

    @read(
        "GET /api/schedule/{slug}/next",
        "Next times of a schedule",
        Returns(returned(NextTimes), "Strictly after `after`."),
        refuses=(404,),
        id="get_next",
        agents=True,
    )
    def next(
        self,
        tx: Tx,
        now: Instant,
        slug: SlugPath,
        count: Annotated[int, Param("number of times", least=1, most=1_000)] = 5,
        *,
        after: Annotated[datetime | str | None, Param("a time; default: now", read=time_of("after"))] = None,
    ) -> NextTimes:
        if self._is_proposed(tx, slug, now):
            return NextTimes([])
        start = now if after is None else as_instant(after, "after")
        return NextTimes(next_times(tx, slug, now=now, after=start, count=count, terms=self._app._terms))

    @read(
        "GET /api/schedule/{slug}/why",
        "Why it ran, did not run, or will not run",
        Returns(WHY, "One sentence, and the facts."),
        refuses=(404,),
        id="get_why",
        agents=True,
    )
    def why(
        self,
        tx: Tx,
        now: Instant,
        slug: OwnerPath,
        *,
        at: Annotated[
            datetime | str | None, Param("an instant; default: the current state", read=time_of("at"))
        ] = None,
    ) -> Why:
        """Also for `slot:NAME`, `workflow:ID` and `heartbeat`."""
        agent = self._actor.agent
        if agent is not None:
            owned_view(tx, agent.agent, slug, now=now, terms=self._app._terms)
        return self._app._why_in(tx, slug, at=at, viewer=None if agent is None else agent.agent, now=now)

    def _seen(self, tx: Tx, slug: str, now: Instant) -> ScheduleView:
        """A schedule as who asks may see it."""
        agent, terms = self._actor.agent, self._app._terms
        if agent is not None:
            return owned_view(tx, agent.agent, slug, now=now, terms=terms)
        view = queries.get(tx, slug, now=now, terms=terms)
        return with_cost(tx, view, terms=terms, money=self._app._money_terms, now=now)

    def _is_proposed(self, tx: Tx, slug: str, now: Instant) -> bool:
        """Whether an agent asks for what waits for a person: nothing is planned, and nothing ran."""
        return self._actor.agent is not None and self._seen(tx, slug, now).approval == "pending"
