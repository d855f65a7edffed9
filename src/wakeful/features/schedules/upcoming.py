"""Upcoming runs of schedules, at their actual times. Reading never changes what is planned (L1).

Theory of operation: the alarms that are due first belong to the schedules that start first, so the cost of a list
depends on its length and not on the number of schedules. An instant that will be skipped (because a run still waits
for its next attempt, outside the active hours, or on an excluded day) is not listed; one delayed by backoff is listed
at its delayed time.
"""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from wakeful.core.refusals import NotFound
from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Cadence, Rules, due_at
from wakeful.core.schedule.upcoming import Upcoming, UpcomingPage
from wakeful.core.time.active_hours import is_active
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import instants_after, latest_until, next_after, next_n
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.features.schedules.labels import due_cadences
from wakeful.features.schedules.resets import informed
from wakeful.features.schedules.rules import Terms
from wakeful.ports.names import names_of
from wakeful.ports.store import ALARM_SCHEDULE, Schedule, Tx

# How many extra schedules are read beyond the limit, and how many instants in total.
SPARE: Final = 200
STEPS_MAX: Final = 10_000


def upcoming(tx: Tx, *, now: Instant, until: Instant, limit: int, terms: Terms) -> UpcomingPage:
    """The upcoming runs of all schedules until a time, by due time.

    Not every alarm starts a run (a pause may end). So if there are more alarms than were read, the list is certain only
    up to the last one read."""
    cadences = due_cadences(tx, now=until, limit=limit + SPARE)
    ids = [cadence.schedule_id for cadence in cadences]
    certain = until
    if len(ids) == limit + SPARE:
        certain = tx.alarms.by_refs(ALARM_SCHEDULE, ids[-1:])[ids[-1]].due_at or until
    schedules, opened = tx.schedules.by_ids(ids), open_runs(tx, cadences)
    lines = [ahead_of(schedules[cadence.schedule_id], cadence, opened, now, terms) for cadence in cadences]
    heap = [(first, line) for line in range(len(lines)) for first in [next(lines[line], None)] if first is not None]
    heapq.heapify(heap)
    instants: list[Upcoming] = []
    for _ in range(STEPS_MAX):
        if not heap or heap[0][0][0].due_at > certain:
            return UpcomingPage(instants, certain, certain < until)
        (instant, is_started), line = heap[0]
        if is_started and len(instants) == limit:
            break
        if is_started:
            instants.append(instant)
        following = next(lines[line], None)
        if following is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (following, line))
    return UpcomingPage(instants, heap[0][0][0].due_at - 1, True)


def waiting_runs(tx: Tx, *, now: Instant, until: Instant, limit: int) -> list[Upcoming]:
    """Runs of any kind that wait for a time: for their next attempt, or to be admitted. A run that only waits for proof
    (it was tried without an error) will not start anything."""
    due = tx.runs.due(now=until, limit=limit)
    if queues := tx.labelled.queues():
        due += tx.labelled.due_runs(queues, now=until, limit=limit)
    runs = [run for run in due if run.outcome == "waiting" and (run.error is not None or not run.attempt)]
    names = names_of(tx, {run.schedule_id for run in runs})
    return [
        Upcoming(
            max(run.next_attempt_at or run.due_at, now),
            names[run.schedule_id],
            run.planned_at,
            "retry" if run.attempt else "waiting",
        )
        for run in runs
        if run.schedule_id in names
    ]


def next_times(tx: Tx, slug: str, *, now: Instant, after: Instant, count: int, terms: Terms) -> list[Instant]:
    """A schedule's next run times, strictly after `after`. For a halted schedule: the times it would have if
    resumed."""
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    if schedule is None:
        raise NotFound(f"there is no schedule {slug!r}")
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if not isinstance(compiled, Compiled):
        return []
    cadence = tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id]
    rules = wanted(informed(tx, compiled.rules, cadence.next_at), compiled, terms)
    if cadence.state != "active":
        return list(next_n(rules.timing, max(after, cadence.resume_at or 0), count))
    opened = open_runs(tx, [cadence])
    waiting = _waiting(opened.get(cadence.open_run_id or 0), now)
    settled_from = max(now, cadence.backoff_until or 0, 0 if waiting is None else waiting.next_attempt_at or 0)
    if after >= settled_from:  # nothing known today delays what comes then
        hours = compiled.model.active_hours
        walked = islice(instants_after(rules.timing, after), STEPS_MAX)
        return list(islice((at for at in walked if hours is None or is_active(hours, at)), count))
    ahead = (
        instant
        for instant, is_started in islice(ahead_of(schedule, cadence, opened, now, terms), STEPS_MAX)
        if is_started
    )
    times = (shown_at(instant, rules) for instant in ahead)
    first = [] if waiting is None or waiting.next_attempt_at is None else [waiting.next_attempt_at]
    return [at for at in [*first, *islice((at for at in times if at > after), count)] if at > after][:count]


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
    schedule: Schedule, cadence: Cadence, opened: Mapping[int, Run], now: Instant, terms: Terms
) -> Iterator[tuple[Upcoming, bool]]:
    """The future instants of one schedule, each with whether it starts or is outside the active hours."""
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if not isinstance(compiled, Compiled):
        return
    rules, hours = wanted(compiled.rules, compiled, terms), compiled.model.active_hours
    if cadence.next_at is not None and terms.excludes(compiled.model, cadence.next_at):
        cadence = cadence._replace(next_at=next_after(rules.timing, cadence.next_at))
    planned_at, rings_at = _first(cadence, rules, now)
    waiting = _waiting(opened.get(cadence.open_run_id or 0), now)
    if waiting is not None and waiting.next_attempt_at is not None and planned_at is not None:
        # Instants before the next attempt of an open run: one may queue, the others are skipped.
        until = waiting.next_attempt_at
        queued = opened.get(cadence.queued_run_id or 0)
        first_due = planned_at + rules.offset if rings_at is None else rings_at
        if queued is not None:
            yield Upcoming(until, schedule.slug, queued.planned_at), True
        elif rules.overlap == "queue" and first_due <= until and (hours is None or is_active(hours, planned_at)):
            yield Upcoming(until, schedule.slug, planned_at), True
        if first_due <= until:
            planned_at, rings_at = next_after(rules.timing, max(until - rules.offset, planned_at)), None
    if planned_at is None:
        return
    due = planned_at + rules.offset if rings_at is None else rings_at
    yield Upcoming(due, schedule.slug, planned_at), hours is None or is_active(hours, planned_at)
    for following in instants_after(rules.timing, max(planned_at, now - rules.offset)):
        yield (
            Upcoming(following + rules.offset, schedule.slug, following),
            hours is None or is_active(hours, following),
        )


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
