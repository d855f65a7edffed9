"""Timings: when something happens, as a value, and the queries on it.

Theory of operation: a timing is a set of instants, given by a rule. There are four queries: the next instant after a
time, the latest until a time, the next few, and how many lie in a range. Each is a pure function of the timing and the
time: no timing has a position, so starting from any point gives the same sequence, and no run and no query can shift
the grid.

`Every` is real elapsed time and ignores calendars: anchor + k * every for k >= 0, so a future anchor is itself the
first instant. `Cron` and `Times` are wall times in a zone (`cron`, `wallclock`). `AfterReset` has an instant only once
the reset of its slot is known. Counting never visits single instants: it is a division for `Every` and O(months) for
wall times. The backward search has no limit but 1970: a valid expression matches at least every forty years, and the
search costs O(months), so it can be exact; `since` cuts it short.

Equality is about instants, not spelling: two values with the same instants written differently (`2h`, `120m`) are
equal, and each reads back as it was written. `None` for a zone, an anchor or the instant of a `Once` means "not
given"; `resolve` fills it in when a definition is written, and the queries accept resolved values only. `until` is not
part of what is written as the timing: it is the `expiresAt` of a definition, and there is no instant after it. Nor is
`without`: excluded days, on which there is no instant. Every instant is planned, so `without` is set only to decide and
to show which ones run.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import TypeAlias, TypeVar, assert_never

from wakeful.core.time.active_hours import parse_time_of_day
from wakeful.core.time.cron import InGap, InRepeat, cron_pattern
from wakeful.core.time.excluded_days import ExcludedDays, end_after, is_excluded, ranges, start_before
from wakeful.core.time.instants import INSTANT_MAX, SECOND, Duration, Instant
from wakeful.core.time.wall_pattern import WallPattern
from wakeful.core.time.wallclock import count_seconds, latest_second, next_second

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Once:
    """A single instant; or, with `delay` in place of `at`, that long after it is written."""

    at: Instant | None
    timezone: str | None = field(default=None, compare=False)
    kind: str = field(default="once", compare=False)
    written: str | None = field(default=None, compare=False)
    delay: Duration | None = None
    without: ExcludedDays | None = None


@dataclass(frozen=True, slots=True)
class Every:
    """Real elapsed time on a grid: anchor, anchor + every, anchor + 2 * every, and so on."""

    every: Duration
    anchor: Instant | None = None
    timezone: str | None = field(default=None, compare=False)
    kind: str = field(default="every", compare=False)
    written: str | None = field(default=None, compare=False)
    anchor_written: str | None = field(default=None, compare=False)
    until: Instant | None = None
    without: ExcludedDays | None = None


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five or six fields, read on the wall clock of a zone."""

    expression: str
    timezone: str | None = None
    in_gap: InGap | None = None  # times that the clock leaves out; None: by how the fields are written
    in_repeat: InRepeat | None = None  # times that occur twice
    until: Instant | None = None
    without: ExcludedDays | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Times of day (`HH:MM`), every day, on the wall clock of a zone."""

    times: tuple[str, ...]
    timezone: str | None = None
    until: Instant | None = None
    without: ExcludedDays | None = None


@dataclass(frozen=True, slots=True)
class AfterReset:
    """An offset after the reset of a quota slot; without a known reset it has no instant."""

    slot: str
    offset: Duration = 0
    reset_at: Instant | None = None
    without: ExcludedDays | None = None


@dataclass(frozen=True, slots=True)
class Manual:
    """Only when a person asks."""


_Dated: TypeAlias = Once | Every | Cron | Times | AfterReset
Timing: TypeAlias = _Dated | Manual


@dataclass(frozen=True, slots=True)
class InstantCount:
    """How many instants lie in a range, and the first and the last of them."""

    count: int
    first: Instant | None
    last: Instant | None


def without_days(timing: Timing, excluded: ExcludedDays | None) -> Timing:
    """The timing without its instants on these days."""
    return timing if excluded is None or isinstance(timing, Manual) else replace(timing, without=excluded)


def next_after(timing: Timing, t: Instant) -> Instant | None:
    """The first instant strictly after `t`, or None."""
    following = _next_after(timing, t)
    if following is None or isinstance(timing, Manual) or timing.without is None:
        return following
    while following is not None and is_excluded(timing.without, following):
        following = _next_after(timing, end_after(timing.without, following) - 1)
    return following


def _next_after(timing: Timing, t: Instant) -> Instant | None:
    match timing:
        case Every():
            # Plain attributes: unpacking in the pattern costs more than all the arithmetic.
            every, anchor = timing.every, resolved(timing.anchor)
            following = anchor if t < anchor else anchor + ((t - anchor) // every + 1) * every
            return following if following <= (INSTANT_MAX if timing.until is None else timing.until) else None
        case Cron() | Times():
            second = next_second(wall_pattern(timing), resolved(timing.timezone), max(t // SECOND, -1))
            if second is None or (timing.until is not None and second * SECOND > timing.until):
                return None
            return second * SECOND
        case Once() | AfterReset() | Manual():
            at = _only_instant(timing)
            return at if at is not None and at > t else None
        case _:
            assert_never(timing)


def latest_until(timing: Timing, t: Instant, since: Instant | None = None) -> Instant | None:
    """The last instant at or before `t` (and after `since`, if given), or None."""
    since = -1 if since is None else since
    latest = _latest_until(timing, t, since)
    if latest is None or isinstance(timing, Manual) or timing.without is None:
        return latest
    while latest is not None and is_excluded(timing.without, latest):
        latest = _latest_until(timing, start_before(timing.without, latest) - 1, since)
    return latest


def _latest_until(timing: Timing, t: Instant, since: Instant) -> Instant | None:
    if isinstance(timing, Every | Cron | Times) and timing.until is not None:
        t = min(t, timing.until)
    match timing:
        case Every(every, anchor):
            anchor = resolved(anchor)
            instant = None if t < anchor else min(t, INSTANT_MAX) - (min(t, INSTANT_MAX) - anchor) % every
        case Cron() | Times():
            if t < 0:
                return None
            floor = max(since // SECOND, -1)
            second = latest_second(wall_pattern(timing), resolved(timing.timezone), t // SECOND, floor)
            instant = None if second is None else second * SECOND
        case Once() | AfterReset() | Manual():
            at = _only_instant(timing)
            instant = at if at is not None and at <= t else None
        case _:
            assert_never(timing)
    return instant if instant is not None and instant > since else None


def instants_after(timing: Timing, t: Instant) -> Iterator[Instant]:
    """All instants strictly after `t`, in order."""
    first = next_after(timing, t)
    if isinstance(timing, Every) and timing.without is None and first is not None:
        last = INSTANT_MAX if timing.until is None else timing.until
        return iter(range(first, last + 1, timing.every))
    return _instants_from(timing, first)


def _instants_from(timing: Timing, first: Instant | None) -> Iterator[Instant]:
    following = first
    while following is not None:
        yield following
        following = next_after(timing, following)


def next_n(timing: Timing, t: Instant, n: int) -> tuple[Instant, ...]:
    """The first `n` instants strictly after `t`; fewer if there are no more."""
    return tuple(islice(instants_after(timing, t), n))


def tally(timing: Timing, after: Instant, until: Instant) -> InstantCount:
    """Count, first and last of the instants in (after, until], without enumerating them."""
    if not isinstance(timing, Manual) and timing.without is not None:
        return _tally_without(timing, timing.without, after, until)
    first = next_after(timing, after)
    if first is None or first > until:
        return InstantCount(0, None, None)
    last = latest_until(timing, until)
    if last is None or last == first:
        return InstantCount(1, first, first)
    match timing:
        case Every(every):
            count = (last - first) // every + 1
        case Cron() | Times():
            zone = resolved(timing.timezone)
            count = 1 + count_seconds(wall_pattern(timing), zone, first // SECOND, last // SECOND)
        case Once() | AfterReset() | Manual():
            count = 1
        case _:
            assert_never(timing)
    return InstantCount(count, first, last)


def _tally_without(timing: _Dated, excluded: ExcludedDays, after: Instant, until: Instant) -> InstantCount:
    """All instants less those on the excluded days: O(days)."""
    first = next_after(timing, after)
    if first is None or first > until:
        return InstantCount(0, None, None)
    every = replace(timing, without=None)
    left_out = sum(tally(every, begin - 1, end).count for begin, end in ranges(excluded, after, until))
    return InstantCount(tally(every, after, until).count - left_out, first, latest_until(timing, until, after))


def zone_of(timing: Timing) -> str | None:
    """The zone it was written in, if it has one."""
    return None if isinstance(timing, AfterReset | Manual) else timing.timezone


def wall_pattern(timing: Cron | Times) -> WallPattern:
    """The wall times of a timing that follows a zone."""
    if isinstance(timing, Cron):
        return cron_pattern(timing.expression, timing.in_gap, timing.in_repeat)
    return _times_pattern(timing.times)


def is_past(timing: Timing, now: Instant) -> bool:
    """Whether a single instant is before `now`; no other kind of timing can be past."""
    return isinstance(timing, Once) and resolved(timing.at) <= now


def anchor_behind(timing: Every, now: Instant) -> Instant:
    """The anchor, moved back along its grid if it lies after `now`."""
    anchor = resolved(timing.anchor)
    return anchor if anchor <= now else now - (now - anchor) % timing.every


def resolve(timing: Timing, *, now: Instant, default_zone: str) -> Timing:
    """The timing with everything open filled in: the default zone, the anchor, and a delay relative to `now`."""
    match timing:
        case Once(at=None, delay=int(delay)):
            return replace(timing, at=min(now + delay, INSTANT_MAX), delay=None)
        case Every(anchor=None):
            return replace(timing, anchor=now)
        case Cron(timezone=None) | Times(timezone=None):
            return replace(timing, timezone=default_zone)
        case _:
            return timing


@lru_cache(maxsize=1024)
def _times_pattern(times: tuple[str, ...]) -> WallPattern:
    """Times of day are fixed times: made up after a gap, run once when repeated."""
    minutes = array("H", sorted(parse_time_of_day(text, "times") // 60 for text in times))
    return WallPattern(days=None, minutes=minutes, seconds=(0,), makes_up=True, runs_once=True)


def _only_instant(timing: Once | AfterReset | Manual) -> Instant | None:
    match timing:
        case Once(at):
            return resolved(at)
        case AfterReset(_, offset, reset_at):
            return None if reset_at is None else reset_at + offset
        case Manual():
            return None
        case _:
            assert_never(timing)


def resolved(value: _T | None) -> _T:
    """A value that `resolve` has filled in."""
    if value is None:
        raise AssertionError("an unresolved timing was asked for an instant; resolve() it when it is written")
    return value
