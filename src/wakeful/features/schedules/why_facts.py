"""Reads from the store what `why` needs. The wording is in `why_words`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from wakeful.core.money.budgets import UsedUp
from wakeful.core.refusals import NotFound
from wakeful.core.run.runs import NOT_RUN, OUTSIDE_PLAN, Attempt, Run
from wakeful.core.schedule.cadence import Cadence, due_at
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.active_hours import is_active
from wakeful.core.time.excluded_days import is_excluded, local_day
from wakeful.core.time.instants import MINUTE, SECOND, Instant
from wakeful.core.time.timing import Timing, latest_until, next_after, zone_of
from wakeful.engine.limits import manual_max
from wakeful.features.schedules.compiled import Broken, Compiled, read_stored
from wakeful.features.schedules.labels import lacking
from wakeful.features.schedules.resets import informed
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.upcoming import NONE, ran_ahead
from wakeful.features.schedules.why_dst import DstChange, dst_change_at
from wakeful.features.schedules.why_ledger import covering, in_progress_at, manual_in, reach, rows_around, walk
from wakeful.ports.names import names_of
from wakeful.ports.store import Node, Schedule, Tx

# How many removed schedules with the same slug are considered, newest first.
REMOVED_MAX: Final = 100

BudgetOf: TypeAlias = Callable[[Tx, int, Definition], UsedUp | None]
"""The budget that keeps a schedule from running, given its id and definition."""


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What the calling process knows and the store does not."""

    terms: Terms  # the current ones
    ledger_days: int = 90
    used_up: BudgetOf | None = None


@dataclass(frozen=True, slots=True)
class NodeState:
    """Which nodes tick."""

    live: Sequence[Node]
    last: Node | None  # the one seen last, alive or not
    down_from: Instant | None = None  # no node ticked around the instant in question, from here
    down_until: Instant | None = None  # to here

    @property
    def is_full(self) -> bool:
        """Whether every live node has reached its concurrency limit."""
        return bool(self.live) and all(node.running >= node.capacity for node in self.live)

    @property
    def is_full_for_manual(self) -> bool:
        """Whether every live node uses as much capacity as manual runs may have."""
        return bool(self.live) and all(node.running >= manual_max(node.capacity) for node in self.live)


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run and the slug of its schedule."""

    run: Run
    slug: str


@dataclass(frozen=True, slots=True)
class AdjacentInstant:
    """A planned instant next to the one in question, with its row if it has one."""

    at: Instant
    row: Run | None


@dataclass(frozen=True, slots=True)
class WhyCase:
    """Everything known that is relevant to one explanation."""

    slug: str
    now: Instant
    asked_at: Instant | None  # None: explain the current state
    instant: Instant | None  # the planned instant, or manual request, being explained
    zone: str
    process: ProcessFacts
    schedule: Schedule
    cadence: Cadence
    compiled: Compiled | Broken
    timing: Timing | None  # in force at the instant; None if no longer known
    row: Run | None
    attempts: Sequence[Attempt]
    blocker: NamedRun | None  # the run that blocked a skipped one, or that a queued one waits for
    holder: NamedRun | None  # the run holding the lane it waits for
    is_parked: bool
    in_progress: Run | None  # the run in progress at an instant that was not planned
    before: AdjacentInstant | None
    after: AdjacentInstant | None
    dst: DstChange | None
    nodes: NodeState
    lacking: str | None  # the sentence, if no live node has the label it needs
    oldest_row_at: Instant | None  # the oldest instant in the rows that were read
    used_up: UsedUp | None = None  # the budget that keeps it from running
    ran: frozenset[Instant] = frozenset()  # instants ahead that ran before the clock was set back

    @property
    def subject_at(self) -> Instant:
        """The time being explained."""
        if self.instant is not None:
            return self.instant
        return self.now if self.asked_at is None else self.asked_at

    @property
    def is_undecided(self) -> bool:
        """Whether the instant is later than what the ledger covers."""
        return self.row is None and self.subject_at > self.cadence.planned_through

    @property
    def is_removed(self) -> bool:
        return self.schedule.deleted_at is not None

    @property
    def due_at(self) -> Instant:
        """When the instant is due, stagger included."""
        return self.subject_at + self.offset

    @property
    def offset(self) -> int:
        return self.compiled.rules.offset if isinstance(self.compiled, Compiled) else 0

    @property
    def next_due_at(self) -> Instant | None:
        """When its alarm is due next."""
        if isinstance(self.compiled, Broken):
            return None
        return due_at(self.cadence._replace(next_at=self.following), self.compiled.rules)

    @property
    def following(self) -> Instant | None:
        """Its next instant that has not run yet."""
        at = self.cadence.next_at
        while at is not None and at in self.ran and isinstance(self.compiled, Compiled):
            at = next_after(self.compiled.rules.timing, at)
        return at

    @property
    def starting(self) -> Timing | None:
        """The current timing without excluded days."""
        compiled = self.compiled
        if isinstance(compiled, Broken) or self.timing is None:
            return None
        return self.process.terms.starting(self.timing, compiled.model)

    def excluded_day(self, at: Instant) -> str | None:
        excluded = None if isinstance(self.compiled, Broken) else self.process.terms.excluded(self.compiled.model)
        if excluded is None or not is_excluded(excluded, at):
            return None
        return str(local_day(excluded.zone, at))

    @property
    def is_outside_active_hours(self) -> bool:
        hours = self.compiled.model.active_hours if isinstance(self.compiled, Compiled) else None
        return hours is not None and not is_active(hours, self.subject_at)


def read_case(tx: Tx, slug: str, *, at: Instant | None, now: Instant, process: ProcessFacts) -> WhyCase:
    """Read everything. Raises `NotFound` for a slug that never existed."""
    schedule = _find(tx, slug, at)
    cadence = tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id]
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    rows = rows_around(tx, schedule.schedule_id, now if at is None else at)
    timing = _timing_at(tx, schedule, compiled, rows, at)
    if at is None:
        row, instant = _current(tx, cadence, rows)
    else:
        row, instant = _subject(timing, compiled, rows, at)
        if row is None and cadence.ran_through > 0:  # the clock was set back once, so ids are out of order
            rows = walk(tx, schedule.schedule_id)
            row, instant = _subject(timing, compiled, rows, at)
    parked = {} if row is None else tx.alarms.by_refs("run", [row.run_id])
    is_parked = any(alarm.parked for alarm in parked.values())
    subject_at = instant if instant is not None else at if at is not None else now
    before, after = _neighbours(tx, schedule.schedule_id, timing, rows, subject_at)
    return WhyCase(
        slug=slug,
        now=now,
        asked_at=at,
        instant=instant,
        zone=(None if timing is None else zone_of(timing)) or process.terms.default_zone,
        process=process,
        schedule=schedule,
        cadence=cadence,
        compiled=compiled,
        timing=timing,
        row=row,
        attempts=() if row is None else tx.runs.attempts([row.run_id]).get(row.run_id, ()),
        blocker=_named(tx, _blocker_id(row, cadence)),
        holder=_named(tx, None if row is None or row.lane is None else tx.lanes.holders().get(row.lane)),
        is_parked=is_parked,
        in_progress=None if row is not None else in_progress_at(rows, subject_at),
        before=before,
        after=after,
        dst=None if timing is None else dst_change_at(timing, subject_at),
        nodes=_node_state(tx, subject_at, now),
        lacking=_lacking(tx, row, compiled, now),
        oldest_row_at=min((row.planned_at for row in rows), default=None),
        used_up=_used_up(tx, schedule, compiled, process),
        ran=ran_ahead(tx, [cadence]).get(schedule.schedule_id, NONE),
    )


def _used_up(tx: Tx, schedule: Schedule, compiled: Compiled | Broken, process: ProcessFacts) -> UsedUp | None:
    if process.used_up is None or schedule.deleted_at is not None or isinstance(compiled, Broken):
        return None
    return process.used_up(tx, schedule.schedule_id, compiled.definition)


def _lacking(tx: Tx, row: Run | None, compiled: Compiled | Broken, now: Instant) -> str | None:
    if row is not None and row.outcome == "waiting":
        return lacking(tx, row.run_on, now=now)
    return lacking(tx, compiled.run_on, now=now) if isinstance(compiled, Compiled) else None


def _find(tx: Tx, slug: str, at: Instant | None) -> Schedule:
    """The schedule with this slug: the current one, or a removed one if that is the one meant."""
    current = tx.schedules.by_slugs([slug]).get(slug)
    if current is not None and (at is None or at >= current.created_at):
        return current
    removed = [
        schedule
        for schedule in tx.schedules.removed_by_slug(slug, limit=REMOVED_MAX)
        if at is None or current is None or schedule.created_at <= at
    ]
    if current is not None:
        existed_then = [row for row in removed if at is not None and row.created_at <= at <= (row.deleted_at or at)]
        return existed_then[0] if existed_then else current
    if not removed:
        raise NotFound(f"there is no schedule {slug!r}")
    existed_then = [row for row in removed if at is not None and row.created_at <= at]
    return existed_then[0] if existed_then else removed[0 if at is None else -1]


def _timing_at(
    tx: Tx, schedule: Schedule, compiled: Compiled | Broken, rows: Sequence[Run], at: Instant | None
) -> Timing | None:
    """The timing in force at an instant; an edit may have changed it since."""
    current = informed(tx, compiled.rules).timing if isinstance(compiled, Compiled) else None
    if at is None or schedule.version == 1 or at >= schedule.updated_at:
        return current
    then = next((row for row in rows if row.trigger not in OUTSIDE_PLAN and row.planned_at <= at), None)
    following = [row for row in rows if row.trigger not in OUTSIDE_PLAN and row.planned_at > at]
    version = then.version if then is not None else following[-1].version if following else schedule.version
    if version == schedule.version:
        return current
    own = next((row.definition for row in rows if row.version == version and row.definition is not None), None)
    text = own or tx.runs.kept_definition(schedule.schedule_id, version)
    old = None if text is None else read_stored(schedule.schedule_id, version, text)
    return old.rules.timing if isinstance(old, Compiled) else None


def _current(tx: Tx, cadence: Cadence, rows: Sequence[Run]) -> tuple[Run | None, Instant | None]:
    """The row for the current state: its open run, else the newest row."""
    open_id = cadence.open_run_id
    row = tx.runs.lock([open_id]).get(open_id) if open_id is not None else (rows[0] if rows else None)
    return row, None if row is None else reach(row)


def _subject(
    timing: Timing | None, compiled: Compiled | Broken, rows: Sequence[Run], at: Instant
) -> tuple[Run | None, Instant | None]:
    """The instant meant and its row. 09:00 may mean the instant in that minute, or the time it was due."""
    offset = compiled.rules.offset if isinstance(compiled, Compiled) else 0
    for start, end in ((at, at + 1), (at - offset, at - offset + 1), (at, at + _precision(at))):
        planned = None if timing is None else next_after(timing, start - 1)
        if planned is not None and planned < end:
            return covering(rows, planned, planned + 1), planned
        row = covering(rows, start, end)
        if row is not None and (row.instants == 1 or timing is None):
            return row, max(row.planned_at, start)
        manual = manual_in(rows, start, end)
        if manual is not None:
            return manual, manual.planned_at
    return None, None


def _precision(at: Instant) -> int:
    """The precision a time was given with, judging by its trailing zeros."""
    return MINUTE if at % MINUTE == 0 else SECOND if at % SECOND == 0 else 1


def _neighbours(
    tx: Tx, schedule_id: int, timing: Timing | None, rows: Sequence[Run], at: Instant
) -> tuple[AdjacentInstant | None, AdjacentInstant | None]:
    """The planned instants on both sides, with their rows."""
    if timing is None:
        planned = [row for row in rows if row.trigger not in OUTSIDE_PLAN]
        earlier = max((row for row in planned if reach(row) < at), key=reach, default=None)
        later = min((row for row in planned if row.planned_at > at), key=lambda row: row.planned_at, default=None)
        return (
            None if earlier is None else AdjacentInstant(reach(earlier), earlier),
            None if later is None else AdjacentInstant(later.planned_at, later),
        )
    before, after = latest_until(timing, at - 1), next_after(timing, at)
    return _neighbour(tx, schedule_id, rows, before), _neighbour(tx, schedule_id, rows, after)


def _neighbour(tx: Tx, schedule_id: int, rows: Sequence[Run], at: Instant | None) -> AdjacentInstant | None:
    if at is None:
        return None
    return AdjacentInstant(at, covering(rows, at, at + 1) or covering(rows_around(tx, schedule_id, at), at, at + 1))


def _blocker_id(row: Run | None, cadence: Cadence) -> int | None:
    if row is None:
        return cadence.open_run_id
    if row.outcome == "waiting" and row.reason == "queued":
        return cadence.open_run_id
    return row.blocked_by if row.outcome in NOT_RUN else None


def _named(tx: Tx, run_id: int | None) -> NamedRun | None:
    run = None if run_id is None else tx.runs.lock([run_id]).get(run_id)
    if run is None:
        return None
    return NamedRun(run, names_of(tx, [run.schedule_id]).get(run.schedule_id, "a removed schedule"))


def _node_state(tx: Tx, at: Instant, now: Instant) -> NodeState:
    nodes = tx.nodes.all()
    live = [node for node in nodes if node.voided_at is None and node.lease_until > now]
    last = max(nodes, key=lambda node: node.last_tick_at, default=None)
    seen = max((node.last_tick_at for node in nodes if node.started_at <= at), default=None)
    back = min((node.started_at for node in nodes if node.started_at > at), default=None)
    if seen is None or seen >= at:
        return NodeState(live, last)
    return NodeState(live, last, seen, back)
