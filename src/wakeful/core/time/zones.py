"""Time zones as segments of constant offset.

Theory of operation: between two clock changes a zone is a constant: wall = instant + offset. So a zone is divided into
segments, each with its offset, and everything above this module is integer arithmetic on them. zoneinfo returns the
offset at an instant but does not list the changes; they are found by sampling once per day and bisecting where the
offset differs (since 1970 no two changes of a zone are closer than six days). That costs a third of a millisecond per
year of a zone, so about a year is built on first use and cached.

All numbers here are whole seconds: instants since 1970 in UTC, walls since 1970 as the clock on the wall shows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from wakeful.core.errors import refuse

DAY_SECONDS: Final = 86_400
SECOND_MAX: Final = 253_402_300_799
"""9999-12-31T23:59:59Z."""

_STRETCH_BITS: Final = 25  # 2**25 seconds are 388 days: a shift finds the stretch, which has about three segments
_PROBE_MAX: Final = SECOND_MAX - 2 * DAY_SECONDS  # beyond it a local date could fall into the year 10000


@dataclass(frozen=True, slots=True)
class Segment:
    """Instants [start, end) with one offset.

    `before` is the offset that applied until `start` (the same one if the segment is split only for caching); `seen` is
    the wall time the zone had reached by `start`: wall times of this segment below it occur for the second time.
    """

    start: int
    end: int
    offset: int
    before: int
    seen: int


def check_zone(name: str, field: str = "timezone") -> str:
    """Return the name if it is an IANA zone; otherwise refuse it, with the closest valid name."""
    try:
        _zone(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = _nearest(name)
        cure = f"did you mean '{near}'?" if near else "write a name such as 'Europe/Berlin' or 'UTC'"
        refuse(field, f"'{name}' is not an IANA zone; {cure}")
    return name


def segment_at(zone: str, second: int) -> Segment:
    """The segment of the zone that contains the instant."""
    for segment in _segments(zone, second >> _STRETCH_BITS):
        if second < segment.end:
            return segment
    raise AssertionError("zone segments cover the whole range")  # pragma: no cover - by construction


def wall_to_second(zone: str, wall: int) -> int:
    """The instant at which the zone's clock first shows `wall`, or the first one after it if it lies in a gap."""
    segment = segment_at(zone, wall - 2 * DAY_SECONDS)
    while wall - segment.offset >= segment.end:
        segment = segment_at(zone, segment.end)
    return max(wall - segment.offset, segment.start)


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    # Zone folders also contain `localtime` (the setting of this machine) and `right/` (with leap seconds): as a stored
    # name the first changes its meaning from host to host, the second is off by half a minute.
    if name == "localtime" or name.startswith(("posix", "right/")):
        raise ZoneInfoNotFoundError(name)
    return ZoneInfo(name)


@lru_cache(maxsize=4096)
def _segments(zone: str, stretch: int) -> tuple[Segment, ...]:
    info = _zone(zone)
    start, end = stretch << _STRETCH_BITS, (stretch + 1) << _STRETCH_BITS
    # Looking back two days shows whether the stretch starts inside an hour that is being repeated.
    since = start - 2 * DAY_SECONDS
    offset = _offset(info, since)
    opened, before, seen = since, offset, since + offset
    segments = []
    for change in _changes(info, since, end):
        segments.append(Segment(opened, change, offset, before, seen))
        seen = max(seen, change + offset)
        opened, before, offset = change, offset, _offset(info, change)
    segments.append(Segment(opened, end, offset, before, seen))
    return tuple(_clipped(segment, start) for segment in segments if segment.end > start)


def _clipped(segment: Segment, start: int) -> Segment:
    if segment.start >= start:
        return segment
    return Segment(start, segment.end, segment.offset, segment.offset, max(segment.seen, start + segment.offset))


def _changes(info: ZoneInfo, start: int, end: int) -> list[int]:
    """The instants in (start, end) at which the offset changes."""
    changes = []
    offset = _offset(info, start)
    for left in range(start, end, DAY_SECONDS):
        right = min(left + DAY_SECONDS, end - 1)
        following = _offset(info, right)
        if following != offset:
            changes.append(_first_with(info, following, left, right))
            offset = following
    return changes


def _first_with(info: ZoneInfo, offset: int, left: int, right: int) -> int:
    """The first instant in (left, right] with `offset`, which applies at `right` and not at `left`."""
    while right - left > 1:
        middle = (left + right) // 2
        if _offset(info, middle) == offset:
            right = middle
        else:
            left = middle
    return right


def _offset(info: ZoneInfo, second: int) -> int:
    offset = datetime.fromtimestamp(min(second, _PROBE_MAX), info).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _nearest(name: str) -> str | None:
    folded = {zone.casefold(): zone for zone in sorted(available_timezones()) if "/" in zone or zone == "UTC"}
    cities = {zone.rpartition("/")[2]: zone for zone in reversed(folded)}
    wanted = name.strip().replace(" ", "_").casefold()
    near = get_close_matches(wanted, folded, n=1, cutoff=0.8)
    if near:
        return folded[near[0]]
    city = get_close_matches(wanted.rpartition("/")[2], cities, n=1, cutoff=0.8)
    return folded[cities[city[0]]] if city else None
