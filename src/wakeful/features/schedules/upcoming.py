"""Upcoming runs of schedules, at their actual times. Reading never changes what is planned (L1).

Theory of operation: the alarms that are due first belong to the schedules that start first, so the cost of a list
depends on its length and not on the number of schedules. An instant that will be skipped (because a run still waits
for its next attempt, outside the active hours, or on an excluded day) is not listed; one delayed by backoff is listed
at its delayed time.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from wakeful.core.refusals import NotFound
from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Cadence, Rules, due_at
from wakeful.core.schedule.upcoming import Upcoming, UpcomingPage, attempted_at
from wakeful.core.time.active_hours import ActiveHours, is_active, next_active
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Timing, latest_until, next_after, next_n
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.features.schedules.labels import due_cadences
from wakeful.features.schedules.resets import informed
from wakeful.features.schedules.rules import Terms
from wakeful.ports.names import names_of
from wakeful.ports.store import ALARM_SCHEDULE, Schedule, Tx

# How many extra schedules are read beyond the limit, and how many instants in total.
SPARE: Final = 200
STEPS_MAX: Final = 10_000
NONE: Final[frozenset[Instant]] = frozenset()


def upcoming(tx: Tx, *, now: Instant, until: Instant, limit: int, terms: Terms) -> UpcomingPage:
    """The upcoming runs of all schedules until a time, by due time.

    Not every alarm starts a run (a pause may end). So if there are more alarms than were read, the list is certain only
    up to the last one read."""
    cadences = due_cadences(tx, now=until, limit=limit + SPARE)
    ids = [cadence.schedule_id for cadence in cadences]
    certain = until
    if len(ids) == limit + SPARE:
        certain = tx.alarms.by_refs(ALARM_SCHEDULE, ids[-1:])[ids[-1]].due_at or until
    schedules, opened, ran = tx.schedules.by_ids(ids), open_runs(tx, cadences), ran_ahead(tx, cadences)
    lines = [
        ahead_of(schedules[cadence.schedule_id], cadence, opened, now, terms, ran.get(cadence.schedule_id, NONE))
        for cadence in cadences
    ]
    heap = [(first, line) for line in range(len(lines)) for first in [next(lines[line], None)] if first is not None]
    heapq.heapify(heap)
    instants: list[Upcoming] = []
    for _ in range(STEPS_MAX):
        if not heap or heap[0][0].due_at > certain:
            return UpcomingPage(instants, certain, certain < until)
        instant, line = heap[0]
        if len(instants) == limit:
            break
        instants.append(instant)
        following = next(lines[line], None)
        if following is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (following, line))
    return UpcomingPage(instants, heap[0][0].due_at - 1, True)


def waiting_runs(tx: Tx, *, now: Instant, until: Instant, limit: int) -> list[Upcoming]:
    """Runs of any kind that wait for a time: for their next attempt, or to be admitted. A run that only waits for proof
    (it was tried without an error) will not start anything."""
    due = tx.runs.due(now=until, limit=limit)
    if queues := tx.labelled.queues():
        due += tx.labelled.due_runs(queues, now=until, limit=limit)
    runs = [(run, at) for run in due if (at := attempted_at(run, now)) is not None]
    names = names_of(tx, {run.schedule_id for run, _ in runs})
    return [
        Upcoming(at, names[run.schedule_id], run.planned_at, "retry" if run.attempt else "waiting", "")
        for run, at in runs
        if run.schedule_id in names
    ]


def first_start(
    schedule: Schedule,
    cadence: Cadence,
    compiled: Compiled,
    open_run: Run | None,
    *,
    ran: frozenset[Instant],
    now: Instant,
    terms: Terms,
) -> Instant | None:
    """When something of a schedule starts next: the first entry that `upcoming` has for it, but for backfills and
    replays, which are not of its plan. `open_run` is given unless it is parked; `ran` are instants ahead that ran
    before the clock was set back."""
    attempt = None if open_run is None else attempted_at(open_run, now)
    rings_at = due_at(cadence, compiled.rules)
    if rings_at is None:
        return attempt
    is_usual = cadence.state == "active" and open_run is None and not ran and compiled.model.active_hours is None
    if is_usual and cadence.next_at is not None and not terms.excludes(compiled.model, cadence.next_at):
        return rings_at
    opened = {} if open_run is None else {open_run.run_id: open_run}
    first = next(ahead_of(schedule, cadence, opened, now, terms, ran), None)
    return min((at for at in (attempt, None if first is None else first.due_at) if at is not None), default=None)


def ran_ahead(tx: Tx, cadences: Iterable[Cadence]) -> dict[int, frozenset[Instant]]:
    """The instants ahead that already ran, by schedule: only after the clock was set back."""
    return {
        cadence.schedule_id: tx.runs.taken(
            cadence.schedule_id, after=cadence.planned_through, until=cadence.ran_through
        )
        for cadence in cadences
        if cadence.planned_through < cadence.ran_through
    }


def next_times(tx: Tx, slug: str, *, now: Instant, after: Instant, count: int, terms: Terms) -> list[Instant]:
    """When a schedule will run next, with its stagger, strictly after `after`. For a halted schedule: the times it
    would have if resumed."""
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    if schedule is None:
        raise NotFound(f"there is no schedule {slug!r}")
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if not isinstance(compiled, Compiled):
        return []
    cadence = tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id]
    rules = wanted(informed(tx, compiled.rules, cadence.next_at), compiled, terms)
    offset = rules.offset
    if cadence.state != "active":
        return [at + offset for at in next_n(rules.timing, max(after - offset, now, cadence.resume_at or 0), count)]
    opened, ran = open_runs(tx, [cadence]), ran_ahead(tx, [cadence]).get(cadence.schedule_id, NONE)
    waiting = _waiting(opened.get(cadence.open_run_id or 0), now)
    settled_from = max(
        now, cadence.ran_through, cadence.backoff_until or 0, 0 if waiting is None else waiting.next_attempt_at or 0
    )
    if after >= settled_from:  # nothing known today delays what comes then
        # An instant whose stagger lasts until later than `after` may have been settled, or may precede the plan.
        since = after if cadence.next_at is None else max(after - offset, cadence.next_at - 1)
        walked = _starting(rules.timing, compiled.model.active_hours, ran, since)
        return [at + offset for at in islice(walked, count)]
    ahead = islice(ahead_of(schedule, cadence, opened, now, terms, ran), STEPS_MAX)
    times = (instant.due_at for instant in ahead if instant.due_at > after)
    first = [] if waiting is None or waiting.next_attempt_at is None else [waiting.next_attempt_at]
    return [at for at in [*first, *islice(times, count)] if at > after][:count]


def shown_at(instant: Upcoming, rules: Rules) -> Instant:
    """The planned time, which people know; or the actual time, if more than its stagger delays it."""
    return instant.due_at if instant.due_at > instant.planned_at + rules.offset else instant.planned_at


def open_runs(tx: Tx, cadences: list[Cadence]) -> dict[int, Run]:
    """The open and queued runs of these schedules, by id."""
    wanted = [
        run_id for cadence in cadences for run_id in (cadence.open_run_id, cadence.queued_run_id) if run_id is not None
    ]
    return tx.runs.lock(sorted(wanted)) if wanted else {}


def wanted(rules: Rules, compiled: Compiled, terms: Terms) -> Rules:
    """The rules, without instants on excluded days."""
    timing = terms.starting(rules.timing, compiled.model)
    return rules if timing is rules.timing else replace(rules, timing=timing)


def ahead_of(
    schedule: Schedule,
    cadence: Cadence,
    opened: Mapping[int, Run],
    now: Instant,
    terms: Terms,
    ran: frozenset[Instant],
) -> Iterator[Upcoming]:
    """The future instants of one schedule that start."""
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if not isinstance(compiled, Compiled):
        return
    rules, hours = wanted(compiled.rules, compiled, terms), compiled.model.active_hours
    if cadence.next_at is not None and (cadence.next_at in ran or terms.excludes(compiled.model, cadence.next_at)):
        cadence = cadence._replace(next_at=next(_starting(rules.timing, None, ran, cadence.next_at), None))
    planned_at, rings_at = _first(cadence, rules, now)
    waiting = _waiting(opened.get(cadence.open_run_id or 0), now)
    if waiting is not None and waiting.next_attempt_at is not None and planned_at is not None:
        # Instants before the next attempt of an open run: one may queue, the others are skipped.
        until = waiting.next_attempt_at
        queued = opened.get(cadence.queued_run_id or 0)
        first_due = planned_at + rules.offset if rings_at is None else rings_at
        if queued is not None:
            yield Upcoming(until, schedule.slug, queued.planned_at, "schedule", "")
        elif rules.overlap == "queue" and first_due <= until and (hours is None or is_active(hours, planned_at)):
            yield Upcoming(until, schedule.slug, planned_at, "schedule", "")
        if first_due <= until:
            planned_at, rings_at = next_after(rules.timing, max(until - rules.offset, planned_at)), None
    if planned_at is None:
        return
    if planned_at not in ran and (hours is None or is_active(hours, planned_at)):
        due = planned_at + rules.offset if rings_at is None else rings_at
        yield Upcoming(due, schedule.slug, planned_at, "schedule", "")
    for following in _starting(rules.timing, hours, ran, max(planned_at, now - rules.offset)):
        yield Upcoming(following + rules.offset, schedule.slug, following, "schedule", "")


def _starting(timing: Timing, hours: ActiveHours | None, ran: frozenset[Instant], after: Instant) -> Iterator[Instant]:
    """The instants after a time that are inside the active hours and have not run."""
    for _ in range(STEPS_MAX):
        at = next_after(timing, after)
        if at is None:
            return
        opens = at if hours is None else next_active(hours, at)
        if opens > at:  # skip to the opening at once: there may be thousands before it
            after = opens - 1
            continue
        after = at
        if at not in ran:
            yield at


def _first(cadence: Cadence, rules: Rules, now: Instant) -> tuple[Instant | None, Instant | None]:
    """The first instant that may start, and its alarm time if that differs."""
    rings_at, planned_at = due_at(cadence, rules), cadence.next_at
    if cadence.state == "paused" and rings_at is not None:  # it only resumes then
        return next_after(rules.timing, max(rings_at, now)), None
    if planned_at is not None and rings_at is not None and rings_at > planned_at + rules.offset:  # delayed by backoff
        planned_at = latest_until(rules.timing, rings_at - rules.offset, since=planned_at - 1) or planned_at
    return planned_at, rings_at


def _waiting(run: Run | None, now: Instant) -> Run | None:
    """The run, if it waits for a future time."""
    is_ahead = run is not None and run.outcome == "waiting" and (run.next_attempt_at or 0) > now
    return run if is_ahead else None
