"""The ledger: what can be asked of runs, and of past instants that are run once more."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Final, TypeAlias

from wakeful.api.operation import Blocking, Noun, Returns, perform, read, write
from wakeful.api.parameters import Param
from wakeful.api.reading import GIVE_TIME, SLUG_SCHEMA, given_time, read_text, run_id_of, time_of
from wakeful.api.replies import replayed
from wakeful.api.run_pages import RUNS
from wakeful.api.shared_parameters import IdCursor, Limit, OfOutcome, SlugPath
from wakeful.app.with_cost import estimated_cost
from wakeful.core.description import Field, Object
from wakeful.core.returned import RUN_ID, TIME, kind_of, returned
from wakeful.core.time.instants import INSTANT_MAX, Instant
from wakeful.core.time.timing_builders import as_instant
from wakeful.features.schedules import backfilling, cancelling, queries
from wakeful.features.schedules.backfilling import PastInstants, StoppedBackfill
from wakeful.features.schedules.ledger import Search, SearchPage, search
from wakeful.features.schedules.run_views import RUN, RunView
from wakeful.observe.log_reading import LogLine
from wakeful.ports.store import Tx

RunPath: TypeAlias = Annotated[int, Param(name="id", schema=RUN_ID.schema, read=run_id_of)]
DryRun: TypeAlias = Annotated[bool, Param("only count; nothing runs", where="query")]
AT: Final = TIME.schema
COUNTED: Final = returned(PastInstants)
HOW_MANY: Final = Returns(COUNTED, "How many.")
RUN_WITH_LOG: Final = Object(
    "RunWithLog",
    "One ledger row with its log lines.",
    [
        *RUN.fields,
        Field(kind_of(list[LogLine]), "oldest first, as far back as it is kept", name="log"),
        Field(kind_of(bool), "whether there are more lines", name="logIsCut", attribute="log_is_cut"),
    ],
    RunView,
)


class Ledger(Noun):
    """Runs: what ran, and what did not."""

    @read("GET /api/runs", "List runs (the ledger)", RUNS, refuses=(404,), id="list_all_runs")
    def list(
        self,
        tx: Tx,
        now: Instant,
        *,
        limit: Limit = 100,
        cursor: IdCursor = None,
        outcome: OfOutcome = None,
        slug: Annotated[str | None, Param("only runs of this schedule", longest=200)] = None,
        q: Annotated[str, Param("only runs with this text in the slug, error, reason or result", longest=200)] = "",
        since: Annotated[
            datetime | str | None, Param("only runs that started, or were due, at or after this", read=time_of("since"))
        ] = None,
        until: Annotated[
            datetime | str | None, Param("only runs that started, or were due, before this", read=time_of("until"))
        ] = None,
    ) -> SearchPage:
        """A search reads 2,000 rows at most: a page may be short or even empty, and its `next` continues."""
        wanted = Search(
            slug or None,
            outcome,
            q.strip(),
            0 if since is None else as_instant(since, "since"),
            INSTANT_MAX if until is None else as_instant(until, "until"),
        )
        return search(tx, wanted, limit=limit, before_id=cursor)

    @perform(
        "GET /api/runs/{id}",
        "One run, with its rungs, attempts and log",
        Returns(RUN_WITH_LOG, "The run."),
        refuses=(404,),
        least="read",
        id="get_run",
    )
    async def get(self, run_id: RunPath) -> RunView:
        """`log` has its log lines, oldest first, as far as they are kept; bounded."""
        app, log_of_run = self._app, self._app._host.log_of_run
        run = await app._look(lambda tx, _: queries.run(tx, run_id))
        if log_of_run is None:
            return run
        until = app._moment().now if run.ended_at is None else as_instant(run.ended_at, "endedAt")
        log = await log_of_run(run.run_id, as_instant(run.planned_at, "plannedAt"), until)
        return replace(run, log=log.lines, log_is_cut=log.is_cut)

    @write(
        "POST /api/runs/{id}/cancel",
        "Cancel a run",
        Returns(RUN, "The run is cancelled, or will be shortly."),
        statuses=(202,),
        refuses=(404, 409),
        id="cancel_run",
    )
    def cancel(self, tx: Tx, now: Instant, run_id: RunPath) -> RunView:
        """A waiting run is cancelled immediately, a running one as soon as it is proven to have stopped. 409 if it has
        ended."""
        cancelling.cancel(tx, run_id, hooks=self._app._open.hooks, now=now, by=self._actor.name)
        return queries.run(tx, run_id)

    @perform(
        "POST /api/runs/{id}/replay",
        "Run the instant of a run once more",
        Returns(COUNTED, "With `dryRun`: what it would run and cost."),
        Returns(RUN, "The new run."),
        statuses=(200, 202),
        refuses=(404, 409),
        id="replay_run",
        reply=replayed,
    )
    async def replay(self, run_id: RunPath, *, dry_run: DryRun = False) -> RunView | PastInstants:
        """Starts a separate run, outside the plan, with its own key. 409 if the run has not ended."""
        if dry_run:
            slug = await self._app._look(lambda tx, _: backfilling.replayable(tx, run_id)[1].slug)
            return await self._counted({slug: 1})
        return await self._app._command(lambda tx, now: queries.run(tx, backfilling.replay(tx, run_id, now=now)))

    @perform(
        "POST /api/replay",
        "Run missed instants",
        HOW_MANY,
        statuses=(202,),
        refuses=(404, 409),
        id="replay_missed",
        body_name="Replay",
        body_says="Which missed instants to run.",
    )
    async def replay_missed(
        self,
        since: Annotated[datetime | str, Param(schema=AT, read=given_time("since"), missing=GIVE_TIME)],
        slug: Annotated[str | None, Param(schema=SLUG_SCHEMA)] = None,
        *,
        dry_run: DryRun = False,
    ) -> PastInstants:
        """Runs the missed instants since `since`, of one schedule or of all, one after another for each schedule."""
        first, by = as_instant(since, "since"), self._actor.name

        def replay(tx: Tx, now: Instant) -> dict[str, int]:
            wanted = backfilling.missed_since(tx, slug, since=first)
            for item in () if dry_run else wanted:
                backfilling.start(tx, item, "replay", now=now, by=by)
            return {item.schedule.slug: len(item.instants) for item in wanted}

        return await self._counted(await self._app._command(replay))

    @perform(
        "POST /api/schedule/{slug}/backfill",
        "Run past instants of a schedule",
        HOW_MANY,
        statuses=(202,),
        refuses=(404, 409),
        id="backfill",
        body_name="Backfill",
        body_says="The range of a backfill, both ends included.",
    )
    async def backfill(
        self,
        slug: SlugPath,
        since: Annotated[datetime | str, Param(name="from", schema=AT, read=given_time("from"), missing=GIVE_TIME)],
        until: Annotated[datetime | str | None, Param("default: now", schema=AT, read=read_text("until"))] = None,
        *,
        dry_run: DryRun = False,
    ) -> PastInstants:
        """Runs the instants in the range that have not succeeded, oldest first, one after another. Regular instants
        take precedence."""
        first, by, terms = as_instant(since, "from"), self._actor.name, self._app._terms
        last = None if until is None else as_instant(until, "until")

        def backfill(tx: Tx, now: Instant) -> dict[str, int]:
            end = now if last is None else last
            wanted = backfilling.backfill_of(tx, slug, since=first, until=end, terms=terms, now=now)
            if not dry_run:
                backfilling.start(tx, wanted, "backfill", now=now, by=by)
            return {slug: len(wanted.instants)} if wanted.instants else {}

        return await self._counted(await self._app._command(backfill))

    @write(
        "DELETE /api/schedule/{slug}/backfill",
        "Stop the backfills of a schedule",
        Returns(returned(StoppedBackfill), "How many instants will not run."),
        refuses=(404,),
        id="stop_backfill",
    )
    def stop_backfill(self, tx: Tx, now: Instant, slug: SlugPath) -> StoppedBackfill:
        """A run in progress finishes; cancel it to end it."""
        return StoppedBackfill(backfilling.stop(tx, slug, now=now))

    async def _counted(self, by_slug: Mapping[str, int]) -> PastInstants:
        """So many instants, with what they may cost. It is read after the command: a store of many schedules must not
        wait for it."""
        money = self._app._money_terms
        cost = await self._app._look(lambda tx, now: estimated_cost(tx, by_slug, money, now=now))
        return PastInstants(sum(by_slug.values()), dict(by_slug), cost)


class BlockingLedger(Ledger, Blocking):
    """The ledger, for programs without an event loop."""
