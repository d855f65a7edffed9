"""Future runs as calendar entries: a few instants in a day get one entry each, many become one block.

Theory of operation: a calendar that lists every instant of a schedule that runs each minute cannot be read. So the
instants of one schedule on one local day are counted, without visiting them: up to `SINGLES_MAX` of them are separate
entries, more are one entry from the first to the last, with the count. Whether a day is a block depends on the whole
day and not on what is left of it, so an entry keeps its identity (`uid`) while the day passes.

Everything is bounded: the days, the schedules that are read, and the entries. If that cuts the list, `until` says up to
when it is complete.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Final, NamedTuple

from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.active_hours import ActiveHours, next_active, next_closing
from wakeful.core.time.excluded_days import day_number, local_day
from wakeful.core.time.instants import DAY, MINUTE, SECOND, Duration, Instant
from wakeful.core.time.timing import Cron, Every, Times, Timing, instants_after, tally, zone_of
from wakeful.core.time.timing_words import describe
from wakeful.core.time.zones import DAY_SECONDS, wall_to_second
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.upcoming import NONE, ahead_of, open_runs, ran_ahead, shown_at, wanted
from wakeful.ports.store import ALARM_SCHEDULE, Schedule, Tx

AHEAD: Final[Duration] = 28 * DAY
SINGLES_MAX: Final = 4
"""Up to this many instants in a day are separate entries."""
SCHEDULES_MAX: Final = 1_000
ENTRIES_MAX: Final = 5_000
LENGTH: Final[Duration] = 5 * MINUTE
"""How long an entry is shown: how long a run will take is not known."""


class Entry(NamedTuple):
    """One entry of the calendar, ordered by its start."""

    starts_at: Instant
    ends_at: Instant
    uid: str  # stays the same as long as the entry means the same
    title: str
    details: str


class Entries(NamedTuple):
    """Entries in order, complete until a time."""

    entries: list[Entry]
    until: Instant
    is_cut: bool


def schedule_entries(tx: Tx, *, now: Instant, terms: Terms) -> Entries:
    until = now + AHEAD
    cadences = tx.cadences.due(now=until, limit=SCHEDULES_MAX)
    ids = [cadence.schedule_id for cadence in cadences]
    is_cut = len(ids) == SCHEDULES_MAX
    if is_cut:
        until = tx.alarms.by_refs(ALARM_SCHEDULE, ids[-1:])[ids[-1]].due_at or until
    schedules, opened, ran = tx.schedules.by_ids(ids), open_runs(tx, cadences), ran_ahead(tx, cadences)
    entries: list[Entry] = []
    for cadence in cadences:
        schedule = schedules[cadence.schedule_id]
        first = next(ahead_of(schedule, cadence, opened, now, terms, ran.get(schedule.schedule_id, NONE)), None)
        if first is not None and first.due_at <= until:
            since = max(schedule.created_at + 1, cadence.resume_at or 0)
            entries += _of_schedule(schedule, first, terms, since=since, now=now, until=until)
    return Entries(entries, until, is_cut)


def other_entries(ahead: Iterable[Upcoming], zone: str) -> list[Entry]:
    """The entries of everything else, grouped by owner and local day."""

    def key(item: Upcoming) -> tuple[str, str, str, int]:
        return item.slug, item.kind, item.handler, day_number(local_day(zone, item.due_at))

    entries: list[Entry] = []
    for (slug, kind, handler, day), group in groupby(sorted(ahead, key=lambda item: (*key(item), item.due_at)), key):
        times = [item.due_at for item in group]
        name = " ".join(part for part in (slug, handler) if part)
        title = name if kind == "beat" else f"{name} ({kind})"
        if len(times) > SINGLES_MAX:
            entries.append(_block(f"{name}.{kind}", day, title, kind, times[0], times[-1], len(times)))
        else:
            entries += [_single(f"{name}.{kind}", at, title, kind) for at in times]
    return entries


def cut(parts: Sequence[Entries]) -> Entries:
    """All entries in order, at most `ENTRIES_MAX`, up to when all parts are complete."""
    until = min(part.until for part in parts)
    mixed = sorted(entry for part in parts for entry in part.entries if entry.starts_at <= until)
    is_cut = any(part.is_cut for part in parts)
    if len(mixed) <= ENTRIES_MAX:
        return Entries(mixed, until, is_cut)
    until = mixed[ENTRIES_MAX].starts_at - 1
    return Entries([entry for entry in mixed[:ENTRIES_MAX] if entry.starts_at <= until], until, True)


def _of_schedule(
    schedule: Schedule, first: Upcoming, terms: Terms, *, since: Instant, now: Instant, until: Instant
) -> Iterator[Entry]:
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if not isinstance(compiled, Compiled):
        return
    rules, definition = wanted(compiled.rules, compiled, terms), compiled.definition
    words, after = describe(definition.timing), now
    if not isinstance(rules.timing, Every | Cron | Times) or shown_at(first, rules) != first.planned_at:
        yield _single(schedule.slug, shown_at(first, rules), schedule.slug, words, of=first.planned_at)
        after = max(first.planned_at, first.due_at)
    if not isinstance(rules.timing, Every | Cron | Times):
        return
    zone = zone_of(definition.timing) or terms.default_zone
    for day in range(day_number(local_day(zone, now)), day_number(local_day(zone, until)) + 1):
        begins, ends = max(_midnight(zone, day), since), _midnight(zone, day + 1)
        spans = list(_active(definition.active_hours, begins, ends))
        yield from _of_day(schedule.slug, rules.timing, words, day, spans, after=after, until=until)


def _of_day(
    slug: str,
    timing: Timing,
    words: str,
    day: int,
    spans: Sequence[tuple[Instant, Instant]],
    *,
    after: Instant,
    until: Instant,
) -> Iterator[Entry]:
    counts = [counted for start, end in spans if (counted := tally(timing, start - 1, end - 1)).count]
    total = sum(counted.count for counted in counts)
    if total > SINGLES_MAX:
        first, last = counts[0].first or 0, counts[-1].last or 0
        if last > after and first <= until:
            yield _block(slug, day, f"{slug} ({total} times)", words, first, last, total)
        return
    for counted in counts:
        for at in islice(instants_after(timing, (counted.first or 0) - 1), counted.count):
            if after < at <= until:
                yield _single(slug, at, slug, words)


def _active(hours: ActiveHours | None, start: Instant, end: Instant) -> Iterator[tuple[Instant, Instant]]:
    """The parts of [start, end) within the active hours."""
    if hours is None or hours.start == hours.end:
        yield start, end
        return
    while (opens := next_active(hours, start)) < end:
        start = min(next_closing(hours, opens), end)
        yield opens, start


def _midnight(zone: str, day: int) -> Instant:
    return wall_to_second(zone, day * DAY_SECONDS) * SECOND


def _single(name: str, at: Instant, title: str, details: str, *, of: Instant | None = None) -> Entry:
    return Entry(at, at + LENGTH, f"{name}.{of or at}", title, details)


def _block(name: str, day: int, title: str, details: str, first: Instant, last: Instant, count: int) -> Entry:
    return Entry(first, last + LENGTH, f"{name}.day{day}", title, f"{details}; {count} times on this day")
