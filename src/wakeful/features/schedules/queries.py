"""Queries on schedules. Reading never changes what is planned (L1)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from wakeful.core.refusals import NotFound
from wakeful.core.returned import INTERNAL, Named, kind_of_object, returned
from wakeful.core.run.runs import ERRORS, NOT_RUN, Attempt, Outcome, Run
from wakeful.core.run.settlement import BACKFILLED
from wakeful.core.schedule.actions import ActionSpec, Call, Command, Dispatch, Event, Http, Prompt
from wakeful.core.schedule.health import TROUBLED, Health
from wakeful.core.schedule.policies import GRACE
from wakeful.core.self_scheduling.proposals import Proposal
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.time.timing_builders import as_datetime
from wakeful.engine.cancels import Cancels
from wakeful.engine.merged_runs import MergedRuns
from wakeful.engine.run_totals import RunTotals
from wakeful.features.schedules.compiled import Compiled
from wakeful.features.schedules.labels import due_cadences
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.run_views import RunDelivery, RunView, view_delivery, view_run
from wakeful.features.schedules.upcoming import NONE, ran_ahead
from wakeful.features.schedules.views import SCHEDULE, ScheduleView, view_proposal, view_schedule
from wakeful.ports.backfills import BackfilledRuns
from wakeful.ports.charges import SpendingTotals
from wakeful.ports.meta import Meta
from wakeful.ports.names import names_of, owner_of
from wakeful.ports.outbox import Deliveries
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import ALARM_RUN, ALARM_SCHEDULE, STORE_ID, Node, Schedule, Tx

DURATIONS_MAX: Final = 500
# A search reads this many schedules at a time, and this many in total, so its cost is bounded.
SEARCH_STEP: Final = 200
SEARCH_MAX: Final = 1_000
STUCK_MAX: Final = 100
# Choices answered from an index instead of a scan.
HALTED: Final = ("paused", "disabled", "invalid")
# How many waiting runs and overdue alarms are read to find late schedules.
LATE_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of a schedule."""

    since: datetime | None
    counts: dict[Outcome, int]
    success_rate: float | None  # of the runs that started and closed
    p50_duration: Annotated[Duration | None, Named("p50DurationMs")]
    p95_duration: Annotated[Duration | None, Named("p95DurationMs")]
    streak: Annotated[int, "consecutive successes; negative: consecutive errors"]
    next_run: datetime | None
    last_run: datetime | None
    tokens: Annotated[int | None, "sum over all runs with known usage; null if none"]
    cost: Annotated[float | None, "in US dollars, likewise"]

    def to_json(self) -> dict[str, Any]:
        return STATS.write(self)


STATS: Final = returned(Stats)


class Choice(NamedTuple):
    """Filters for schedules: after a slug, by status or health, with a string in the slug or action, with problems
    (failing or late), finished; or only these slugs, if they exist."""

    after: str | None = None
    limit: int = 100
    status: str | None = None
    contains: str | None = None
    slugs: Sequence[str] | None = None
    is_troubled: bool = False
    health: Health | None = None
    is_finished: bool | None = None  # True: only one-shots that succeeded; False: all but those
    owner: str | None = None  # only those of this agent


class Page(NamedTuple):
    """A page of schedules, ordered by slug."""

    schedules: list[Annotated[ScheduleView, kind_of_object(SCHEDULE)]]
    next: Annotated[str | None, "cursor of the next page; null on the last page"]
    recent: Annotated[Mapping[str, str] | None, INTERNAL] = None  # the latest ledger rows of each, as JSON text


class NodeStatus(NamedTuple):
    """The nodes, and stuck runs."""

    nodes: list[Node]  # those that were not voided
    stuck: list[int]  # runs whose end could not be proven, newest first, bounded


def get(tx: Tx, slug: str, *, now: Instant, terms: Terms, compiled: Compiled | None = None) -> ScheduleView:
    """One schedule, or a proposal for one; `compiled` spares reading its definition again after it was written."""
    try:
        return _views(tx, [find(tx, slug)], now, terms, compiled)[0]
    except NotFound:
        proposal = proposed(tx, slug, now=now)
        if proposal is None:
            raise
        return view_proposal(proposal)


def proposed(tx: Tx, slug: str, *, now: Instant) -> Proposal | None:
    """The agent's proposal for this slug, while it waits for a person."""
    newest = next(iter(tx[AgentProposals].of_slug(slug, limit=1)), None)
    return newest if newest is not None and newest.status_at(now) == "pending" else None


def chosen(tx: Tx, choice: Choice, *, now: Instant, terms: Terms) -> Page:
    """A page of the schedules that match, in slug order, including those that wait for a person's approval."""
    page = _chosen(tx, choice, now=now, terms=terms)
    waiting = [view for view in map(view_proposal, _new_proposals(tx, choice, now)) if _is_within(view, choice, page)]
    if not waiting:
        return page
    merged = sorted([*page.schedules, *waiting], key=lambda view: view.slug)
    if len(merged) <= choice.limit:
        return Page(merged, page.next)
    return Page(merged[: choice.limit], merged[choice.limit - 1].slug)


def _new_proposals(tx: Tx, choice: Choice, now: Instant) -> list[Proposal]:
    if choice.is_troubled or choice.is_finished or choice.status not in (None, "waiting"):
        return []
    if choice.health not in (None, "waiting"):
        return []
    return [row for row in tx[AgentProposals].pending(now=now, owner=choice.owner) if row.schedule_id is None]


def _is_within(view: ScheduleView, choice: Choice, page: Page) -> bool:
    """Whether a proposal belongs on this page."""
    if choice.slugs is not None:
        return view.slug in choice.slugs
    is_after = choice.after is None or view.slug > choice.after
    is_before = page.next is None or view.slug <= page.next
    return is_after and is_before and (choice.contains or "").casefold() in _searched(view)


def _chosen(tx: Tx, choice: Choice, *, now: Instant, terms: Terms) -> Page:
    """A page of the schedules that match, in slug order.

    A search reads `SEARCH_MAX` at most: if few match, a page is short or even empty, and its `next` continues."""
    after, limit, status, contains, slugs, is_troubled, health, is_finished, owner = choice
    if slugs is not None:
        named = tx.schedules.by_slugs(sorted(set(slugs)))
        return Page(_views(tx, [named[slug] for slug in sorted(named)], now, terms), None)
    is_plain = status is None and not contains and not is_troubled and health is None and is_finished is None
    if is_plain and owner is None:
        rows = tx.schedules.page(after=after, limit=limit + 1)
        return Page(_views(tx, rows[:limit], now, terms), rows[limit - 1].slug if len(rows) > limit else None)
    wanted = (contains or "").casefold()
    views: list[ScheduleView] = []
    step = _candidates(tx, choice, now)
    for _ in range(SEARCH_MAX // SEARCH_STEP):
        rows = step(after=after, limit=SEARCH_STEP)
        matching = [row for row in rows if wanted in f"{row.slug} {row.definition}".casefold()]
        for view in _views(tx, matching, now, terms):
            if (
                status in (None, view.status)
                and health in (None, view.health)
                and is_finished in (None, view.is_finished)
                and wanted in _searched(view)
                and owner in (None, view.owner)
                and (view.health in TROUBLED or not is_troubled)
            ):
                if len(views) == limit:
                    return Page(views, views[-1].slug)
                views.append(view)
        if len(rows) < SEARCH_STEP:
            return Page(views, None)
        after = rows[-1].slug
    return Page(views, after)


Step: TypeAlias = Callable[..., list[Schedule]]
"""Schedules in slug order: `(*, after, limit)`."""


def _candidates(tx: Tx, choice: Choice, now: Instant) -> Step:
    """The source of matching schedules: an index where there is one, else a scan."""
    if choice.owner is not None:
        return partial(_among, _living(tx, {row.schedule_id for row in tx[Ownerships].of_owner(choice.owner)}))
    if choice.status in HALTED or choice.health == "failing":
        return tx.schedules.amiss
    if choice.health == "late":
        return partial(_among, late(tx, now))
    if choice.health == "waiting":
        return partial(_among, _living(tx, {run.schedule_id for run in _waiting(tx)}))
    if choice.is_troubled:
        late_rows = late(tx, now)

        def troubled(*, after: str | None, limit: int) -> list[Schedule]:
            by_slug = {row.slug: row for row in tx.schedules.amiss(after=after, limit=limit)}
            by_slug |= {row.slug: row for row in _among(late_rows, after=after, limit=limit)}
            return [by_slug[slug] for slug in sorted(by_slug)][:limit]

        return troubled
    return tx.schedules.page


def late(tx: Tx, now: Instant) -> list[Schedule]:
    """Schedules that may be late, in slug order: an alarm or run was due over a minute ago, or a run waits."""
    cadences = due_cadences(tx, now=now - GRACE, limit=LATE_MAX)
    ids = {cadence.schedule_id for cadence in cadences}
    ids |= {run.schedule_id for run in _waiting(tx) if run.started_at is None and run.due_at < now - GRACE}
    return _living(tx, ids)


def _waiting(tx: Tx) -> list[Run]:
    return tx.runs.page(limit=LATE_MAX, outcome="waiting")


def _living(tx: Tx, schedule_ids: Iterable[int]) -> list[Schedule]:
    known = tx.schedules.by_ids([schedule_id for schedule_id in schedule_ids if schedule_id > 0])
    return sorted((row for row in known.values() if row.deleted_at is None), key=lambda row: row.slug)


def _among(rows: Sequence[Schedule], *, after: str | None, limit: int) -> list[Schedule]:
    return [row for row in rows if after is None or row.slug > after][:limit]


def pulse(tx: Tx) -> NodeStatus:
    """The nodes, and stuck runs."""
    stuck = [run.run_id for run in tx.runs.page(limit=STUCK_MAX, outcome="unknown") if run.stuck]
    nodes = [node for node in tx.nodes.all() if node.voided_at is None]
    return NodeStatus(nodes, stuck)


def runs(
    tx: Tx, slug: str | None, *, limit: int, before_id: int | None = None, outcome: Outcome | None = None
) -> list[RunView]:
    """Ledger rows, newest first, of one schedule (or a removed one) or of all, optionally with one outcome."""
    try:
        schedule_id = None if slug is None else recorded_id(tx, slug)
    except NotFound:
        if slug is not None and any(row.status == "pending" for row in tx[AgentProposals].of_slug(slug, limit=1)):
            return []
        raise
    return run_views(tx, tx.runs.page(schedule_id=schedule_id, before_id=before_id, limit=limit, outcome=outcome))


def run_views(tx: Tx, rows: Sequence[Run]) -> list[RunView]:
    """Ledger rows as shown to people."""
    attempts = tx.runs.attempts([row.run_id for row in rows])
    names = names_of(tx, {row.schedule_id for row in rows})
    said = _deliveries(tx, [row.run_id for row in rows])
    cancels = tx[Cancels].among([row.run_id for row in rows])
    outside = tx[BackfilledRuns].among([row.run_id for row in rows if row.trigger in BACKFILLED])
    nodes = _node_names(tx, rows, [attempt for of_run in attempts.values() for attempt in of_run])
    return [
        view_run(
            row,
            names[row.schedule_id],
            attempts.get(row.run_id, ()),
            said.get(row.run_id, ()),
            cancels.get(row.run_id),
            outside.get(row.run_id),
            nodes,
        )
        for row in rows
    ]


def run(tx: Tx, run_id: int) -> RunView:
    """One ledger row."""
    row = tx.runs.lock([run_id]).get(run_id)
    if row is None and (merged := tx[MergedRuns].get(run_id)) is not None:
        run_id, row = merged.into_id, tx.runs.lock([merged.into_id]).get(merged.into_id)
    if row is None:
        raise NotFound(f"there is no run {run_id}")
    slug = names_of(tx, [row.schedule_id])[row.schedule_id]
    attempts, said = tx.runs.attempts([run_id]).get(run_id, ()), _deliveries(tx, [run_id]).get(run_id, ())
    cancel, outside = tx[Cancels].among([run_id]).get(run_id), tx[BackfilledRuns].among([run_id]).get(run_id)
    return view_run(row, slug, attempts, said, cancel, outside, _node_names(tx, [row], attempts))


def _node_names(tx: Tx, rows: Sequence[Run], attempts: Sequence[Attempt]) -> dict[int, str]:
    """The names of the nodes that ran these runs."""
    owners = {row.owner for row in rows} | {attempt.owner for attempt in attempts}
    return tx.nodes.names(owner for owner in owners if owner is not None)


def _deliveries(tx: Tx, run_ids: Sequence[int]) -> dict[int, list[RunDelivery]]:
    """The deliveries of these runs."""
    deliveries = tx[Deliveries].of_runs(run_ids)
    store_id = (tx[Meta].value(STORE_ID) or "") if deliveries else ""
    return {run_id: [view_delivery(row, store_id) for row in rows] for run_id, rows in deliveries.items()}


def stats(tx: Tx, slug: str, *, since: Instant, now: Instant, terms: Terms) -> Stats:
    """Counts, success rate, durations and streak since a time, for a schedule or another owner of runs."""
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    owner_id = recorded_id(tx, slug) if schedule is None else schedule.schedule_id
    tallied = tx[RunTotals].tallied(owner_id, since=since, limit=DURATIONS_MAX)
    view = None if schedule is None else _views(tx, [schedule], now, terms)[0]
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
        next_run=None if view is None else view.next_run,
        last_run=None if view is None else view.last_run,
        tokens=tallied.tokens,
        cost=tallied.cost,
    )


def recorded_id(tx: Tx, name: str) -> int:
    """The ledger id for a name: a current schedule, another owner of runs, or the last removed schedule with that
    slug."""
    known = owner_of(tx, name)
    if known is None:
        known = next((row.schedule_id for row in tx.schedules.removed_by_slug(name, limit=1)), None)
    if known is None:
        raise NotFound(f"there is no schedule {name!r}")
    return known


def find(tx: Tx, slug: str) -> Schedule:
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    if schedule is None:
        raise NotFound(f"there is no schedule {slug!r}")
    return schedule


def _views(
    tx: Tx, schedules: Sequence[Schedule], now: Instant, terms: Terms, compiled: Compiled | None = None
) -> list[ScheduleView]:
    """Views in a fixed number of queries, however many schedules there are."""
    ids = [schedule.schedule_id for schedule in schedules]
    cadences = tx.cadences.lock(ids)
    alarms = tx.alarms.by_refs(ALARM_SCHEDULE, ids)
    open_ids = [cadence.open_run_id for cadence in cadences.values() if cadence.open_run_id is not None]
    opened = tx.runs.lock(open_ids) if open_ids else {}
    in_lanes = [run.run_id for run in opened.values() if run.outcome == "waiting" and run.lane is not None]
    parked = {key for key, alarm in tx.alarms.by_refs(ALARM_RUN, in_lanes).items() if alarm.parked} if in_lanes else ()
    ran = ran_ahead(tx, cadences.values())
    owned = tx[Ownerships].among(ids)
    nodes = tx.nodes.of_newest_runs(ids) if compiled is None else {}
    spending = tx[SpendingTotals].lock(ids) if compiled is None else {}
    return [
        view_schedule(
            schedule,
            cadence,
            compiled,
            opened.get(cadence.open_run_id) if cadence.open_run_id is not None else None,
            alarms[schedule.schedule_id].due_at if schedule.schedule_id in alarms else None,
            now=now,
            terms=terms,
            ownership=owned.get(schedule.schedule_id),
            spending=spending.get(schedule.schedule_id),
            node=nodes.get(schedule.schedule_id),
            is_parked=cadence.open_run_id in parked,
            ran=ran.get(schedule.schedule_id, NONE),
        )
        for schedule in schedules
        for cadence in [cadences[schedule.schedule_id]]
    ]


def _searched(view: ScheduleView) -> str:
    """The text a search matches against."""
    return f"{view.slug} {'' if view.definition is None else _words(view.definition.action)}".casefold()


def _words(action: ActionSpec) -> str:
    match action:
        case Prompt(text=text) | Event(text=text):
            return text
        case Command(argv=argv):
            return " ".join(argv)
        case Http(url=url):
            return url
        case Call(target=target):
            return target
        case Dispatch(celery=celery):
            return celery.task


def _percentile(ordered: Sequence[Duration], percent: int) -> Duration | None:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else None


def _streak(newest_first: Sequence[Outcome]) -> int:
    """Successes in a row, or errors as a negative number. What was skipped when it was to start is neither."""
    ran = [outcome for outcome in newest_first if outcome not in NOT_RUN]
    if not ran:
        return 0
    is_success = ran[0] == "succeeded"
    length = 0
    for outcome in ran:
        if (outcome == "succeeded") != is_success:
            break
        length += 1
    return length if is_success else -length
