"""A source's times by its own rules, computed without our timings, so that the two can be compared.

A rule names days and times of day on the wall clock of a zone, and what happens to times that daylight saving leaves
out or repeats. This walks day by day and asks zoneinfo about each time: slow, simple, and independent of
`core.time.wallclock`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

from wakeful.core.time.instants import Instant

DAYS_MAX: Final = 366 * 440
"""A hundred leap days."""
GAP_MAX: Final = 3 * 3600
_SLACK: Final = timedelta(hours=26)
_ONE_DAY: Final = timedelta(days=1)
Gap: TypeAlias = Literal["run", "minute", "skip", "shift"]
"""What happens to times that do not exist: they run right after the gap, in the first minute after it (at their
second), never, or the first of them later by the length of the gap. Then the times up to that one do not run either."""
Repeat: TypeAlias = Literal["once", "last", "twice", "once by the hour"]
"""When a repeated time runs: the first time, the second time, both times, or the first time if the clock goes back by a
whole hour, else the second time."""
_HOUR: Final = 3600 * 1000


@dataclass(frozen=True, slots=True)
class WallRules:
    """Days and times of day in a zone, under a source's rules."""

    zone: str
    matches_day: Callable[[date], bool]
    seconds: tuple[int, ...]  # of the day, in order
    gap: Gap
    repeat: Repeat

    def __call__(self, after: Instant, count: int) -> list[Instant]:
        """The next times after an instant."""
        zone = ZoneInfo(self.zone)
        start = datetime.fromtimestamp(after / 1000, UTC)
        instants: set[Instant] = set()
        enough: datetime | None = None
        for wall in self._walls((start.astimezone(zone) - _SLACK).replace(tzinfo=None)):
            if enough is not None and wall > enough:
                break
            instants.update(at for at in self._instants(wall, zone) if at > after)
            if enough is None and len(instants) >= count:
                enough = wall + _SLACK / 8  # clocks go back by three hours at most
        return sorted(instants)[:count]

    def _walls(self, first: datetime) -> Iterator[datetime]:
        day = first.date()
        for _ in range(DAYS_MAX):
            if self.matches_day(day):
                midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - a wall time has no zone
                for second in self.seconds:
                    wall = midnight + timedelta(seconds=second)
                    if wall >= first:
                        yield wall
            if day.year > 9000:
                return
            day += _ONE_DAY

    def _instants(self, wall: datetime, zone: ZoneInfo) -> list[Instant]:
        first, second = (_utc(wall, zone, fold) for fold in (0, 1))
        if first == second:
            return [] if self.gap == "shift" and self._is_passed_over(wall, zone) else [first]
        is_gap = first > second
        if is_gap:
            if self.gap == "skip":
                return []
            if self.gap == "shift":
                return [first] if self._is_first_in_gap(wall, zone) else []
            end = _transition(self.zone, second, first)
            if self.gap == "minute":
                end += wall.second * 1000
            return [end] if first - second <= GAP_MAX * 1000 else []
        if self.repeat == "last" or (self.repeat == "once by the hour" and (second - first) % _HOUR):
            return [second]
        return [first, second] if self.repeat == "twice" else [first]

    def _is_passed_over(self, wall: datetime, zone: ZoneInfo) -> bool:
        """Whether an earlier time of that day was moved out of a gap to this time, or beyond."""
        midnight = datetime(wall.year, wall.month, wall.day)  # noqa: DTZ001 - a wall time has no zone
        if _utc(midnight, zone, 0) + (wall - midnight).total_seconds() * 1000 == _utc(wall, zone, 0):
            return False  # the clock did not move since midnight
        for second in self.seconds:
            earlier = midnight + timedelta(seconds=second)
            moved, real = _utc(earlier, zone, 0), _utc(earlier, zone, 1)
            if earlier < wall and moved > real:
                return moved > _utc(wall, zone, 0)
        return False

    def _is_first_in_gap(self, wall: datetime, zone: ZoneInfo) -> bool:
        midnight = datetime(wall.year, wall.month, wall.day)  # noqa: DTZ001 - a wall time has no zone
        earlier = (midnight + timedelta(seconds=second) for second in self.seconds)
        return not any(_utc(at, zone, 0) > _utc(at, zone, 1) for at in earlier if at < wall)


def _utc(wall: datetime, zone: ZoneInfo, fold: int) -> Instant:
    return round(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC).timestamp() * 1000)


@lru_cache(maxsize=1024)
def _transition(zone_name: str, before: Instant, after: Instant) -> Instant:
    """The instant between these two at which the offset of the zone changes."""
    zone = ZoneInfo(zone_name)

    def offset(at: int) -> timedelta | None:
        return datetime.fromtimestamp(at, zone).utcoffset()

    low, high = before // 1000, after // 1000
    start = offset(low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset(middle) == start else (low, middle)
    return high * 1000
