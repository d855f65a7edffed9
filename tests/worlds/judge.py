"""The judge: asks every law after every commit, about what that commit changed and nothing else.

Theory of operation
-------------------
A law over the whole ledger costs as much as the ledger is long. But the laws are inductive: rows that tiled time up to
a border still do, as long as nobody touched them. So the judge keeps a `Book` per schedule, with the rows it has seen
and the border up to which they are known to tile, and looks at what changed since. When the border goes *back*, because
the clock did, the book is judged again from the beginning.

The judge also keeps the world's own record of attempts (`Seen`), which owes nothing to the store.
"""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from wakeful.core.heartbeat.heartbeat import timing_of
from wakeful.core.run.runs import NOT_RUN, OPEN, PRIORITY_BACKFILL, Run
from wakeful.core.run.settlement import REMOVED
from wakeful.core.schedule.cadence import Cadence, Rules
from wakeful.core.schedule.definition import Definition, rules_of
from wakeful.core.schedule.definition_json import decode_definition
from wakeful.core.schedule.labels import may_take
from wakeful.core.schedule.pre_check import NOTHING_TO_DO
from wakeful.core.time.instants import DAY, Duration, Instant
from wakeful.features.heartbeat.messages import MESSAGE
from wakeful.features.schedules.takeover import AWAITING
from wakeful.ports.store import Schedule, Tx
from wakeful.testing.virtual_clock import EPOCH
from worlds import laws, told_laws
from worlds.facts import Facts
from worlds.holidays import Calendar
from worlds.laws import Ending, Era, Seen, Shift
from worlds.resource_laws import Refusals

UNDATED_KEPT_MIN: Final = 60 * DAY
"""How long a row is kept at least that was written by a clock that was not set."""


class Broken(AssertionError):
    """A law was broken; the message says which, where and when."""


class Planned(NamedTuple):
    """What has a cadence: a schedule, or the heartbeat."""

    name: str
    version: int
    updated_at: Instant
    is_deleted: bool
    rules: Callable[[], Rules]
    is_event: bool = False  # its runs end when somebody else says so
    definition: Definition | None = None  # of a schedule


class Book:
    """What the judge knows of one schedule."""

    __slots__ = (
        "backlog",
        "backlog_since",
        "backlog_until",
        "cadence",
        "definition",
        "due_at",
        "eras",
        "is_beat",
        "is_event",
        "name",
        "once_open",
        "open",
        "order",
        "pruned",
        "rows",
        "rules",
        "run_on",
        "tiled_through",
        "uncut",
        "version",
        "waits",
    )

    def __init__(self, name: str, version: int, rules: Rules, cadence: Cadence) -> None:
        self.is_beat = cadence.schedule_id < 0  # the heartbeat: its alarm and its hours are judged with its own laws
        self.is_event = False
        self.definition: Definition | None = None
        self.name = name
        self.version = version
        self.rules = rules
        self.cadence: Cadence | None = cadence
        self.eras = [Era(cadence.planned_through, rules.timing)]
        self.tiled_through = cadence.planned_through
        self.rows: dict[int, Run] = {}
        self.order: list[tuple[Instant, int]] = []  # (planned, run id) of everything but manual runs, sorted
        self.open: dict[int, Run] = {}
        self.once_open: set[int] = set()
        self.uncut: dict[int, Instant] = {}  # gaps nobody could cut, and the border they lay across
        self.pruned: set[int] = set()
        self.backlog = 0
        self.backlog_until: Instant | None = None
        self.backlog_since: int | None = None  # true time of the last change of excluded days
        self.due_at: Instant | None = None
        self.run_on: str | None = None
        self.waits: dict[int, set[str | None]] = {}  # by run: what it waited for before its first attempt

    def put(self, row: Run) -> Shift:
        """Take a row in, new or changed."""
        before = self.rows.get(row.run_id)
        self.rows[row.run_id] = row
        if row.outcome == "waiting" and row.attempt == 0:
            self.waits.setdefault(row.run_id, set()).add(row.reason)
        if laws.is_planned(row) and (before is None or before.planned_at != row.planned_at):
            if before is not None:
                self.order.remove((before.planned_at, before.run_id))
            insort(self.order, (row.planned_at, row.run_id))
        if row.outcome in OPEN or row.stuck:
            self.open[row.run_id] = row
            self.once_open.add(row.run_id)
        else:
            self.open.pop(row.run_id, None)
        return Shift(before, row)

    def void(self, run_id: int) -> Run | None:
        """A row that is no longer in the ledger."""
        row = self.rows.pop(run_id, None)
        self.open.pop(run_id, None)
        if row is not None and laws.is_planned(row):
            self.order.remove((row.planned_at, row.run_id))
        return row

    def between(self, after: Instant, through: Instant) -> list[Run]:
        """Planned rows that begin in (after, through]."""
        start = bisect_right(self.order, after, key=_planned)
        stop = bisect_right(self.order, through, key=_planned)
        return [self.rows[run_id] for _, run_id in self.order[start:stop]]


class Judge:
    """Holds facts against the laws. `look` for the store's, `began` and `ended` for the world's own."""

    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar
        self.books: dict[int, Book] = {}
        self.seen: dict[int, list[Seen]] = {}
        self.under_way: dict[tuple[int, int], Seen] = {}
        self.holders: Mapping[str, int] = {}
        self.nodes: set[int] = set()
        self.capacities: dict[int, int] = {}
        self.looks = 0
        self.backfills: Counter[str] = Counter()  # how many were requested, by slug
        self.refusals = Refusals()
        self._keys: dict[str, int] = {}
        self._remaining: set[int] = set()
        self._run_books: dict[int, Book] = {}
        self._messages: dict[int, Run] = {}  # of people: without a grid, but in the agent's lane
        self._written: dict[int, Instant] = {}  # by run: what was too old for the ledger when it was written first

    @property
    def waiting(self) -> list[int]:
        """Known runs that wait and have a lane: they may be parked."""
        return [run.run_id for run in self._in_lanes() if run.outcome == "waiting"]

    # -- what the store says ------------------------------------------------------------------------------------------

    def look(self, facts: Facts, *, now: Instant, pruned_before: Instant) -> Iterator[str]:
        """Judge one commit; yields what is wrong. What ended before `pruned_before` may be forgotten by the ledger."""
        self.looks += 1
        self._meet_nodes(facts)
        self.holders = facts.holders
        gone = self._gone(facts, pruned_before)
        for schedule_id, cadence in facts.cadences.items():
            if schedule_id not in self.books and (planned := _planned_by(facts, schedule_id)) is not None:
                self.books[schedule_id] = new = Book(planned.name, planned.version, planned.rules(), cadence)
                if (born := _born_with(facts, schedule_id)) is not None:  # its only time passed before it was there
                    new.eras, new.tiled_through = [Era(born, new.rules.timing)], born
                self.books[schedule_id].is_event = planned.is_event
                self.books[schedule_id].definition = planned.definition
        changes: dict[int, list[Shift]] = {known: [] for known in facts.cadences if known in self.books}
        for run in facts.runs.values():
            book = self.books.get(run.schedule_id)
            if run.kind == MESSAGE:
                self._messages[run.run_id] = run
            if book is not None:
                self._run_books[run.run_id] = book
                self._written.setdefault(run.run_id, pruned_before)
                changes.setdefault(run.schedule_id, []).append(book.put(run))
        for schedule_id, shifts in changes.items():
            book = self.books[schedule_id]
            yield from self._judge_schedule(book, facts, schedule_id, shifts, gone.pop(schedule_id, []), now)
        for schedule_id, rows in gone.items():
            yield from self._lost(self.books[schedule_id], rows)
        yield from laws.one_per_lane(self._busy(), facts.holders)
        yield from laws.nobody_waits_at_a_free_lane(facts.queue, facts.holders)

    def _gone(self, facts: Facts, pruned_before: Instant) -> dict[int, list[Run]]:
        """Rows that left the ledger and were not old enough for it, by schedule."""
        gone: dict[int, list[Run]] = {}
        for run_id in facts.gone:
            book = self._run_books.get(run_id)
            row = None if book is None else book.rows.get(run_id)
            if book is None or row is None:
                continue
            if not row.stuck and self._is_old(row, pruned_before):
                book.pruned.add(run_id)
            elif _is_merged(row, facts):
                book.void(run_id)
            else:
                book.void(run_id)
                gone.setdefault(row.schedule_id, []).append(row)
        return gone

    def _is_old(self, row: Run, pruned_before: Instant) -> bool:
        """Whether a row is old by the times that are in it; by true time, if a clock that was not set wrote them."""
        if row.ended_at is None or max(row.due_at, row.ended_at) >= pruned_before:
            return False
        is_dated = max(row.due_at, row.ended_at) >= EPOCH - DAY
        return is_dated or pruned_before - self._written[row.run_id] >= UNDATED_KEPT_MIN

    def _lost(self, book: Book, rows: Sequence[Run]) -> Iterator[str]:
        for row in rows:
            yield f"L7 {book.name}: {laws.describe(row)} left the ledger; it is neither old nor ahead of the clock"

    def _judge_schedule(
        self, book: Book, facts: Facts, schedule_id: int, shifts: list[Shift], gone: list[Run], now: Instant
    ) -> Iterator[str]:
        before, after = book.cadence, facts.cadences.get(schedule_id)
        book.cadence = after
        planned = _planned_by(facts, schedule_id)
        if planned is not None and planned.version != book.version:
            self._turn_page(book, planned, before)
        for shift in shifts:
            yield from self._judge_run(book, facts, shift, before, after, now)
            attempts, is_alone = facts.attempts.get(shift.after.run_id, ()), len(shifts) == 1
            yield from self.refusals.judge(book.name, shift, before, after, attempts, is_alone=is_alone)
        if before is not None and after is not None and after.planned_through < before.planned_through:
            gone = [
                row for row in gone if row.outcome not in NOT_RUN or laws.last_instant(row) <= after.planned_through
            ]
            self._turn_back(book, after.planned_through)
        yield from self._lost(book, gone)
        if before is not None and after is not None and _is_taken_over(before, after):
            self._take_over(book, after, shifts)
        is_removed = after is not None and (after.state, after.state_reason) == ("done", REMOVED)
        if after is None or is_removed or (planned is not None and planned.is_deleted):
            return
        yield from self._judge_tiling(book, after, shifts)
        if not book.is_beat:
            yield from laws.is_forward(book.name, after, book.rules.timing)
        if after.state == "done":
            ran = frozenset(row.planned_at for row in book.rows.values() if row.planned_at > after.planned_through)
            yield from laws.done_is_done(book.name, after, book.rules.timing, ran)
        if not book.is_beat:
            alarm = facts.alarms.get(schedule_id)
            book.due_at = None if alarm is None else alarm.due_at
            book.run_on = None if alarm is None else alarm.run_on
            yield from laws.has_its_alarm(book.name, after, alarm, book.rules)
        if before is not None:
            yield from laws.grid_stays(book.name, before, after, shifts)
            yield from laws.backfills_count_for_nothing(book.name, before, after, shifts)
        own = [run for run in book.open.values() if run.priority != PRIORITY_BACKFILL]
        yield from laws.open_runs_are_few(book.name, after, own, book.rules)
        yield from laws.backfills_hold_up_nothing(book.name, after, book.rows)

    def _judge_run(
        self, book: Book, facts: Facts, shift: Shift, before: Cadence | None, after: Cadence | None, now: Instant
    ) -> Iterator[str]:
        row, name = shift.after, book.name
        seen = self.seen.get(row.run_id, ())
        attempts = facts.attempts.get(row.run_id, ())
        yield from laws.stays_in_place(name, shift)
        yield from laws.not_blocked_by_a_backfill(name, row, book.rows)
        yield from laws.one_backfill_per_instant(name, row, book.rows)
        yield from laws.each_request_runs_an_instant_once(name, shift, book.rows, self.backfills[name])
        yield from laws.moves_by_the_table(name, shift)
        yield from told_laws.missed_never_began(name, shift, seen)
        yield from laws.fence_grows(name, shift)
        yield from laws.halted_does_not_fire(name, before, after, shift)
        if laws.is_planned(row):
            yield from self._calendar.judge(name, shift.before, row, book.definition)
        if not book.is_event:
            yield from laws.answers_are_its_own(name, shift, seen)
        yield from laws.retry_follows_an_end(name, shift, attempts, seen)
        yield from laws.stuck_keeps_its_place(name, row, after, facts.holders)
        yield from laws.open_runs_have_owners(name, row, frozenset(self.nodes))
        if row.attempt > 1 or row.crashes:
            yield from laws.attempts_are_bounded(name, row, attempts, seen)
        if shift.before is None and laws.is_planned(row):
            yield from self._judge_birth(book, row, before, now)

    def _judge_birth(self, book: Book, row: Run, before: Cadence | None, now: Instant) -> Iterator[str]:
        """A planned row that was not there before."""
        if row.outcome in NOT_RUN:
            # Instants that ran while the clock was ahead, and that the ledger has forgotten since: it cannot know.
            for other in book.between(row.planned_at - 1, laws.last_instant(row)):
                if other.run_id in book.pruned:
                    book.void(other.run_id)
        twins = book.between(row.planned_at - 1, row.planned_at)
        if len(twins) > 1:
            yield from laws.one_row_per_instant(book.name, twins)
        if row.outcome in NOT_RUN and row.attempt == 0:
            return
        until = None if before is None else before.catch_up_until
        is_going_on = until is not None and until == book.backlog_until and row.planned_at <= until
        if book.backlog_since != self._calendar.changed_at:  # what is left of a backlog was decided again
            book.backlog_since, is_going_on = self._calendar.changed_at, False
        book.backlog = (book.backlog + 1 if is_going_on else 1) if row.trigger == "catchUp" else 0
        book.backlog_until = None if book.cadence is None else book.cadence.catch_up_until
        rules = self._calendar.starting(book.rules, book.definition)
        yield from laws.start_obeys_policy(book.name, row, rules, now=now, backlog=book.backlog)

    def _judge_tiling(self, book: Book, after: Cadence, shifts: Sequence[Shift]) -> Iterator[str]:
        through = after.planned_through
        start = book.tiled_through
        for shift in shifts:
            if laws.is_planned(shift.after) and _span(shift.before) != _span(shift.after):
                start = min(start, shift.after.planned_at - 1)
        if start >= through:
            yield from self._nothing_ahead(book, after)
            return
        ran_ahead = self._ran_ahead(book, start, after.ran_through)
        rows = book.between(start, through)
        yield from laws.tiles(
            book.name, book.eras, rows, after=start, through=through, ran_ahead=ran_ahead, uncut=book.uncut
        )
        book.tiled_through = through
        yield from self._nothing_ahead(book, after)

    def _nothing_ahead(self, book: Book, cadence: Cadence) -> Iterator[str]:
        """Beyond the border lies only what was to run there while the clock was ahead."""
        for planned_at, run_id in book.order[bisect_right(book.order, cadence.planned_through, key=_planned) :]:
            if planned_at > cadence.ran_through or run_id not in book.once_open:
                row = laws.describe(book.rows[run_id])
                yield f"L1 {book.name}: {row} lies beyond {laws.at(cadence.planned_through)}"

    def _ran_ahead(self, book: Book, after: Instant, ran_through: Instant) -> frozenset[int]:
        return frozenset(run.run_id for run in book.between(after, ran_through)) if ran_through > after else frozenset()

    def ticked(self, *, now: Instant, is_asleep: bool, ahead_max: Duration, labels: frozenset[str]) -> Iterator[str]:
        """A node has looked at the clock, and will now sleep or look again at once."""
        for book in self.books.values():
            if book.cadence is not None:
                due_at = book.due_at if may_take(book.run_on, labels) else None
                yield from laws.is_not_silent(
                    book.name, book.cadence, due_at, now=now, is_asleep=is_asleep, ahead_max=ahead_max
                )

    def row(self, run_id: int) -> Run | None:
        """A run as it was last read."""
        book = self._run_books.get(run_id)
        return None if book is None else book.rows.get(run_id)

    def running(self) -> Iterator[tuple[str, Run]]:
        """Runs that the ledger says are running, with the name of their schedule."""
        for book in self.books.values():
            for row in book.open.values():
                if row.outcome == "running":
                    yield book.name, row

    def open_runs(self) -> Iterator[tuple[str, Run]]:
        """Runs of schedules that are running or waiting, with the name of their schedule."""
        for book in self.books.values():
            if not book.is_beat:
                yield from ((book.name, row) for row in book.open.values() if row.is_open)

    def name_of(self, run: Run) -> str:
        """The schedule of a run."""
        return self.books[run.schedule_id].name

    def is_open(self, slug: str) -> bool:
        """Whether a schedule has a run that is running or waiting."""
        return any(
            book.name == slug and book.cadence is not None and book.cadence.open_run_id is not None
            for book in self.books.values()
        )

    def is_halted(self, slug: str) -> bool:
        """Whether a schedule stands still."""
        return any(
            book.name == slug and book.cadence is not None and book.cadence.state in laws.HALTED
            for book in self.books.values()
        )

    def compare(self, tx: Tx) -> Iterator[str]:
        """At the end: what was read commit by commit is what the whole ledger says."""
        for schedule_id, book in self.books.items():
            ids = sorted(book.rows.keys() - book.pruned)
            there = tx.runs.lock(ids) if ids else {}
            for run_id in ids:
                if there.get(run_id) != book.rows[run_id]:
                    was, now = laws.describe(book.rows[run_id]), there.get(run_id)
                    yield f"L7 {book.name}: {was} changed unnoticed, and is now {now and laws.describe(now)}"
            written = tx.cadences.lock([schedule_id]).get(schedule_id)
            if book.cadence != written:
                yield f"L7 {book.name}: its cadence changed unnoticed: {book.cadence} is now {written}"

    # -- pages of a book ----------------------------------------------------------------------------------------------

    def _turn_page(self, book: Book, planned: Planned, before: Cadence | None) -> None:
        """The definition changed: a new timing begins where the edit was made, or where planning had got to."""
        rules = planned.rules()
        if rules.timing != book.rules.timing:
            border = planned.updated_at if before is None else max(planned.updated_at, before.planned_through)
            book.eras.append(Era(border, rules.timing))
        book.rules, book.version, book.definition = rules, planned.version, planned.definition

    def _take_over(self, book: Book, after: Cadence, shifts: Sequence[Shift]) -> None:
        """It was another scheduler's until here; what that ran is judged with its own laws (`source_laws`)."""
        begins = min([after.planned_through, *(shift.after.planned_at - 1 for shift in shifts)])
        book.eras, book.tiled_through = [Era(begins, book.rules.timing)], begins

    def _turn_back(self, book: Book, through: Instant) -> None:
        """The clock came back: from here on the timing in force is planned anew, and all rows are judged again."""
        origin = book.eras[0].after
        book.eras = [era for era in book.eras if era.after < through]
        book.eras.append(Era(through, book.rules.timing))
        book.tiled_through = min(origin, through)
        across = (row for row in book.between(origin, through) if laws.last_instant(row) > through)
        for row in across:
            if row.version != book.version and row.outcome in NOT_RUN:
                book.uncut[row.run_id] = min(through, book.uncut.get(row.run_id, through))

    # -- what the world saw -------------------------------------------------------------------------------------------

    def began(self, seen: Seen) -> Iterator[str]:
        """An attempt really began."""
        self.refusals.began(seen.run_id)
        book = self._run_books.get(seen.run_id)
        row = None if book is None else book.rows.get(seen.run_id)
        name = "an unknown schedule" if book is None else book.name
        if row is None:
            yield f"L2 {name}: run {seen.run_id} began and is not in the ledger"
        if seen.run_id in self._remaining:
            yield f"L6 {name}: run {seen.run_id} began anew, and the process of an earlier attempt could not be ended"
        if row is not None and (row.outcome != "running" or row.attempt != seen.attempt):
            yield f"L2 {name}: attempt {seen.attempt} began, and the ledger says {laws.describe(row)}"
        if book is not None and row is not None and row.version == book.version and row.definition is None:
            yield from told_laws.begins_in_time(name, row, book.rules, book.waits.get(row.run_id, ()))
        is_backfill = row is not None and row.priority == PRIORITY_BACKFILL
        seen = seen._replace(lane=None if row is None else row.lane, is_backfill=is_backfill)
        self.under_way[seen.run_id, seen.attempt] = seen
        of_run = self.seen.setdefault(seen.run_id, [])
        of_run.append(seen)
        yield from laws.attempts_begin_once(name, of_run)
        yield from laws.keys_are_unique(name, seen, self._keys)
        self._keys[seen.key] = seen.run_id
        yield from laws.seen_one_at_a_time(self.under_way.values())
        running = sum(one.node == seen.node and not one.is_backfill for one in self.under_way.values())
        yield from laws.within_capacity(seen.node, running, self.capacities.get(seen.node, running))

    def ended(self, run_id: int, attempt: int, ending: Ending, *, true_time: int) -> None:
        """An attempt really ended."""
        self._remaining.discard(run_id)
        seen = self.under_way.pop((run_id, attempt), None)
        if seen is not None:
            self._replace(seen, seen._replace(ended_at=true_time, ending=ending))

    def remains(self, run_id: int, attempt: int) -> None:
        """A rescue was told that the process of this attempt cannot be ended: it may go on, the run may not."""
        self._remaining.add(run_id)
        self._haunt(self.under_way[run_id, attempt])

    def _meet_nodes(self, facts: Facts) -> None:
        for node in facts.nodes:
            self.nodes.add(node.node_id)
            self.capacities[node.node_id] = node.capacity
            if node.voided_at is None:
                continue
            for seen in [one for one in self.under_way.values() if one.node == node.node_id and not one.is_ghost]:
                self._haunt(seen)

    def _haunt(self, seen: Seen) -> None:
        ghost = seen._replace(is_ghost=True)
        self._replace(seen, ghost)
        self.under_way[seen.run_id, seen.attempt] = ghost

    def _replace(self, old: Seen, new: Seen) -> None:
        of_run = self.seen[old.run_id]
        of_run[of_run.index(old)] = new

    def _busy(self) -> list[Run]:
        return [run for run in self._in_lanes() if run.outcome == "running" or run.stuck]

    def _in_lanes(self) -> Iterator[Run]:
        """Open runs that have a lane."""
        self._messages = {run_id: run for run_id, run in self._messages.items() if run.is_open or run.stuck}
        of_books = (run for book in self.books.values() for run in book.open.values())
        return (run for run in (*of_books, *self._messages.values()) if run.lane is not None)


def _born_with(facts: Facts, schedule_id: int) -> Instant | None:
    """Before the first row of a schedule that was written in the same commit as the schedule."""
    rows = [run.planned_at for run in facts.runs.values() if run.schedule_id == schedule_id and laws.is_planned(run)]
    return min(rows) - 1 if rows else None


def _is_taken_over(before: Cadence, after: Cadence) -> bool:
    return before.state_reason == AWAITING != after.state_reason


def _planned(entry: tuple[Instant, int]) -> Instant:
    return entry[0]


def _span(row: Run | None) -> tuple[Instant, Instant | None, int] | None:
    return None if row is None else (row.planned_at, row.planned_until, row.instants)


def _is_merged(row: Run, facts: Facts) -> bool:
    """Whether the instant of a row that is gone is covered by the row it was merged into: its check found nothing. Only
    rows of the plan cover instants."""
    into = facts.runs.get(facts.merged.get(row.run_id, 0))
    if into is None or not (laws.is_planned(into) and laws.is_planned(row)):
        return False
    return into.reason == NOTHING_TO_DO and laws.last_instant(into) == row.planned_at


def _planned_by(facts: Facts, schedule_id: int) -> Planned | None:
    """What a cadence belongs to; None: something without a grid, or it was not read."""
    schedule = facts.schedules.get(schedule_id)
    if schedule is not None:
        is_deleted = schedule.deleted_at is not None
        is_event = '"event":' in schedule.definition
        return Planned(
            schedule.slug,
            schedule.version,
            schedule.updated_at,
            is_deleted,
            partial(_rules, schedule),
            is_event,
            decode_definition(schedule.definition),
        )
    beat, cadence = facts.beats.get(schedule_id), facts.cadences.get(schedule_id)
    if beat is None or cadence is None:
        return None
    return Planned("heartbeat", cadence.version, beat.anchor_at, False, lambda: Rules(timing_of(beat)))


def _rules(schedule: Schedule) -> Rules:
    return rules_of(decode_definition(schedule.definition), schedule.schedule_id)
