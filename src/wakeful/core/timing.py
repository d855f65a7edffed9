"""When something should happen, as a value, and the questions one can ask of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from wakeful.core.instants import INSTANT_MAX, Duration, Instant


@dataclass(frozen=True, slots=True)
class Once:
    """A single instant."""

    at: Instant
    timezone: str | None = field(default=None, compare=False)
    kind: str = field(default="once", compare=False)
    written: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Every:
    """Real elapsed time on a grid: anchor, anchor + every, anchor + 2 * every, and so on."""

    every: Duration
    anchor: Instant | None = None
    kind: str = field(default="every", compare=False)
    written: str | None = field(default=None, compare=False)
    anchor_written: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five or six fields, read on the wall clock of a zone."""

    expression: str
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Times of day (`HH:MM`), every day, on the wall clock of a zone."""

    times: tuple[str, ...]
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class AfterReset:
    """An offset after the reset of a quota slot; without a known reset it has no instant."""

    slot: str
    offset: Duration = 0
    reset_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Manual:
    """Only when a person asks."""


Timing: TypeAlias = Once | Every | Cron | Times | AfterReset | Manual


@dataclass(frozen=True, slots=True)
class Tally:
    """How many instants lie in a stretch, and the outermost two."""

    count: int
    first: Instant | None
    last: Instant | None


def next_after(timing: Timing, t: Instant) -> Instant | None:
    """The first instant strictly after `t`, or None if there is none."""
    match timing:
        case Every(every, anchor):
            assert anchor is not None, "resolve() fills the anchor in"  # noqa: S101
            following = anchor if t < anchor else anchor + ((t - anchor) // every + 1) * every
            return following if following <= INSTANT_MAX else None
        case Once(at):
            return at if at > t else None
        case AfterReset(_, offset, reset_at):
            return reset_at + offset if reset_at is not None and reset_at + offset > t else None
        case Manual():
            return None
        case Cron() | Times():
            raise NotImplementedError
        case _:
            assert_never(timing)


def latest_until(timing: Timing, t: Instant, since: Instant | None = None) -> Instant | None:
    """The last instant at or before `t` (and after `since`, if given), or None if there is none."""
    raise NotImplementedError


def next_n(timing: Timing, t: Instant, n: int) -> tuple[Instant, ...]:
    """The first `n` instants strictly after `t`; fewer if there are no more."""
    raise NotImplementedError


def tally(timing: Timing, after: Instant, until: Instant) -> Tally:
    """Count, first and last of the instants in (after, until], without enumerating them."""
    raise NotImplementedError


def is_past(timing: Timing, now: Instant) -> bool:
    """Whether a single instant already lies behind `now`; no other kind of timing can be past."""
    return isinstance(timing, Once) and timing.at <= now


def resolve(timing: Timing, *, now: Instant, default_zone: str) -> Timing:
    """The timing with everything left open filled in: the zone by name, the anchor by `now`."""
    raise NotImplementedError
