"""From wall times to instants: what a pattern means in a zone whose clock is set forward and back.

Theory of operation: a pattern (`wall_pattern`) defines which wall times match; a zone (`zones`) is a sequence of
segments of constant offset. Inside a segment the two differ by an addition. Daylight saving matters only at the edges:

- **Gap** (the clock is set forward, wall times are left out). A pattern that `makes_up` runs once, at the first instant
  after the gap, if any of its times was left out; several collapse into one run, also if that instant matches by
  itself. Any other pattern has no times there.
- **Repeat** (the clock is set back, wall times occur twice). A pattern that `runs_once` counts the first pass only; any
  other follows real time and runs in both passes.

`cron` decides this for expressions, `timing` for times of day. A gap of more than three hours is not daylight saving
but a zone changing its calendar (Apia left out the whole 30 December 2011): its times never existed, and nothing is
made up. Debian's cron uses the same limit.

These rules define one set of instants per pattern and zone. Every function here is a query on that set and depends on
nothing but its arguments, so starting from any point gives the same sequence. All values are whole seconds;
milliseconds stop at `timing`.
"""

from __future__ import annotations

from typing import Final

from wakeful.core.time.wall_pattern import WALL_MAX, WallPattern, count_walls, last_wall, next_wall
from wakeful.core.time.zones import SECOND_MAX, Segment, segment_at

GAP_MAX: Final = 3 * 3600


def next_second(pattern: WallPattern, zone: str, second: int) -> int | None:
    """The first instant of the pattern strictly after `second`."""
    segment = segment_at(zone, second)
    wall = second + segment.offset
    if pattern.runs_once and wall < segment.seen:
        wall = segment.seen - 1
    match = next_wall(pattern, wall)
    while match - segment.offset >= segment.end:
        if segment.end > SECOND_MAX:
            return None
        closes, segment = segment.end + segment.offset, segment_at(zone, segment.end)
        opens = segment.start + segment.offset
        if match < opens and _is_made_up(pattern, segment):
            return segment.start
        if match < opens or (opens < closes and not pattern.runs_once):
            match = next_wall(pattern, opens - 1)
    following = match - segment.offset
    return following if following <= SECOND_MAX and match < WALL_MAX else None


def latest_second(pattern: WallPattern, zone: str, second: int, since: int = -1) -> int | None:
    """The last instant of the pattern in (since, second]; `since` may cut the search short."""
    second = min(second, SECOND_MAX)
    segment = segment_at(zone, second)
    match = last_wall(pattern, min(second + segment.offset, WALL_MAX - 1))
    while True:
        opens, closes = segment.start + segment.offset, segment.start + segment.before
        if match >= (max(opens, segment.seen) if pattern.runs_once else opens):
            latest = match - segment.offset
            break
        if closes <= match < opens and _is_made_up(pattern, segment):
            latest = segment.start
            break
        if segment.start <= since + 1:
            return None
        segment = segment_at(zone, segment.start - 1)
        if match >= closes or opens < closes:
            match = last_wall(pattern, closes - 1)
    return latest if latest > since else None


def count_seconds(pattern: WallPattern, zone: str, after: int, until: int) -> int:
    """How many instants of the pattern lie in (after, until]."""
    count, start, end = 0, after + 1, min(until, SECOND_MAX) + 1
    while start < end:
        segment = segment_at(zone, start)
        stop = min(end, segment.end)
        opens, closes = start + segment.offset, min(stop + segment.offset, WALL_MAX)
        if pattern.runs_once:
            opens = max(opens, segment.seen)
        if opens < closes:
            count += count_walls(pattern, opens, closes)
        if start == segment.start and _runs_after_gap(pattern, segment):
            count += 1
        start = stop
    return count


def _is_made_up(pattern: WallPattern, segment: Segment) -> bool:
    """Whether matches in the gap before this segment are made up at its start."""
    return pattern.makes_up and segment.offset - segment.before <= GAP_MAX


def _runs_after_gap(pattern: WallPattern, segment: Segment) -> bool:
    """Whether the segment starts with a run that exists only because a gap left its times out."""
    if segment.offset <= segment.before or not _is_made_up(pattern, segment):
        return False
    closes, opens = segment.start + segment.before, segment.start + segment.offset
    return count_walls(pattern, closes, opens) > 0 and count_walls(pattern, opens, opens + 1) == 0
